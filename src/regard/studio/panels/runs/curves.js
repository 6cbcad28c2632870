// Learning curves of several runs in one picture: their losses and scores on validation text, over the steps.

import {get} from "../../api.js";
import {element} from "../../element.js";
import {lineChart} from "../../pieces/chart.js";
import {check} from "../../pieces/forms.js";
import {usable} from "../../pieces/runs.js";
import {trouble} from "../../pieces/trouble.js";

const MOST = 12; // runs to choose from
const FIRST = 4; // of them shown at once

/** @param {import("../../pieces/runs.js").Run[]} runs  best first */
export function curvesOf(runs) {
  const offered = usable(runs).slice(0, MOST);
  if (offered.length < 2) return null;
  const details = element("details.curves.card", element("summary", "Learning curves of several runs"));
  const open = () => {
    if (!details.open || details.children.length > 1) return;
    details.append(overlay(offered));
  };
  details.addEventListener("toggle", open);
  return details;
}

function overlay(runs) {
  const [{task}] = runs;
  const chosen = new Set(
    runs
      .filter((run) => run.task === task)
      .slice(0, FIRST)
      .map(({name}) => name),
  );
  const known = new Map();
  const charts = {
    loss: lineChart({title: "Loss on validation text", x: {label: "step", whole: true}, y: {label: "loss", log: true}}),
    score: lineChart({
      title: "Score on validation text",
      x: {label: "step", whole: true},
      y: {label: "score", zero: true},
    }),
  };
  const problems = element("div");
  const draw = async () => {
    try {
      for (const name of chosen) if (!known.has(name)) known.set(name, await validations(name));
      const shown = runs.filter(({name}) => chosen.has(name));
      const series = (column) =>
        shown.map(({name}) => ({
          name,
          hue: runs.findIndex((run) => run.name === name),
          points: (known.get(name) ?? []).map((row) => ({x: row[0], y: row[column]})).filter(({y}) => y != null),
        }));
      charts.loss.show(series(1).filter(({points}) => points.length));
      charts.score.show(series(2).filter(({points}) => points.length));
      problems.replaceChildren();
    } catch (problem) {
      problems.replaceChildren(trouble(problem, draw));
    }
  };
  const boxes = runs.map(({name}) =>
    check(name, chosen.has(name), (on) => {
      if (on) chosen.add(name);
      else chosen.delete(name);
      draw();
    }),
  );
  draw();
  return element(
    "div",
    element("div.row", {role: "group", "aria-label": "Runs in the picture"}, boxes),
    problems,
    element("div.two", charts.loss.node, charts.score.node),
  );
}

/** Steps, losses and scores of a run's validations. @returns {Promise<[number, number, number | null][]>} */
async function validations(name) {
  const found = await get(`/api/v1/runs/${encodeURIComponent(name)}`);
  return found.validations;
}
