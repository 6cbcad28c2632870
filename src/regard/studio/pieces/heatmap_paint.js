// How a heat map lies on its canvases, and how it is painted. heatmap.js says what happens when it is touched.

import {token} from "../theme.js";
import {extent, FACE, rightToLeft, shortened} from "./letters.js";
import {number, painter} from "./scales.js";

const SIZE = 12; // of letters
const GAP = 6; // between a label and the cells
const LONGEST = 132; // of a label; the tip has all of it
export const LABEL = {size: SIZE, gap: GAP, longest: LONGEST};
const NARROWEST = 15; // of a column: letters that stand upright fit
const LOWEST = 17; // of a row
const WIDEST = 56;
const HIGHEST = 34;
const SLANT = 20; // columns from here on have slanted labels, narrower ones upright ones
const FIGURES = 32; // cells from here on hold their number

/** Where everything is, for so many pixels of width. Labels never touch: a column is never narrower than a line. */
export function layout(rows, columns, width) {
  const longest = (labels) => Math.min(LONGEST, Math.max(0, ...labels.map((label) => extent(label, SIZE, 600))));
  const side = Math.ceil(Math.min(longest(rows) + GAP + 2, Math.max(72, 0.34 * width)));
  const fair = (width - side - 2) / Math.max(1, columns.length);
  const flat = longest(columns) + GAP <= Math.min(fair, WIDEST + 40);
  const tail = flat ? 0 : longest(columns.slice(-1)) * Math.SQRT1_2; // the last label leans out over the right edge
  const share = fair - Math.max(0, tail + SIZE - fair / 2) / Math.max(1, columns.length);
  const cell = Math.floor(Math.max(NARROWEST, Math.min(flat ? WIDEST + 40 : WIDEST, share)));
  const angle = flat ? 0 : cell >= SLANT ? Math.PI / 4 : Math.PI / 2;
  const head = Math.ceil((flat ? SIZE + 4 : longest(columns) * Math.sin(angle) + SIZE) + GAP);
  const reach = (label, place) =>
    Math.min(LONGEST, extent(label, SIZE, 700)) * Math.SQRT1_2 + SIZE - (columns.length - place - 0.5) * cell;
  const beyond = angle === Math.PI / 4 ? Math.ceil(Math.max(0, ...columns.map(reach))) : 0;
  const high = Math.floor(Math.max(LOWEST, Math.min(HIGHEST, cell)));
  return {
    side,
    cell,
    high,
    head,
    angle,
    width: cell * columns.length + beyond + 2,
    height: head + high * rows.length + 2,
  };
}

/** Make a canvas so large, sharp on every screen, and give its context in CSS pixels. */
export function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = "middle";
  return context;
}

/** The cells and the labels above them. */
export function paintCells(context, plan, {rows, columns, values, scale, range, digits, marks, noted}) {
  const {cell, high, head} = plan;
  const {colour, ink} = painter(scale, range);
  const figures = cell >= FIGURES && high >= 18;
  const gap = cell >= 10 ? 1 : 0;
  context.textAlign = "center";
  context.font = `11px ${FACE}`;
  for (let row = 0; row < rows.length; row++) {
    for (let column = 0; column < columns.length; column++) {
      const value = values[row * columns.length + column];
      const [x, y] = [column * cell, head + row * high];
      context.fillStyle = colour(value);
      context.fillRect(x, y, cell - gap, high - gap);
      if (!figures) continue;
      context.fillStyle = ink(value);
      context.fillText(number(value, digits), x + cell / 2, y + high / 2 + 0.5);
    }
  }
  paintMarks(context, plan, marks);
  const soft = columns.map((_, column) => !noted.includes(column));
  columns.forEach((label, column) =>
    paintColumn(context, plan, label, column, token(soft[column] ? "--soft" : "--under"), soft[column] ? 400 : 700),
  );
  noted.forEach((column) => paintNote(context, plan, rows.length, column));
}

/** A column that was edited: between two broken lines. */
function paintNote(context, {cell, high, head}, rows, column) {
  context.save();
  context.strokeStyle = token("--under");
  context.lineWidth = 2;
  context.setLineDash([5, 3]);
  context.strokeRect(column * cell, head - 1, cell - 1, high * rows + 1);
  context.restore();
}

function paintMarks(context, {cell, high, head}, marks) {
  context.strokeStyle = token("--s1");
  context.lineWidth = 2;
  for (const [row, column] of marks)
    context.strokeRect(column * cell + 1.5, head + row * high + 1.5, cell - 4, high - 4);
}

/** The label of a column, flat, slanted or upright; it ends at its column. */
function paintColumn(context, {cell, head, angle}, label, column, colour, weight = 400) {
  context.save();
  context.font = `${weight} ${SIZE}px ${FACE}`;
  context.fillStyle = colour;
  context.direction = rightToLeft(label) ? "rtl" : "ltr";
  context.textAlign = angle ? "left" : "center";
  context.translate(column * cell + cell / 2, angle ? head - GAP : head - GAP - SIZE / 2);
  context.rotate(-angle);
  const fits = shortened(label, angle ? LONGEST : cell - 2, (text) => context.measureText(text).width);
  context.fillText(fits, 0, 0);
  context.restore();
}

/** The labels at the left. */
export function paintRows(context, {side, high, head, height}, rows) {
  context.clearRect(0, 0, side, height);
  context.textAlign = "right";
  context.font = `${SIZE}px ${FACE}`;
  context.fillStyle = token("--soft");
  rows.forEach((label, row) => {
    context.direction = rightToLeft(label) ? "rtl" : "ltr";
    const fits = shortened(label, side - GAP - 2, (text) => context.measureText(text).width);
    context.fillText(fits, side - GAP, head + row * high + high / 2);
  });
}

/** The cell at a point of the canvas, or null. */
export function cellAt({cell, high, head}, {rows, columns}, x, y) {
  const [row, column] = [Math.floor((y - head) / high), Math.floor(x / cell)];
  return row >= 0 && row < rows.length && column >= 0 && column < columns.length ? {row, column} : null;
}
