// A heat map as small as a stamp: one pixel a value, stretched. For many heads side by side.

import {element} from "../element.js";
import {painter, range, whileShown} from "./scales.js";

/**
 * @param {{values: ArrayLike<number>, rows: number, columns: number, label: string, scale?: "sequential" | "diverging",
 *   range?: [number, number]}} about
 * @returns {HTMLCanvasElement} give it a width; its height follows
 */
export function thumbnail({values, rows, columns, label, scale = "sequential", range: ends = range(scale, values)}) {
  const canvas = element("canvas", {
    class: "thumbnail",
    width: columns,
    height: rows,
    role: "img",
    "aria-label": label,
  });
  canvas.style.aspectRatio = `${columns} / ${rows}`;
  const paint = () => {
    const context = canvas.getContext("2d");
    const {colour} = painter(scale, ends);
    for (let place = 0; place < rows * columns; place++) {
      context.fillStyle = colour(values[place]);
      context.fillRect(place % columns, Math.floor(place / columns), 1, 1);
    }
  };
  paint();
  whileShown(canvas, paint);
  return canvas;
}
