// Meaning: one word in several sentences, through the layers. At first it is the same vector everywhere; then the
// company it keeps makes it differ.

import {write} from "../address.js";
import {latest, post} from "../api.js";
import {element, sheet} from "../element.js";
import {field, pageHead} from "../pieces/forms.js";
import {unpack} from "../pieces/packed.js";
import {AROUND, folding, remarks, saidRun} from "../pieces/question.js";
import {chosen, ofWords, runPicker, usable} from "../pieces/runs.js";
import {skeleton} from "../pieces/skeleton.js";
import {trouble} from "../pieces/trouble.js";
import {examplesFor, ownExamples} from "./meaning/examples.js";
import {results} from "./meaning/results.js";
import {has, sentenceList} from "./meaning/sentences.js";

const LEAD =
  "The vector of a word, sentence by sentence and layer by layer. It begins as the same vector everywhere; " +
  "then its neighbours make it mean one thing here and another there.";
const NEIGHBOURS = 5;

export const tasks = ["translate", "tag", "classify"]; // a language model has no encoder to compare layers of
export const wordsOnly = true; // a run of vectors has no sentence to be given
export const nothing = "A word has a meaning for a model that has learned.";

export async function mount(root, {values, runs}) {
  await sheet("panels/meaning.css");
  const frame = root.appendChild(element("div.meaning"));
  frame.append(pageHead("Meaning", LEAD));
  const page = new Page(frame, ofWords(usable(runs, ...tasks)));
  await page.update(values);
  return {update: (next) => page.update(next), leave: () => page.leave()};
}

class Page {
  /** @type {any} what the address says: run, word, control, sentences, layer, from, text */ state;
  /** @type {ReturnType<typeof runPicker>} */ picker;
  /** @type {ReturnType<typeof sentenceList>} */ list;

  constructor(root, runs) {
    this.runs = runs;
    this.ask = latest();
    this.question = "";
    this.body = element("div.results");
    this.old = element("p.warning", {role: "status", hidden: true});
    this.form = folding(this.controls());
    this.form.addEventListener("input", () => this.aged());
    root.append(this.form, this.old, this.body);
  }

  controls() {
    this.picker = runPicker({runs: this.runs, value: "", onchange: (run) => this.change({run})});
    this.word = this.written("word");
    this.control = this.written("control");
    this.list = sentenceList((sentences) => this.change({sentences}));
    this.ready = element("div.row.ready", {role: "group", "aria-label": "Examples"});
    return element(
      "div.question",
      element(
        "div.fields",
        field("Word", this.word),
        field("Control word", this.control, "One that should stay the same, to compare with. It may be left out."),
        this.picker,
      ),
      this.ready,
      element("div", {role: "group", "aria-label": "Sentences"}, this.list),
      element(
        "div.row",
        element("button.primary", {onclick: () => this.tell()}, "Compare"),
        element("span.note", "or press Enter in a field"),
      ),
    );
  }

  /** Examples that the run can read. */
  offer(examples) {
    const button = ({word, about, control, sentences}) => {
      const take = () => {
        this.change({word, control, sentences, from: 0});
        this.tell();
      };
      return element("button.small", {onclick: take}, element("b", word), ` ${about}`);
    };
    this.ready.hidden = !examples.length;
    this.ready.replaceChildren(element("span.note", "Try"), ...examples.map(button));
  }

  /** What is written is not what is shown: until it is asked for, the result below is an old one. */
  aged() {
    const {word, control} = this.state;
    const other = this.word.value.trim() !== word || this.control.value.trim() !== control;
    this.old.hidden = !other || !this.shown;
    const next = this.word.value.trim() || word;
    this.old.textContent = `What stands below is of “${word}”. Press Enter to ask about “${next}”.`;
    this.body.classList.toggle("old", !this.old.hidden);
  }

  /** One line says what was asked. */
  tell() {
    const {run, word, control, sentences} = this.state;
    const note = (words) => element("span.note", words);
    const several = sentences.length === 1 ? "1 sentence" : `${sentences.length} sentences`;
    this.form.fold(
      saidRun(run),
      element("b", {dir: "auto"}, word),
      note(`in ${several}`),
      control ? note(`control: ${control}`) : null,
    );
  }

  /** A text field for one word. */
  written(name) {
    const input = element("input", {type: "text", dir: "auto", spellcheck: "false", autocomplete: "off"});
    input.addEventListener("change", () => this.change({[name]: input.value.trim()}));
    return input;
  }

  /** The address says what to show. */
  async update(values) {
    const run = chosen(this.runs, values.run);
    const mine = (this.visit = (this.visit ?? 0) + 1);
    if (!this.body.childElementCount) this.body.replaceChildren(skeleton("page"));
    const examples = [...(await ownExamples(run)), ...examplesFor(run)];
    if (mine !== this.visit) return;
    const first = examples[0] ?? {word: "", control: "", sentences: []};
    this.offer(examples);
    const named = values.word !== undefined;
    this.state = {
      run: run?.name,
      word: values.word?.trim() || first.word,
      control: named || values.control !== undefined ? (values.control ?? "") : first.control,
      sentences:
        values.sentences
          ?.split("\n")
          .map((line) => line.trim())
          .filter(Boolean) ?? (named ? [] : first.sentences),
      layer: values.layer === undefined ? null : Math.trunc(Number(values.layer)) || 0,
      from: Math.max(0, Math.trunc(Number(values.from)) || 0),
      text: values.text ?? "", // not used here, but the other pages want it back
    };
    this.fill();
    const {word, control, sentences} = this.state;
    // those that can be asked about
    const rows = sentences.map((_, row) => row).filter((row) => has(sentences[row], word));
    const question = {
      run: run?.name,
      word,
      sentences: rows.map((row) => sentences[row]),
      control: control || null,
      neighbours: NEIGHBOURS,
    };
    if (JSON.stringify([question, rows]) === this.question) {
      this.shown?.go(this.state);
      return;
    }
    await this.load(question, rows);
  }

  fill() {
    const {run, word, control, sentences} = this.state;
    this.picker.value = run;
    for (const [input, text] of [
      [this.word, word],
      [this.control, control],
    ])
      if (document.activeElement !== input || input.value.trim() !== text) input.value = text;
    this.list.show(sentences, word);
    this.aged();
  }

  /** A new state, kept in the address; back undoes it. */
  change(changes, options) {
    this.state = {...this.state, ...changes};
    const {sentences, layer, from, ...rest} = this.state;
    const values = {...rest, sentences: sentences.join("\n"), layer: layer ?? "", from: from || ""};
    write("meaning", values, options);
    const kept = Object.fromEntries(
      Object.entries(values).filter(([name, value]) => value !== "" || name === "sentences" || name === "control"),
    );
    return this.update({...kept, layer: layer ?? undefined});
  }

  async load(question, rows) {
    if (!question.sentences.length) return this.nothing(question.word);
    if (!this.form.contains(document.activeElement)) this.tell();
    if (!this.shown) this.body.replaceChildren(skeleton("page"));
    this.body.setAttribute("aria-busy", "true");
    try {
      const found = await this.ask((signal) =>
        Promise.all([post("/api/v1/meaning", question, {signal}), this.translations(question, signal)]),
      );
      if (!found) return undefined;
      this.question = JSON.stringify([question, rows]);
      if (strange([found[0], ...found[1]], question.word)) return this.unknown(question.word);
      this.begin(rows, ...found);
    } catch (problem) {
      this.forget();
      this.body.replaceChildren(trouble(problem, () => this.load(question, rows)));
    } finally {
      this.body.removeAttribute("aria-busy");
    }
  }

  /** Greedy, as the translations that the meanings are read from. */
  async translations({run, sentences}, signal) {
    if (this.runs.find((one) => one.name === run).task !== "translate") return [];
    return (await post("/api/v1/translate", {run, texts: sentences, beam: 1, alignment: true}, {signal})).translations;
  }

  begin(rows, answer, translations) {
    this.forget(false);
    const about = {
      unknown: answer.unknown ?? translations.flatMap((one) => one.unknown ?? []),
      warning: answer.warning,
    };
    const found = {...answer, cosines: unpack(answer.cosines), points: unpack(answer.points), translations, rows};
    this.shown = results(found, {change: (changes, options) => this.change(changes, options)});
    this.body.replaceChildren(...remarks(about), this.shown.node);
    this.aged();
    this.shown.go(this.state);
  }

  /** The vectors would be those of no word in particular. */
  unknown(word) {
    this.forget();
    const run = this.state.run;
    this.body.replaceChildren(
      element(
        "section.empty.card",
        {role: "status"},
        element("h2", element("bdi", run), " has never seen the word ", element("bdi", word), "."),
        element(
          "p",
          "Its vectors would be those of every unknown word, so there is nothing to compare. " +
            "Choose another word, or another run.",
        ),
        element("button.primary", {onclick: () => this.edit()}, "Choose another word"),
      ),
    );
    return undefined;
  }

  edit() {
    this.form.unfold();
    this.word.select();
    this.word.focus();
  }

  nothing(word) {
    this.form.unfold();
    this.forget();
    this.body.replaceChildren(
      element(
        "p.note",
        word
          ? `Write two sentences or more with the word ${word}.`
          : "Write a word that has two meanings, in the language that the run reads, and two sentences or more with it.",
      ),
    );
  }

  forget(all = true) {
    this.shown?.leave();
    this.shown = null;
    if (all) this.question = "";
  }

  leave() {
    this.ask.stop();
    this.forget();
  }
}

const plain = (word) => word.toLowerCase().replace(AROUND, "");

/** Whether the run says of this word that it has never seen it. */
const strange = (answers, word) =>
  answers.some(({unknown = []}) => unknown.some((one) => plain(one.word) === plain(word)));
