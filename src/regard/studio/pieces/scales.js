// From a number to its colour: the report's own scales (colours.js), on light and on dark paper.

import {element} from "../element.js";
import {onTheme, theme} from "../theme.js";
import {COLOURS, INKS, LEVELS} from "./colours.js";

/** The level of a value between two ends; what lies beyond is at the end. */
export function level(value, low, high) {
  const share = high > low ? (value - low) / (high - low) : 0;
  return Math.round(LEVELS * Math.min(1, Math.max(0, share || 0)));
}

/**
 * The colours of a scale now: `const {colour, ink} = painter("sequential", [0, 1])`, then `colour(0.3)` is "#b4e5f7"
 * and `ink(0.3)` what reads upon it.
 */
export function painter(scale, [low, high]) {
  const colours = COLOURS[scale][theme()];
  const inks = INKS[scale][theme()];
  return {colour: (value) => colours[level(value, low, high)], ink: (value) => inks[level(value, low, high)]};
}

/**
 * The ends of a scale for these values: 0 to 1, or to the largest; −x to x if it diverges.
 * @returns {[number, number]}
 */
export function range(scale, values) {
  let [least, most] = [0, 0];
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  if (scale === "diverging") {
    const far = Math.max(-least, most) || 1;
    return [-far, far];
  }
  return [Math.min(0, least), most <= 1 ? 1 : most];
}

/** A bar that shows what the colours mean. */
export function legend(scale, [low, high], {unit = "", digits = 2} = {}) {
  const canvas = element("canvas", {width: LEVELS + 1, height: 1, "aria-hidden": "true"});
  const paint = () => {
    const context = canvas.getContext("2d");
    COLOURS[scale][theme()].forEach((colour, place) => {
      context.fillStyle = colour;
      context.fillRect(place, 0, 1, 1);
    });
  };
  paint();
  whileShown(canvas, paint);
  const ends = [low, high].map((value) => number(value, digits) + unit);
  return element("span.legend", ends[0], canvas, ends[1]);
}

/** Repaint after each change of the theme, until the node has gone from the page. */
export function whileShown(node, paint) {
  const stop = onTheme(() => (node.isConnected ? paint() : stop()));
}

/** 0.97, −1.20: digits after the point, and a real minus. */
export function number(value, digits = 2) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : value > 0 ? "∞" : "–";
  const written = value.toFixed(digits);
  return Number(written) === 0 ? written.replace("-", "") : written.replace("-", "−");
}

/** A probability for people: 99.6 %, 41 %, < 0.1 %. */
export function percent(probability) {
  const share = 100 * probability;
  if (!Number.isFinite(share)) return "–";
  if (share >= 99.95) return share >= 99.9999 ? "100 %" : "> 99.9 %";
  if (share < 0.1) return share > 0 ? "< 0.1 %" : "0 %";
  return `${share < 9.95 || share > 99 ? share.toFixed(1) : Math.round(share)} %`;
}
