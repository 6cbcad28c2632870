// Beam: the search as a tree. What was kept, what was pruned and why; and what comes of forcing another way.

import {write} from "../address.js";
import {latest, post} from "../api.js";
import {element, sheet} from "../element.js";
import {toast} from "../pieces/announce.js";
import {field, pageHead} from "../pieces/forms.js";
import {term} from "../pieces/glossary.js";
import {
  chosenSentence,
  folding,
  markUnknown,
  oneLine,
  placeOf,
  remarks,
  saidRun,
  saidText,
  sentenceChoice,
  sentenceOf,
} from "../pieces/question.js";
import {chosen, runPicker, usable} from "../pieces/runs.js";
import {number, percent} from "../pieces/scales.js";
import {skeleton} from "../pieces/skeleton.js";
import {tokenLine} from "../pieces/tokens.js";
import {tree, wayTo} from "../pieces/tree.js";
import {candidatesTable, othersTable, portrait, shapesKey} from "./beam/candidates.js";
import {examples} from "./beam/examples.js";
import {beginning, textTrouble} from "./runs/attempt.js";

const PAUSE = 350; // milliseconds after the last key
const BEAMS = [1, 2, 3, 5, 8, 12, 20];
const PRUNED = [0, 1, 3, 6, 20];
const PENALTIES = [0, 0.5, 1, 1.5, 2];
const LEAD =
  "Word by word, the search keeps the few best ways to go on and drops the rest. Click any of them to force it, " +
  "and see what would have followed.";
const caption = () => [
  "Each column is a step. In a shape: the ",
  term("piece"),
  ", how probable it was there · and all that is written so far, and why it left the beam, if it did. Best first.",
];

export const tasks = ["translate", "language"];
export const nothing = "There is no search to watch yet.";

export async function mount(root, {values, runs}) {
  await sheet("panels/beam.css");
  root.append(pageHead("Beam", LEAD));
  const page = new Beam(root, usable(runs, ...tasks));
  await page.update(values);
  return {update: (next) => page.update(next), leave: () => page.leave()};
}

class Beam {
  /** @type {import("../pieces/runs.js").Run} */ model;
  /** @type {ReturnType<typeof runPicker>} */ run;
  /** @type {ReturnType<typeof examples>} */ examples;
  /** @type {any} what was searched for: run, text, beam, length_penalty, prefix, sentence */ asked;
  /** @type {any} what /api/v1/beam answered, if it has */ found;
  /** @type {string} the question of what is drawn */ drawn;

  constructor(root, runs) {
    this.runs = runs;
    this.ask = latest();
    this.picture = tree({
      label: "The search, step by step",
      onpoint: (node) => this.pointed(node),
      onpick: (node) => this.force(node),
    });
    this.forced = element("div.row.forced-row");
    this.result = element("div.result");
    this.about = element("div.portrait.card", {role: "status", "aria-live": "off"});
    this.others = element("div");
    this.all = element("div");
    this.problems = element("div");
    this.remarks = element("div");
    this.choice = sentenceChoice((place) => this.change({sentence: place || "", prefix: ""}));
    this.waitingFor = element("div", {hidden: true}, skeleton("lines", 4));
    this.stage = element(
      "div.search",
      {hidden: true},
      this.result,
      element("figure.card", shapesKey(), this.picture.node, this.about, element("figcaption", caption())),
      this.all,
      element("h2", "Other beams"),
      element("p.note", "What the same model writes with fewer or more hypotheses; words that differ are marked."),
      this.others,
    );
    this.question = folding(this.controls());
    this.question.addEventListener("fold", () => this.model && this.examples.show(this.model));
    root.append(this.question, this.choice, this.forced, this.remarks, this.problems, this.waitingFor, this.stage);
  }

  controls() {
    this.run = runPicker({
      runs: this.runs,
      value: this.runs[0].name,
      onchange: (run) => this.change({run, prefix: ""}),
    });
    this.text = element("input", {type: "text", dir: "auto", spellcheck: "false"});
    this.text.addEventListener("input", () => this.wrote());
    this.text.addEventListener("keydown", (event) => event.key === "Enter" && this.text.blur());
    this.text.addEventListener("change", () => this.tell());
    const choice = (options, name, word = (value) => String(value)) => {
      const select = element(
        "select",
        options.map((value) => element("option", {value}, word(value))),
      );
      select.addEventListener("change", () => this.change({[name]: select.value}));
      return select;
    };
    this.beam = choice(BEAMS, "beam", (beam) => (beam === 1 ? "1, greedy" : String(beam)));
    this.penalty = choice(PENALTIES, "penalty");
    this.pruned = choice(PRUNED, "pruned");
    this.examples = examples((text, beam) => this.change({text, beam, prefix: "", sentence: ""}));
    return element(
      "div.controls.knobs",
      this.run,
      field("Sentence", this.text),
      field("Beam", this.beam, "hypotheses kept"),
      field("Length penalty", this.penalty, "log p ÷ lengthᵃ"),
      field("Pruned", this.pruned, "shown in a step"),
      this.examples.node,
    );
  }

  /** Show what the address says. */
  async update(values) {
    clearTimeout(this.waiting);
    const run = chosen(this.runs, values.run);
    const mine = (this.visit = (this.visit ?? 0) + 1);
    const text = values.text ?? (await beginning(run));
    if (mine !== this.visit) return; // another question came meanwhile
    this.values = values;
    const among = (options, value, usual) => (options.includes(Number(value)) && value !== "" ? Number(value) : usual);
    this.model = run;
    this.asked = {
      run: this.model.name,
      text,
      beam: among(BEAMS, values.beam, 5),
      length_penalty: among(PENALTIES, values.penalty, 1),
      prefix: values.prefix ?? "",
      ...chosenSentence(placeOf(values)),
    };
    this.shownPruned = among(PRUNED, values.pruned, 3);
    this.run.value = this.model.name;
    const line = oneLine(this.asked.text);
    if (oneLine(this.text.value) !== line) this.text.value = line;
    [this.beam.value, this.penalty.value, this.pruned.value] = [
      this.asked.beam,
      this.asked.length_penalty,
      this.shownPruned,
    ];
    this.showForced();
    this.tell();
    if (!this.question.folded) this.examples.show(this.model);
    this.search();
  }

  /** One line says what was asked, unless the user is writing. */
  tell() {
    if (!this.asked.text.trim()) return this.question.unfold();
    if (this.question.contains(document.activeElement) && document.activeElement === this.text) return undefined;
    const {run, text, beam, length_penalty: penalty} = this.asked;
    const note = (words) => element("span.note", words);
    return this.question.fold(
      saidRun(run),
      saidText(text),
      note(`beam ${beam}`),
      penalty === 1 ? null : note(`length penalty ${penalty}`),
    );
  }

  /** A step that back undoes. */
  change(values) {
    const next = {...this.values, run: this.asked.run, text: this.asked.text, ...values};
    write("beam", next);
    this.update(next);
  }

  wrote() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      const next = {...this.values, run: this.asked.run, text: this.text.value, prefix: "", sentence: ""};
      write("beam", next, {replace: true});
      this.update(next);
    }, PAUSE);
  }

  force(node) {
    if (node.text.includes("<unk>")) return toast("<unk> stands for every unknown word: it cannot be forced");
    return this.change({prefix: node.text});
  }

  showForced() {
    const {prefix} = this.asked;
    this.forced.hidden = !prefix;
    if (!prefix) return;
    this.forced.replaceChildren(
      element("span", "Begins with ", element("b", {dir: "auto"}, prefix), ", because you said so."),
      element("button.small", {onclick: () => this.change({prefix: ""})}, "Let it choose again"),
    );
  }

  async search() {
    if (!this.asked.text.trim())
      return this.empty("Write a sentence, and the search for its translation is drawn here.");
    const key = JSON.stringify(this.asked);
    if (key === this.drawn) return this.draw(this.found); // only how it is shown has changed
    this.stage.setAttribute("aria-busy", "true");
    this.waitingFor.hidden = Boolean(this.found);
    try {
      const found = await this.ask((signal) => post("/api/v1/beam", this.asked, {signal}));
      if (!found) return undefined;
      [this.found, this.drawn] = [found, key];
      this.problems.replaceChildren();
      this.draw(found);
    } catch (problem) {
      const take = (text) => this.change({text, prefix: "", sentence: ""});
      this.empty(textTrouble(problem, {run: this.model, again: () => this.search(), take}));
    }
    return undefined;
  }

  empty(words) {
    this.ask.stop();
    [this.found, this.drawn, this.stage.hidden, this.waitingFor.hidden] = [undefined, "", true, true];
    this.stage.setAttribute("aria-busy", "false");
    this.choice.hidden = true; // what was shown belongs to the text before
    this.remarks.replaceChildren();
    this.problems.replaceChildren(typeof words === "string" ? element("p.note", words) : words);
  }

  draw(found) {
    const {nodes, outputs, others, text} = found;
    const {beam, prefix} = this.asked;
    this.choice.show(found.sentences, placeOf(this.values));
    this.remarks.replaceChildren(...remarks(found));
    [this.stage.hidden, this.waitingFor.hidden] = [false, true];
    this.stage.setAttribute("aria-busy", "false");
    const held = document.activeElement?.closest?.(".tree") ? this.kept : undefined;
    const forced = prefix ? forcedNodes(nodes, outputs, prefix) : new Set();
    this.picture.show({nodes, outputs}, {pruned: this.shownPruned, forced});
    this.picture.reveal(forced.size);
    if (held !== undefined) this.picture.hold(Math.max(0, ...forced));
    const best = nodes[outputs[0]];
    const scores = `log-probability ${number(best.log_probability, 3)}, normalised for length ${number(best.score, 3)}`;
    const source = tokenLine(sentenceOf(found, this.asked.text.trim(), placeOf(this.values)).split(/\s+/), {
      label: "Source",
    });
    markUnknown(source.node, found.unknown);
    source.node.classList.add("note");
    this.result.replaceChildren(
      ...(found.unknown?.length || found.sentences?.length > 1 ? [source.node] : []),
      element("p.best", {dir: "auto"}, text || "(nothing)"),
      element(
        "p.note.number",
        {title: scores},
        `${percent(Math.exp(best.log_probability))} probable`,
        ` · a beam of ${beam} considered ${nodes.length - 1} candidates`,
      ),
    );
    this.pointed(null);
    this.all.replaceChildren(candidatesTable(found));
    this.others.replaceChildren(
      othersTable(others, {beam, text, score: best.score, log_probability: best.log_probability}, (width) =>
        this.change({beam: width}),
      ),
    );
  }

  pointed(node) {
    if (node) this.kept = node.number;
    this.about.classList.toggle("told", Boolean(node));
    if (this.found) this.about.replaceChildren(...portrait(node, this.found, this.asked.length_penalty));
  }

  leave() {
    clearTimeout(this.waiting);
    this.ask.stop();
  }
}

/** Those that were not chosen but forced: on the way to the output, and no longer than the prefix. */
function forcedNodes(nodes, outputs, prefix) {
  const way = [...wayTo(nodes, outputs[0])].map((place) => nodes[place]);
  return new Set(
    way
      .filter((node) => node.parent != null && node.piece !== "<end>" && prefix.startsWith(node.text))
      .map((node) => node.number),
  );
}
