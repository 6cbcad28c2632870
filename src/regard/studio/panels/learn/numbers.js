// The numbers of a step: a table that is tinted by size, bars for the words of the vocabulary, or one large number.
// Pointing at a number, or going to it with the arrow keys, says where it comes from.

import {element} from "../../element.js";
import {figure, shape, short} from "./figures.js";
import {reason} from "./reasons.js";

const NARROW = 7; // columns that have room for three decimals
const SHARES = new Set([
  "softmax",
  "relu",
  "normaliser",
  "hard",
  "focus",
  "probabilities",
  "input_gate",
  "forget_gate",
  "output_gate",
  "reset",
  "update",
  "probability",
]);

/**
 * @param {import("./step.js").Step} step
 * @param {Map<string, import("./step.js").Step>} byName all steps of the walkthrough
 */
export function numbers(step, byName) {
  const told = element("output.reason");
  const tell = (place) => told.replaceChildren(...sentence(step, byName, place));
  const drawn = draw(step, tell);
  tell(resting(step));
  return element("div.numbers", drawn, element("p.note", legend(step)), told);
}

function draw(step, tell) {
  if (!step.axes.length)
    return element("p.single", element("data", {value: step.shown, "data-place": ""}, figure(step.shown)));
  if (step.axes[0].name === "word") return bars(step, tell);
  return table(step, tell);
}

/** The number that is explained before anybody points at one: the largest of the marked row. */
function resting(step) {
  if (!step.axes.length) return [];
  const row = step.axes.length > 1 ? (step.row ?? 0) : null;
  const values = row === null ? step.shown : step.shown[row];
  const sizes = values.map((value) => (value === null ? -1 : Math.abs(value)));
  const best = step.axes.length === 1 && step.row !== null ? step.row : sizes.indexOf(Math.max(...sizes));
  return row === null ? [best] : [row, best];
}

const at = (shown, place) => place.reduce((value, index) => value[index], shown);

function sentence(step, byName, place) {
  const labels = place.map((index, axis) => named(step.axes[axis], index)).join(" · ");
  const {text, value} = reason(step, byName, place);
  const shown = at(step.shown, place);
  return [
    element("strong", labels || step.title),
    element("span.equals", ` ${figure(shown, 6)} `),
    element("span.why", value === null || step.kind === "pieces" ? text : `= ${text}`),
  ];
}

function named(axis, index) {
  return axis.name === "feature" ? `feature ${axis.labels[index]}` : axis.labels[index] || "∅";
}

/** How strongly a cell is tinted, 0 to 100; shares know their whole, others are measured against their largest. */
function strength(step) {
  const all = step.shown
    .flat()
    .filter((value) => value !== null)
    .map(Math.abs);
  const largest = SHARES.has(step.kind) ? 1 : Math.max(...all, 1e-12);
  return (value) => Math.round((100 * Math.abs(value ?? 0)) / largest);
}

function table(step, tell) {
  const lying = step.axes.length === 1; // a single row
  const across = step.axes.at(-1);
  const rows = lying ? [step.shown] : step.shown;
  const decimals = rows.flat().every(Number.isInteger) ? 0 : across.labels.length > NARROW ? 2 : 3;
  const level = step.kind === "pieces" || step.kind === "monotonic" ? () => 0 : strength(step);
  const cell = (value, place) => {
    const node = element(
      "td",
      {class: kindOf(value), "data-value": value, "data-place": place, tabindex: -1},
      short(value, decimals),
    );
    node.style.setProperty("--level", `${level(value)}%`);
    return node;
  };
  const body = rows.map((values, row) => {
    const marked = !lying && row === step.row;
    const head = lying
      ? null
      : element("th", {scope: "row", dir: "auto", title: step.axes[0].labels[row]}, step.axes[0].labels[row]);
    const cells = values.map((value, column) => {
      const node = cell(value, lying ? [column] : [row, column]);
      if (lying && column === step.row) node.classList.add("walked");
      return node;
    });
    return element("tr", {class: marked ? "walked" : null, "aria-current": marked ? "true" : null}, head, cells);
  });
  const heads = across.labels.map((text) => element("th", {scope: "col", dir: "auto", title: text}, text));
  const whole = element(
    "table",
    {class: across.name === "feature" ? "features" : "positions"},
    element("caption.aside", `${step.title}: ${shape(step.shape)}`),
    element("thead", element("tr", lying ? null : element("td", across.name === "feature" ? "feature" : ""), heads)),
    element("tbody", body),
  );
  return moving(element("div.scroll", whole), tell);
}

const kindOf = (value) => (value === null ? "hidden" : value < 0 ? "minus" : "plus");

/** The words with the highest scores, best first. */
function bars(step, tell) {
  const largest = Math.max(...step.shown.map(Math.abs), 1e-12);
  const whole = SHARES.has(step.kind) ? 1 : largest;
  const rows = step.shown.map((value, place) => {
    const bar = element("td.bar", {"aria-hidden": "true"}, element("i", {class: kindOf(value)}));
    bar.firstChild.style.width = `${(100 * Math.abs(value)) / whole}%`;
    const number = element("td", {"data-value": value, "data-place": place, tabindex: -1}, figure(value));
    return element("tr", element("th", {scope: "row", dir: "auto"}, step.axes[0].labels[place]), number, bar);
  });
  const caption = element("caption.aside", `${step.title}: the highest of ${step.shape[0].toLocaleString("en")}`);
  return moving(element("div.scroll", element("table.bars", caption, element("tbody", rows))), tell);
}

/** Pointer and arrow keys move over the cells; one of them can be reached with Tab. */
function moving(box, tell) {
  const cells = [...box.querySelectorAll("[data-place]")];
  const placeOf = (cell) => cell.dataset.place.split(",").map(Number);
  let current = cells.find((cell) => cell.closest(".walked")) ?? cells[0];
  current.tabIndex = 0;
  const choose = (cell) => {
    current.tabIndex = -1;
    current = cell;
    current.tabIndex = 0;
    tell(placeOf(cell));
  };
  box.addEventListener(
    "pointerover",
    ({target}) => target.closest("[data-place]") && tell(placeOf(target.closest("[data-place]"))),
  );
  box.addEventListener("focusin", ({target}) => target.matches("[data-place]") && choose(target));
  box.addEventListener("click", ({target}) => target.closest("[data-place]")?.focus());
  box.addEventListener("keydown", (event) => {
    const next = neighbour(cells, current, event.key);
    if (next === undefined) return;
    event.preventDefault();
    next?.focus();
  });
  return box;
}

/** @returns undefined for a key that does not move; null at the edge */
function neighbour(cells, cell, key) {
  const row = [...cell.parentNode.querySelectorAll("[data-place]")];
  const rows = [...cell.closest("tbody").children];
  const column = row.indexOf(cell);
  const line = rows.indexOf(cell.parentNode);
  const inRow = (number) => rows[number]?.querySelectorAll("[data-place]")[column] ?? null;
  switch (key) {
    case "ArrowRight":
      return row[column + 1] ?? null;
    case "ArrowLeft":
      return row[column - 1] ?? null;
    case "ArrowDown":
      return inRow(line + 1);
    case "ArrowUp":
      return inRow(line - 1);
    case "Home":
      return row[0];
    case "End":
      return row.at(-1);
  }
  return undefined;
}

/** What rows and columns are, and how much of it is shown. */
function legend(step) {
  if (!step.axes.length) return "";
  const said = [];
  const [down, across] = step.axes.length === 1 ? [null, step.axes[0]] : step.axes;
  if (down) said.push(`A row for each piece ${ROWS[down.name] ?? ""}`);
  if (across.name === "feature" && across.size > across.labels.length)
    said.push(`${across.labels.length} of ${across.size} ${down ? "features" : "units"} are shown`);
  else if (across.name === "word")
    said.push(`${across.labels.length} of ${across.size.toLocaleString("en")} words are shown`);
  else if (down && across.name !== "feature") said.push(`a column for each piece ${COLUMNS[across.name] ?? ""}`);
  const marked = step.row !== null && (down ? down.labels : across.labels)[step.row];
  if (marked) said.push(`marked is the one that we follow: ${marked}`);
  return said.length ? `${said.join("; ")}.` : "";
}

const ROWS = {source: "of the source", target: "that the decoder reads"};
const COLUMNS = {source: "of the source that is looked at", target: "that is looked at"};
