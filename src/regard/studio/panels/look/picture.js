// The heat map of attention with what chooses it: whose, which layer, which head, words or pieces, special tokens.

import {element} from "../../element.js";
import {check, segmented} from "../../pieces/forms.js";
import {heatmap} from "../../pieces/heatmap.js";
import {number} from "../../pieces/scales.js";
import {stepPanel} from "./step.js";
import {ideaOf, originOf, pictureOf, pools, SIDES, titleOf, usualLayer} from "./view.js";

const CLOSE = 1e-4; // rounding of float32 is far below
const VISIBLE = 0.005; // what a sum of two decimals shows

/**
 * The selectors are a row of their own: they choose for the lines between the words too.
 * @param {{onview: (values: object) => void, onpoint: (place: object | null) => void,
 *   onrow: (row: number) => void, onwhy: (against: {piece: string, step: number}) => void}} actions
 *   `onrow` gets the place of the row's first piece
 */
export function pictureCard({onview, onpoint, onrow, onwhy}) {
  const selectors = element("div.row.end.selectors.of-picture", {role: "group", "aria-label": "What is shown"});
  const idea = element("p.note.idea");
  const title = element("h2", {id: "picture-title"});
  const origin = element("figcaption.origin");
  const checks = element("p.row.checks");
  const step = stepPanel({onrow, onwhy});
  let structure = "";
  const map = heatmap({
    label: "Attention",
    describe: (row, column, value) => `${row} ← ${column}  ${value}`,
    onpoint: (place) => {
      if (place) step.point(place.row);
      onpoint(place);
    },
    onpick: ({row}) => step.pick(row),
  });
  const node = element(
    "section.card.picture",
    {"aria-labelledby": "picture-title"},
    title,
    idea,
    element("figure", map.node, origin),
    checks,
  );
  return {
    node,
    selectors,
    step: step.node,
    leave: () => map.leave(),
    /** The row or column of a word that is pointed at elsewhere. */
    point: (place) => place?.row !== undefined && step.point(place.row),
    /** @param {(group: {word: number}) => boolean} edited  whether a column's word was edited */
    show(trace, view, edited = () => false) {
      const next = JSON.stringify([
        trace.task,
        Object.entries(trace.sides).map(([side, layers]) => [side, layers.length, layers[0].heads]),
        Boolean(trace.aligner),
      ]);
      if (next !== structure || selectors.dataset.side !== view.side) rebuild(selectors, trace, view, onview);
      structure = next;
      for (const [name, value] of Object.entries(shownOf(view))) if (selectors[name]) selectors[name].value = value;
      selectors.special.input.checked = view.special;
      const picture = pictureOf(trace, view);
      title.textContent = titleOf(trace, view.side);
      idea.textContent = ideaOf(trace, view.side);
      map.show({
        noted: picture.columns.flatMap((column, place) => (edited(column) ? [place] : [])),
        rows: picture.rows.map((row) => row.label),
        columns: picture.columns.map((column) => column.label),
        values: picture.values,
        range: [0, Math.max(1, ...picture.sums)],
      });
      origin.textContent = originOf(trace, view) + missing(picture, view);
      checks.replaceChildren(...checksOf(trace.checks));
      step.show(trace, view, picture);
      return picture;
    },
  };
}

const shownOf = ({side, layer, head, words}) => ({
  side,
  layer: layer ?? "all",
  head,
  words: words ? "words" : "pieces",
});

function rebuild(selectors, trace, view, onview) {
  const layers = trace.sides[view.side];
  const numbers = (count) =>
    Array.from({length: count}, (_, place) => ({value: String(place + 1), text: String(place + 1)}));
  const best =
    view.side === "cross" && trace.aligner
      ? [{value: "best", text: "Best aligner", title: trace.aligner.description}]
      : [];
  const made = {
    side: segmented({
      label: "Attention",
      options: sideOptions(trace),
      value: view.side,
      onchange: (side) => onview({side, layer: "", head: ""}),
    }),
    layer: segmented({
      label: "Layer",
      options: [{value: "all", text: "All"}, ...numbers(layers.length)],
      value: view.layer ?? "all",
      onchange: (layer) => onview(forLayer(layer, selectors.head.value)),
    }),
    head: segmented({
      label: "Head",
      options: [...best, {value: "mean", text: "Mean"}, ...numbers(layers[0].heads)],
      value: view.head,
      onchange: (head) => onview(forHead(head, selectors.layer.value, trace, view.side)),
    }),
    words: segmented({
      label: "Rows and columns",
      options: [
        {value: "words", text: "Words"},
        {value: "pieces", text: "Pieces"},
      ],
      value: "words",
      onchange: (words) => onview({words: words === "pieces" ? "0" : ""}),
    }),
    special: check("Special tokens", view.special, (special) => onview({special: special ? "1" : ""})),
  };
  Object.assign(selectors, made);
  selectors.dataset.side = view.side;
  const active = /** @type {HTMLInputElement | null} */ (document.activeElement);
  const holds = active?.closest(".selectors") === selectors && active?.value;
  const single = layers.length * layers[0].heads === 1;
  const alone = Object.keys(trace.sides).length === 1;
  selectors.replaceChildren(
    ...Object.entries(made)
      .filter(([name]) => !(single && (name === "layer" || name === "head")) && !(alone && name === "side"))
      .map(([, control]) => control),
  );
  if (holds) /** @type {any} */ (made.side.querySelector(`input[value="${holds}"]`))?.focus();
}

function sideOptions(trace) {
  const text = {
    cross: pools(trace, "cross") ? "Pooling" : "Cross",
    encoder: "Encoder self",
    decoder: trace.task === "language" ? "Self" : "Decoder self",
  };
  const usual = {translate: ["cross", "encoder", "decoder"], language: ["decoder"]}[trace.task] ?? ["cross", "encoder"];
  return Object.keys(SIDES)
    .filter((value) => value in trace.sides || usual.includes(value))
    .map((value) => ({
      value,
      text: text[value],
      disabled: !(value in trace.sides),
      title: value in trace.sides ? titleOf(trace, value) : "this model has none",
    }));
}

/** A layer of its own is not what the aligner reads. */
const forLayer = (layer, head) => ({
  layer: layer === "all" ? "" : layer,
  head: layer === "all" ? (/^\d+$/.test(head) ? "mean" : head) : head === "best" ? "mean" : head,
});

/** A head by its number is of some layer; the aligner is of none in particular. */
function forHead(head, layer, trace, side) {
  if (head === "best") return {head: "", layer: ""};
  if (head === "mean") return {head, layer: layer === "all" ? "" : layer};
  return {head, layer: layer === "all" ? String(usualLayer(trace, side)) : layer};
}

function missing({sums}, {special}) {
  const least = Math.min(...sums);
  return !special && least < 1 - VISIBLE
    ? `. Rows as shown sum to ${number(least)} at the least: what is missing is on special tokens`
    : "";
}

/** "3e-7", "0" */
const power = (value) => (value ? value.toExponential(0) : "0");

/** Are the rows distributions, and is what is shown what was used? */
function checksOf({largest_row_error: rows, largest_difference_from_decoding: apart}) {
  const chip = (good, words, why) =>
    element("span", {class: `chip ${good ? "good" : "bad"}`, title: why}, `${good ? "✓" : "✗"} ${words}`);
  return [
    chip(
      rows < CLOSE,
      rows < CLOSE ? "Σ row = 1" : `Σ row is off by ${number(rows)}`,
      "Largest |Σ row − 1| over all layers, heads and rows: " +
        `${rows.toExponential(1)}${rows < CLOSE ? "" : ". A Gaussian window takes weight away."}`,
    ),
    chip(
      apart < CLOSE,
      apart < CLOSE ? "shown = used" : `shown is off by ${number(apart, 4)}`,
      `The output was written again, step by step; largest difference of a weight: ${apart.toExponential(1)}`,
    ),
    element("span.note.number", `largest errors ${power(rows)} and ${power(apart)}, over all layers and heads`),
  ];
}
