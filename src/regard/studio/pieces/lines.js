// Two rows of words with lines between them: the thicker a line, the larger the weight.
//
//   const picture = lines({onpick});
//   const names = ["Source", "Translation"];
//   picture.show({rows: ["le", "chat"], columns: ["the", "cat"], values: [.9, .1, .2, .8], names});
//
// Columns stand above and rows below, as in a heat map that lies on its side. Where the words do not fit beside one
// another they stand below one another, columns at the left. Pointing at a word dims all lines together and draws its
// own once more above them: to change each of a thousand lines would take longer than a frame.

import {element, svg} from "../element.js";
import {number} from "./scales.js";
import {tokenLine} from "./tokens.js";

const LEAST = 0.02; // weight from which a line can be seen
const THICK = 7; // pixels of a weight of 1
const ASIDE = 3.5; // pixels between the lines of two heads
const MANY = 24; // words: more of them scroll sideways, one below the other they would fill pages

/**
 * @typedef {{row?: number | null, column?: number | null}} Place
 * @typedef {{values: ArrayLike<number>, hue: string}} Strand  `hue`: a class of style.css
 * @param {{onpick?: (column: number) => void, onpoint?: (place: Place | null) => void}} actions
 */
export function lines(actions = {}) {
  return new Lines(actions);
}

class Lines {
  /** @type {any} */ picture;
  /** @type {ReturnType<typeof tokenLine>} */ above;
  /** @type {ReturnType<typeof tokenLine>} */ below;
  /** @type {{row: number, column: number, weight: number}[]} */ links;
  /** @type {SVGElement[]} */ paths = [];
  /** @type {{row: number, column: number, weight: number, hue: string, aside: number}[]} */ drawn = [];
  /** @type {Strand | null} */ preview = null;

  constructor(actions) {
    this.actions = actions;
    this.all = svg("g", {class: "all"});
    this.own = svg("g", {class: "own"});
    this.drawing = svg("svg", {class: "between", "aria-hidden": "true"}, this.all, this.own);
    this.node = element("div.lines");
    this.observer = new ResizeObserver(() => this.node.clientWidth !== this.wide && this.arrange());
    this.observer.observe(this.node);
  }

  /**
   * @param {{rows: string[], columns: string[], values: ArrayLike<number>, names: [string, string],
   *   marks?: Map<number, string>, pickable?: boolean, strands?: Strand[]}} picture  `marks`: columns that were edited,
   *   and how; `strands`: what the values are the mean of, each with lines of its own colour
   */
  show(picture) {
    this.picture = picture;
    const {rows, columns, values, names, pickable} = picture;
    const weight = (row, column) => values[row * columns.length + column];
    const say = (side, place) => this.told(side, place);
    this.above = tokenLine(columns, {
      label: names[0],
      onpick: pickable ? this.actions.onpick : undefined,
      onpoint: (place) => this.pointed({column: place}),
      say: (place) => say("column", place),
    });
    this.below = tokenLine(rows, {
      label: names[1],
      onpoint: (place) => this.pointed({row: place}),
      say: (place) => say("row", place),
    });
    this.above.node.classList.add("columns");
    this.below.node.classList.add("rows");
    if (pickable) this.above.node.classList.add("pickable");
    for (const [place, kind] of picture.marks ?? []) this.mark(place, kind);
    this.links = rows
      .flatMap((_, row) => columns.map((_each, column) => ({row, column, weight: weight(row, column)})))
      .filter((link) => link.weight >= LEAST);
    this.preview = null;
    this.weave();
    this.paths = []; // drawn once it is known where the words stand
    this.node.shown = {rows, columns, links: this.links};
    const side = (name, line) => element("div.side", element("h2.label", name), line.node);
    this.node.replaceChildren(side(names[0], this.above), this.drawing, side(names[1], this.below));
    this.arrange();
  }

  /** The lines that are drawn: those of the values, of their strands, or of one strand that is looked at for a moment. */
  weave() {
    const strands = this.preview ? [this.preview] : (this.picture.strands ?? []);
    const wide = this.picture.columns.length;
    this.drawn = !strands.length
      ? this.links.map((link) => ({...link, hue: "", aside: 0}))
      : strands.flatMap(({values, hue}, strand) =>
          Array.from(values, (weight, place) => ({
            row: Math.floor(place / wide),
            column: place % wide,
            weight,
            hue,
            aside: (strand - (strands.length - 1) / 2) * ASIDE,
          })).filter(({weight}) => weight >= LEAST),
        );
  }

  /** Draw other lines for a moment. @param {Strand | null} strand */
  look(strand) {
    if (!this.picture) return;
    this.preview = strand;
    this.weave();
    if (this.wide) this.draw();
  }

  mark(place, kind) {
    const span = /** @type {HTMLElement | null} */ (this.above.node.querySelector(`[data-place="${place}"]`));
    span?.classList.add(kind);
    if (span) span.title = kind === "masked" ? "masked: its place stays, its vector is zero" : "replaced";
  }

  /** Beside one another where they fit, else below one another. */
  arrange() {
    this.wide = this.node.clientWidth;
    if (!this.picture || !this.wide) return;
    this.node.classList.remove("down");
    const {rows, columns} = this.picture;
    const fits = [this.above, this.below].every(({node}) => node.scrollWidth <= node.clientWidth + 1);
    this.node.classList.toggle("down", !fits && Math.max(rows.length, columns.length) <= MANY);
    this.node.classList.toggle("long", !fits && Math.max(rows.length, columns.length) > MANY);
    this.draw();
  }

  draw() {
    const box = this.drawing.getBoundingClientRect();
    const down = this.node.classList.contains("down");
    const places = (line) =>
      [...line.node.querySelectorAll(".word")].map((word) => {
        const {left, top, width, height} = word.getBoundingClientRect();
        return down ? top + height / 2 - box.top : left + width / 2 - box.left;
      });
    const [from, to] = [places(this.above), places(this.below)];
    const [width, height] = [box.width, box.height];
    const path = ({row, column, aside}) => {
      const [a, b] = [from[column] + aside, to[row] + aside];
      return down
        ? `M0 ${a}C${width / 2} ${a} ${width / 2} ${b} ${width} ${b}`
        : `M${a} 0C${a} ${height / 2} ${b} ${height / 2} ${b} ${height}`;
    };
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const thick = this.drawn.some(({aside}) => aside) ? ASIDE : THICK;
    this.paths = this.drawn.map((link) => {
      const line = svg("path", {d: path(link), class: link.hue || null});
      line.style.strokeWidth = `${Math.max(0.75, thick * Math.min(1, link.weight)).toFixed(2)}px`;
      line.style.strokeOpacity = (0.18 + 0.72 * Math.min(1, link.weight)).toFixed(2);
      return line;
    });
    this.all.replaceChildren(...this.paths);
    this.own.replaceChildren();
  }

  /** "chat ← cat 0.95, black 0.03" */
  told(side, place) {
    const {rows, columns} = this.picture;
    const found = this.links
      .filter((link) => link[side] === place)
      .sort((one, other) => other.weight - one.weight)
      .slice(0, 3);
    const others = found.map(
      (link) => `${side === "row" ? columns[link.column] : rows[link.row]} ${number(link.weight)}`,
    );
    const told = others.join(", ") || "nothing";
    return side === "row" ? `${rows[place]} ← ${told}` : `${columns[place]} → ${told}`;
  }

  /** @param {Place} place */
  pointed({row, column}) {
    const place = row == null && column == null ? null : {row: row ?? undefined, column: column ?? undefined};
    this.point(place);
    this.actions.onpoint?.(place);
  }

  /** Light what belongs to a row, a column or both; null lights all of it. */
  point(place) {
    if (!this.picture) return;
    const {row, column} = place ?? {};
    const own = (link) => (row === undefined || link.row === row) && (column === undefined || link.column === column);
    this.drawing.classList.toggle("dim", place !== null);
    const [above, below] = [new Map(), new Map()];
    const paths = place === null ? [] : this.paths.filter((_, each) => own(this.drawn[each]));
    this.own.replaceChildren(...paths.map((path) => path.cloneNode()));
    this.links.forEach((link) => {
      const lit = place !== null && own(link);
      if (lit && column === undefined) above.set(link.column, link.weight);
      if (lit && row === undefined) below.set(link.row, link.weight);
    });
    if (column !== undefined && row !== undefined) {
      const weight = this.picture.values[row * this.picture.columns.length + column];
      above.set(column, weight);
      below.set(row, 0.15);
    }
    this.above.light(above, row === undefined ? (column ?? null) : null);
    this.below.light(below, column === undefined ? (row ?? null) : null);
  }

  leave() {
    this.observer.disconnect();
  }
}
