// A heat map: row labels that stay while it scrolls, cells, a tip, arrow keys, and the same as a table.
//
//   const map = heatmap({label: "Cross-attention", onpoint, onpick});
//   figure.append(map.node);
//   map.show({rows: ["le", "chat"], columns: ["the", "cat"], values: Float32Array.of(.9, .1, .2, .8)});
//   …
//   map.leave();
//
// When the pointer moves, frames and labels above the canvases move with it; no canvas is painted anew, which would
// take most of a frame.

import {element} from "../element.js";
import {onTheme} from "../theme.js";
import {announce} from "./announce.js";
import {explained} from "./letters.js";
import {cellAt, LABEL, layout, paintCells, paintRows, sized} from "./heatmap_paint.js";
import {legend, number, range} from "./scales.js";
import {folded, table} from "./table.js";

const HELP = "Heat map. The arrow keys move from cell to cell; Home and End to the ends of a row.";
const ROOM = 34; // pixels that a tip needs above a cell
const MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -1e9],
  End: [0, 1e9],
  PageUp: [-1e9, 0],
  PageDown: [1e9, 0],
};

/**
 * @typedef {{rows: string[], columns: string[], values: ArrayLike<number>, range?: [number, number],
 *   marks?: [number, number][], noted?: number[]}} Picture  values row by row; marks are cells to frame, noted are
 *   columns that were edited
 * @param {{label: string, scale?: "sequential" | "diverging", digits?: number, unit?: string, legend?: boolean,
 *   table?: boolean, onpoint?: (place: {row: number, column: number} | null) => void,
 *   onpick?: (place: {row: number, column: number}) => void,
 *   describe?: (row: string, column: string, value: string) => string}} options
 */
export function heatmap(options) {
  const describe = (row, column, value) => `${row} ← ${column}  ${value}`;
  return new Heatmap({scale: "sequential", digits: 2, unit: "", legend: true, table: true, describe, ...options});
}

class Heatmap {
  /** @type {ReturnType<typeof layout>} */ plan;
  /** @type {{row: HTMLElement, column: HTMLElement, cell: HTMLElement}} */ frames;

  constructor(options) {
    this.options = options;
    /** @type {any} */
    this.picture = {rows: [], columns: [], values: [], marks: []};
    /** @type {{row: number, column: number} | null} */
    this.place = null;
    this.drawnAt = 0; // pixels of width
    this.scrolled = 0; // pixels that the box was scrolled by when the pointer moved
    this.build();
    this.stopTheme = onTheme(() => this.draw());
    this.observer = new ResizeObserver(([entry]) => entry.contentRect.width !== this.drawnAt && this.draw());
    this.observer.observe(this.box);
  }

  build() {
    const {label} = this.options;
    const canvas = (kind) => element("canvas", {class: kind, "aria-hidden": "true"});
    const overlay = (kind) => element("i", {class: kind, hidden: true, dir: "auto"});
    this.names = canvas("names");
    this.cells = canvas("cells");
    this.rowName = overlay("row-name");
    this.frames = {row: overlay("row-frame"), column: overlay("column-frame"), cell: overlay("cell-frame")};
    this.columnName = overlay("column-name");
    this.over = element("div.over", {"aria-hidden": "true"}, Object.values(this.frames), this.columnName);
    this.stage = element(
      "div.stage",
      {role: "application", tabindex: 0, "aria-roledescription": "heat map", "aria-label": `${label}. ${HELP}`},
      element("div.side", {"aria-hidden": "true"}, this.names, this.rowName),
      element("div.layers", this.cells, this.over),
    );
    this.box = element("div.box", this.stage);
    this.tip = element("output.tip", {hidden: true, "aria-hidden": "true"});
    this.foot = element("div.foot");
    this.node = element("div.heatmap", this.box, this.tip, this.foot);
    this.over.addEventListener("pointermove", (event) => this.pointed(event));
    this.over.addEventListener("pointerdown", (event) => this.pointed(event));
    this.over.addEventListener("pointerleave", () => this.point(null));
    this.over.addEventListener("click", () => this.place && this.options.onpick?.(this.place));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("blur", () => this.point(null));
  }

  /** Show these numbers. What is shown is also `node.shown`. @param {Picture} picture */
  show(picture) {
    const ends = picture.range ?? range(this.options.scale, picture.values);
    this.picture = {
      marks: [],
      noted: [],
      ...picture,
      range: ends,
      scale: this.options.scale,
      digits: this.options.digits,
    };
    this.node.shown = {
      rows: picture.rows,
      columns: picture.columns,
      values: Array.from(picture.values),
      noted: this.picture.noted,
    };
    this.place = null;
    this.tip.hidden = true;
    this.draw();
    const parts = [];
    if (this.options.legend) parts.push(legend(this.options.scale, ends, this.options));
    if (this.options.table) parts.push(asTable(this.options, this.picture));
    this.foot.replaceChildren(...parts);
  }

  draw() {
    const width = this.box.clientWidth;
    if (!width || !this.picture.rows.length) return;
    this.drawnAt = width;
    this.plan = layout(this.picture.rows, this.picture.columns, width);
    paintCells(sized(this.cells, this.plan.width, this.plan.height), this.plan, this.picture);
    paintRows(sized(this.names, this.plan.side, this.plan.height), this.plan, this.picture.rows);
    this.measureFrames();
    this.moveFrames();
  }

  /** How large the frames are; when the pointer moves, only their place changes. */
  measureFrames() {
    const {cell, high, angle, side} = this.plan;
    const size = ({style}, width, height) => Object.assign(style, {width: `${width}px`, height: `${height}px`});
    size(this.frames.row, cell * this.picture.columns.length - 1, high);
    size(this.frames.column, cell, high * this.picture.rows.length);
    size(this.frames.cell, cell, high);
    this.rowName.style.maxWidth = `${side}px`;
    this.rowName.style.lineHeight = `${high - 2}px`;
    this.columnName.style.maxWidth = `${angle ? LABEL.longest : cell - 2}px`;
  }

  /** Frames and bold labels at the cell that is pointed at. */
  moveFrames() {
    const {place, plan} = this;
    for (const each of [...Object.values(this.frames), this.rowName, this.columnName]) each.hidden = !place;
    if (!place) return;
    const [x, y] = [place.column * plan.cell, plan.head + place.row * plan.high];
    const move = ({style}, left, top, more = "") => (style.transform = `translate(${left}px, ${top}px)${more}`);
    move(this.frames.row, 0, y - 1);
    move(this.frames.column, x - 1, plan.head);
    move(this.frames.cell, x - 1, y - 1);
    move(this.rowName, 0, y + 1);
    this.rowName.textContent = this.picture.rows[place.row];
    const turned = plan.angle ? ` rotate(${-plan.angle}rad) translateY(-50%)` : " translate(-50%, -50%)";
    move(this.columnName, x + plan.cell / 2, plan.head - LABEL.gap - (plan.angle ? 0 : LABEL.size / 2), turned);
    this.columnName.textContent = this.picture.columns[place.column];
  }

  pointed(event) {
    if (this.plan) this.point(cellAt(this.plan, this.picture, event.offsetX, event.offsetY));
  }

  /** Point at a cell, or at none: also from outside, to follow another picture. */
  point(place, {quiet = false} = {}) {
    if (place?.row === this.place?.row && place?.column === this.place?.column) return;
    this.place = place;
    if (place) this.last = place;
    this.scrolled = this.box.scrollLeft; // once something has changed, to ask would cost a layout
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      if (this.plan) this.moveFrames();
      this.showTip();
    });
    if (!quiet) this.options.onpoint?.(place);
  }

  words({row, column}) {
    const {rows, columns, values} = this.picture;
    const value = number(values[row * columns.length + column], this.options.digits) + this.options.unit;
    return this.options.describe(explained(rows[row]), explained(columns[column]), value);
  }

  showTip() {
    this.tip.hidden = !this.place;
    if (!this.place) return;
    const {row, column} = this.place;
    const {side, cell, high, head} = this.plan;
    this.tip.textContent = this.words(this.place);
    const left = side + column * cell + cell / 2 - this.scrolled;
    const [above, below] = [head + row * high - 6, head + (row + 1) * high + 6];
    const fits = above > ROOM;
    const aside = (-100 * left) / Math.max(left, this.drawnAt); // at either edge it ends there: its width is not asked for
    Object.assign(this.tip.style, {
      left: `${left}px`,
      top: `${fits ? above : below}px`,
      transform: `translate(${aside}%, ${fits ? -100 : 0}%)`,
    });
  }

  key(event) {
    if ((event.key === "Enter" || event.key === " ") && this.place) {
      event.preventDefault();
      return this.options.onpick?.(this.place);
    }
    const move = MOVES[event.key];
    if (!move || !this.picture.rows.length) return undefined;
    event.preventDefault();
    const {rows, columns} = this.picture;
    const from = this.place ?? this.last;
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    const next = from
      ? {row: within(from.row + move[0], rows.length), column: within(from.column + move[1], columns.length)}
      : {row: 0, column: 0};
    this.point(next);
    this.reveal(next);
    announce(this.words(next));
  }

  /** Bring a cell into the part of the box that is seen. */
  reveal({column}) {
    const {side, cell} = this.plan;
    const [start, end] = [column * cell, (column + 1) * cell + side];
    if (this.box.scrollLeft > start) this.box.scrollLeft = start;
    else if (this.box.scrollLeft + this.box.clientWidth < end) this.box.scrollLeft = end - this.box.clientWidth;
  }

  leave() {
    this.stopTheme();
    this.observer.disconnect();
  }
}

/** The same as a table, made when it is opened: 60 × 60 cells are many for a page that does not show them. */
function asTable({label, digits, unit}, {rows, columns, values}) {
  const word = (text) => element("bdi", text);
  const cells = (row) => columns.map((_, column) => number(values[row * columns.length + column], digits) + unit);
  const body = () => rows.map((text, row) => [word(text), ...cells(row)]);
  const caption = `${label}, as a table`;
  return folded("As a table", () => table(["", ...columns.map(word)], body(), {caption}));
}
