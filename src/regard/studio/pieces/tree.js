// The tree of a beam search: every step a column, every candidate a shape, and the way each came and went.
//
//   const picture = tree({label: "The search", onpoint, onpick});
//   root.append(picture.node);
//   picture.show({nodes, outputs});        // as /api/v1/beam has them
//
// Fates are told apart by shape and by line as well as by colour: what was kept is a box, what finished a round one
// with a thick line, what was pruned a dashed box with its corners cut. The way to the output is drawn thick. The arrow
// keys walk: left to what a node continues, right to its best continuation, up and down within a step.

import {element, svg} from "../element.js";
import {extent, legible, rightToLeft, shortened} from "./letters.js";
import {number, percent} from "./scales.js";

const [SIZE, LINE, GAP, ALLEY] = [13, 16, 10, 34];
const FADE = 28; // at the right, where there is more to see
const HIGH = 3 * LINE + 12;
const [SOFT, ROOM, WIDEST] = [11.5, 14, 176]; // of what is below a piece, and beside it

export const WHY = {
  "": "went on",
  beam: "pruned: others were better",
  repeated: "pruned: written by another group already",
  output: "finished: this is the output",
  worse: "finished, but others were better",
  full: "left: enough had finished",
  beaten: "left: it could not win any more",
  limit: "left: nothing more may be written",
};
const SHORT = {
  "": "",
  beam: "pruned",
  repeated: "repeated",
  output: "✓ output",
  worse: "finished",
  full: "enough finished",
  beaten: "cannot win",
  limit: "at the limit",
};

/** Of what finished, one is the output; the others are only the next best. */
const reasonOf = (node, outputs) => (node.reason === "output" && node.number !== outputs[0] ? "worse" : node.reason);

/** What became of a candidate, in words. */
export const whyOf = (node, outputs) => WHY[reasonOf(node, outputs)] ?? node.reason;

/**
 * @typedef {{number: number, parent: number | null, step: number, piece: string, text: string, log_probability: number,
 *   score: number, fate: "kept" | "finished" | "pruned", reason: string}} Node
 * @param {{label: string, pruned?: number, onpoint?: (node: Node | null) => void,
 *   onpick?: (node: Node) => void}} options  `pruned`: how many of what a step pruned are drawn, best first
 */
export function tree(options) {
  return new Tree({pruned: 3, ...options});
}

/** A node and all that it continues, as numbers. */
export function wayTo(nodes, last) {
  const found = new Set();
  for (let place = last; place != null; place = nodes[place].parent) found.add(place);
  return found;
}

/**
 * By step: what was kept or finished, best first; then the best of what was pruned.
 * @param {Node[]} nodes  @param {number} pruned
 */
export function columnsOf(nodes, pruned) {
  /** @type {Node[][]} */
  const steps = [];
  for (const node of [...nodes].sort((one, other) => other.score - one.score)) (steps[node.step] ??= []).push(node);
  return Array.from(steps, (step = []) => [
    ...step.filter((node) => node.fate !== "pruned"),
    ...step.filter((node) => node.fate === "pruned").slice(0, pruned),
  ]);
}

class Tree {
  /** @type {Node[]} */ nodes;
  /** @type {Node[][]} by step */ columns;
  /** @type {ReturnType<typeof placesOf>} */ places;
  /** @type {Map<number, SVGElement>} */ shapes;
  /** @type {Map<number, SVGElement>} */ edges;
  /** @type {Set<number>} numbers of what was forced */ forced;
  /** @type {Set<number>} numbers of the way to the output */ way;

  constructor(options) {
    this.options = options;
    this.box = element("div.box", {role: "group", "aria-label": options.label});
    this.node = element("div.tree", this.box);
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("pointerleave", () => this.point(null));
    this.box.addEventListener("focusout", () => this.point(null));
    pannable(this.box);
  }

  /** @param {{nodes: Node[], outputs: number[]}} found  @param {{pruned?: number, forced?: Set<number>}} options */
  show({nodes, outputs}, {pruned = this.options.pruned, forced = new Set()} = {}) {
    this.nodes = nodes;
    this.outputs = outputs;
    this.forced = forced;
    this.columns = columnsOf(nodes, pruned);
    this.places = placesOf(this.columns);
    this.way = outputs.length ? wayTo(nodes, outputs[0]) : new Set();
    const drawn = this.columns.flat();
    const edges = drawn.filter((node) => this.places.has(node.parent)).map((node) => this.edge(node));
    this.shapes = new Map(drawn.map((node) => [node.number, this.shape(node)]));
    this.edges = new Map(edges.map((edge) => [Number(edge.dataset.number), edge]));
    const all = [...this.places.values()];
    const width = Math.max(...all.map(({left, wide}) => left + wide)) + FADE;
    const height = Math.max(...all.map(({top}) => top)) + HIGH + 4;
    const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height}, this.headings(), edges, [
      ...this.shapes.values(),
    ]);
    this.box.replaceChildren(picture);
    this.stop(drawn[0]?.number);
    this.node.shown = drawn.map((node) => node.number);
  }

  headings() {
    return this.columns.slice(1).map((column, step) => {
      const place = column.length && this.places.get(column[0].number);
      return place ? svg("text", {class: "soft", x: place.left, y: 12}, `step ${step + 1}`) : null;
    });
  }

  edge(node) {
    const [from, to] = [this.places.get(node.parent), this.places.get(node.number)];
    const [x1, x2] = [from.left + from.wide, to.left];
    const [half, y1, y2] = [(x1 + x2) / 2, from.top + HIGH / 2, to.top + HIGH / 2];
    const kind = this.way.has(node.number) ? "edge way" : `edge ${node.fate}`;
    return svg("path", {
      class: kind,
      "data-number": node.number,
      d: `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}`,
    });
  }

  shape(node) {
    const place = this.places.get(node.number);
    const forced = this.forced.has(node.number);
    const kind = `node ${node.fate}${this.way.has(node.number) ? " way" : ""}${forced ? " forced" : ""}`;
    const group = svg(
      "g",
      {class: kind, role: "button", tabindex: -1, "aria-label": told(node, this.outputs), "data-number": node.number},
      svg("path", {class: "shape", d: outline(node.fate, place)}),
      ...lettersOf(node, place, this.linesOf(node, forced)),
    );
    group.addEventListener("pointerenter", () => this.point(node));
    group.addEventListener("focus", () => this.point(node));
    group.addEventListener("click", () => !this.box.dataset.dragged && this.options.onpick?.(node));
    return group;
  }

  /** Below the piece: its own probability · that of all so far; and why it left. */
  linesOf(node, forced) {
    if (node.parent == null) return [];
    const step = node.log_probability - this.nodes[node.parent].log_probability;
    const fate = reasonOf(node, this.outputs);
    return [
      `${percent(Math.exp(step))} · ${percent(Math.exp(node.log_probability))}`,
      forced ? "⚑ forced" : (SHORT[fate] ?? fate),
    ];
  }

  /** Bring a step into the part of the box that is seen. */
  reveal(step) {
    const place = this.places?.get(this.columns[Math.min(step, this.columns.length - 1)]?.[0]?.number);
    if (place) this.box.scrollLeft = Math.max(0, place.left - this.box.clientWidth / 3);
  }

  /** Move the focus to a node: after the tree was drawn anew, the keyboard goes on from there. */
  hold(place) {
    this.stop(place);
    this.shapes.get(place)?.focus({preventScroll: true});
  }

  /** The one node that the Tab key stops at. */
  stop(place) {
    this.shapes.forEach((group) => group.setAttribute("tabindex", "-1"));
    this.shapes.get(place)?.setAttribute("tabindex", "0");
  }

  /** Light the way to a node. */
  point(node) {
    const way = node ? wayTo(this.nodes, node.number) : new Set();
    for (const map of [this.shapes, this.edges])
      map?.forEach((group, place) => group.classList.toggle("on", way.has(place)));
    this.options.onpoint?.(node);
  }

  key(event) {
    const here = this.nodes?.[event.target.dataset?.number];
    if (!here) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return this.options.onpick?.(here);
    }
    const next = this.neighbour(here, event.key);
    if (next === undefined) return;
    event.preventDefault();
    this.stop(next.number);
    this.shapes.get(next.number)?.focus();
  }

  neighbour(here, key) {
    const column = this.columns[here.step];
    const place = column.indexOf(here);
    if (key === "ArrowLeft") return here.parent == null ? undefined : this.nodes[here.parent];
    if (key === "ArrowUp") return column[place - 1];
    if (key === "ArrowDown") return column[place + 1];
    if (key === "Home") return this.columns[0][0];
    return key === "ArrowRight" ? this.columns[here.step + 1]?.find((node) => node.parent === here.number) : undefined;
  }
}

function placesOf(columns) {
  const places = new Map();
  const sure = percent(0.9999);
  const narrowest = extent(`${sure} · ${sure}`, SOFT) + 2 * ROOM; // the longest that stands below a piece
  let left = 2;
  for (const column of columns) {
    const longest = Math.max(0, ...column.map((node) => extent(legible(node.piece), SIZE, 600)));
    const wide = Math.ceil(Math.max(narrowest, Math.min(WIDEST, longest + 2.5 * GAP)));
    column.forEach((node, row) => places.set(node.number, {left, wide, top: 22 + row * (HIGH + GAP)}));
    left += wide + ALLEY;
  }
  return places;
}

/** A box, a round one, or a box with its corners cut. */
function outline(fate, {left: start, top, wide}) {
  const cut = {kept: 6, finished: 20, pruned: 9}[fate];
  const corner = (x, y) => (fate === "pruned" ? `l${x} ${y}` : `a${cut} ${cut} 0 0 1 ${x} ${y}`);
  const [across, down] = [wide - 2 * cut, HIGH - 2 * cut];
  const [right, left] = [`h${across}${corner(cut, cut)}v${down}`, `h${-across}${corner(-cut, -cut)}v${-down}`];
  return `M${start + cut} ${top}${right}${corner(-cut, cut)}${left}${corner(cut, -cut)}Z`;
}

function lettersOf(node, {left, top, wide}, lines) {
  const inset = node.fate === "finished" ? ROOM : GAP;
  const piece = shortened(legible(node.piece), wide - 2 * inset, (text) => extent(text, SIZE, 600));
  const leftward = rightToLeft(piece);
  const about = leftward ? {x: left + wide - inset, direction: "rtl"} : {x: left + inset};
  const soft = (words, line) => svg("text", {class: "soft", x: left + inset, y: top + (line + 2) * LINE + 3}, words);
  return [svg("text", {class: "piece", y: top + LINE + 3, ...about}, piece), ...lines.map(soft)];
}

function told(node, outputs) {
  if (node.parent == null) return "the beginning";
  const scores = [
    percent(Math.exp(node.log_probability)),
    `log-probability ${number(node.log_probability)}`,
    `normalised ${number(node.score)}`,
  ];
  return `${node.text || legible(node.piece)}: ${scores.join(", ")}; ${whyOf(node, outputs)}`;
}

/** Drag to see more of what is larger than its box. A drag is not a click. */
function pannable(box) {
  /** @type {{x: number, y: number, left: number, top: number} | null} */
  let from = null;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return; // fingers scroll by themselves
    from = {x: event.clientX, y: event.clientY, left: box.scrollLeft, top: box.scrollTop};
    delete box.dataset.dragged;
  });
  box.addEventListener("pointermove", (event) => {
    if (!from || !event.buttons) return;
    const [x, y] = [event.clientX - from.x, event.clientY - from.y];
    if (Math.abs(x) + Math.abs(y) > 4) box.dataset.dragged = "yes";
    box.scrollTo(from.left - x, from.top - y);
  });
  addEventListener("pointerup", () => (from = null), {passive: true});
}
