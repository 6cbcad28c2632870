// From a trace and what is chosen to the numbers of a picture: the same as regard.explain.views does in Python.
// People count layers and heads from 1, and so do a view and the address; traces and edits count from 0.

import {legible} from "../../pieces/letters.js";
import {unpack} from "../../pieces/packed.js";

export const SIDES = {cross: "Cross-attention", encoder: "Encoder self-attention", decoder: "Decoder self-attention"};

/** Whether the side `cross` of a trace is a classifier's: it has no decoder, attention mixes its states into one. */
export const pools = (trace, side) => side === "cross" && trace.sides.cross?.[0].name === "pool";

export const titleOf = (trace, side) =>
  pools(trace, side) ? "Attention that pools the text" : trace.task === "language" ? "Self-attention" : SIDES[side];

/** What a row means: a decoder predicts, an encoder does not, and a pool reads the class of a text. */
export function ideaOf(trace, side) {
  if (pools(trace, side)) return "One row: which words the class was read from.";
  if (side === "encoder")
    return (
      "Row by row: which words this word’s new representation is made of. An encoder predicts nothing; " +
      "it only reads."
    );
  if (trace.task === "language")
    return "Row by row: which of the words before it the model looked at when it predicted that word.";
  if (side === "decoder")
    return "Row by row: which words that were already written the model looked at when it predicted that word.";
  return "Row by row: which words of the source the model looked at when it predicted that word.";
}

const OUTPUTS = {translate: "Translation", tag: "Tags", classify: "Class"};
export const outputName = (task) => OUTPUTS[task] ?? "Text";
export const sourceName = (task) => (task === "translate" ? "Source" : "Text");

/** What stands above and below lines between words: columns and rows of a picture. @returns {[string, string]} */
export function namesOf({task}, side) {
  if (task === "language") return ["Read so far", "Predicted next"];
  if (side === "decoder") return ["Written so far", "Predicted next"];
  return [sourceName(task), side === "encoder" ? "Their new representations" : outputName(task)];
}

/** Whether the columns of a side are words of the text that was asked about, which can be edited. */
export const readsText = ({task}, side) => side !== "decoder" || task === "language";

/**
 * @typedef {{task: string, source: Side, target: Side, attentions: any[], aligner: any, checks: any, unknown: any[],
 *   sides: Record<string, {heads: number, weights: any}[]>, log_probability: number,
 *   log_probabilities: number[]}} Trace  as /api/v1/trace has it, its weights unpacked
 * @typedef {{label: string, places: number[], word: number}} Group  a word with its pieces, or a piece
 * @typedef {{side: string, layer: number | null, head: "best" | "mean" | number, words: boolean,
 *   special: boolean}} View
 * @typedef {{pieces: string[], ids: number[], words: string[], word_of: number[]}} Side
 */

/** The trace with its weights as numbers: `sides.cross[layer]` is {name, heads, weights}. */
export function opened(trace) {
  const sides = {};
  for (const attention of trace.attentions)
    (sides[attention.side] ??= [])[attention.layer] = {...attention, weights: unpack(attention.weights)};
  return {...trace, sides, aligner: chosenHeads(trace.aligner) ? trace.aligner : null};
}

/** Whether heads were chosen; without, links are read from the mean of all, which is no choice to offer. */
const chosenHeads = (aligner) => aligner !== null && (aligner.heads.length > 0 || aligner.late);

export const hasAttention = (trace) => Object.keys(trace.sides).length > 0;

/** What to show of this trace, as near to what the address says as it has it. @returns {View} */
export function viewOf(values, trace) {
  const side = values.side in trace.sides ? values.side : Object.keys(SIDES).find((each) => each in trace.sides);
  const layers = trace.sides[side];
  const within = (text, count) => (/^\d+$/.test(text ?? "") && text >= 1 && text <= count ? Number(text) : null);
  let layer = within(values.layer, layers.length);
  const number = within(values.head, layers[0].heads);
  if (number && !layer) layer = usualLayer(trace, side);
  const best = side === "cross" && trace.aligner && !layer && values.head !== "mean";
  return {
    side,
    layer,
    head: number ?? (best ? "best" : "mean"),
    words: values.words !== "0",
    special: values.special === "1",
  };
}

/** Of which layer a head is meant by default: the aligner's, else the last. */
export function usualLayer(trace, side) {
  const aligner = side === "cross" ? trace.aligner?.heads[0] : undefined;
  return (aligner?.layer ?? trace.sides[side].length - 1) + 1;
}

/** Which heads a view takes the mean of: [layer, head] from 0. */
export function headsOf(trace, {side, layer, head}) {
  const layers = trace.sides[side];
  if (head === "best" && trace.aligner.heads.length) return trace.aligner.heads.map((one) => [one.layer, one.head]);
  const chosen = layer ? [layer - 1] : layers.map((_, place) => place);
  return chosen.flatMap((place) =>
    typeof head === "number"
      ? [[place, head - 1]]
      : Array.from({length: layers[place].heads}, (_, one) => [place, one]),
  );
}

/** The weights of a view, T × S, before anything is folded. */
export function weightsOf(trace, view) {
  const heads = headsOf(trace, view);
  const [, rows, columns] = trace.sides[view.side][0].weights.shape;
  const mean = new Float64Array(rows * columns);
  for (const [layer, head] of heads)
    trace.sides[view.side][layer].weights.part(head).forEach((value, place) => (mean[place] += value / heads.length));
  return view.head === "best" && trace.aligner.late ? later(mean, rows, columns) : mean;
}

/** Each row from the step that read the piece; the last, never read, keeps its own. */
function later(values, rows, columns) {
  const moved = new Float64Array(values.length);
  moved.set(values.subarray(columns));
  moved.set(values.subarray((rows - 1) * columns), (rows - 1) * columns);
  return moved;
}

/** Rows and columns of a side. A decoder's row is the piece it predicted, its columns what it had read. */
export const axesOf = (trace, side) =>
  ({cross: [trace.target, trace.source], encoder: [trace.source, trace.source], decoder: [trace.target, trace.inputs]})[
    side
  ];

export {legible};

/** What stands at one place of an axis. @returns {Group[]} */
export function groupsOf(side, {words, special}) {
  const groups = [];
  side.pieces.forEach((piece, place) => {
    const word = side.word_of[place];
    if (word < 0) special && groups.push({label: piece, places: [place], word});
    else if (words && groups.at(-1)?.word === word && groups.at(-1).places.at(-1) === place - 1)
      groups.at(-1).places.push(place);
    else groups.push({label: words ? side.words[word] : legible(piece), places: [place], word});
  });
  return groups;
}

/** Both axes, with special tokens where there is nothing else. */
export function placesOf(trace, view) {
  const axes = axesOf(trace, view.side);
  const found = axes.map((side) => groupsOf(side, view));
  return found.every((groups) => groups.length) ? found : axes.map((side) => groupsOf(side, {...view, special: true}));
}

/** A word's row is the mean of its pieces' rows, its column the sum of their columns. */
export function fold(values, width, rows, columns) {
  const folded = new Float64Array(rows.length * columns.length);
  rows.forEach((row, down) => {
    columns.forEach((column, across) => {
      let sum = 0;
      for (const place of row.places) for (const other of column.places) sum += values[place * width + other];
      folded[down * columns.length + across] = sum / row.places.length;
    });
  });
  return folded;
}

/** All of a picture. `rows` and `columns` are groups; the heat map wants their labels. */
export function pictureOf(trace, view) {
  const [rows, columns] = placesOf(trace, view);
  const values = fold(weightsOf(trace, view), axesOf(trace, view.side)[1].pieces.length, rows, columns);
  const sums = rows.map((_, row) =>
    values.subarray(row * columns.length, (row + 1) * columns.length).reduce((sum, value) => sum + value, 0),
  );
  return {rows, columns, values, sums};
}

/** Where the numbers come from: "cross-attention, layer 2, head 1". */
export function originOf(trace, view) {
  const layers = trace.sides[view.side];
  const heads = layers[0].heads;
  const name = titleOf(trace, view.side).toLowerCase();
  if (view.head === "best")
    return trace.aligner.description + (trace.aligner.late ? "; each row is that of the step that read the word" : "");
  if (layers[0].name === "pool") return "the attention that pools the states";
  if (typeof view.head === "number") return `${name}, layer ${view.layer}, head ${view.head}`;
  const all = layers.length * heads;
  if (view.layer) return `${name}, layer ${view.layer}, ${heads === 1 ? "its one head" : `mean of its ${heads} heads`}`;
  return `${name}, ${all === 1 ? "its one head" : `mean of all ${all} heads`}`;
}

/** "decoder layer 2, cross-attention"; a recurrent decoder has one that belongs to no layer. */
export function attentionName(name) {
  const [side, ...rest] = name.split(".");
  const kind = rest.at(-1) === "cross" ? "cross-attention" : "self-attention";
  if (name === "pool") return "the attention that pools the text";
  return rest.length > 1 ? `${side} layer ${Number(rest[0]) + 1}, ${kind}` : kind;
}
