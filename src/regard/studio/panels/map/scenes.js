// The places inside a model: a layer, an attention, a head, one product; a recurrent layer, a cell, one number of it;
// and of any other part its vectors. Every number is the run's own.

import {element} from "../../element.js";
import {heatmap} from "../../pieces/heatmap.js";
import {legible} from "../../pieces/letters.js";
import {number, percent} from "../../pieces/scales.js";
import {thumbnail} from "../../pieces/thumbnail.js";
import {box} from "./drawing.js";
import {axesOfPart, measureOf, partAt, piecesOf, readPlace} from "./model.js";
import {barred, line, sumOf, vector} from "./numbers.js";
import {recurring} from "./recurrent.js";

const CLOSE = 2e-3;

/**
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Inside} Inside
 * @param {{href: (at: string) => string, go: (at: string) => void}} about
 * @returns {(model: Model, at: string, inside: Inside) => Node}
 */
export function scenes(about) {
  return (model, at, inside) => {
    const {name, chosen} = readPlace(at);
    const part = partAt(model, name);
    if (part.parts.length) return layerScene(model, part, about);
    if (part.kind === "attention") return attending(model, part, chosen, inside, about);
    if (part.kind === "recurrent" || part.kind === "recurrence") return recurring(model, part, chosen, inside, about);
    if (part.kind === "output") return outputScene(model);
    return vectorScene(model, part, inside);
  };
}

/* A layer: its blocks from below to above, each with the way round it */

function layerScene(model, part, about) {
  const blocks = part.parts.map((each) =>
    element("li", {class: each.kind}, box(model, each, about), heads(model, each, about)),
  );
  const enters = element("li.enters.note", `What enters: ${piecesOf(model, part).length} vectors of ${part.size}`);
  return element(
    "div.layer-scene",
    element("ol.blocks", {"aria-label": `${part.title}, from below to above`}, enters, blocks),
  );
}

/** The heads of an attention, small, each a way to itself. */
function heads(model, part, {href}) {
  const found = model.weights.get(part.name);
  if (!found || found.heads < 2) return null;
  const [, rows, columns] = found.weights.shape;
  const links = Array.from({length: found.heads}, (_, head) =>
    element(
      "a.head-stamp",
      {
        href: href(`${part.name}/${head}`),
        "data-door": `${part.name}/${head}`,
        "data-part": part.name,
        "aria-label": `${part.title}, head ${head + 1}`,
        title: `Head ${head + 1}`,
      },
      thumbnail({values: found.weights.part(head), rows, columns, range: [0, 1]}),
    ),
  );
  return element("div.head-stamps", links);
}

/* Attention: all heads; one head; one product */

function attending(model, part, chosen, inside, about) {
  if (chosen.length === 0) return headsScene(model, part, inside, about);
  if (chosen.length < 3) return headScene(model, part, chosen, about);
  return productScene(model, part, chosen, inside, about);
}

function headsScene(model, part, inside, {href}) {
  const found = model.weights.get(part.name);
  const [, rows, columns] = found.weights.shape;
  const width = inside.queries?.shape[2];
  const best = new Set(
    part.name.endsWith("cross") ? (model.aligner?.heads ?? []).map(({layer, head}) => `${layer}.${head}`) : [],
  );
  const cards = Array.from({length: found.heads}, (_, head) => {
    const values = found.weights.part(head);
    const aligns = best.has(`${found.layer}.${head}`);
    return element(
      "a.head-card",
      {href: href(`${part.name}/${head}`), "data-door": `${part.name}/${head}`, "data-part": part.name},
      thumbnail({values, rows, columns, range: [0, 1]}),
      element("span.title", found.heads === 1 ? "Its one head" : `Head ${head + 1}`),
      element("span.note.number", told(values, rows, columns)),
      aligns ? element("span.chip.now", "aligns best") : null,
    );
  });
  const shape = width
    ? `${rows} questions look at ${columns} pieces; each head compares vectors of ${width} numbers.`
    : `${rows} questions look at ${columns} pieces.`;
  return element("div.heads-scene", element("p.note", shape), element("div.head-cards", cards));
}

/** How sharply a head looks: the mean of the largest weight of each row. */
function told(values, rows, columns) {
  let sum = 0;
  for (let row = 0; row < rows; row++) sum += Math.max(...values.subarray(row * columns, (row + 1) * columns));
  return `${percent(sum / Math.max(1, rows))} on one piece, on average`;
}

function headScene(model, part, [head, row], {go}) {
  const found = model.weights.get(part.name);
  const [rows, columns] = axesOfPart(model, part.name);
  const map = heatmap({
    label: `${part.title}, head ${head + 1}`,
    describe: (to, from, value) => `${to} ← ${from}  ${value}`,
    onpick: (place) => go(`${part.name}/${head}/${place.row}/${place.column}`),
  });
  const width = columns.length;
  const values = found.weights.part(Math.min(head, found.heads - 1));
  map.show({
    rows,
    columns,
    values,
    range: [0, 1],
    marks: row === undefined ? [] : columns.map((_, column) => [row, column]),
  });
  const [best] = Array.from(values, (value, place) => ({value, place})).sort((one, other) => other.value - one.value);
  const way = [Math.floor(best.place / width), best.place % width];
  return element(
    "div.head-scene",
    element(
      "p.note",
      "A row is one question, a column one piece that may answer. Choose a cell to see how its weight was computed: ",
      element(
        "button.small",
        {onclick: () => go([part.name, head, ...way].join("/"))},
        `${rows[way[0]]} ← ${columns[way[1]]} ${percent(best.value)}`,
      ),
    ),
    element("div", {"data-picture": ""}, map.node),
  );
}

/** q · k, number by number, and what becomes of it. */
function productScene(model, part, [head, row, column], inside, about) {
  const [rows, columns] = axesOfPart(model, part.name);
  const [to, from] = [rows[row], columns[column]];
  const weight = inside.weights.at(head, row, column);
  const score = inside.scores.at(head, row, column);
  return element(
    "div.product-scene",
    element("h2", "How much does ", element("bdi", to), " look at ", element("bdi", from), "?"),
    inside.combine
      ? added(inside, [head, row, column], [to, from])
      : multiplied(inside, [head, row, column], [to, from]),
    line(
      "softmax",
      percent(weight),
      `exp(${number(score, 3)}), divided by the sum of its row. All weights of the row, which add up to ` +
        `${percent(sumOf(inside.weights.part(head, row)))}:`,
    ),
    rowWeights(part, [head, row, column], [to, columns], inside.weights, about),
    line("Σ weight · v", "", "Each piece's value, times its weight; their sum is what this head found:"),
    vector("found", inside.contexts.part(head, row), "diverging"),
  );
}

/** The weights of a row, each a way to its own product. */
function rowWeights(part, [head, row, column], [to, columns], weights, {href}) {
  const items = columns.map((piece, place) => {
    const weight = weights.at(head, row, place);
    const at = `${part.name}/${head}/${row}/${place}`;
    const current = {href: href(at), "data-door": at, "aria-current": place === column ? "true" : null};
    return element("li", element("a", current, ...barred(piece, weight)));
  });
  return element("ol.row-weights", {"aria-label": `Where ${to} looks`}, items);
}

/** The inner product: q and k as they are compared, after rotation and weights, and its scale. */
function multiplied({asked, answered, products, scores, queries}, [head, row, column], [to, from]) {
  const [q, k] = [asked.part(head, row), answered.part(head, column)];
  const [product, score] = [products.at(head, row, column), scores.at(head, row, column)];
  const turned = !queries.part(head, row).every((value, place) => Math.abs(value - q[place]) < CLOSE);
  const note = `The sum of these ${q.length} products.${turned ? " Both were turned by their positions before." : ""}`;
  const lines = [
    vector(`q of ${to}`, q, "diverging"),
    vector(`k of ${from}`, k, "diverging"),
    vector(
      "q × k",
      Float32Array.from(q, (value, place) => value * k[place]),
      "diverging",
    ),
    line("q · k", number(product, 3), note),
  ];
  if (Math.abs(product - score) > CLOSE)
    lines.push(
      line(
        "÷ √d",
        number(score, 3),
        `${number(product, 3)} ÷ √${q.length}. Without it the scores would be so large that softmax takes one piece alone.`,
      ),
    );
  return lines;
}

/** The additive score: v · tanh(W q + W k). */
function added({asked, answered, combine, scores}, [head, row, column], [to, from]) {
  const [q, k, v] = [asked.part(head, row), answered.part(head, column), combine.part(head)];
  const hidden = Float32Array.from(q, (value, place) => Math.tanh(value + k[place]));
  return [
    vector(`W q of ${to}`, q, "diverging"),
    vector(`W k of ${from}`, k, "diverging"),
    vector("tanh of both", hidden, "diverging"),
    vector("v", v, "diverging"),
    line("score", number(scores.at(head, row, column), 3), `The sum of these ${v.length} tanh, each times its v.`),
  ];
}

/* What is written, and how sure */

function outputScene(model) {
  const rows = model.target.pieces.map((piece, place) =>
    element("li", ...barred(legible(piece), model.probabilities[place])),
  );
  return element(
    "div.output-scene",
    element("p.note", "How probable each piece was when its turn came."),
    element("ol.row-weights", rows),
  );
}

/* Any other part: the vectors that leave it */

function vectorScene(model, part, inside) {
  const values = inside[""];
  const pieces = piecesOf(model, part);
  const measure = measureOf(model, part);
  if (!values || values.shape.length !== 2)
    return element("p.note", "What leaves this part is not recorded by itself; Learn computes it, number by number.");
  const [rows, columns] = values.shape;
  const picture = thumbnail({
    values: values.data,
    rows,
    columns,
    label: `The vectors that leave: ${rows} pieces, ${columns} numbers each`,
    scale: "diverging",
  });
  return element(
    "div.vector-scene",
    element("p.note", `${rows} vectors of ${columns} numbers: a row a piece.`),
    element(
      "div.matrix",
      element(
        "ol.names",
        pieces.map((piece) => element("li", element("bdi", piece))),
      ),
      picture,
    ),
    measure.values.length
      ? element(
          "p.note.number",
          `${measure.what}: `,
          pieces.map((piece, place) => `${piece} ${measure.of(measure.values[place])}`).join(", "),
        )
      : null,
  );
}
