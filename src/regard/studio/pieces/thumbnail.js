// A heat map as small as a stamp: one pixel a value, stretched. For many heads side by side: an image, since each canvas
// would be a layer of its own that the browser puts together anew in every frame.

import {element} from "../element.js";
import {theme} from "../theme.js";
import {COLOURS} from "./colours.js";
import {level, range, whileShown} from "./scales.js";

let canvas;

/**
 * @param {{values: ArrayLike<number>, rows: number, columns: number, label?: string,
 *   scale?: "sequential" | "diverging", range?: [number, number]}} about  without a label it is only an ornament
 * @returns {HTMLImageElement} give it a width; its height follows
 */
export function thumbnail({
  values,
  rows,
  columns,
  label = "",
  scale = "sequential",
  range: ends = range(scale, values),
}) {
  const image = element("img.thumbnail", {alt: label});
  image.style.aspectRatio = `${columns} / ${rows}`;
  const paint = () => (image.src = painted({values, rows, columns, scale, ends}));
  paint();
  whileShown(image, paint);
  return image;
}

/** The values as the address of a PNG. */
function painted({values, rows, columns, scale, ends: [low, high]}) {
  canvas ??= document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d", {willReadFrequently: true});
  const picture = context.createImageData(columns, rows);
  const colours = COLOURS[scale][theme()].map((code) => Number.parseInt(code.slice(1), 16));
  for (let place = 0; place < rows * columns; place++) {
    const colour = colours[level(values[place], low, high)];
    picture.data.set([colour >> 16, (colour >> 8) & 255, colour & 255, 255], 4 * place);
  }
  context.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}
