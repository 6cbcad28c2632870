// All heads of one kind of attention as stamps: a row a layer. A stamp is a button that shows its head large.

import {element} from "../../element.js";
import {thumbnail} from "../../pieces/thumbnail.js";
import {axesOf, fold, placesOf, titleOf} from "./view.js";

/** @param {{onpick: (layer: number, head: number) => void}} actions  counted from 1 */
export function headsCard({onpick}) {
  const grid = element("div", {class: "heads"});
  const lead = element("p", {class: "note"});
  const node = element(
    "section",
    {class: "card all-heads", "aria-labelledby": "all-heads"},
    element("h2", {id: "all-heads"}, "All heads"),
    lead,
    grid,
  );
  let shown = {};
  return {
    node,
    show(trace, view) {
      const layers = trace.sides[view.side];
      node.hidden = layers.length * layers[0].heads === 1;
      if (node.hidden) return;
      if (shown.trace !== trace || ["side", "words", "special"].some((name) => shown.view[name] !== view[name])) {
        lead.textContent =
          `${titleOf(trace, view.side)}: ${layers.length === 1 ? "one layer" : `${layers.length} layers`} of ` +
          `${layers[0].heads} heads, each drawn as above. Choose one to see it large.`;
        grid.replaceChildren(...rowsOf(trace, view, onpick));
      }
      shown = {trace, view};
      for (const button of grid.querySelectorAll("button"))
        button.setAttribute("aria-pressed", button.dataset.head === `${view.layer}.${view.head}`);
    },
  };
}

function rowsOf(trace, view, onpick) {
  const [rows, columns] = placesOf(trace, view);
  const width = axesOf(trace, view.side)[1].pieces.length;
  return trace.sides[view.side].map(({weights, heads}, layer) => {
    const stamps = Array.from({length: heads}, (_, head) => {
      const values = fold(weights.part(head), width, rows, columns);
      const role =
        trace.statistics.find((one) => one.side === view.side && one.layer === layer && one.head === head)?.role ?? "";
      return stamp({
        values,
        rows: rows.length,
        columns: columns.length,
        layer: layer + 1,
        head: head + 1,
        role,
        onpick,
      });
    });
    return element(
      "div",
      {class: "layer", role: "group", "aria-label": `Layer ${layer + 1}`},
      element("span", {class: "note", "aria-hidden": "true"}, `Layer ${layer + 1}`),
      element("div", {class: "stamps"}, stamps),
    );
  });
}

function stamp({values, rows, columns, layer, head, role, onpick}) {
  const label = `Layer ${layer}, head ${head}${role ? `: ${role}` : ""}`;
  const picture = thumbnail({values, rows, columns, label: "", range: [0, 1]});
  picture.removeAttribute("role");
  picture.removeAttribute("aria-label");
  picture.setAttribute("aria-hidden", "true");
  return element(
    "button",
    {
      type: "button",
      class: "stamp",
      title: label,
      "aria-label": label,
      "data-head": `${layer}.${head}`,
      onclick: () => onpick(layer, head),
    },
    picture,
    element("small", {"aria-hidden": "true"}, head),
  );
}
