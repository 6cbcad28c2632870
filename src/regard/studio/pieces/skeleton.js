// The shape of what will come, while it is on its way. Nothing moves for those who asked for less motion.

import {element} from "../element.js";

/**
 * @param {"page" | "lines" | "square" | "line"} shape  "lines" with how many
 * @param {number} [count]
 */
export function skeleton(shape = "lines", count = 3) {
  const bars = {
    page: ["title", "lead", "block"],
    square: ["square"],
    line: ["bar"],
    lines: Array(count).fill("bar"),
  }[shape];
  return element(
    "div.skeleton",
    {role: "status"},
    element("span.visually-hidden", "Loading"),
    bars.map((kind) => element("i", {class: kind, "aria-hidden": "true"})),
  );
}
