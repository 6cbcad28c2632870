// The list of runs: how each stands, and what can be done with it.

import {link} from "../../address.js";
import {element} from "../../element.js";
import {count} from "../../pieces/runs.js";

const WORDS = {running: "running", finished: "finished", interrupted: "stopped", prepared: "prepared", failed: "failed", unreadable: "unreadable"};
const KINDS = {running: "chip now", finished: "chip good", failed: "chip bad", unreadable: "chip bad"};

export function stateChip({state, stage}) {
  return element("span", {class: KINDS[state] ?? "chip"}, state === "running" ? stage || "running" : WORDS[state]);
}

/** Where a run of this task can be tried; null where no page can. */
export const tryLink = ({run, task, steps, state}) =>
  task === "translate" && steps > 0 && state !== "unreadable" ? link("translate", {run}) : null;

/** @param {{onopen: (run: string) => void}} about */
export function runsTable({onopen}) {
  const body = element("tbody");
  const heads = ["Run", "State", "Architecture", "Parameters", "Steps", "Best on validation", ""];
  const table = element(
    "table",
    {class: "runs"},
    element("caption", {class: "visually-hidden"}, "All runs"),
    element("thead", {}, element("tr", {}, heads.map((name, place) => (name ? element("th", {scope: "col", class: place < 3 ? "left" : null}, name) : element("td"))))),
    body,
  );
  const node = element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "All runs"}, table);
  let known = "";
  return {
    node,
    show(trainings) {
      const now = JSON.stringify(trainings);
      if (now === known && node.contains(table)) return;
      known = now;
      if (!node.contains(table)) node.replaceChildren(table);
      const focused = document.activeElement?.closest?.("tr")?.dataset.run;
      body.replaceChildren(...trainings.map((training) => row(training, onopen)));
      if (focused) body.querySelector(`tr[data-run="${CSS.escape(focused)}"] a`)?.focus();
    },
  };
}

function row(training, onopen) {
  const {run, preset, task, parameters, steps, of_steps: all, score, score_name: measure, note} = training;
  const open = (event) => {
    event.preventDefault();
    onopen(run);
  };
  const name = element("a", {href: link("train", {run}), onclick: open}, run);
  const kind = task && task !== "translate" ? `${preset || "own settings"} · ${task}` : preset || (task ? "own settings" : "");
  const tried = tryLink(training);
  return element(
    "tr",
    {"data-run": run},
    element("th", {scope: "row"}, name),
    element("td", {class: "left"}, stateChip(training), note ? element("p", {class: "why"}, note) : null),
    element("td", {class: "left"}, kind),
    element("td", {}, parameters == null ? "–" : count(parameters)),
    element("td", {}, all ? `${steps.toLocaleString("en")} of ${all.toLocaleString("en")}` : "–"),
    element("td", {}, score == null ? "–" : `${measure} ${score.toFixed(1)}`),
    element("td", {}, tried ? element("a", {href: tried, "aria-label": `Translate with ${run}`}, "Translate") : null),
  );
}
