// Translate: write on one side, read on the other; point at a word and see where it came from.

import {write} from "../address.js";
import {latest} from "../api.js";
import {element, sheet} from "../element.js";
import {field, pageHead} from "../pieces/forms.js";
import {language, ofWords, remember, runPicker, usable} from "../pieces/runs.js";
import {examplesOf, textTrouble} from "./runs/attempt.js";
import {outputPane} from "./translate/output.js";
import {cut, recall, recallCut, translateAll, unitsOf} from "./translate/sentences.js";
import {sourceField} from "./translate/source.js";
import {textCard} from "./translate/text.js";

const PAUSE = 160; // milliseconds after the last key
const BEAMS = [1, 2, 3, 5, 8, 12, 20];
const PICKS = ["picks", "otherpicks"];
const NO_PICKS = {picks: "", otherpicks: ""};
const LEAD = "Write, and the translation follows.";
const REST = "Tap or point at a word to see where it came from.";

export const tasks = ["translate"];
export const wordsOnly = true; // a run of vectors has no sentence to be given
export const nothing = "There is nothing to translate with yet.";

export async function mount(root, {values, runs, opening}) {
  await sheet("panels/translate.css");
  root.append(pageHead("Translate", LEAD));
  const page = new Translate(root, ofWords(usable(runs, "translate")));
  if (opening && !values.text) await page.open(values);
  else page.update(values);
  return {update: (next) => page.update(next), leave: () => page.leave()};
}

class Translate {
  /** @type {ReturnType<typeof runPicker>} */ run;
  /** @type {ReturnType<typeof runPicker>} */ other;
  /** @type {{beam: number}} */ asked;

  constructor(root, runs) {
    this.runs = runs;
    this.sentences = [];
    this.cutting = latest();
    this.source = sourceField({onwrite: () => this.wrote(), onpoint: (place) => this.pointedSource(place)});
    this.card = textCard({
      field: this.source.node,
      onswap: () => this.swapped(),
      onclear: () => (this.change({text: ""}), this.source.area.focus()),
      ontry: (text) => this.change({text}),
    });
    this.panes = [0, 1].map((number) => this.pane(number));
    this.panels = element(
      "div.panes",
      this.card.node,
      this.panes.map(({view}) => view.node),
    );
    this.reading = element("div.reading.number", element("p.note", REST));
    this.lists = element(
      "div.lists",
      this.panes.map(({view}) => view.others),
    );
    root.append(this.panels, this.reading, this.controls(), this.lists);
  }

  pane(number) {
    const pane = {number, ask: latest()};
    const onpoint = (sentence, target) => this.pointedTarget(number, sentence, target);
    pane.head = number ? element("h2.pane-title") : this.runHead();
    pane.view = outputPane({head: pane.head, onpoint, onpick: (sentence, rank) => this.picked(pane, sentence, rank)});
    return pane;
  }

  /** The run stands above what it wrote, with the language it writes. */
  runHead() {
    this.target = element("h2.pane-title", "Translation");
    this.run = runPicker({runs: this.runs, value: "", onchange: (run) => this.change({run, ...NO_PICKS})});
    return element("div.run-head", this.target, this.run);
  }

  controls() {
    const onchange = (other) => this.change({other});
    this.other = runPicker({runs: this.runs, value: "", label: "Compare with", none: "no other", onchange});
    this.beam = element(
      "select",
      BEAMS.map((beam) => element("option", {value: beam}, beam === 1 ? "1, greedy" : beam)),
    );
    this.beam.addEventListener("change", () => this.change({beam: this.beam.value}));
    return element("div.controls.choices", this.other, field("Beam", this.beam, "how many the search keeps"));
  }

  /** At the first visit: an example, translated, with a word of it lit. Text that the user has written stays. */
  async open(values) {
    this.update(values);
    const [text = ""] = await examplesOf(values.run);
    if (this.source.text) return;
    const next = {...values, text};
    write("translate", next, {replace: true});
    await this.update(next);
    const target = this.panes[0].view.telling(0);
    if (target !== null) this.pointedTarget(0, 0, target);
  }

  /** Show what the address says. */
  update(values) {
    this.values = values;
    const run = this.runs.find((each) => each.name === values.run) ?? this.runs[0];
    const other = this.runs.find((each) => each.name === values.other && each !== run);
    const beam = BEAMS.includes(Number(values.beam)) ? Number(values.beam) : 5;
    this.panes.forEach((pane, number) => (pane.run = [run, other][number]));
    this.asked = {beam};
    [this.run.value, this.other.value, this.beam.value] = [run.name, other?.name ?? "", beam];
    this.panes[1].head.textContent = other?.name ?? "";
    if (this.source.text !== (values.text ?? "")) this.rest(); // what was lit belongs to the text that was there
    this.source.text = values.text ?? "";
    this.target.textContent = run.languages?.target ? language(run.languages.target) : "Translation";
    this.card.show(run, {back: this.back()});
    this.panels.classList.toggle("three", Boolean(other));
    this.panes[1].view.node.hidden = this.panes[1].view.others.hidden = !other;
    return this.translate();
  }

  /** A run for the other direction. */
  back() {
    const {source, target} = this.panes[0].run.languages ?? {};
    const able = this.runs.filter(
      ({languages}) => target && languages?.source === target && languages?.target === source,
    );
    return able.find(({best}) => best) ?? able[0];
  }

  swapped() {
    const run = this.back();
    remember(run);
    this.change({run: run.name, other: "", text: this.panes[0].view.text});
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

  /** The words of the text behind it, as far as they are known. */
  spread() {
    const text = this.source.text;
    const asked = {...this.asked, run: this.panes[0].run.name};
    const known = recallCut(text, asked.run);
    this.source.spread(
      (known ?? []).map((each) => {
        const found = recall(asked, each.text);
        const at = unitsOf(each.text);
        const marks = ["unknown", "omitted"].flatMap((kind) =>
          (found?.[kind] ?? []).map(({start, end}) => ({kind, start: at(start), end: at(end)})),
        );
        return {...each, words: found?.source_words ?? each.text.split(/\s+/), marks};
      }),
    );
    this.card.count(text, known?.length ?? 0);
  }

  async translate() {
    clearTimeout(this.waiting);
    const text = this.source.text;
    if (this.card.tooLong(text)) {
      [this.cutting, ...this.panes.map(({ask}) => ask)].forEach((ask) => ask.stop());
      this.panes.forEach(({view}) => view.time(null));
      return;
    }
    this.spread();
    const shown = this.panes.filter(({run}) => run);
    try {
      const {name} = this.panes[0].run;
      if (!recallCut(text, name))
        shown.forEach(({ask, view}) => {
          ask.stop(); // what it would draw belongs to the text before
          view.stale();
        });
      const sentences = await this.cutting((signal) => cut(text, name, {signal}));
      if (!sentences) return;
      this.sentences = sentences;
    } catch (problem) {
      this.panes[0].view.problem(textTrouble(problem, {run: this.panes[0].run, again: () => this.translate()}));
      return;
    }
    this.spread();
    this.current = Math.min(this.current ?? 0, Math.max(0, this.sentences.length - 1));
    await Promise.all(this.panes.map((pane) => (pane.run ? this.fill(pane) : pane.ask.stop())));
  }

  async fill(pane) {
    const asked = {...this.asked, run: pane.run.name};
    const sentences = this.sentences;
    /** @type {number | null} */
    let taken = null;
    this.draw(pane, {busy: true});
    try {
      const done = await pane.ask(async (signal) => {
        await translateAll(asked, sentences, {
          signal,
          onprogress: (milliseconds) => {
            taken = (taken ?? 0) + milliseconds;
            if (!signal.aborted) this.draw(pane, {busy: true});
          },
        });
        return true;
      });
      if (!done) return;
      this.spread();
      this.draw(pane, {busy: false});
      this.again?.();
      pane.view.time(taken);
    } catch (problem) {
      this.draw(pane, {busy: false});
      pane.view.problem(textTrouble(problem, {run: pane.run, again: () => this.fill(pane)}));
    }
  }

  /** While nothing new is known, what was there stays, visibly old. */
  draw(pane, {busy}) {
    const asked = {...this.asked, run: pane.run.name};
    const translations = this.sentences.map(({text}) => recall(asked, text));
    if (busy && this.sentences.length && !translations.some(Boolean)) return pane.view.stale();
    const picks = this.picksOf(pane);
    const waits = busy && !translations.every(Boolean);
    pane.view.show({
      run: pane.run,
      sentences: this.sentences,
      between: this.between(),
      translations,
      picks,
      busy: waits,
    });
    pane.view.alternatives(pane.run, this.current, picks.get(this.current) ?? 0);
    return undefined;
  }

  /** What stands before, between and after the sentences: it is kept as it is. */
  between() {
    const text = this.source.text;
    const ends = [0, ...this.sentences.map(({end}) => end)];
    const starts = [...this.sentences.map(({start}) => start), text.length];
    return ends.map((end, place) => text.slice(end, starts[place]));
  }

  /** Which of its outputs a run shows, by sentence; the address has it as "0:2,3:1". */
  picksOf({number}) {
    const text = this.values[PICKS[number]] ?? "";
    return new Map(
      text
        .split(",")
        .filter(Boolean)
        .map((pair) => pair.split(":").map(Number)),
    );
  }

  picked(pane, sentence, rank) {
    const picks = this.picksOf(pane).set(sentence, rank);
    this.change({
      [PICKS[pane.number]]: [...picks]
        .filter(([, each]) => each)
        .map((pair) => pair.join(":"))
        .join(","),
    });
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
    const {weights, words} = view.linksOf(sentence, target);
    view.lightOwn(sentence, target);
    this.source.light(sentence, weights);
    this.read([{run: this.panes[number].run.name, words}]);
    return this.turn(sentence);
  }

  pointedSource(place) {
    if (!place) return this.rest();
    const {sentence, word, start} = place;
    this.again = () => this.pointedSource(place); // when more is known
    this.source.light(sentence, new Map(), word);
    const shown = this.panes.filter((pane) => pane.run);
    this.read(shown.map(({view, run}) => ({run: run.name, ...view.lightFrom(sentence, start)})));
    return this.turn(sentence);
  }

  rest() {
    this.again = undefined;
    this.source.light(-1, new Map());
    this.panes.forEach(({view}) => view.lightOwn(-1, null));
    this.reading.replaceChildren(element("p.note", REST));
  }

  /** What was pointed at, in words; of two runs, one below the other. */
  read(found) {
    const several = this.panes[1].run !== undefined;
    const lines = found
      .filter(({words}) => words)
      .map(({run, words}) => {
        const name = several ? element("span.note", element("bdi", run), ": ") : null;
        return element("p", name, words);
      });
    this.reading.replaceChildren(...lines);
  }

  leave() {
    clearTimeout(this.waiting);
    this.cutting.stop();
    this.panes.forEach(({ask}) => ask.stop());
    this.source.leave();
  }
}
