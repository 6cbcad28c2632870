// Runs: what is here, how good it is, and what can be done with it; one row unfolds to try it and to manage it.

import {get, post, remove} from "../api.js";
import {read, write} from "../address.js";
import {element, sheet} from "../element.js";
import {announce, offerUndo, toast} from "../pieces/announce.js";
import {pageHead} from "../pieces/forms.js";
import {noRun, renamed} from "../pieces/runs.js";
import {curvesOf} from "./runs/curves.js";
import {runMore} from "./runs/more.js";
import {byQuality, runRow} from "./runs/row.js";

const LEAD = "The runs on this machine: what each does, how good it is, and what you can do with it.";
const HEADS = ["Run", "What it does", "How good", "Learned from", "State", ""];
const path = (name) => `/api/v1/runs/${encodeURIComponent(name)}`;

export async function mount(root, {values, runs}) {
  await sheet("panels/runs.css");
  const page = new RunsPage(root, runs);
  page.update(values);
  return {update: (next) => page.update(next), leave: () => page.leave()};
}

class RunsPage {
  constructor(root, runs) {
    this.place = element("div");
    this.runs = runs;
    root.append(pageHead("Runs", LEAD), this.place);
  }

  /** What the address says: which row is unfolded, and what was tried there. */
  update(values) {
    this.values = values;
    this.draw();
  }

  draw() {
    this.leave();
    const name = this.values.run ?? "";
    const missing = name && !this.runs.some((run) => run.name === name);
    if (!this.runs.length) {
      this.place.replaceChildren(noRun("Runs are what trainings leave behind."));
      return;
    }
    const body = byQuality(this.runs).flatMap((run) => this.rowsOf(run));
    const heads = HEADS.map((head) => (head ? element("th.left", {scope: "col"}, head) : element("td")));
    this.place.replaceChildren(
      ...[
        missing
          ? element("p.warning", "There is no run named “", element("bdi", name), "” here. These are all there are:")
          : null,
        element(
          "table.all-runs",
          element("caption.visually-hidden", "All runs"),
          element("thead", element("tr", heads)),
          element("tbody", body),
        ),
        element(
          "p.note",
          "A page begins with the run you chose last, else with the best for its task. ",
          element("a", {href: "#train"}, "Train your own"),
        ),
        curvesOf(byQuality(this.runs)),
      ].filter(Boolean),
    );
  }

  rowsOf(run) {
    const open = run.name === this.values.run;
    const row = runRow(run, {runs: this.runs, open, ontoggle: () => this.toggle(run)});
    if (!open) return [row];
    this.more = runMore(run, {
      runs: this.runs,
      text: this.values.text ?? "",
      onrename: (to) => this.rename(run, to),
      onremove: () => this.remove(run),
      ontry: (text) => write("runs", {...read().values, text}, {replace: true}),
    });
    return [row, element("tr.more", element("td", {colspan: HEADS.length}, this.more.node))];
  }

  toggle(run) {
    const next = {run: this.values.run === run.name ? "" : run.name, text: this.values.text};
    write("runs", next);
    this.update(next);
    this.place.querySelector(`tr[data-run="${CSS.escape(run.name)}"] .toggle`)?.focus({preventScroll: true});
  }

  async refresh(open = "") {
    ({runs: this.runs} = await get("/api/v1/runs"));
    const next = {...this.values, run: open};
    write("runs", next, {replace: true});
    this.update(next);
  }

  async rename(run, to) {
    await post(`${path(run.name)}/rename`, {to}, {lasting: true});
    renamed(run.name, to);
    announce(`${run.name} is now called ${to}`);
    await this.refresh(to);
  }

  async remove(run) {
    await remove(path(run.name));
    renamed(run.name);
    await this.refresh();
    offerUndo(`Removed ${run.name}.`, () => this.restore(run.name));
  }

  async restore(name) {
    try {
      await post(`${path(name)}/restore`, {}, {lasting: true});
      toast(`${name} is back`);
      if (this.place.isConnected) await this.refresh(name);
    } catch (problem) {
      toast(problem.message, {bad: true});
    }
  }

  leave() {
    this.more?.leave();
    this.more = undefined;
  }
}
