// One run as a row: its name, what it does, how good it is, what it learned from, and since when.

import {link} from "../../address.js";
import {element} from "../../element.js";
import {term} from "../../pieces/glossary.js";
import {LOWER, TASKS, count, pair, reason, scored, stateWord, usable} from "../../pieces/runs.js";
import {meter} from "./attempt.js";

const KINDS = {running: "chip now", failed: "chip bad", unreadable: "chip bad"};
const ORDER = Object.keys(TASKS);
/** @type {[number, Intl.RelativeTimeFormatUnit][]} */
const SPANS = [
  [31536000, "year"],
  [2592000, "month"],
  [86400, "day"],
  [3600, "hour"],
  [60, "minute"],
]; // in seconds
const ago = new Intl.RelativeTimeFormat("en", {numeric: "auto"});

/** Task by task, language pair by language pair; of each the best first. */
export function byQuality(runs) {
  const place = ({task}) => (ORDER.includes(task) ? ORDER.indexOf(task) : ORDER.length);
  return [...runs].sort(
    (one, other) =>
      place(one) - place(other) ||
      pair(one.languages).localeCompare(pair(other.languages)) ||
      Number(other.best ?? false) - Number(one.best ?? false) ||
      worth(other) - worth(one) ||
      other.changed - one.changed,
  );
}

/** Larger is better; runs without a score come last. */
function worth({score, score_name: measure}) {
  if (score == null) return -Number.MAX_VALUE;
  return LOWER.includes(measure) ? -score : score;
}

/**
 * @param {import("../../pieces/runs.js").Run} run
 * @param {{runs: import("../../pieces/runs.js").Run[], open: boolean, ontoggle: () => void}} about  `runs`: all of them
 */
export function runRow(run, {runs, open, ontoggle}) {
  const toggle = (event) => {
    event.preventDefault();
    ontoggle();
  };
  const name = element(
    "a.toggle",
    {role: "button", href: link("runs", {run: run.name}), "aria-expanded": String(open), onclick: toggle},
    element("bdi", run.name),
  );
  const size = run.parameters == null ? "" : `${count(run.parameters)} parameters`;
  const cell = (label, ...children) => element("td.left", {"data-label": label}, children);
  const why = reason(run, runs);
  return element(
    "tr",
    {"data-run": run.name, class: open ? "open" : null},
    element(
      "th",
      {scope: "row"},
      name,
      element("span.note", [run.preset || run.architecture.split(",")[0], size].filter(Boolean).join(" · ")),
    ),
    cell(
      "What it does",
      pair(run.languages) || TASKS[run.task]?.does || "–",
      why ? element("span.chip.good", why) : null,
    ),
    cell("How good", quality(run)),
    cell("Learned from", run.corpus || "–"),
    cell("State", state(run)),
    element("td.act", action(run)),
  );
}

function quality(run) {
  const {score, score_name: measure} = run;
  if (score == null) return element("span.note", "not measured");
  const value = scored(run).slice(measure.length);
  return [term(measure), value, LOWER.includes(measure) ? null : meter(Math.max(0, Math.min(1, score / 100)))];
}

function state({state: now, note, changed, fixed}) {
  const shown =
    now === "finished"
      ? element("span.note", fixed ? "finished" : since(changed))
      : element("span", {class: KINDS[now] ?? "chip"}, stateWord(now));
  return [shown, note ? element("p.why", note) : null];
}

/** "just now", "2 hours ago" */
function since(seconds) {
  const past = Date.now() / 1000 - seconds;
  const span = SPANS.find(([least]) => past >= least);
  return span ? ago.format(-Math.floor(past / span[0]), span[1]) : "just now";
}

function action(run) {
  if (!usable([run]).length) return null;
  const page = run.vectors ? "runs" : TASKS[run.task].page;
  return element("a.button.small", {href: link(page, {run: run.name})}, page === "translate" ? "Translate" : "Try");
}
