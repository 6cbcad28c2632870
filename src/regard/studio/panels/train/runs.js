// Trainings that go on, wait, or went wrong: how each stands. What is finished is in Runs.

import {link} from "../../address.js";
import {element} from "../../element.js";
import {count} from "../../pieces/runs.js";

const WORDS = {
  running: "running",
  finished: "finished",
  interrupted: "stopped",
  prepared: "prepared",
  failed: "failed",
  unreadable: "unreadable",
};
const KINDS = {running: "chip now", finished: "chip good", failed: "chip bad", unreadable: "chip bad"};
const MOST = 4; // rows above the form

/** Whether it ended because its time was over, and not its steps. */
export const timeIsUp = ({state, time, steps, of_steps: all}) => state === "finished" && Boolean(time) && steps < all;

export function stateChip(training) {
  const {state, stage} = training;
  const words = state === "running" ? stage || "running" : timeIsUp(training) ? "time is up" : WORDS[state];
  return element("span", {class: KINDS[state] ?? "chip"}, words);
}

/** Where a run can be tried; null while there is nothing to try. */
export const tryLink = (training) =>
  training.steps > 0 && training.state !== "unreadable"
    ? link(translates(training) ? "translate" : "runs", {run: training.run})
    : null;

/** Whether it is tried on the page of that name. */
export const translates = ({task, vectors}) => task === "translate" && !vectors;

/** @param {{onopen: (run: string) => void}} about */
export function trainingsTable({onopen}) {
  const body = element("tbody");
  const heads = ["Training", "State", "Architecture", "Parameters", "Progress", "Best on validation"];
  const table = element(
    "table.runs",
    element("caption.visually-hidden", "Trainings"),
    element(
      "thead",
      element(
        "tr",
        heads.map((name, place) => element("th", {scope: "col", class: place < 3 ? "left" : null}, name)),
      ),
    ),
    body,
  );
  const node = element(
    "div.scroll.going",
    {tabindex: 0, role: "region", "aria-label": "Trainings", hidden: true},
    table,
  );
  let known = "";
  return {
    node,
    show(trainings) {
      const now = JSON.stringify(trainings);
      if (now === known && node.contains(table)) return;
      known = now;
      if (!node.contains(table)) node.replaceChildren(table);
      const listed = trainings
        .filter(({state, is_run: isRun}) => state === "running" || state === "failed" || !isRun)
        .slice(0, MOST);
      node.hidden = !listed.length;
      const focused = document.activeElement?.closest?.("tr")?.dataset.run;
      body.replaceChildren(...listed.map((training) => row(training, onopen)));
      if (focused) body.querySelector(`tr[data-run="${CSS.escape(focused)}"] a`)?.focus();
    },
  };
}

function row(training, onopen) {
  const {run, preset, task, parameters, steps, of_steps: all, score, score_name: measure, note, time} = training;
  const open = (event) => {
    event.preventDefault();
    onopen(run);
  };
  const name = element("a", {href: link("train", {run}), onclick: open}, element("bdi", run));
  const kind =
    task && task !== "translate" ? `${preset || "own settings"} · ${task}` : preset || (task ? "own settings" : "");
  const reached = time
    ? `step ${steps.toLocaleString("en")}, at most ${time}`
    : `${steps.toLocaleString("en")} of ${all.toLocaleString("en")} steps`;
  return element(
    "tr",
    {"data-run": run},
    element("th", {scope: "row"}, name),
    element("td.left", stateChip(training), note ? element("p.why", note) : null),
    element("td.left", kind),
    element("td", parameters == null ? "–" : count(parameters)),
    element("td", all ? reached : "–"),
    element("td", score == null ? "–" : `${measure} ${score.toFixed(1)}`),
  );
}
