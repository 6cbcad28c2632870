// A run tried where it stands: a text, examples of the run's own validation text, and the answer as its task has it.

import {link} from "../../address.js";
import {get, latest, post} from "../../api.js";
import {element} from "../../element.js";
import {forecastChart} from "../../pieces/forecast.js";
import {TASKS, remember} from "../../pieces/runs.js";
import {percent} from "../../pieces/scales.js";
import {trouble} from "../../pieces/trouble.js";
import {called, fileButton, isVectors, pasted} from "../../pieces/vectors.js";
import {remarks} from "../translate/remarks.js";

export const EXAMPLES = [
  "The black cat ate the mouse.",
  "The old banker counted the coins in the bank.",
  "The fisherman that slept on the bank did not see the big fish.",
]; // as the built-in corpus has them
export const [USUAL] = EXAMPLES;
const TRIED = 3; // examples that are offered
const known = new Map(); // run and count → texts

/**
 * Sentences of a run's own validation text; none where it has none.
 * @param {string} name  @param {number} [count] as many as the service finds enough, if not said
 * @returns {Promise<string[]>}
 */
export async function examplesOf(name, count) {
  const key = `${name} ${count}`;
  if (known.has(key)) return known.get(key);
  try {
    const {examples} = await get(`/api/v1/runs/${encodeURIComponent(name)}/examples${count ? `?count=${count}` : ""}`);
    known.set(
      key,
      examples.map(({text}) => text),
    );
    return known.get(key);
  } catch {
    return []; // examples are a convenience: the page works without
  }
}

/** The few that a page offers: of the built-in corpus those that show much, of any other the run's own. */
export const offered = async ({name, corpus}) =>
  corpus?.startsWith("fable:") ? EXAMPLES : (await examplesOf(name)).slice(0, TRIED);

/**
 * What went wrong with a text. Where the text is refused, asking again cannot help: sentences that the run can read do,
 * and where the run is gone, another run.
 * @param {{message: string, status?: number}} problem
 * @param {{run: import("../../pieces/runs.js").Run, again: () => void, take?: (text: string) => void}} about
 */
export function textTrouble(problem, {run, again, take}) {
  const [refused, gone] = [problem.status === 400, problem.status === 404];
  const node = trouble(problem, refused || gone ? undefined : again);
  if (gone) node.append(element("a.button.small", {href: link("runs", {})}, "Choose another run"));
  if (!refused || !take || run.vectors) return node;
  offered(run).then((texts) => {
    if (!texts.length) return;
    const one = (text) => element("button.small", {dir: "auto", onclick: () => take(text)}, text);
    node.append(element("p.examples", element("span.note", "Try "), ...texts.map(one)));
  });
  return node;
}

/** What a page about one sentence begins with where the address has none: something that this run can read. */
export async function beginning(run) {
  const own = run?.corpus?.startsWith("fable:") ? [] : await examplesOf(run.name);
  return own[0] ?? (run?.vectors ? "" : USUAL);
}

/**
 * @param {import("../../pieces/runs.js").Run} run
 * @param {{text: string, ontry: (text: string) => void}} about  `text` is tried at once
 * @returns {{node: HTMLElement, leave: () => void}}
 */
export function tryCard(run, {text, ontry}) {
  const ask = latest();
  const area = element("textarea", {
    rows: 1,
    dir: "auto",
    maxlength: run.vectors ? 1_000_000 : 5000,
    spellcheck: "false",
    "aria-label": `Text for ${run.name}`,
    placeholder:
      run.task === "forecast" ? "numbers: 12, 15, 11, …" : run.vectors ? "numbers, or a file" : "a sentence…",
  });
  const answer = element("div.tried", {"aria-live": "polite"});
  const examples = element("p.examples");
  const show = async () => {
    const asked = run.vectors ? pasted(area.value) : area.value.trim();
    if (!asked) {
      ask.stop();
      return answer.replaceChildren();
    }
    answer.setAttribute("aria-busy", "true");
    try {
      const found = await ask((signal) => answered(run, asked, signal));
      if (!found) return undefined;
      answer.replaceChildren(...found);
    } catch (problem) {
      answer.replaceChildren(trouble(problem, show));
    }
    return answer.removeAttribute("aria-busy");
  };
  const go = () => {
    remember(run);
    ontry(area.value.trim());
    return show();
  };
  const submit = (event) => (event.preventDefault(), go());
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  });
  const take = (found) => ((area.value = found), go());
  const example = (each) =>
    element("button.small", {dir: "auto", onclick: () => take(each)}, isVectors(each) ? called(each) : each);
  examplesOf(run.name).then((found) => {
    if (found.length) examples.append(element("span.note", "Try "), ...found.slice(0, TRIED).map(example));
  });
  area.value = text;
  if (text.trim()) show();
  const form = element(
    "form.row.try",
    {onsubmit: submit},
    area,
    element("button.primary", {type: "submit"}, TASKS[run.task].verb),
  );
  const file = run.vectors ? fileButton(form, take, (problem) => answer.replaceChildren(trouble(problem))) : null;
  return {node: element("div.try-card", form, file, examples, answer), leave: () => ask.stop()};
}

/** What the run says of a text, as nodes. */
async function answered({name, task}, text, signal) {
  if (task === "translate") {
    const {
      translations: [found],
    } = await post("/api/v1/translate", {run: name, texts: [text], beam: 5}, {signal});
    return [big(found.outputs[0]?.text || "(nothing)"), ...remarks([found])];
  }
  if (task === "forecast") {
    const found = await post("/api/v1/forecast", {run: name, text}, {signal});
    return [forecastChart(found, 240).node];
  }
  const {
    predictions: [found],
  } = await post("/api/v1/predict", {run: name, texts: [text]}, {signal});
  if (task === "tag") return [tagged(found.tags)];
  if (task === "classify") return [big(found.classes[0].label), classes(found.classes)];
  return [big(element("span.given", text), " ", found.continuation || "(nothing)")];
}

const big = (...words) => element("p.big", {dir: "auto"}, words);

export const meter = (share) =>
  element("span.meter", {"aria-hidden": "true"}, element("i", {style: {width: `${100 * share}%`}}));

function tagged(tags) {
  const one = ({word, tag, probability}) =>
    element("span.tagged-word", {title: `${percent(probability)} sure`}, element("b", word), element("small", tag));
  return element("p.tagged-words", {dir: "auto"}, tags.map(one));
}

function classes(labels) {
  const rows = labels.map(({label, probability}) => [
    element("dt", label),
    element("dd.number", meter(probability), percent(probability)),
  ]);
  return element("dl.classes", rows);
}
