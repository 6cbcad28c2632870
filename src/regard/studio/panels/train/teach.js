// Teach this model: a run, a text of one's own, all weights or adapters alone, what must not be forgotten, how long.

import {post, put} from "../../api.js";
import {element} from "../../element.js";
import {field, segmented} from "../../pieces/forms.js";
import {chosen, ofWords, pair, usable} from "../../pieces/runs.js";
import {trouble} from "../../pieces/trouble.js";
import {freeName} from "./choices.js";
import {corpusPicker} from "./corpus.js";

const TIMES = [
  ["1m", "1 min"],
  ["5m", "5 min"],
  ["30m", "30 min"],
  ["2h", "2 hours"],
  ["", "as suits the text"],
];
const WAYS = {
  none: "All weights learn: the most that can be learned, and the most that can be forgotten.",
  lora:
    "The weights stay, and small additions to the attention and feed-forward matrices learn. They are merged into " +
    "what is kept.",
};
const COLUMNS = {translate: "source, tab, translation", tag: "words, tab, tags", classify: "text, tab, label"};

/**
 * @param {{teach?: string, corpus?: string}} values of the address
 * @param {{runs: import("../../pieces/runs.js").Run[], taken: string[], again?: any, onstart: (run: string) => void}}
 *   about  `again`: a training whose choices the form begins with
 */
export function teachForm(values, about) {
  return new TeachForm(values, about);
}

class TeachForm {
  /** @type {ReturnType<typeof corpusPicker>} */ corpus;

  /**
   * @param {any} values
   * @param {{runs: import("../../pieces/runs.js").Run[], taken: string[], again?: any, onstart: (run: string) => void}}
   *   about
   */
  constructor(values, {runs, taken, again, onstart}) {
    this.runs = ofWords(usable(runs)); // a corpus of this page is text
    this.names = taken;
    this.onstart = onstart;
    const {base, corpus, time, keep_watching: general, overrides} = again?.request ?? {};
    this.time = time ?? "5m";
    this.adapt = overrides?.some((line) => line.includes("lora")) ? "lora" : "none";
    this.general = general;
    this.build(base ?? values.teach ?? "", corpus ?? values.corpus);
    this.load();
  }

  build(base, corpus) {
    this.run = element(
      "select",
      this.runs.map(({name}) => element("option", {value: name}, name)),
    );
    this.run.value = chosen(this.runs, base)?.name ?? "";
    const [task, fits] = [() => this.task(), (one) => this.fits(one)];
    this.corpus = corpusPicker({value: corpus, task, fits, onchange: () => {}});
    this.pasted = element("textarea", {rows: 4, spellcheck: "false", dir: "auto"});
    this.watched = element("select");
    this.about = element("p.note");
    this.name = element("input", {
      type: "text",
      pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*",
      required: true,
      maxlength: 100,
    });
    this.button = element("button.primary", {type: "submit", disabled: true}, "Teach it");
    this.result = element("div", {"aria-live": "polite"});
    const way = segmented({
      label: "What learns",
      value: this.adapt,
      onchange: (adapt) => ((this.adapt = adapt), this.describe()),
      options: [
        {value: "none", text: "all weights"},
        {value: "lora", text: "adapters (LoRA)"},
      ],
    });
    const times = segmented({
      label: "Teach for at most",
      value: this.time,
      onchange: (time) => (this.time = time),
      options: TIMES.map(([value, text]) => ({value, text})),
    });
    this.pastedField = field("Or paste it here, a pair a line", this.pasted, "");
    this.node = element(
      "form.new-training.teach",
      {"aria-labelledby": "teach-title"},
      element("h2", {id: "teach-title"}, "Teach this model"),
      element(
        "section.card",
        element("h3", "1. The model"),
        element("div.grid-form", field("Run", this.run, "It stays as it is: a new run begins with it.")),
        way,
        this.about,
      ),
      element("section.card", element("h3", "2. What it shall learn"), this.corpus.node, this.pastedField),
      element(
        "section.card",
        element("h3", "3. What it shall not forget, and how long"),
        element(
          "div.grid-form",
          field("Keep watching", this.watched, "Text of another kind, measured beside what it learns."),
          field("Name of the new run", this.name),
        ),
        times,
      ),
      element("div.row", this.button),
      this.result,
    );
    this.name.addEventListener("input", () => (this.named = true));
    this.run.addEventListener("change", () => {
      this.describe();
      this.offer();
    });
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    this.describe();
  }

  task() {
    return this.runs.find(({name}) => name === this.run.value)?.task ?? "translate";
  }

  async load() {
    try {
      await this.corpus.load();
      this.offer();
      this.watched.value = this.general ?? "";
      this.button.disabled = !this.run.value;
    } catch (problem) {
      this.result.replaceChildren(trouble(problem, () => this.load()));
    }
  }

  /** Texts that the run can learn from: of those that are built in, only what has its two languages. */
  fits(corpus) {
    const languages = this.runs.find(({name}) => name === this.run.value)?.languages;
    return !corpus.built_in || !languages || pair(languages) === pair(corpus.languages);
  }

  offer() {
    const option = (value, words) => element("option", {value}, words);
    this.corpus.list();
    this.watched.replaceChildren(option("", "nothing"), ...this.corpus.corpora.map(({name}) => option(name, name)));
  }

  describe() {
    this.about.textContent = WAYS[this.adapt];
    const columns = COLUMNS[this.task()];
    this.pastedField.querySelector("label").textContent = columns
      ? `Or paste it here, a line each: ${columns}`
      : "Or paste it here, a text a line";
    if (!this.named) this.name.value = freeName(`${this.run.value || "model"}-taught`, this.names);
  }

  taken(names) {
    this.names = names;
    if (!this.named) this.describe();
  }

  /** The corpus that is chosen, or what was pasted, as one of its own. */
  async text(name) {
    if (!this.pasted.value.trim()) return this.corpus.corpus.name;
    const file = this.task() === "language" ? "train.text" : "train.tsv";
    await put(`/api/v1/corpora/${encodeURIComponent(name)}/${file}`, new Blob([`${this.pasted.value.trim()}\n`]));
    return name;
  }

  async start() {
    if (!(await this.corpus.settled())) return;
    if (!this.corpus.corpus && !this.pasted.value.trim()) {
      this.result.replaceChildren(element("p.warning", "Give it a text: drop files, or paste some lines."));
      return;
    }
    this.button.disabled = true;
    try {
      const name = this.name.value.trim();
      const corpus = await this.text(`${name}-text`);
      const wish = {
        name,
        corpus,
        base: this.run.value,
        time: this.time,
        keep_watching: this.watched.value,
        overrides: this.adapt === "lora" ? ["train.adapt={kind='lora'}"] : [],
      };
      const {run} = await post("/api/v1/trainings", wish, {lasting: true});
      this.onstart(run);
    } catch (problem) {
      this.result.replaceChildren(trouble(problem));
      this.button.disabled = false;
    }
  }

  leave() {}
}
