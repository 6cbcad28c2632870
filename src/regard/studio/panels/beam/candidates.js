// Words about a search: one candidate, all of them as a table, what other beams would have found.

import {element, svg} from "../../element.js";
import {number, percent} from "../../pieces/scales.js";
import {folded, table} from "../../pieces/table.js";
import {whyOf} from "../../pieces/tree.js";

const SHAPES = {
  kept: ["M7 1h26a6 6 0 0 1 6 6v6a6 6 0 0 1 -6 6h-26a6 6 0 0 1 -6 -6v-6a6 6 0 0 1 6 -6Z", "kept"],
  finished: ["M10.5 1h19a9.5 9.5 0 0 1 0 18h-19a9.5 9.5 0 0 1 0 -18Z", "finished"],
  pruned: ["M7 1h26l6 6v6l-6 6h-26l-6 -6v-6Z", "pruned"],
};

/** What the shapes mean. */
export function shapesKey() {
  const items = Object.entries(SHAPES).map(([fate, [d, word]]) =>
    element(
      "span",
      svg(
        "svg",
        {viewBox: "0 0 40 20", width: 36, height: 18, "aria-hidden": "true", class: `node ${fate}`},
        svg("path", {class: "shape", d}),
      ),
      word,
    ),
  );
  const way = svg(
    "svg",
    {viewBox: "0 0 40 20", width: 36, height: 18, "aria-hidden": "true"},
    svg("path", {class: "edge way", d: "M1 10h38"}),
  );
  return element("p.shapes.note", items, element("span", way, "the way to the output"));
}

/** A candidate in a few lines: why it left first, percent before logarithms. */
export function portrait(node, {nodes, outputs}, penalty) {
  if (!node || node.parent == null)
    return [
      element(
        "p.note",
        "Tap or point at a candidate, or walk with the arrow keys, to see what became of it and why. ",
        "Tap or click it, or press Enter, to force what stands written there.",
      ),
    ];
  const step = node.log_probability - nodes[node.parent].log_probability;
  const length = `log p ÷ ${node.step}${penalty === 1 ? "" : ` to the power of ${penalty}`}`;
  const facts = [
    ["this piece", percent(Math.exp(step))],
    ["all of it so far", percent(Math.exp(node.log_probability))],
    ["what became of it", whyOf(node, outputs)],
  ];
  const numbers =
    `log-probability ${number(node.log_probability, 3)}; normalised for length, ` +
    `${length} = ${number(node.score, 3)}`;
  return [
    element(
      "p.so-far",
      {dir: "auto"},
      node.text || "(nothing)",
      node.piece === "<end>" ? element("span.note", " <end>") : null,
    ),
    element(
      "dl.facts",
      facts.map(([name, value]) => element("div", element("dt", name), element("dd.number", value))),
    ),
    element("p.note.number.in-detail", numbers),
  ];
}

/** Every candidate in words, best of each step first. */
export function candidatesTable({nodes, outputs}) {
  const rows = () =>
    nodes
      .filter((node) => node.parent != null)
      .sort((one, other) => one.step - other.step || other.score - one.score)
      .map((node) => [
        node.step,
        element("bdi", `${node.text}${node.piece === "<end>" ? " <end>" : ""}`),
        percent(Math.exp(node.log_probability)),
        number(node.log_probability, 3),
        number(node.score, 3),
        whyOf(node, outputs),
      ]);
  const head = ["step", "written", "probability", "log-probability", "normalised", "what became of it"];
  const about = {caption: "Every candidate of the search", left: [1, 5]};
  return folded(`All ${nodes.length - 1} candidates as a table`, () => table(head, rows(), about));
}

/**
 * The best output of each beam; what differs from this one's is marked.
 * @typedef {{beam: number, text: string, score: number, log_probability: number, own?: boolean}} Best
 * @param {Best[]} others  @param {Best} now  @param {(beam: number) => void} onpick
 */
export function othersTable(others, now, onpick) {
  const verdict = (each) => (each.text === now.text ? "the same" : each.score > now.score ? "better" : "worse");
  const button = ({beam}) => {
    const about = {class: "small", "aria-label": `Search with a beam of ${beam}`};
    return element("button", {...about, onclick: () => onpick(beam)}, beam);
  };
  /** @type {Best[]} */
  const all = [...others, {...now, own: true}];
  const rows = all
    .sort((one, other) => one.beam - other.beam)
    .map((each) => [
      each.own ? String(each.beam) : button(each),
      marked(each.text, now.text),
      percent(Math.exp(each.log_probability)),
      number(each.score, 3),
      each.own ? "this search" : verdict(each),
    ]);
  const head = ["beam", "output", "probability", "score", ""];
  return table(head, rows, {
    caption:
      "The best output of other beams. The score is the log-probability, normalised for length; " +
      "outputs are compared by it.",
    left: [1, 4],
  });
}

/** The words of a text that another has not. */
function marked(text, other) {
  const known = new Set(other.split(/\s+/));
  const words = text.split(/\s+/).filter(Boolean);
  const parts = words.flatMap((word) => [known.has(word) ? word : element("mark", word), " "]);
  return element("bdi", parts.length ? parts : "(nothing)");
}
