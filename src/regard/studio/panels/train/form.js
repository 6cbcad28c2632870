// A new training: corpus, architecture and size, time, what it would take; and the one button that trains the demo.

import {get, latest, post} from "../../api.js";
import {element} from "../../element.js";
import {field, segmented} from "../../pieces/forms.js";
import {count} from "../../pieces/runs.js";
import {skeleton} from "../../pieces/skeleton.js";
import {trouble} from "../../pieces/trouble.js";
import {corpusPicker} from "./corpus.js";
import {earlier, freeName} from "./choices.js";

const SENTENCE = "The black cat ate the mouse.";
const LANGUAGE = "[a-z]{2,3}(_[A-Za-z0-9]{2,8}|-([A-Z][A-Za-z]{1,3}|[0-9]{3}))*"; // settings/schema.py has the same
const TIMES = [
  ["1m", "1 min"],
  ["5m", "5 min"],
  ["30m", "30 min"],
  ["2h", "2 hours"],
  ["", "no limit"],
];
const PIECES = [
  ["word", "whole words"],
  ["bpe", "as many subwords as suit the corpus"],
  ["bpe 8000", "at most 8,000 subwords"],
  ["bpe 4000", "at most 4,000 subwords"],
  ["bpe 1000", "at most 1,000 subwords"],
  ["character", "characters"],
];
const TASKS = [
  ["translate", "translate"],
  ["tag", "tag words"],
  ["classify", "classify texts"],
  ["language", "continue texts"],
];

/** The card of the first start: no choice to make, and something to see within seconds. */
export function demoButton({first, onstart, taken}) {
  const problem = element("div");
  const demo = taken.find(({run}) => run === "demo");
  const begin = async (event) => {
    event.target.disabled = true;
    try {
      onstart(
        (
          await post(
            "/api/v1/trainings",
            {name: "demo", preset: "demo", corpus: "fable:fr", watch: SENTENCE},
            {lasting: true},
          )
        ).run,
      );
    } catch (trouble_) {
      event.target.disabled = false;
      problem.replaceChildren(trouble(trouble_));
    }
  };
  return element(
    "section.card.first",
    {"aria-labelledby": "first-title"},
    element("h2", {id: "first-title"}, first ? "Begin here" : "The demo"),
    element(
      "p",
      "A small Transformer learns English to French from a built-in corpus, here on this machine, " +
        "in about three minutes. You can watch it from the first step.",
    ),
    demo
      ? element("button.primary", {onclick: () => onstart("demo")}, "See the demo")
      : element("button.primary", {onclick: begin}, "Train the demo"),
    problem,
  );
}

/**
 * @param {{taken: string[], again?: any, onstart: (run: string) => void}} about  `again`: a training whose choices the
 *   form begins with
 */
export function trainingForm(values, about) {
  return new TrainingForm(values, about);
}

class TrainingForm {
  /** @type {ReturnType<typeof corpusPicker>} */ corpus;
  /** @type {HTMLButtonElement[]} */ buttons;

  /** @param {any} values  @param {{taken: string[], again?: any, onstart: (run: string) => void}} about */
  constructor(values, {taken, again, onstart}) {
    this.names = taken;
    this.onstart = onstart;
    this.ask = latest();
    this.before = again
      ? earlier(
          again,
          PIECES.map(([value]) => value),
        )
      : null;
    this.size = 1;
    this.time = this.before?.time ?? "5m";
    this.build({...values, ...this.before});
    this.load({...values, ...this.before});
  }

  build(values) {
    const options = (list) => list.map(([value, words]) => element("option", {value}, words));
    this.task = element("select", options(TASKS));
    this.corpus = corpusPicker({
      value: values.corpus,
      task: () => this.task.value,
      onchange: (corpus) => this.chosen(corpus),
    });
    this.preset = element("select");
    this.about = element("p.note");
    this.pieces = element("select", options(PIECES));
    this.pairs = element("input", {type: "number", min: 100, max: 1000000, step: 100, value: 20000});
    this.pairsField = field("Sentences", this.pairs, "of the built-in corpus");
    this.languages = element("input", {
      type: "text",
      pattern: `${LANGUAGE}-${LANGUAGE}`,
      maxlength: 40,
      placeholder: "en-de",
    });
    this.languagesField = field("Languages", this.languages, "from-to, as codes: en-de");
    this.watch = element("input", {type: "text", maxlength: 1000, placeholder: "a sentence in the source language"});
    this.name = element("input", {
      type: "text",
      pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*",
      required: true,
      maxlength: 100,
    });
    this.own = element("textarea", {rows: 3, spellcheck: "false", placeholder: "train.rate=5e-4\nmodel.dropout=0.2"});
    this.result = element("div.estimate", {"aria-live": "polite"});
    this.buttons = [
      element("button.primary", {type: "submit", disabled: true}, "Start training"),
      element("button", {disabled: true, onclick: () => this.estimate()}, "What will it take?"),
    ];
    this.again = this.before
      ? element(
          "p.note",
          "Filled in as for ",
          element("bdi", this.before.name),
          ": change what was wrong, and start.",
          this.before.right ? ` ${this.before.right} would work; it is filled in below.` : "",
        )
      : null;
    const sizes = segmented({
      label: "Width",
      value: String(this.size),
      onchange: (size) => ((this.size = Number(size)), this.describe()),
      options: [
        {value: "0.5", text: "half"},
        {value: "1", text: "usual"},
        {value: "2", text: "double"},
      ],
    });
    const times = segmented({
      label: "Train for at most",
      value: this.time,
      onchange: (time) => (this.time = time),
      options: TIMES.map(([value, text]) => ({value, text})),
    });
    this.node = element(
      "form.new-training",
      {"aria-labelledby": "new-title"},
      element("h2", {id: "new-title"}, this.before ? "Change and start again" : "Train your own"),
      this.again,
      element("section.card", element("h3", "1. What it learns from"), this.corpus.node),
      element(
        "section.card",
        element("h3", "2. The model"),
        element(
          "div.grid-form",
          field("Task", this.task),
          field("Architecture", this.preset),
          field("Pieces", this.pieces),
          this.pairsField,
          this.languagesField,
        ),
        this.about,
        sizes,
      ),
      element(
        "section.card",
        element("h3", "3. How long, and what to watch"),
        times,
        element("div.grid-form", field("Name of the run", this.name), field("Watch one sentence learn", this.watch)),
        element(
          "details",
          element("summary", "Any other setting"),
          field("Settings, one per line", this.own, "As on the command line; regard settings explain lists them all."),
        ),
      ),
      element("div.row", this.buttons),
      this.result,
    );
    this.name.addEventListener("input", () => (this.named = true));
    this.preset.addEventListener("change", () => this.describe());
    this.task.addEventListener("change", () => this.describe());
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
  }

  async load(values) {
    try {
      await this.corpus.load();
      const {presets} = await get("/api/v1/presets");
      this.presets = presets.filter(({name}) => name !== "demo");
      this.preset.replaceChildren(...this.presets.map(({name}) => element("option", {value: name}, name)));
      this.preset.value = this.presets.some(({name}) => name === values.preset) ? values.preset : "transformer-tiny";
      this.refill();
      this.describe();
      this.buttons.forEach((button) => (button.disabled = false));
    } catch (problem) {
      this.result.replaceChildren(trouble(problem, () => this.load(values)));
    }
  }

  /** What an earlier training had. */
  refill() {
    const {task, pieces, pairs, watch, own, languages} = this.before ?? {};
    const filled = [
      [this.task, task],
      [this.pieces, pieces],
      [this.pairs, pairs],
      [this.watch, watch],
      [this.own, own],
      [this.languages, languages],
    ];
    for (const [control, value] of filled) if (value) control.value = value;
    if (own) this.own.closest("details").open = true;
  }

  /** Another corpus: what suits it is chosen along with it. */
  chosen(corpus) {
    this.pairsField.hidden = !corpus.built_in;
    this.languagesField.hidden = corpus.built_in;
    this.languages.value =
      corpus.built_in || !corpus.languages ? "" : `${corpus.languages.source}-${corpus.languages.target}`;
    this.pieces.value = corpus.built_in ? "word" : "bpe";
    if (corpus.built_in && !this.watch.value) this.watch.value = SENTENCE;
    if (!corpus.built_in && this.watch.value === SENTENCE) this.watch.value = "";
  }

  describe() {
    const preset = this.presets?.find(({name}) => name === this.preset.value);
    if (!preset) return;
    const sized = Object.entries(preset.sizes).map(
      ([name, value]) => `${name.replace("model.", "").replace("_", " ")} ${this.sized(name, value)}`,
    );
    const whole = this.size === 1 ? ` About ${count(preset.parameters)} parameters with 8,000 pieces.` : "";
    this.about.textContent = `${preset.about}${sized.length ? ` Sizes: ${sized.join(", ")}.` : ""}${whole}`;
    if (!this.named)
      this.name.value = freeName(
        this.task.value === "translate" ? preset.name : `${preset.name}-${this.task.value}`,
        this.names,
      );
  }

  sized = (name, value) =>
    ["model.width", "model.hidden"].includes(name) ? Math.max(8, Math.round(value * this.size)) : value;

  taken(names) {
    this.names = names;
    if (!this.named) this.describe();
  }

  wish() {
    const {sizes} = this.presets.find(({name}) => name === this.preset.value);
    const [tokenizer, size] = this.pieces.value.split(" ");
    const corpus = this.corpus.corpus;
    const overrides = [
      ...(this.task.value === "translate" ? [] : [`task=${this.task.value}`]),
      ...(this.size === 1
        ? []
        : Object.entries(sizes)
            .filter(([name]) => /width|hidden/.test(name))
            .map(([name, value]) => `${name}=${this.sized(name, value)}`)),
      `text.tokenizer=${tokenizer}`,
      ...(size ? [`text.size=${size}`] : []),
      ...(corpus.built_in ? [`data.pairs=${Number(this.pairs.value)}`] : []),
      ...this.own.value
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean),
    ];
    const languages = corpus.built_in ? {} : {languages: this.languages.value.trim()};
    return {preset: this.preset.value, corpus: corpus.name, time: this.time, overrides, ...languages};
  }

  async estimate() {
    if (!(await this.corpus.settled())) return;
    this.result.replaceChildren(
      element("p.note", {role: "status"}, "Preparing the corpus and measuring this machine…"),
      skeleton("lines", 2),
    );
    try {
      const found = await this.ask((signal) => post("/api/v1/estimate", this.wish(), {signal}));
      if (found) this.result.replaceChildren(estimated(found));
    } catch (problem) {
      this.result.replaceChildren(trouble(problem));
    }
  }

  async start() {
    this.ask.stop();
    if (!(await this.corpus.settled())) return;
    try {
      const name = this.name.value.trim();
      const watch = this.watch.value.trim();
      const {run} = await post("/api/v1/trainings", {...this.wish(), name, watch}, {lasting: true});
      this.onstart(run);
    } catch (problem) {
      this.result.replaceChildren(trouble(problem));
    }
  }

  leave() {
    this.ask.stop();
  }
}

/** What a training will take, in words. */
function estimated({words, unknown}) {
  const share = unknown > 0.0005 ? `${(100 * unknown).toFixed(1)} % of the pieces will be unknown to it.` : "";
  return element(
    "div.card",
    [words, share].filter(Boolean).map((line) => element("p", line)),
  );
}
