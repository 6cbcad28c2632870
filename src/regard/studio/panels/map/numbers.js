// How numbers are drawn inside a model: a vector as cells, a sum with its reason, a share as a bar.

import {element} from "../../element.js";
import {number, painter, percent, range, whileShown} from "../../pieces/scales.js";

const FEW = 64; // numbers of a vector that are shown one by one

export const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);

/** A name, a bar and a share. */
export function barred(piece, share) {
  const bar = element("i.bar");
  bar.style.transform = `scaleX(${Math.min(1, share)})`;
  return [
    element("bdi.piece", piece),
    element("span.track", {"aria-hidden": "true"}, bar),
    element("span.number", percent(share)),
  ];
}

/** A number with its name and where it comes from. */
export function line(name, value, note) {
  return element("p.sum", element("span.name", name), element("strong.number", value), element("span.note", note));
}

/** A vector as cells with its numbers for those who point; a long one shows its first. */
export function vector(name, values, scale) {
  const shown = Array.from(values.subarray(0, FEW));
  const rest = values.length - shown.length;
  const cells = shown.map((value, place) => element("i", {title: `${name}, ${place + 1}: ${number(value, 4)}`}));
  const strip = element(
    "span.vector",
    {
      role: "img",
      "aria-label": `${name}: ${shown
        .slice(0, 8)
        .map((value) => number(value))
        .join(", ")} …`,
    },
    cells,
  );
  const ends = range(scale, shown);
  const paint = () => {
    const {colour} = painter(scale, ends);
    cells.forEach((cell, place) => (cell.style.backgroundColor = colour(shown[place])));
  };
  paint();
  whileShown(strip, paint);
  return element(
    "div.vector-line",
    element("bdi.name", name),
    strip,
    element(
      "span.note.number",
      `${shown
        .slice(0, 3)
        .map((value) => number(value))
        .join(", ")} … ${rest > 0 ? `and ${rest} more` : `${values.length} numbers`}`,
    ),
  );
}
