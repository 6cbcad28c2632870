// A small question at the end of a chapter, which the numbers on the page answer.

import {element} from "../../element.js";
import {announce} from "../../pieces/announce.js";
import {percent} from "../../pieces/scales.js";

/**
 * @typedef {import("./step.js").Step} Step
 * @typedef {{ask: string, right: string, wrong: string[], why: string}} Question
 */

/** Of weights or probabilities: the two largest entries of a row, and others. @returns {{label: string, value: number}[]} */
function ranked(step, row) {
  const values = step.axes.length > 1 ? step.shown[row] : step.shown;
  const labels = step.axes.at(-1).labels;
  return labels
    .map((label, place) => ({label, value: values[place] ?? 0}))
    .sort((one, other) => other.value - one.value);
}

const distinct = (labels) => [...new Set(labels)];

/** Where a row looks most. A label that stands twice is no question. @returns {Question | null} */
function looksAt(step, row, name) {
  const [best, ...rest] = ranked(step, row);
  const wrong = distinct(rest.map(({label}) => label)).filter((label) => label !== best.label);
  if (!wrong.length) return null;
  return {
    ask: `Where does ${name} look most, in this head?`,
    right: best.label,
    wrong: wrong.slice(0, 2),
    why: `${best.label} has ${percent(best.value)} of the weights of its row.`,
  };
}

/** How large something is. @returns {Question} */
function sized(ask, right, others, why) {
  return {ask, right: String(right), wrong: distinct(others.map(String)).filter((each) => each !== String(right)), why};
}

/** @param {import("./chapters.js").Chapter & {key?: string}} chapter  @returns {Question | null} */
export function questionOf(chapter, walk) {
  const steps = chapter.steps.map(({step}) => step);
  const last = steps.at(-1);
  if (!last) return null;
  const weights = steps.findLast(({name}) => name.endsWith(".weights"));
  if (weights) {
    const row = weights.axes.length > 1 ? (weights.row ?? 0) : 0;
    const name = weights.axes.length > 1 ? weights.axes[0].labels[row] : "it";
    return looksAt(weights, row, name);
  }
  const probabilities = steps.find(({name}) => name === "probabilities");
  if (probabilities) {
    const [first, second, ...rest] = ranked(probabilities, 0);
    if (!second) return null;
    return {
      ask: "What would have come in its place, had the first choice not been there?",
      right: second.label,
      wrong: distinct([first, ...rest].map(({label}) => label))
        .filter((label) => label !== second.label)
        .slice(0, 2),
      why: `${second.label} had ${percent(second.value)}, after ${first.label} with ${percent(first.value)}.`,
    };
  }
  const gate = steps.find(({kind}) => kind === "forget_gate" || kind === "update" || kind === "ssru_forget");
  if (gate) {
    const values = gate.axes.length > 1 ? gate.shown[gate.row ?? 0] : gate.shown;
    const open = values.filter((value) => value > 0.5).length;
    const all = values.length;
    return sized(
      `Of the ${all} units shown, how many keep more than half of what was there?`,
      open,
      [all - open, open > 0 ? open - 1 : open + 1, all].slice(0, 3),
      `${open} of the ${all} values of the ${gate.title.toLowerCase()} are above one half.`,
    );
  }
  const width = last.shape.at(-1);
  if (last.shape.length > 1 && width !== undefined) {
    const [rows] = last.shape;
    return sized(
      "How many numbers stand for one piece here?",
      width,
      [rows, width * 2, rows * width].slice(0, 3),
      `The result is ${rows} × ${width}: a row a piece, ${width} numbers in each.`,
    );
  }
  if (width === undefined) return null;
  return sized(
    "How many numbers is this in all, however long the sentence?",
    width,
    [width * walk.source.pieces.length, width * 2],
    `One vector of ${width} numbers.`,
  );
}

/** The same order for everybody, and not always the right one first. */
function shuffled(options) {
  const weigh = (text) => [...text].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973, 7);
  return [...options].sort((one, other) => weigh(one) - weigh(other) || one.localeCompare(other));
}

/** @returns {HTMLElement | null} */
export function question(chapter, walk) {
  const found = questionOf(chapter, walk);
  if (!found || !found.wrong.length) return null;
  const told = element("p.told-answer", {role: "status"});
  const buttons = shuffled([found.right, ...found.wrong.slice(0, 2)]).map((option) => {
    const button = element("button.small", {dir: "auto", "data-option": option}, option);
    button.addEventListener("click", () => {
      const right = option === found.right;
      button.classList.add(right ? "right" : "wrong");
      button.setAttribute("aria-pressed", "true");
      told.textContent = right ? `Yes. ${found.why}` : "No; look at the numbers once more.";
      announce(told.textContent);
    });
    return button;
  });
  return element(
    "section.quiz.card",
    {"aria-label": "A question"},
    element("h3", found.ask),
    element("div.row", buttons),
    told,
  );
}
