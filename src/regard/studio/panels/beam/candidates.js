// Words about a search: one candidate, all of them as a table, what other beams would have found.

import {element} from "../../element.js";
import {number} from "../../pieces/scales.js";
import {WHY} from "../../pieces/tree.js";

const SHAPES = {
  kept: ["M7 1h26a6 6 0 0 1 6 6v6a6 6 0 0 1 -6 6h-26a6 6 0 0 1 -6 -6v-6a6 6 0 0 1 6 -6Z", "kept"],
  finished: ["M10.5 1h19a9.5 9.5 0 0 1 0 18h-19a9.5 9.5 0 0 1 0 -18Z", "finished"],
  pruned: ["M7 1h26l6 6v6l-6 6h-26l-6 -6v-6Z", "pruned"],
};

/** What the shapes mean. @param {(tag: string, about: object, ...inside: Node[]) => Node} svg */
export function shapesKey(svg) {
  const items = Object.entries(SHAPES).map(([fate, [d, word]]) =>
    element("span", {}, svg("svg", {viewBox: "0 0 40 20", width: 36, height: 18, "aria-hidden": "true", class: `node ${fate}`}, svg("path", {class: "shape", d})), word),
  );
  const way = svg("svg", {viewBox: "0 0 40 20", width: 36, height: 18, "aria-hidden": "true"}, svg("path", {class: "edge way", d: "M1 10h38"}));
  return element("p", {class: "shapes note"}, items, element("span", {}, way, "the way to the output"));
}

/** A candidate in a few lines. */
export function portrait(node, nodes, penalty) {
  if (!node || node.parent == null) return [element("p", {class: "note"}, "Point at a candidate, or walk with the arrow keys, to see what became of it and why. Click it, or press Enter, to force what stands written there.")];
  const step = node.log_probability - nodes[node.parent].log_probability;
  const facts = [
    ["probability of this piece", probability(Math.exp(step))],
    ["log-probability so far", number(node.log_probability, 3)],
    [`normalised: ÷ ${node.step}${penalty === 1 ? "" : ` to the power of ${penalty}`}`, number(node.score, 3)],
    ["what became of it", WHY[node.reason] ?? node.reason],
  ];
  return [
    element("p", {class: "so-far", dir: "auto"}, node.text || "(nothing)", node.piece === "<end>" ? element("span", {class: "note"}, " <end>") : null),
    element("dl", {class: "facts"}, facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {class: "number"}, value)))),
  ];
}

const probability = (value) => (value < 0.001 ? value.toExponential(1).replace("-", "−") : number(value, 3));

/** Every candidate in words, best of each step first. */
export function candidatesTable(nodes) {
  const details = element("details", {}, element("summary", {}, `All ${nodes.length - 1} candidates as a table`));
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("table")) return;
    const sorted = nodes.filter((node) => node.parent != null).sort((one, other) => one.step - other.step || other.score - one.score);
    const rows = sorted.map((node) => [
      node.step,
      element("bdi", {}, `${node.text}${node.piece === "<end>" ? " <end>" : ""}`),
      number(node.log_probability, 3),
      number(node.score, 3),
      WHY[node.reason] ?? node.reason,
    ]);
    details.append(table(["step", "written", "log-probability", "normalised", "what became of it"], rows, "Every candidate of the search"));
  });
  return details;
}

/**
 * The best output of each beam; what differs from this one's is marked.
 * @param {{beam: number, text: string, score: number, log_probability: number}[]} others
 * @param {{beam: number, text: string}} now  @param {(beam: number) => void} onpick
 */
export function othersTable(others, now, onpick) {
  const rows = [...others, {...now, own: true}].sort((one, other) => one.beam - other.beam).map((each) => [
    each.own ? element("b", {}, each.beam) : element("button", {type: "button", class: "small", "aria-label": `Search with a beam of ${each.beam}`, onclick: () => onpick(each.beam)}, each.beam),
    marked(each.text, now.text),
    number(each.log_probability, 3),
    number(each.score, 3),
    each.own ? "this search" : each.text === now.text ? "the same" : each.score > now.score ? "better" : "worse",
  ]);
  return table(["beam", "output", "log-probability", "normalised", ""], rows, "The best output of other beams");
}

/** The words of a text that another has not. */
function marked(text, other) {
  const known = new Set(other.split(/\s+/));
  const words = text.split(/\s+/).filter(Boolean);
  const parts = words.flatMap((word) => [known.has(word) ? word : element("mark", {}, word), " "]);
  return element("bdi", {}, parts.length ? parts : "(nothing)");
}

function table(head, rows, caption) {
  const left = [1, 4];
  const cell = (tag, inside, place, about = {}) => element(tag, {class: left.includes(place) ? "left" : null, ...about}, inside);
  return element(
    "div",
    {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    element(
      "table",
      {},
      element("caption", {class: "visually-hidden"}, caption),
      element("thead", {}, element("tr", {}, head.map((name, place) => cell(name ? "th" : "td", name, place, name ? {scope: "col"} : {})))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map((inside, place) => cell("td", inside, place))))),
    ),
  );
}
