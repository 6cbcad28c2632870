// What was read where that is no text: the picture with a square on each patch, or the numbers as curves with a band
// behind each, once for every word that was written. The stronger the colour, the more of the row's weight is there.

import {element, svg} from "../../element.js";

const SIDE = 120; // of a panel, in pixels
const MOST = 24; // panels, and channels of a curve below
const CHANNELS = 8;
const STRONGEST = 0.75;

/** Whether a source is of vectors: a picture, or numbers. */
const isVectors = (trace) => trace.text.startsWith("data:image/") || trace.vectors.length > 0;

export function sourceCard() {
  const panels = element("div", {class: "row panels"});
  const note = element("p", {class: "note"});
  const node = element(
    "section",
    {class: "card of-source", "aria-labelledby": "source-title"},
    element("h2", {id: "source-title"}, "On what was read"),
    note,
    panels,
  );
  return {
    node,
    /** @param {{rows: {label: string}[], columns: {label: string}[], values: ArrayLike<number>} | null} picture */
    show(trace, picture) {
      const fits = picture && isVectors(trace) && picture.columns.length === trace.source.words.length;
      node.hidden = !fits;
      if (!fits) return;
      const width = picture.columns.length;
      const rows = picture.rows.slice(0, MOST);
      note.textContent = `Weights of the view above, a panel for each row${
        rows.length < picture.rows.length ? `; the first ${MOST} of ${picture.rows.length}` : ""
      }.`;
      panels.replaceChildren(
        ...rows.map(({label}, row) => {
          const weights = Array.from({length: width}, (_, column) => picture.values[row * width + column]);
          return element("figure", {class: "panel"}, panel(trace, weights, label), element("figcaption", {}, label));
        }),
      );
    },
  };
}

function panel(trace, weights, label) {
  const most = Math.max(...weights, 1e-9);
  const strengths = weights.map((weight) => Math.max(0, (STRONGEST * weight) / most));
  const strongest = trace.source.words[weights.indexOf(Math.max(...weights))];
  const about = {viewBox: `0 0 ${SIDE} ${SIDE}`, width: SIDE, height: SIDE, role: "img"};
  const drawn = trace.text.startsWith("data:image/") ? patches(trace, strengths) : curves(trace.vectors, strengths);
  return svg("svg", {...about, "aria-label": `${label}: most at ${strongest}`}, ...drawn);
}

/** The names of patches are their line and their place in it, from 1. */
function patches(trace, strengths) {
  const places = trace.source.words.map((word) => word.split(",").map(Number));
  const down = Math.max(...places.map(([line]) => line));
  const across = Math.max(...places.map(([, column]) => column));
  const side = SIDE / Math.max(down, across);
  const size = {width: side * across, height: side * down};
  return [
    svg("image", {...size, href: trace.text, preserveAspectRatio: "none", class: "pixels"}),
    ...places.map(([line, column], place) =>
      svg("rect", {
        ...{x: (column - 1) * side, y: (line - 1) * side, width: side, height: side},
        ...{class: "weight", "fill-opacity": strengths[place].toFixed(3)},
      }),
    ),
  ];
}

function curves(vectors, strengths) {
  const step = SIDE / vectors.length;
  const bands = strengths.map((strength, place) =>
    svg("rect", {
      ...{x: place * step, y: 0, width: step, height: SIDE},
      ...{class: "weight", "fill-opacity": strength.toFixed(3)},
    }),
  );
  const lines = Array.from({length: Math.min(CHANNELS, vectors[0].length)}, (_, channel) => {
    const values = vectors.map((vector) => vector[channel]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const points = values.map(
      (value, place) => `${(place + 0.5) * step},${SIDE - 4 - ((SIDE - 8) * (value - low)) / (high - low || 1)}`,
    );
    return svg("polyline", {points: points.join(" "), class: "curve"});
  });
  return [...bands, ...lines];
}
