// Learn: the mathematics of the user's own sentence, with the run's own numbers, one step at a time.

import {link, write} from "../address.js";
import {get, latest, post} from "../api.js";
import {element, sheet} from "../element.js";
import {shortcut} from "../keys.js";
import {announce} from "../pieces/announce.js";
import {pageHead} from "../pieces/forms.js";
import {legible} from "../pieces/letters.js";
import {chosen, usable} from "../pieces/runs.js";
import {skeleton} from "../pieces/skeleton.js";
import {trouble} from "../pieces/trouble.js";
import {chapters} from "./learn/chapters.js";
import {controls, words} from "./learn/controls.js";
import {guide} from "./learn/guide.js";
import {card, setup} from "./learn/step.js";

const SENTENCE = "the black cat ate the mouse";
const LEAD = "What a translator computes, step by step: your sentence, this run's own numbers. Each step has an idea, a formula, the numbers, and the lines of code that give them again.";
const PLACES = ["layer", "head", "word"];

export const tasks = ["translate", "tag", "classify", "language"];
export const nothing = "The numbers of this page are those of a model that has learned.";

export async function mount(root, {values, runs}) {
  await sheet("panels/learn.css");
  const frame = root.appendChild(element("div", {class: "learn"}));
  frame.append(pageHead("Learn", LEAD));
  const page = new Page(frame, usable(runs, ...tasks));
  await page.update(values);
  return page;
}

class Page {
  constructor(root, runs) {
    this.runs = runs;
    this.models = new Map();
    this.ask = latest();
    this.question = ""; // what the walkthrough on the page answers
    this.controls = controls(runs, (changes) => this.change(changes));
    this.body = element("div", {class: "walkthrough"});
    root.append(this.controls, this.body);
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
  }

  /** The address says what to show. */
  async update(values) {
    const places = Object.fromEntries(PLACES.map((name) => [name, Math.max(0, Math.trunc(Number(values[name])) || 0)]));
    const run = chosen(this.runs, values.run)?.name;
    this.state = {run, text: values.text?.trim() || SENTENCE, ...places, side: values.side || "all", step: values.step ?? ""};
    const {step, ...question} = this.state;
    if (JSON.stringify(question) === this.question) {
      this.show();
      return this.reveal();
    }
    await this.load(question);
  }

  /** A new state, kept in the address; back undoes it. */
  change(changes) {
    const next = {...this.state, ...changes};
    if ("run" in changes) Object.assign(next, {layer: 0, head: 0, word: 0, side: "all"});
    if ("text" in changes) next.word = 0;
    if ("side" in changes) Object.assign(next, {layer: 0, head: 0, word: 0});
    next.step = next.step.replace(`.${this.state.layer}.`, `.${next.layer}.`); // the same step of another layer
    write("learn", values(next));
    return this.update(next);
  }

  go(changes) {
    return link("learn", values({...this.state, ...changes}));
  }

  async load(question) {
    const known = this.models.has(question.run);
    this.controls.show(this.state, this.models.get(question.run) ?? null);
    if (!this.walk) this.body.replaceChildren(skeleton("page"));
    this.body.setAttribute("aria-busy", "true");
    try {
      const found = await this.ask((signal) => Promise.all([known ? null : this.portray(question.run, signal), post("/api/v1/walkthrough", question, {signal})]));
      if (!found) return;
      this.question = JSON.stringify(question);
      this.begin(found[1]);
    } catch (problem) {
      this.question = "";
      this.walk = null;
      this.body.replaceChildren(trouble(problem, () => this.load(question)));
    } finally {
      this.body.removeAttribute("aria-busy");
    }
  }

  async portray(run, signal) {
    const {model} = await get(`/api/v1/runs/${encodeURIComponent(run)}`, {signal});
    this.models.set(run, model ?? null);
  }

  /** A walkthrough has come: lay out the page around its steps. */
  begin(walk) {
    const {side} = this.state;
    this.walk = walk;
    this.story = chapters(walk.steps);
    this.byName = new Map(walk.steps.map((step) => [step.name, step]));
    this.places = new Map(walk.steps.map((step, number) => [step.name, number]));
    this.controls.show(this.state, this.models.get(this.state.run));
    this.guide = guide(this.story, (step) => this.go({step}));
    this.stage = element("div", {class: "stage"});
    this.before = element("button", {type: "button", class: "turn", onclick: () => this.move(-1)});
    this.after = element("button", {type: "button", class: "turn primary", onclick: () => this.move(1)});
    this.progress = element("progress", {max: walk.steps.length, "aria-label": "Steps done"});
    const turning = element("div", {class: "turning"}, this.before, this.after);
    this.body.replaceChildren(
      words({walk, side, choose: (place) => this.change({word: place})}),
      element("p", {class: "headline"}, ...headline(walk, side)),
      element("div", {class: "desk"}, this.guide, element("div", {class: "sheet"}, this.progress, this.stage, turning)),
    );
    this.show();
  }

  show() {
    if (!this.walk) return;
    const number = this.places.get(this.state.step) ?? 0;
    const step = this.walk.steps[number];
    const chapter = this.story.find(({steps}) => steps.some((one) => one.number === number));
    const {run, text} = this.state;
    const top = this.models.get(run)?.encoder_layers === this.walk.layer + 1;
    const world = {run, text, walk: this.walk, byName: this.byName, places: this.places, top, go: (changes) => this.go(changes), setup: setup({...this.state, task: this.walk.task})};
    this.stage.replaceChildren(card({step, number, chapter}, world));
    this.guide.mark(step.name);
    this.progress.value = number + 1;
    turn(this.before, this.walk.steps[number - 1], "← ");
    turn(this.after, this.walk.steps[number + 1], "", " →");
    this.number = number;
  }

  move(by) {
    const step = this.walk?.steps[(this.number ?? 0) + by];
    if (!step) return;
    this.state = {...this.state, step: step.name};
    write("learn", values(this.state));
    this.show();
    announce(`Step ${this.number + 1} of ${this.walk.steps.length}: ${step.title}`);
    this.reveal();
  }

  /** A step begins at its top, wherever the one before it was left. */
  reveal() {
    const sheet = this.body.querySelector(".sheet");
    const {top} = sheet?.getBoundingClientRect() ?? {top: 0};
    if (top < 0 || top > innerHeight) sheet.scrollIntoView();
  }
}

function turn(button, step, before, after = "") {
  button.hidden = !step;
  button.textContent = step ? `${before}${step.title}${after}` : "";
}

/** What goes into the address: only what is not as it would be anyway. */
function values({run, text, layer, head, word, side, step}) {
  return {run, text, layer: layer || "", head: head || "", word: word || "", side: side === "all" ? "" : side, step};
}

/** In a sentence: what is being followed. */
function headline(walk, side) {
  const strong = (text) => element("strong", {dir: "auto"}, text);
  const place = `layer ${walk.layer + 1}`;
  const attends = walk.steps.some((step) => step.name.endsWith(".weights") && step.part !== "output");
  const where = attends ? `${place}, head ${walk.head + 1}` : place;
  if (side === "encoder" || walk.task === "label") return ["We follow ", strong(legible(walk.source.pieces[walk.position])), ` through ${where}.`];
  const read = walk.position ? walk.target.pieces[walk.position - 1] : "<start>";
  const said = ["The decoder has just read ", strong(legible(read)), " and is on its way to ", strong(legible(walk.target.pieces[walk.position])), `. We watch ${where}.`];
  const crosses = walk.steps.some((step) => step.part === "cross");
  return crosses && side !== "decoder" ? [...said, " It looks most at ", strong(legible(walk.source.pieces[walk.source_position])), "."] : said;
}
