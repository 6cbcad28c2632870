// Which run: the one that is meant, a list to choose from, and what to say when there is none that fits.

import {carried, link} from "../address.js";
import {element} from "../element.js";
import {field} from "./forms.js";

const NARROW = "\u00a0"; // a line breaks between facts, not within one

/** What a run of each task does; and what a page for it needs. */
export const TASKS = {
  translate: {does: "translates", page: "translate", verb: "Translate"},
  tag: {does: "tags words", page: "runs", verb: "Tag words"},
  classify: {does: "classifies texts", page: "runs", verb: "Classify"},
  language: {does: "continues texts", page: "runs", verb: "Continue a text"},
  forecast: {does: "forecasts series", page: "runs", verb: "Forecast"},
};

/**
 * A run as /api/v1/runs has it.
 * @typedef {{name: string, state: string, note: string, task: string, preset: string, architecture: string,
 *   parameters: number | null, score: number | null, score_name: string, changed: number, corpus: string, test: string,
 *   origin: string, languages: {source: string, target: string} | null, best: boolean, pinned: boolean, fixed: boolean,
 *   vectors: boolean, built_in: boolean}} Run  `vectors`: it reads numbers, pictures or sounds
 */

/** Runs that a page can use: those with weights, of some tasks; without any named, of every task. */
export const usable = (runs, ...tasks) =>
  runs.filter((run) => run.parameters != null && (!tasks.length || tasks.includes(run.task)));

/** Runs that read words: no sentence can be given to one that reads numbers, pictures or sounds. */
export const ofWords = (runs) => runs.filter((run) => !run.vectors);

/** The run of that name, or else the one that a page would begin with; undefined when there is none. */
export const chosen = (runs, name) => runs.find((run) => run.name === name) ?? chosenRun(runs, [], "").run;

/**
 * Which run a page for these tasks (none named: for all) shows. A run that is named is never replaced by another.
 * @param {Run[]} runs  @param {string[]} tasks the first is preferred
 * @param {string} [name] the run of the address  @param {boolean} [wordsOnly] whether the page is for runs that read words
 * @returns {{run?: Run, why?: string, missing?: string, name?: string, sentence?: string}}  `why`: "named", "last" or
 *   "best"; or there is no run, and `missing` is "none", "absent", "untrained" or "unfit"
 */
export function chosenRun(runs, tasks, name = "", wordsOnly = false) {
  const trained = usable(runs, ...tasks);
  const able = wordsOnly ? ofWords(trained) : trained;
  const named = runs.find((run) => run.name === name);
  if (name && named && able.includes(named)) return {run: named, why: "named"};
  if (name) return {name, ...lacking(named, name, tasks, wordsOnly)};
  for (const task of tasks.length ? tasks : Object.keys(TASKS)) {
    const fit = able.filter((run) => run.task === task);
    const last = fit.find((run) => run.name === remembered(task));
    if (last) return {run: last, why: "last"};
    if (fit.length) return {run: bestOf(fit), why: "best"};
  }
  return {missing: "none", name, sentence: "There is no run for this page yet."};
}

function lacking(run, name, tasks, wordsOnly) {
  if (!run) return {missing: "absent", sentence: `There is no run named “${name}” here.`};
  if (run.parameters == null) return {missing: "untrained", sentence: `“${name}” has not learned anything yet.`};
  if (wordsOnly && run.vectors)
    return {
      missing: "unfit",
      sentence: `“${name}” reads numbers, pictures or sounds; this page is for a run that reads words.`,
    };
  const needed = tasks.map((task) => TASKS[task].does).join(" or ");
  return {
    missing: "unfit",
    sentence: `“${name}” ${TASKS[run.task]?.does ?? "does something else"}; this page is for a run that ${needed}.`,
  };
}

/** Of several tasks or language pairs each has its best; of those, the one with the highest score. */
function bestOf(runs) {
  const marked = runs.filter(({best}) => best);
  const rank = ({score, changed}) => [score ?? -Infinity, changed];
  const higher = (one, other) => {
    const [[a, b], [c, d]] = [rank(one), rank(other)];
    return a > c || (a === c && b > d);
  };
  return (marked.length ? marked : runs).reduce((best, run) => (higher(run, best) ? run : best));
}

const keyOf = (task) => `regard.runs.folder.${task}`;

/** The run that the person chose last for a task. */
export function remembered(task) {
  try {
    return localStorage.getItem(keyOf(task));
  } catch {
    return null;
  }
}

/** The person has chosen: other pages, and the next visit, begin with this run. */
export function remember(run) {
  try {
    if (run?.task) localStorage.setItem(keyOf(run.task), run.name);
  } catch {
    // storage is forbidden: the choice lasts as long as the address
  }
}

/** A run is gone, or has another name now. */
export function renamed(name, to = "") {
  if (carried.run === name) carried.run = to;
  for (const task of Object.keys(TASKS)) if (remembered(task) === name) remember({task, name: to});
}

/**
 * Why a page begins with this run; nothing where it does not, nor where no other does the same. A run of the user's own
 * text goes before the built-in.
 * @param {Run | undefined} run  @param {Run[]} runs all that it is one of
 */
export function reason(run, runs) {
  if (!run) return "";
  if (remembered(run.task) === run.name) return "your last choice";
  if (run.pinned) return "pinned";
  const same = (other) => other.task === run.task && pair(other.languages) === pair(run.languages);
  if (!run.best || runs.filter(same).length < 2) return "";
  return run.built_in || run.origin ? "the best here" : "the best on your text";
}

/**
 * @param {{runs: Run[], value: string, onchange: (name: string) => void, label?: string, none?: string}} about
 *   `none`: the words for no run at all, where that may be chosen; what is chosen there is not remembered
 * @returns {HTMLElement & {value: string}}
 */
export function runPicker({runs, value, onchange, label = "Run", none = ""}) {
  const options = runs.map((run) => element("option", {value: run.name}, run.name));
  if (none) options.unshift(element("option", {value: ""}, none));
  const select = element("select", options);
  const node = field(label, select, " ");
  const note = node.querySelector(".note");
  const find = () => runs.find((run) => run.name === select.value);
  const show = (name) => {
    select.value = name ?? "";
    note.textContent = [none ? "" : reason(find(), runs), describe(find())].filter(Boolean).join(" · ");
  };
  select.addEventListener("change", () => {
    if (!none) remember(find());
    show(select.value);
    onchange(select.value);
  });
  show(value);
  return Object.defineProperty(node, "value", {get: () => select.value, set: show});
}

/** "transformer-tiny · 1.2 M parameters · BLEU 80.9 · English → French" */
export function describe(run) {
  if (!run) return "";
  return [
    run.preset,
    run.parameters == null ? "" : `${count(run.parameters)} parameters`,
    scored(run),
    pair(run.languages) || TASKS[run.task]?.does,
    run.state === "finished" ? "" : stateWord(run.state),
  ]
    .filter(Boolean)
    .map((part) => part.replaceAll(" ", NARROW))
    .join(" · ");
}

/** Scores that are better when lower. */
export const LOWER = ["perplexity", "relative error"];

/** "BLEU 99.1", "accuracy 91.5 %", "perplexity 12.3" */
export function scored({score, score_name: measure}) {
  if (score == null) return "";
  return `${measure} ${score.toFixed(1)}${["accuracy", "relative error"].includes(measure) ? " %" : ""}`;
}

export const stateWord = (state) => (state === "interrupted" ? "stopped" : state);

const names = new Intl.DisplayNames(["en"], {type: "language", fallback: "none"});

/** "French" for "fr", "Brazilian Portuguese" for "pt_BR"; an unknown code stays. */
export function language(code) {
  try {
    return names.of(code.replaceAll("_", "-")) ?? code;
  } catch {
    return code;
  }
}

/** "English → French" */
export const pair = (languages) => (languages ? `${language(languages.source)} → ${language(languages.target)}` : "");

export function count(value) {
  /** @type {[number, string][]} */
  const units = [
    [1e9, " G"],
    [1e6, " M"],
    [1e3, " k"],
    [1, ""],
  ];
  const [divisor, unit] = units.find(([least]) => value >= least) ?? [1, ""];
  const shown = value / divisor;
  return `${shown >= 100 || divisor === 1 ? Math.round(shown) : shown.toFixed(1)}${unit}`;
}

/**
 * Instead of a page: why the run of the address cannot be shown, and what can be done; or `noRun`.
 * @param {Run[]} runs  @param {string[]} tasks  @param {Record<string, string>} values of the address
 * @param {{page: string, what?: string, wordsOnly?: boolean}} about
 */
export function instead(runs, tasks, values, {page, what, wordsOnly}) {
  const found = chosenRun(runs, tasks, values.run, wordsOnly);
  return found.missing === "none" ? noRun(what) : unfit(found, {runs, tasks, values, page, wordsOnly});
}

/**
 * A sentence and buttons, where a run is missing or does something else.
 * @param {ReturnType<typeof chosenRun>} found  @param {{runs: Run[], tasks: string[], values: any, page: string,
 *   wordsOnly?: boolean}} about
 */
export function unfit({missing, name, sentence}, {runs, tasks, values, page, wordsOnly}) {
  const run = runs.find((each) => each.name === name);
  const other = chosenRun(runs, tasks, "", wordsOnly).run;
  const text = values.text;
  const kept = run?.vectors ? "" : text; // no other run reads those numbers
  const button = (words, kind, href) => element("a", {class: `button ${kind}`, href}, element("span", words));
  const bdi = (each) => element("bdi", each);
  return element(
    "section.empty.card.unfit",
    {role: "status"},
    element("h2", sentence),
    element("p.note", other ? `${other.name}: ${describe(other)}` : "There is no other run that could take its place."),
    element(
      "div.row",
      missing === "unfit" ? button(["Try ", bdi(name)], "primary", link("runs", {run: name, text})) : null,
      missing === "unfit" && (run?.task !== "translate" || run.vectors)
        ? button(["Look inside ", bdi(name)], "", link("look", {run: name, text}))
        : null,
      missing === "untrained" ? button(["See ", bdi(name)], "primary", link("train", {run: name})) : null,
      other
        ? button(
            ["Use ", bdi(other.name)],
            missing === "absent" ? "primary" : "",
            link(page, {...values, text: kept, run: other.name}),
          )
        : button("Train one", "", link("train", {})),
      button("Choose another run", "quiet", link("runs", {})),
    ),
  );
}

/** Instead of a page, when there is no run that it could use. */
export function noRun(what = "Nothing can be shown before a model has learned.") {
  return element(
    "section.empty.card",
    element("h2", "No run yet"),
    element(
      "p",
      `${what} The demo learns English to French from a small built-in corpus, here on this machine, `,
      "in about three minutes.",
    ),
    element(
      "a.button.primary",
      {href: link("train", {name: "demo", preset: "demo", corpus: "fable:fr"})},
      "Train the demo",
    ),
    element("p.note", "Or in a terminal: ", element("code", "regard demo")),
  );
}
