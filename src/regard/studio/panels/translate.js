// Translate: write on one side, read on the other; point at a word and see where it came from.

import {write} from "../address.js";
import {latest} from "../api.js";
import {element, sheet} from "../element.js";
import {field, pageHead} from "../pieces/forms.js";
import {chosen, runPicker, usable} from "../pieces/runs.js";
import {trouble} from "../pieces/trouble.js";
import {outputPane} from "./translate/output.js";
import {recall, sentencesOf, translateAll} from "./translate/sentences.js";
import {sourceField} from "./translate/source.js";

const PAUSE = 160; // milliseconds after the last key
const BEAMS = [1, 2, 3, 5, 8, 12, 20];
const PICKS = ["picks", "otherpicks"];
const NO_PICKS = {picks: "", otherpicks: ""};
const EXAMPLES = [
  "the black cat ate the mouse",
  "the fisherman slept on the bank",
  "the old banker counted the coins in the bank",
];
const LEAD =
  "Write, and the translation follows. Point at a word, or move the caret to it, and what it came from lights up.";
const REST = "Point at a word to see where it came from.";

export const tasks = ["translate"];
export const nothing = "There is nothing to translate with yet.";

export async function mount(root, {values, runs}) {
  await sheet("panels/translate.css");
  const known = usable(runs, "translate");
  root.append(pageHead("Translate", LEAD));
  const page = new Translate(root, known);
  page.update(values);
  return {update: (next) => page.update(next), leave: () => page.leave()};
}

class Translate {
  constructor(root, runs) {
    this.runs = runs;
    this.source = sourceField({onwrite: () => this.wrote(), onpoint: (place) => this.pointedSource(place)});
    this.panes = [0, 1].map((number) => this.pane(number));
    this.panels = element("div", {class: "panes"}, this.sourceCard(), this.panes.map(({view}) => view.node));
    this.reading = element("div", {class: "reading number"}, element("p", {class: "note"}, REST));
    this.lists = element("div", {class: "lists"}, this.panes.map(({view}) => view.others));
    root.append(this.controls(), this.panels, this.reading, this.lists);
  }

  pane(number) {
    const pane = {number, ask: latest()};
    const onpoint = (sentence, target) => this.pointedTarget(number, sentence, target);
    pane.view = outputPane({onpoint, onpick: (sentence, rank) => this.picked(pane, sentence, rank)});
    return pane;
  }

  controls() {
    const first = this.runs[0].name;
    this.run = runPicker({runs: this.runs, value: first, label: "Model", onchange: (run) => this.change({run})});
    const onchange = (other) => this.change({other});
    this.other = runPicker({runs: this.runs, value: "", label: "Compare with", none: "no other", onchange});
    this.beam = element(
      "select",
      {},
      BEAMS.map((beam) => element("option", {value: beam}, beam === 1 ? "1, greedy" : beam)),
    );
    this.beam.addEventListener("change", () => this.change({beam: this.beam.value}));
    return element(
      "div",
      {class: "controls choices"},
      this.run,
      this.other,
      field("Beam", this.beam, "hypotheses kept"),
    );
  }

  sourceCard() {
    this.examples = element(
      "p",
      {class: "examples"},
      element("span", {class: "note"}, "Try "),
      EXAMPLES.map(
        (text) => element("button", {type: "button", class: "small", onclick: () => this.change({text})}, text),
      ),
    );
    this.counted = element("span", {class: "note number"});
    const clear = element(
      "button",
      {type: "button", class: "quiet small", onclick: () => this.change({text: ""})},
      "Clear",
    );
    this.sourceTitle = element("h2", {class: "pane-title"}, "Source");
    return element(
      "section",
      {class: "card pane", "aria-label": "Source"},
      element("div", {class: "row"}, this.sourceTitle, this.counted, element("span", {class: "push"}), clear),
      this.source.node,
      this.examples,
    );
  }

  /** Show what the address says. */
  update(values) {
    this.values = values;
    const run = chosen(this.runs, values.run);
    const other = this.runs.find((each) => each.name === values.other && each !== run);
    const beam = BEAMS.includes(Number(values.beam)) ? Number(values.beam) : 5;
    this.panes.forEach((pane, number) => (pane.run = [run, other][number]));
    this.asked = {beam};
    [this.run.value, this.other.value, this.beam.value] = [run.name, other?.name ?? "", beam];
    this.source.text = values.text ?? "";
    this.sourceTitle.textContent = run.languages?.source ? `Source, ${run.languages.source}` : "Source";
    this.panels.classList.toggle("three", Boolean(other));
    this.panes[1].view.node.hidden = this.panes[1].view.others.hidden = !other;
    this.translate();
  }

  /** A step that back undoes. */
  change(values) {
    const next = {...this.values, ...values, ...("text" in values ? NO_PICKS : {})};
    write("translate", next);
    this.update(next);
  }

  wrote() {
    this.spread();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      const next = {...this.values, text: this.source.text, ...NO_PICKS};
      write("translate", next, {replace: true});
      this.update(next);
    }, PAUSE);
  }

  /** The sentences of the text, and their words behind it. */
  spread() {
    const text = this.source.text;
    this.sentences = sentencesOf(text, this.panes[0].run.languages?.source);
    const asked = {...this.asked, run: this.panes[0].run.name};
    this.source.spread(
      this.sentences.map(
        (each) => ({...each, words: recall(asked, each.text)?.source_words ?? each.text.split(/\s+/)}),
      ),
    );
    this.examples.hidden = text.trim() !== "";
    const many = this.sentences.length;
    this.counted.textContent = many > 1 ? `${many} sentences` : "";
  }

  async translate() {
    clearTimeout(this.waiting);
    this.spread();
    this.current = Math.min(this.current ?? 0, Math.max(0, this.sentences.length - 1));
    await Promise.all(this.panes.map((pane) => (pane.run ? this.fill(pane) : pane.ask.stop())));
  }

  async fill(pane) {
    const asked = {...this.asked, run: pane.run.name};
    const sentences = this.sentences;
    let taken = null;
    this.draw(pane, {busy: true});
    try {
      const done = await pane.ask(async (signal) => {
        await translateAll(asked, sentences, {signal, onprogress: (milliseconds) => {
          taken = (taken ?? 0) + milliseconds;
          if (!signal.aborted) this.draw(pane, {busy: true});
        }});
        return true;
      });
      if (!done) return;
      this.spread();
      this.draw(pane, {busy: false});
      this.again?.();
      if (taken !== null || !sentences.length) pane.view.time(taken);
    } catch (problem) {
      this.draw(pane, {busy: false});
      pane.view.problem(trouble(problem, () => this.fill(pane)));
    }
  }

  /** While nothing new is known, what was there stays, a little paler. */
  draw(pane, {busy}) {
    const asked = {...this.asked, run: pane.run.name};
    const translations = this.sentences.map(({text}) => recall(asked, text));
    if (busy && this.sentences.length && !translations.some(Boolean)) return pane.view.stale(pane.run);
    const picks = this.picksOf(pane);
    pane.view.show({run: pane.run, sentences: this.sentences, translations, picks, busy});
    pane.view.alternatives(pane.run, this.current, picks.get(this.current) ?? 0);
  }

  /** Which of its outputs a run shows, by sentence; the address has it as "0:2,3:1". */
  picksOf({number}) {
    const text = this.values[PICKS[number]] ?? "";
    return new Map(text.split(",").filter(Boolean).map((pair) => pair.split(":").map(Number)));
  }

  picked(pane, sentence, rank) {
    const picks = this.picksOf(pane).set(sentence, rank);
    this.change({[PICKS[pane.number]]: [...picks].filter(([, each]) => each).map((pair) => pair.join(":")).join(",")});
  }

  /** Others may be asked about: the sentence with the caret, or the one whose translation was reached. */
  turn(sentence) {
    if (sentence === this.current) return;
    this.current = sentence;
    for (const pane of this.panes.filter(({run}) => run)) {
      pane.view.alternatives(pane.run, sentence, this.picksOf(pane).get(sentence) ?? 0);
    }
  }

  pointedTarget(number, sentence, target) {
    const {view} = this.panes[number];
    if (target === null) return this.rest();
    const {weights, words, aligner} = view.linksOf(sentence, target);
    view.lightOwn(sentence, target);
    this.source.light(sentence, weights);
    this.read([{run: this.panes[number].run.name, words, aligner}]);
    this.turn(sentence);
  }

  pointedSource(place) {
    if (!place) return this.rest();
    const {sentence, word, start} = place;
    this.again = () => this.pointedSource(place); // when more is known
    this.source.light(sentence, new Map(), word);
    const shown = this.panes.filter((pane) => pane.run);
    this.read(shown.map(({view, run}) => ({run: run.name, ...view.lightFrom(sentence, start)})));
    this.turn(sentence);
  }

  rest() {
    this.again = undefined;
    this.source.light(-1, new Map());
    this.panes.forEach(({view}) => view.lightOwn(-1, null));
    this.reading.replaceChildren(element("p", {class: "note"}, REST));
  }

  /** What was pointed at, in words, and whose weights these are; of two models, one below the other. */
  read(found) {
    const several = this.panes[1].run !== undefined;
    const lines = found.filter(({words}) => words).map(({run, words, aligner}) => {
      const name = several ? element("span", {class: "note"}, `${run}: `) : null;
      const origin = aligner ? element("span", {class: "note"}, `  weights: ${aligner}`) : null;
      return element("p", {dir: "auto"}, name, words, origin);
    });
    this.reading.replaceChildren(...lines);
  }

  leave() {
    clearTimeout(this.waiting);
    this.panes.forEach(({ask}) => ask.stop());
    this.source.leave();
  }
}
