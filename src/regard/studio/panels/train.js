// Train: all runs and a form for a new one; or one training, from its first line to its last, live if it goes on.

import {get} from "../api.js";
import {read, write} from "../address.js";
import {element, sheet} from "../element.js";
import {pageHead} from "../pieces/forms.js";
import {trouble} from "../pieces/trouble.js";
import {demoButton, trainingForm} from "./train/form.js";
import {runsTable} from "./train/runs.js";
import {trainingView} from "./train/view.js";

const LOOK = 2000; // milliseconds between two looks at the list

export async function mount(root, {values}) {
  await sheet("panels/train.css");
  const page = new TrainPage(root);
  await page.show(values);
  return {update: (next) => page.show(next), leave: () => page.leave()};
}

class TrainPage {
  constructor(root) {
    this.root = root;
    this.shown = {leave: () => {}};
  }

  async show(values) {
    if (this.run !== undefined && this.run === (values.run ?? "") && this.shown.update) return this.shown.update(values);
    this.leave();
    this.run = values.run ?? "";
    const mine = (this.visit = (this.visit ?? 0) + 1);
    const {trainings, most} = await get("/api/v1/trainings");
    if (mine !== this.visit) return undefined;
    const training = trainings.find(({run}) => run === this.run);
    this.shown = training ? this.one(training) : this.all(trainings, most, values);
    return undefined;
  }

  one(training) {
    const view = trainingView(training, {open: (run) => this.open(run)});
    this.root.replaceChildren(view.node);
    return view;
  }

  all(trainings, most, values) {
    const table = runsTable({onopen: (run) => this.open(run)});
    const form = trainingForm(values, {taken: trainings.map(({run}) => run), onstart: (run) => this.open(run)});
    const first = trainings.length === 0;
    const asked = values.name === "demo"; // other pages send people here for the demo
    const lead = "Choose a corpus and an architecture, and watch the model learn. Training goes on when you close this page, and nothing leaves this machine.";
    this.root.replaceChildren(
      ...[
        pageHead("Train", lead),
        first || asked ? demoButton({first, onstart: (run) => this.open(run), taken: trainings}) : null,
        first ? null : element("section", {"aria-labelledby": "runs-title"}, element("h2", {id: "runs-title"}, "Runs"), table.node),
        first ? element("details", {class: "own"}, element("summary", {}, "Or choose for yourself"), form.node) : form.node,
        element("p", {class: "note"}, `At most ${most} trainings run at once. In a terminal: `, element("code", {}, "regard train"), "."),
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

  open(run) {
    write("train", {run});
    this.show(read().values).catch((problem) => this.root.replaceChildren(trouble(problem, () => this.open(run))));
  }

  leave() {
    this.visit = (this.visit ?? 0) + 1;
    this.shown.leave();
    this.shown = {leave: () => {}};
    this.run = undefined;
  }
}
