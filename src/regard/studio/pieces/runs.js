// Which run: a list to choose from, with what matters about the chosen one beneath; and what to say when there is none.

import {link} from "../address.js";
import {element} from "../element.js";
import {field} from "./forms.js";

const NARROW = "\u00a0"; // a line breaks between facts, not within one

/** Runs that a page can use: those with weights, of some tasks; without any named, of every task. */
export const usable = (runs, ...tasks) =>
  runs.filter((run) => run.parameters != null && (!tasks.length || tasks.includes(run.task)));

/** The run that the address names, or else the newest; undefined when there is none. */
export function chosen(runs, name) {
  return runs.find((run) => run.name === name) ?? [...runs].sort((one, other) => other.changed - one.changed)[0];
}

/**
 * @param {{runs: object[], value: string, onchange: (name: string) => void, label?: string, none?: string}} about
 *   `none`: the words for no run at all, where that may be chosen
 * @returns {HTMLElement & {value: string}}
 */
export function runPicker({runs, value, onchange, label = "Run", none = ""}) {
  const options = runs.map((run) => element("option", {value: run.name}, run.name));
  if (none) options.unshift(element("option", {value: ""}, none));
  const select = element("select", {}, options);
  const node = field(label, select, " ");
  const note = node.querySelector(".note");
  const show = (name) => {
    select.value = name ?? "";
    note.textContent = describe(runs.find((run) => run.name === select.value));
  };
  select.addEventListener("change", () => {
    show(select.value);
    onchange(select.value);
  });
  show(value);
  return Object.defineProperty(node, "value", {get: () => select.value, set: show});
}

/** "transformer-tiny · 1.2 M parameters · BLEU 80.9 · en → fr" */
export function describe(run) {
  if (!run) return "";
  const {languages, score, score_name: measure} = run;
  return [
    run.preset || (run.task === "translate" ? "" : run.task),
    run.parameters == null ? "" : `${count(run.parameters)} parameters`,
    score == null ? "" : `${measure} ${score.toFixed(1)} on valid`,
    languages ? `${languages.source} → ${languages.target}` : "",
    run.state === "finished" ? "" : run.state,
  ].filter(Boolean).map((part) => part.replaceAll(" ", NARROW)).join(" · ");
}

export function count(value) {
  const [divisor, unit] = [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]].find(([least]) => value >= least) ?? [1, ""];
  const shown = value / divisor;
  return `${shown >= 100 || divisor === 1 ? Math.round(shown) : shown.toFixed(1)}${unit}`;
}

/** Instead of a page, when there is no run that it could use. */
export function noRun(what = "Nothing can be shown before a model has learned.") {
  return element(
    "section",
    {class: "empty card"},
    element("h2", {}, "No run yet"),
    element(
      "p",
      {},
      `${what} The demo learns English to French from a small corpus that comes along, here on this machine, `,
      "in about two minutes.",
    ),
    element(
      "a",
      {class: "button primary", href: link("train", {name: "demo", preset: "demo", corpus: "fable:fr"})},
      "Train the demo",
    ),
    element("p", {class: "note"}, "Or in a terminal: ", element("code", {}, "regard demo")),
  );
}
