// Learn: the mathematics of the user's own sentence, with the run's own numbers, one step at a time.

import {link, write} from "../address.js";
import {get, latest, post} from "../api.js";
import {element, sheet} from "../element.js";
import {shortcut} from "../keys.js";
import {announce} from "../pieces/announce.js";
import {pageHead, segmented} from "../pieces/forms.js";
import {explained, legible} from "../pieces/letters.js";
import {chosenSentence, markUnknown, placeOf, remarks, sentenceChoice, sentenceOf} from "../pieces/question.js";
import {chosen, usable} from "../pieces/runs.js";
import {skeleton} from "../pieces/skeleton.js";
import {chapters, shortWay} from "./learn/chapters.js";
import {question as questionCard} from "./learn/questions.js";
import {whyAttention} from "./learn/why.js";
import {whereWeAre} from "./learn/where.js";
import {controls, words} from "./learn/controls.js";
import {guide} from "./learn/guide.js";
import {card, setup} from "./learn/step.js";
import {ending} from "./learn/ending.js";
import {beginning, textTrouble} from "./runs/attempt.js";

const WHO = {translate: "a translator", tag: "a tagger", classify: "a classifier", language: "a language model"};
const lead = (task) =>
  `What ${WHO[task] ?? WHO.translate} computes, step by step: your sentence, this run's own numbers. ` +
  "Each step has an idea, a formula, the numbers, and the lines of code that give them again.";
const PLACES = ["layer", "head", "word"];

export const tasks = ["translate", "tag", "classify", "language"];
export const nothing = "The numbers of this page are those of a model that has learned.";

export async function mount(root, {values, runs}) {
  await Promise.all([sheet("panels/learn.css"), sheet("panels/map.css")]);
  const frame = root.appendChild(element("div.learn"));
  frame.append(pageHead("Learn", lead("")));
  const page = new Page(frame, usable(runs, ...tasks));
  await page.update(values);
  return page;
}

class Page {
  /** @type {any} what the address says: run, text, sentence, layer, head, word, side, step */ state;
  /** @type {any} the walkthrough, if there is one: import("./learn/step.js").Walk */ walk;
  /** @type {Map<string, import("./learn/step.js").Step>} */ byName;
  /** @type {number} of the step that is shown */ number;
  /** @type {import("./learn/step.js").Step[]} the steps of the way that is gone */ path;
  /** @type {string} "short", or the full one */ way;
  /** @type {import("./learn/chapters.js").Chapter[]} */ story;
  /** @type {Map<string, number>} the number of each step, by its name */ places;
  /** @type {ReturnType<typeof guide>} */ guide;

  constructor(root, runs) {
    this.runs = runs;
    this.models = new Map();
    this.ask = latest();
    this.question = ""; // what the walkthrough on the page answers
    this.controls = controls(runs, (changes) => this.change(changes));
    this.body = element("div.walkthrough");
    this.lead = root.querySelector(".lead");
    this.choice = sentenceChoice((place) => this.change({sentence: place}));
    this.where = whereWeAre((part) => this.toPart(part));
    root.append(this.controls, this.choice, this.body);
    this.keys = [
      shortcut("ArrowRight", "the next step", () => this.move(1)),
      shortcut("ArrowLeft", "the step before", () => this.move(-1)),
    ];
    this.update = this.update.bind(this);
    this.leave = this.leave.bind(this);
  }

  leave() {
    this.ask.stop();
    this.keys.forEach((forget) => forget());
    this.where.leave();
  }

  /** The address of what a part of the model computes: its first step, in its own layer. */
  toPart({name, steps}) {
    const layer = /\.(\d+)(\.|$)/.exec(name)?.[1];
    const shown = this.walk?.steps.find((step) => steps.some((start) => step.name.startsWith(start)));
    const other = layer !== undefined && Number(layer) !== this.walk?.layer;
    return this.go(other ? {layer: Number(layer), step: steps[0]} : {step: shown?.name ?? steps[0]});
  }

  /** The address says what to show. Where it says nothing of the place, the walk begins where there is much to see. */
  async update(values) {
    const said =
      PLACES.some((name) => values[name] !== undefined && values[name] !== "") || Boolean(values.side || values.step);
    const places = Object.fromEntries(PLACES.map((name) => [name, Math.max(0, Math.trunc(Number(values[name])) || 0)]));
    const run = chosen(this.runs, values.run);
    const mine = (this.visit = (this.visit ?? 0) + 1);
    const text = values.text?.trim() || (await beginning(run));
    if (mine !== this.visit) return undefined; // another question came meanwhile
    this.task = run.task;
    const packaged = run.name === "demo" && run.fixed; // the demo of the package goes by its name
    this.folder = packaged ? run.name : `runs/${run.name}`;
    this.lead.textContent = lead(run.task);
    this.state = {
      run: run.name,
      text,
      sentence: placeOf(values),
      ...places,
      side: values.side || "all",
      step: values.step ?? "",
      way: values.way ?? (said ? "" : "short"),
    };
    const {step, sentence, way, ...rest} = this.state;
    const question = {...rest, ...chosenSentence(sentence)};
    if (JSON.stringify(question) === this.question) {
      if (this.way !== way) this.begin(this.walk);
      else this.show();
      return this.reveal();
    }
    return this.load(question, !said);
  }

  /** A new state, kept in the address; back undoes it. */
  change(changes) {
    const next = {...this.state, ...changes};
    const anew = "run" in changes || "text" in changes || "sentence" in changes;
    if ("text" in changes) next.sentence = 0;
    if (anew) Object.assign(next, {layer: "", head: "", word: "", side: "all", step: ""});
    if ("side" in changes) Object.assign(next, {layer: 0, head: 0, word: 0});
    // the same step of another layer
    if (!anew) next.step = next.step.replace(`.${this.state.layer}.`, `.${next.layer}.`);
    write("learn", addressOf(next));
    return this.update(next.side === "all" ? {...next, side: ""} : next);
  }

  /** The address of another step; one that is not on the short way is on the full one. */
  go(changes) {
    const off = changes.step && this.places && !this.places.has(changes.step);
    return link("learn", addressOf({...this.state, ...changes, ...(off ? {way: ""} : {})}));
  }

  async load(question, free) {
    const known = this.models.has(question.run);
    this.controls.show(this.state, this.models.get(question.run) ?? null);
    if (!this.walk) this.body.replaceChildren(skeleton("page"));
    this.body.setAttribute("aria-busy", "true");
    try {
      const found = await this.ask(async (signal) => {
        const begin = free ? await this.beginning(question, signal) : {};
        const asked = {...question, ...begin};
        return [
          asked,
          ...(await Promise.all([
            post("/api/v1/walkthrough", asked, {signal}),
            known ? null : this.portray(question.run, signal),
          ])),
        ];
      });
      if (!found) return;
      const [asked, walk] = found;
      this.question = JSON.stringify(asked);
      if (free) {
        Object.assign(this.state, {layer: asked.layer, head: asked.head, word: asked.word});
        write("learn", addressOf(this.state), {replace: true});
      }
      this.begin(walk);
      this.where.draw({run: asked.run, text: asked.text, ...chosenSentence(this.state.sentence)});
    } catch (problem) {
      this.question = "";
      this.walk = null;
      this.choice.hidden = true; // it belongs to the text before
      const run = chosen(this.runs, question.run);
      const take = (text) => this.change({text});
      this.body.replaceChildren(textTrouble(problem, {run, again: () => this.load(question, free), take}));
    } finally {
      this.body.removeAttribute("aria-busy");
    }
  }

  /** Where a walk begins by default: at a content word, with the head that aligns best. */
  async beginning({run, text, ...rest}, signal) {
    const {task, source, target, aligner, attentions} = await post(
      "/api/v1/trace",
      {run, text, ...("sentence" in rest ? {sentence: rest.sentence} : {})},
      {signal},
    );
    const [first] = aligner?.heads ?? [];
    const layers = attentions.filter(({name}) => name.startsWith("encoder")).length || Infinity;
    const place = first && first.layer < layers ? {layer: first.layer, head: first.head} : {layer: 0, head: 0};
    const followed = task === "tag" || task === "classify" ? source : target;
    return {...place, word: contentWord(followed.words)};
  }

  async portray(run, signal) {
    const {model} = await get(`/api/v1/runs/${encodeURIComponent(run)}`, {signal});
    this.models.set(run, model ?? null);
  }

  /** A walkthrough has come: lay out the page around its steps. */
  begin(walk) {
    const {side} = this.state;
    this.walk = walk === this.walk ? walk : readable(walk);
    this.way = this.state.way;
    this.path = this.way === "short" ? shortWay(this.walk.steps) : this.walk.steps;
    this.story = chapters(this.path, this.task);
    this.choice.show(walk.sentences, this.state.sentence);
    this.byName = new Map(this.walk.steps.map((step) => [step.name, step]));
    this.places = new Map(this.path.map((step, number) => [step.name, number]));
    this.controls.show(this.state, this.models.get(this.state.run));
    this.guide = guide(this.story, (step) => this.go({step}));
    this.stage = element("div.stage");
    this.before = element("button.turn", {onclick: () => this.move(-1)});
    this.after = element("button.turn.primary", {onclick: () => this.move(1)});
    this.progress = element("progress", {max: this.path.length, "aria-label": "Steps done"});
    const turning = element("div.turning", this.before, this.after);
    const lines = words({walk, side, choose: (place) => this.change({word: place})});
    markUnknown(lines, walk.unknown);
    this.end = element("div");
    this.asked = element("div");
    this.body.replaceChildren(
      ...remarks(walk),
      lines,
      element("p.headline", ...headline(walk, side)),
      element(
        "div.desk",
        element("div.side-of-desk", this.where.node, this.ways(), this.guide),
        element("div.sheet", this.progress, this.stage, this.asked, turning, this.end),
      ),
    );
    this.show();
  }

  show() {
    if (!this.walk) return;
    const number = this.numberOf(this.state.step);
    const step = this.path[number];
    const chapter = this.story.find(({steps}) => steps.some((one) => one.number === number)) ?? this.story[0];
    const {run, text, sentence} = this.state;
    const top = this.models.get(run)?.encoder_layers === this.walk.layer + 1;
    const world = {
      run,
      text,
      sentence,
      walk: this.walk,
      byName: this.byName,
      places: this.places,
      count: this.path.length,
      top,
      go: (changes) => this.go(changes),
      setup: setup({
        ...this.state,
        folder: this.folder,
        text: sentenceOf(this.walk, text, sentence),
        task: this.walk.task,
      }),
    };
    this.stage.replaceChildren(card({step, number, chapter}, world));
    this.guide.mark(step.name);
    this.where.light(step.name);
    this.progress.value = number + 1;
    turn(this.before, this.path[number - 1], "← ");
    turn(this.after, this.path[number + 1], "", " →");
    const over = number + 1 === this.path.length;
    const closes = chapter.steps.at(-1)?.number === number;
    this.asked.replaceChildren(...(closes ? [questionCard(chapter, this.walk)].filter(Boolean) : []));
    const model = this.models.get(run);
    this.end.replaceChildren(
      ...(over
        ? [
            ending(
              {walk: this.walk, path: this.path, story: this.story, state: this.state, model, task: this.task},
              (changes) => this.again(changes),
            ),
            ...(this.task === "translate"
              ? [whyAttention(this.runs, {run, text: sentenceOf(this.walk, text, sentence)})]
              : []),
          ]
        : []),
    );
    this.number = number;
  }

  /** A step by its name, or the first whose name begins so: a part of the model may be named instead. */
  numberOf(name) {
    const exact = this.places.get(name);
    if (exact !== undefined || !name) return exact ?? 0;
    return Math.max(
      0,
      this.path.findIndex((step) => step.name.startsWith(name)),
    );
  }

  /** The short way or the full one. */
  ways() {
    const all = this.walk.steps.length;
    const short = shortWay(this.walk.steps).length;
    if (short === all) return element("span");
    return segmented({
      label: "Way",
      hideLabel: true,
      options: [
        {value: "short", text: `Short, ${short} steps`},
        {value: "", text: `All ${all}`},
      ],
      value: this.way,
      onchange: (way) => this.change({way}),
    });
  }

  /** The same from its first step, with another word or in another layer. */
  async again(changes) {
    await this.change({...changes, step: this.walk.steps[0].name, way: changes.way ?? this.way});
    this.body.querySelector("#step-title")?.focus({preventScroll: true});
    this.reveal();
  }

  move(by) {
    const step = this.walk && this.path[(this.number ?? 0) + by];
    if (!step) return;
    this.state = {...this.state, step: step.name};
    write("learn", addressOf(this.state));
    this.show();
    announce(`Step ${this.number + 1} of ${this.path.length}: ${step.title}`);
    this.reveal();
  }

  /** A step begins at its top, wherever the one before it was left. */
  reveal() {
    const shown = this.body.querySelector(".sheet");
    const {top} = shown?.getBoundingClientRect() ?? {top: 0};
    if (top < 0 || top > innerHeight) shown.scrollIntoView();
  }
}

function turn(button, step, before, after = "") {
  button.hidden = !step;
  button.textContent = step ? `${before}${step.title}${after}` : "";
}

const SHORT = new Set(["", "."]);

/** The longest word: those that say something are longer than those that join. */
export function contentWord(list) {
  const lengths = list.map((word) => (SHORT.has(word) ? 0 : [...word.replace(/^\p{L}{1,2}[’']/u, "")].length));
  return Math.max(0, lengths.indexOf(Math.max(...lengths)));
}

/** What goes into the address. The place always does, once it is known: an address without it begins elsewhere. */
function addressOf({run, text, sentence, layer, head, word, side, step, way}) {
  return {run, text, sentence: sentence || "", layer, head, word, side: side === "all" ? "" : side, step, way};
}

/** The walk with its rows and columns named in signs that fonts have. */
function readable(walk) {
  const named = (text) => (typeof text === "string" ? legible(text) : text);
  const steps = walk.steps.map((step) => ({
    ...step,
    axes: step.axes.map((axis) => ({...axis, labels: axis.labels.map(named)})),
  }));
  return {...walk, steps};
}

/** In a sentence: what is being followed. */
function headline(walk, side) {
  const strong = (text) => element("strong", {dir: "auto"}, text);
  const place = `layer ${walk.layer + 1}`;
  const attends = walk.steps.some((step) => step.name.endsWith(".weights") && step.part !== "output");
  const where = attends ? `${place}, head ${walk.head + 1}` : place;
  if (side === "encoder" || walk.task === "label")
    return ["We follow ", strong(explained(legible(walk.source.pieces[walk.position]))), ` through ${where}.`];
  const read = walk.position ? walk.target.pieces[walk.position - 1] : "<start>";
  const said = [
    "The decoder has just read ",
    strong(legible(read)),
    " and is on its way to ",
    strong(explained(legible(walk.target.pieces[walk.position]))),
    `. We watch ${where}.`,
  ];
  const crosses = walk.steps.some((step) => step.part === "cross");
  return crosses && side !== "decoder"
    ? [...said, " It looks most at ", strong(legible(walk.source.pieces[walk.source_position])), "."]
    : said;
}
