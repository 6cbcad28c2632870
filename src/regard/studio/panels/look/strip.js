// Every head as a stamp, in one strip below the sentence: pointing at one draws its lines, in its own colour; choosing it
// stays there. Where a view is the mean of a layer's heads, each head has lines of its own colour.

import {element} from "../../element.js";
import {HUES} from "../../pieces/chart.js";
import {thumbnail} from "../../pieces/thumbnail.js";
import {axesOf, fold, headsOf, placesOf} from "./view.js";

const MOST = 8; // heads whose lines are told apart side by side
const FEW = 16; // heads whose stamps may be large

/** The colour of a head, as a class; of more than six, it begins anew. */
export const hueOf = (head) => `s${head % HUES}`;

/**
 * The lines of each head that a view takes the mean of, where colours can tell them apart; else none.
 * @param {import("./view.js").Trace} trace  @param {import("./view.js").View} view
 */
export function strandsOf(trace, view) {
  const heads = headsOf(trace, view);
  const layers = new Set(heads.map(([layer]) => layer));
  if (layers.size !== 1 || heads.length > MOST || view.head === "best") return [];
  return heads.map(([layer, head]) => ({values: headValues(trace, view, layer, head), hue: hueOf(head)}));
}

/** One head's weights, folded as the view folds them. */
function headValues(trace, view, layer, head) {
  const [rows, columns] = placesOf(trace, view);
  const width = axesOf(trace, view.side)[1].pieces.length;
  return fold(trace.sides[view.side][layer].weights.part(head), width, rows, columns);
}

/**
 * @param {{onpick: (layer: number, head: number) => void,
 *   onpreview: (strand: {values: ArrayLike<number>, hue: string} | null) => void}} actions  `onpick` counts from 1
 */
export function headStrip({onpick, onpreview}) {
  const node = element("div.head-strip", {role: "group", "aria-label": "All heads"});
  let shown = {};
  const button = (trace, view, layer, head) => {
    const [rows, columns] = placesOf(trace, view);
    const values = headValues(trace, view, layer, head);
    const preview = () => onpreview({values, hue: hueOf(head)});
    const role = trace.statistics.find(
      (one) => one.side === view.side && one.layer === layer && one.head === head,
    )?.role;
    const name = `Layer ${layer + 1}, head ${head + 1}${role ? `: ${role}` : ""}`;
    return element(
      "button",
      {
        class: `strip-stamp ${hueOf(head)}`,
        title: name,
        "aria-label": name,
        "data-strip": `${layer + 1}.${head + 1}`,
        onpointerenter: preview,
        onpointerleave: () => onpreview(null),
        onfocus: preview,
        onblur: () => onpreview(null),
        onclick: () => onpick(layer + 1, head + 1),
      },
      thumbnail({values, rows: rows.length, columns: columns.length, range: [0, 1]}),
    );
  };
  return {
    node,
    show(trace, view) {
      const layers = trace.sides[view.side];
      const count = layers.length * layers[0].heads;
      node.hidden = count === 1;
      node.classList.toggle("few", count <= FEW);
      if (node.hidden) return;
      if (shown.trace !== trace || ["side", "words", "special"].some((name) => shown.view[name] !== view[name]))
        node.replaceChildren(
          ...layers.map(({heads}, layer) =>
            element(
              "div.strip-layer",
              {role: "group", "aria-label": `Layer ${layer + 1}`},
              element("span.note", {"aria-hidden": "true"}, layer + 1),
              Array.from({length: heads}, (_, head) => button(trace, view, layer, head)),
            ),
          ),
        );
      shown = {trace, view};
      const used = new Set(headsOf(trace, view).map(([layer, head]) => `${layer + 1}.${head + 1}`));
      for (const each of node.querySelectorAll("button"))
        each.setAttribute("aria-pressed", String(used.has(each.dataset.strip)));
    },
  };
}
