// Train: a form for a new training; or one training, from its first line to its last, live if it goes on.

import {get} from "../api.js";
import {link, read, write} from "../address.js";
import {element, sheet} from "../element.js";
import {pageHead} from "../pieces/forms.js";
import {chosen, ofWords, usable} from "../pieces/runs.js";
import {trouble} from "../pieces/trouble.js";
import {demoButton, trainingForm} from "./train/form.js";
import {trainingsTable} from "./train/runs.js";
import {teachForm} from "./train/teach.js";
import {trainingView} from "./train/view.js";

const LOOK = 2000; // milliseconds between two looks at the list
const LEAD =
  "Choose a corpus and an architecture, and watch the model learn. Training goes on when you close this page, " +
  "and nothing leaves this machine.";
const TEACHING =
  "Choose a run and a text of your own, and watch the model learn it. The run stays as it is, training goes on when you " +
  "close this page, and nothing leaves this machine.";

export async function mount(root, {values, runs}) {
  await sheet("panels/train.css");
  const page = new TrainPage(root, runs);
  await page.show(values);
  return {update: (next) => page.show(next), leave: () => page.leave()};
}

class TrainPage {
  constructor(root, runs) {
    this.root = root;
    this.runs = runs;
    this.shown = {leave: () => {}};
  }

  async show(values) {
    const state = `${values.run ?? ""} ${values.again ?? ""} ${values.teach ?? "-"}`;
    if (this.state === state && this.shown.update) return this.shown.update(values);
    this.leave();
    this.state = state;
    const mine = (this.visit = (this.visit ?? 0) + 1);
    const {trainings, most} = await get("/api/v1/trainings");
    if (mine !== this.visit) return undefined;
    const training = trainings.find(({run}) => run === values.run);
    this.shown = training ? this.one(training, most) : this.all(trainings, most, values);
    return undefined;
  }

  one(training, most) {
    const view = trainingView(training, {
      changes: most > 0 && !this.runs.find(({name}) => name === training.run)?.fixed,
      teaches: most > 0,
      open: (values) => this.open(values),
    });
    this.root.replaceChildren(view.node);
    return view;
  }

  all(trainings, most, values) {
    const table = trainingsTable({onopen: (run) => this.open({run})});
    const again = trainings.find(({run}) => run === values.again);
    const taught = values.teach !== undefined || Boolean(again?.request?.base);
    const about = {taken: trainings.map(({run}) => run), again, onstart: (run) => this.open({run})};
    const form = taught ? teachForm(values, {...about, runs: this.runs}) : trainingForm(values, about);
    const pupil = chosen(ofWords(usable(this.runs)), "");
    const first = trainings.length === 0;
    const asked = values.name === "demo"; // other pages send people here for the demo
    this.root.replaceChildren(
      ...[
        pageHead("Train", taught ? TEACHING : LEAD),
        values.run
          ? element(
              "p.warning",
              "There is no training named ",
              element("bdi", values.run),
              " here; it may have been renamed or removed. ",
              element("a", {href: "#runs"}, "All runs"),
            )
          : null,
        most && (first || asked) ? demoButton({first, onstart: (run) => this.open({run}), taken: trainings}) : null,
        table.node,
        most && pupil && !values.again
          ? element(
              "p",
              taught
                ? element("a", {href: link("train", {})}, "Train a new model instead")
                : element(
                    "a",
                    {href: link("train", {teach: pupil.name})},
                    "Teach a model that is here, on your own text",
                  ),
            )
          : null,
        !most
          ? null
          : first && !this.runs.length
            ? element(
                "details.own",
                {open: Boolean(values.again || (values.corpus && !asked))},
                element("summary", "Or choose for yourself"),
                form.node,
              )
            : form.node,
        element(
          "p.note",
          most
            ? `At most ${most} trainings run at once. In a terminal: `
            : "Nothing is trained from this page: the service is read-only, or wants its other token. In a terminal: ",
          element("code", "regard train"),
          ". What was trained before is in ",
          element("a", {href: "#runs"}, "Runs"),
          ".",
        ),
      ].filter(Boolean),
    );
    table.show(trainings);
    const timer = setInterval(() => this.refresh(table, form), LOOK);
    return {leave: () => (clearInterval(timer), form.leave())};
  }

  async refresh(table, form) {
    try {
      const {trainings} = await get("/api/v1/trainings");
      if (!table.node.isConnected) return;
      table.show(trainings);
      form.taken(trainings.map(({run}) => run));
    } catch (problem) {
      table.node.replaceChildren(trouble(problem)); // the next look may find the service again
    }
  }

  open(values) {
    write("train", values);
    this.show(read().values).catch((problem) => this.root.replaceChildren(trouble(problem, () => this.open(values))));
  }

  leave() {
    this.visit = (this.visit ?? 0) + 1;
    this.shown.leave();
    this.shown = {leave: () => {}};
    this.state = undefined;
  }
}
