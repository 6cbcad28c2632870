// One training: what it does now, its curves, what it writes, the watched sentence, and how to stop it or go on.

import {get, post, remove} from "../../api.js";
import {link} from "../../address.js";
import {element} from "../../element.js";
import {announce, offerUndo, toast} from "../../pieces/announce.js";
import {lineChart} from "../../pieces/chart.js";
import {LOWER, count, remember, renamed} from "../../pieces/runs.js";
import {trouble} from "../../pieces/trouble.js";
import {TrainingLog, bytes, duration, follow} from "./log.js";
import {stateChip, translates, tryLink} from "./runs.js";
import {WatchedSentence} from "./watch.js";

const STAGES = [
  ["starting", "Starting"],
  ["preparing", "Preparing the corpus"],
  ["training", "Training"],
  ["validating", "Validating"],
];
const FRAME = 200; // milliseconds between two drawings while events pour in

/**
 * @param {any} training as /api/v1/trainings has it
 * @param {{open: (values: object) => void, changes: boolean, teaches: boolean}} wishes  `changes`: whether it can be
 *   stopped, gone on with and removed here; `teaches`: whether new trainings can be started
 */
export function trainingView(training, wishes) {
  return new TrainingView(training, wishes);
}

class TrainingView {
  /** @type {Record<"loss" | "score" | "speed", ReturnType<typeof lineChart>>} */ charts;
  /** @type {WatchedSentence} */ watched;
  /** @type {() => void} stops following the log */ stop;

  constructor(training, {open, changes, teaches}) {
    this.changes = changes;
    this.teaches = teaches;
    this.training = training;
    this.open = open;
    this.log = new TrainingLog();
    this.build();
    this.begin();
  }

  build() {
    const {run, watch} = this.training;
    this.head = element("div.row");
    this.stages = element(
      "ol.stages",
      {"aria-label": "Stages"},
      STAGES.map(([stage, words]) => element("li", {"data-stage": stage}, words)),
    );
    this.bar = element("progress", {max: 1, value: 0, "aria-label": "Progress of the training"});
    this.facts = element("p.facts.number");
    this.actions = element("div.row");
    this.problem = element("div");
    this.charts = {
      loss: lineChart({
        title: "Loss",
        x: {label: "step", whole: true},
        y: {label: "loss per piece, in nats"},
        height: 220,
      }),
      score: lineChart({
        title: "Score",
        x: {label: "step", whole: true},
        y: {label: "on validation", zero: true, most: 100},
        height: 200,
        digits: 1,
      }),
      speed: lineChart({
        title: "Speed",
        x: {label: "step", whole: true},
        y: {label: "tokens a second", zero: true},
        height: 220,
        digits: 0,
      }),
    };
    this.scoreTitle = element("h2", "Score");
    this.notYet = element("p.later", "Comes with the first validation.");
    this.charts.score.node.hidden = true;
    this.samples = element("section.card", {hidden: true, "aria-labelledby": "samples-title"});
    this.watched = new WatchedSentence(watch);
    this.notes = element("details", {hidden: true}, element("summary", "Notes"), element("ul.notes"));
    this.node = element(
      "div.training",
      element(
        "p.crumb",
        element("a", {href: link("train", {})}, "A new training"),
        " · ",
        element("a", {href: link("runs", {})}, "All runs"),
      ),
      element("div.head.row", element("h1", element("bdi", run)), this.head),
      element(
        "section.card.status",
        {"aria-label": "State"},
        this.stages,
        this.bar,
        this.facts,
        this.problem,
        this.actions,
      ),
      (this.learning = element(
        "div.learning",
        element(
          "div.curves",
          element(
            "section.card",
            element("h2", "Loss"),
            element(
              "p.note",
              "How surprised the model is by the right answer: lower is better. " +
                "Validation is text it does not learn from.",
            ),
            this.charts.loss.node,
          ),
          element(
            "section.card",
            this.scoreTitle,
            element("p.note", "How good its own output is, on text it does not learn from."),
            this.notYet,
            this.charts.score.node,
          ),
        ),
        this.watched.node,
      )),
      this.samples,
      (this.speed = element(
        "details.card",
        element("summary", "Speed"),
        element("p.note", "Predictions a second while training; validation is not counted."),
        this.charts.speed.node,
      )),
      this.notes,
    );
  }

  begin() {
    this.stop?.();
    this.log = new TrainingLog();
    this.state();
    this.stop = follow(this.training.run, {
      onevent: (event) => (this.log.add(event), this.later()),
      onstate: (state) => this.changed(state),
      onend: (state) => this.ended(state),
      onlost: (lost) => this.node.classList.toggle("lost", (this.lost = lost) && this.training.state === "running"),
    });
  }

  later() {
    this.waiting ??= setTimeout(() => {
      this.waiting = undefined;
      this.draw();
    }, FRAME);
  }

  changed(state) {
    if (state.stage !== this.training.stage) announce(`${this.training.run}: ${state.stage || state.state}`);
    Object.assign(this.training, state);
    this.state();
  }

  async ended(state) {
    if (this.gone) return;
    this.changed(state);
    this.draw();
    try {
      this.training = await get(`/api/v1/trainings/${encodeURIComponent(this.training.run)}`);
      this.state();
    } catch {
      // a training that failed before it was a run and was put away: what is shown says so
    }
  }

  state() {
    const {training} = this;
    this.head.replaceChildren(stateChip(training), element("span.note", about(training)));
    const here = training.state === "running" ? training.stage : "";
    for (const item of this.stages.children) {
      if (item.dataset.stage === here) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
    this.stages.hidden = this.bar.hidden = training.state !== "running";
    const nothing = training.state === "failed" && !this.log.moments.length;
    this.learning.hidden = this.speed.hidden = nothing;
    this.problem.replaceChildren(...(training.note ? [trouble({message: training.note})] : []));
    this.actions.replaceChildren(...this.buttons());
    this.status();
  }

  buttons() {
    const {run, state, stage, ours} = this.training;
    const button = (words, kind, action) => element("button", {class: kind, onclick: action}, words);
    const tried = this.log.validations.length || state !== "running" ? tryLink(this.training) : null;
    const still = state !== "running";
    const ended = ["interrupted", "prepared", "failed"].includes(state);
    const words = translates(this.training) ? "Translate with it" : "Try it";
    return [
      state === "running" && ours && this.changes && stage !== "stopping"
        ? button("Stop and keep", "", () => this.ask("stop"))
        : null,
      stage === "stopping" ? element("p.note", "Stopping after this step; a checkpoint is written.") : null,
      state === "running" && !ours ? element("p.note", "Started in a terminal: stop it there, with Ctrl-C.") : null,
      ended && this.training.is_run && this.changes
        ? button("Continue training", state === "failed" ? "" : "primary", () => this.ask("resume"))
        : null,
      ended && this.changes
        ? button("Change and start again", state === "failed" ? "primary" : "", () => this.open({again: run}))
        : null,
      tried
        ? element(
            "a",
            {
              class: state === "finished" ? "button primary" : "button",
              href: tried,
              onclick: () => remember({name: run, task: this.training.task}),
            },
            words,
          )
        : null,
      tried ? element("a.button.quiet", {href: link("look", {run, text: this.training.watch})}, "Look inside") : null,
      tried && still && this.teaches && !this.training.vectors
        ? element("a.button.quiet", {href: link("train", {teach: run})}, "Teach this model")
        : null,
      still && this.changes ? button("Remove", "quiet", () => this.remove()) : null,
    ].filter(Boolean);
  }

  async remove() {
    const {run} = this.training;
    this.gone = true; // what still comes of it is not asked about
    this.stop();
    try {
      await remove(`/api/v1/runs/${encodeURIComponent(run)}`);
    } catch (problem) {
      this.gone = false;
      this.problem.replaceChildren(trouble(problem));
      return;
    }
    renamed(run);
    this.open({});
    offerUndo(`Removed ${run}.`, async () => {
      try {
        await post(`/api/v1/runs/${encodeURIComponent(run)}/restore`, {}, {lasting: true});
        toast(`${run} is back`);
      } catch (problem) {
        toast(problem.message, {bad: true});
      }
    });
  }

  async ask(what) {
    try {
      this.training = await post(
        `/api/v1/trainings/${encodeURIComponent(this.training.run)}/${what}`,
        {},
        {lasting: true},
      );
      if (what === "resume") this.begin();
      else this.state();
    } catch (problem) {
      this.problem.replaceChildren(trouble(problem));
    }
  }

  draw() {
    const {log} = this;
    this.status();
    this.charts.loss.show(
      [
        {name: "training", points: log.curve(log.moments, "loss")},
        {name: "validation", points: log.curve(log.validations, "loss")},
        {name: "general test", points: log.curve(log.validations, "general_loss")},
      ].filter(({points}) => points.length),
    );
    const measure = log.validations.at(-1)?.name;
    if (measure) this.scoreTitle.textContent = measure[0].toUpperCase() + measure.slice(1);
    this.notYet.hidden = Boolean(measure);
    this.charts.score.node.hidden = !measure;
    this.charts.score.options.y.most = LOWER.includes(measure) ? Infinity : 100;
    const general = {name: "general test", points: log.curve(log.validations, "general_score")};
    this.charts.score.show(
      measure
        ? [{name: measure, points: log.curve(log.validations, "score")}, ...(general.points.length ? [general] : [])]
        : [],
    );
    this.charts.speed.show(
      log.moments.length ? [{name: "tokens a second", points: log.curve(log.moments, "tokens_per_second")}] : [],
    );
    this.watched.show(log.watched);
    this.showSamples(log.validations.at(-1));
    this.notes.hidden = log.notes.length === 0;
    this.notes.lastChild.replaceChildren(...log.notes.map(({text}) => element("li", text)));
    if (log.validations.length && !this.tried) {
      this.tried = true; // there is a checkpoint to translate with
      this.training.steps ||= log.last?.step ?? 0;
      this.state();
    }
  }

  status() {
    const last = this.log.last;
    const {of_steps: all, state, stage} = this.training;
    this.bar.value = last?.progress ?? 0;
    if (!last) {
      this.facts.textContent =
        state === "running"
          ? `${stage === "preparing" ? "Reading the corpus and learning its pieces" : "Starting"}…`
          : "";
      return;
    }
    const best = this.log.validations.filter((each) => each.best).at(-1);
    const steps = last.step.toLocaleString("en");
    this.facts.textContent = [
      ...(last.limit
        ? [`${duration(last.seconds)} of at most ${duration(last.limit)}`, `step ${steps}`]
        : [`step ${steps}${all ? ` of ${all.toLocaleString("en")}` : ""}`, `${duration(last.seconds)} of training`]),
      state === "running" && last.progress > 0.01 ? `about ${duration(last.left)} left` : "",
      `${Math.round(last.tokens_per_second).toLocaleString("en")} tokens a second`,
      bytes(last.memory),
      best
        ? `best ${best.name} ${best.score.toFixed(1)}, loss ${best.loss.toFixed(3)}, ` +
          `at step ${best.step.toLocaleString("en")}`
        : "",
      forgotten(this.log.validations.at(-1)),
    ]
      .filter(Boolean)
      .join(" · ");
  }

  showSamples(validation) {
    const samples = validation?.samples ?? [];
    this.samples.hidden = samples.length === 0;
    if (!samples.length || this.sampled === validation) return;
    this.sampled = validation;
    const row = ({source, reference, output}) =>
      element(
        "li",
        element("p.source", {dir: "auto"}, source),
        element("p", {class: output === reference ? "output right" : "output", dir: "auto"}, output || "(nothing)"),
        output === reference
          ? element("p.note", "exactly as the reference")
          : element("p.note", {dir: "auto"}, `reference: ${reference}`),
      );
    this.samples.replaceChildren(
      element("h2", {id: "samples-title"}, "Samples"),
      element(
        "p.note",
        "The first sentences of the validation text, as the model has them at step " +
          `${validation.step.toLocaleString("en")}.`,
      ),
      element("ol.samples", samples.map(row)),
    );
  }

  update() {
    this.watched.show(this.log.watched);
  }

  leave() {
    this.stop();
    clearTimeout(this.waiting);
    this.watched.leave();
    Object.values(this.charts).forEach((chart) => chart.leave());
  }
}

/** How much larger the loss on the general test set has become, in words; nothing where none is watched. */
function forgotten(validation) {
  if (validation?.general_loss == null || validation.general_before == null) return "";
  const more = validation.general_loss - validation.general_before;
  return `loss on the general test ${more < 0 ? "−" : "+"}${Math.abs(more).toFixed(3)} since the beginning`;
}

function about({preset, task, parameters}) {
  return [preset, task === "translate" ? "" : task, parameters == null ? "" : `${count(parameters)} parameters`]
    .filter(Boolean)
    .join(" · ");
}
