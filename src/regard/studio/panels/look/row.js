// One row of one head, or of all heads of a layer, set by hand: drag or type, and the rest of the sentence follows.

import {element} from "../../element.js";
import {field} from "../../pieces/forms.js";
import {number} from "../../pieces/scales.js";
import {distribution} from "./edits.js";
import {attentionName, axesOf, headsOf, legible} from "./view.js";

/** @param {{onedit: (...edits: object[]) => void}} actions */
export function rowEditor({onedit}) {
  const node = element("section.card.row-editor", {"aria-labelledby": "row-title", hidden: true});
  const close = () => {
    node.hidden = true;
    node.replaceChildren();
  };
  return {
    node,
    close,
    /** @param {number} row  the place of a piece among the rows of the view's side */
    open(trace, view, row) {
      const layers = trace.sides[view.side];
      const [first] = headsOf(trace, view);
      const wanted =
        typeof view.head === "number"
          ? `${view.layer - 1}.${view.head - 1}`
          : `${first[0]}.${view.head === "best" ? first[1] : "all"}`;
      const where = element(
        "select",
        layers.flatMap(({name, heads}, layer) => choices(name, heads, layer)),
      );
      where.value = [...where.options].some(({value}) => value === wanted) ? wanted : `${first[0]}.0`;
      const [rows, columns] = axesOf(trace, view.side);
      const last = view.side === "decoder" ? row : columns.pieces.length - 1; // what is written later cannot be seen
      const sliders = columns.pieces.map((piece, place) => slider(legible(piece), place > last));
      const fill = () => fillWith(sliders, current(trace, view, where.value, row));
      where.addEventListener("change", fill);
      fill();
      const apply = () => {
        const weights = distribution(sliders.map((each) => each.value));
        onedit(...editsFor(layers, where.value, row, weights));
      };
      const total = element("output.number.note");
      const sum = () => {
        const all = sliders.reduce((found, each) => found + each.value, 0);
        total.textContent = `Σ = ${number(all)}${Math.abs(all - 1) > 0.005 ? ", used as shares of it" : ""}`;
        set.disabled = all === 0;
      };
      const set = element("button.primary.small", {onclick: apply}, "Set the row");
      node.replaceChildren(
        element(
          "h2",
          {id: "row-title"},
          "What if ",
          element("bdi", `“${legible(rows.pieces[row])}”`),
          " looked elsewhere?",
        ),
        element(
          "p.note",
          view.side === "encoder"
            ? "The row of this piece, as used in the layer above it."
            : "The distribution used when this piece is predicted; what is written after it follows anew.",
        ),
        element(
          "div.row.end",
          field("Which head", where),
          element(
            "button.small",
            {
              onclick: () => (
                fillWith(
                  sliders,
                  columns.pieces.map((_, place) => (place <= last ? 1 / (last + 1) : 0)),
                ),
                sum()
              ),
            },
            "Even",
          ),
          element("button.small", {onclick: () => (fill(), sum())}, "As it is"),
        ),
        element(
          "div.sliders",
          {oninput: sum},
          sliders.map((each) => each.only(sliders, sum)),
        ),
        element("div.row", set, element("button.quiet.small", {onclick: close}, "Cancel"), total),
      );
      sum();
      node.hidden = false;
      node.scrollIntoView({block: "nearest"});
      sliders[0].focus();
    },
  };
}

function choices(name, heads, layer) {
  const option = (value, text) => element("option", {value: `${layer}.${value}`}, `${attentionName(name)}, ${text}`);
  const each = Array.from({length: heads}, (_, head) => option(head, `head ${head + 1}`));
  return heads > 1 ? [...each, option("all", `all ${heads} heads`)] : each;
}

/** The weights as they are; of all heads, their mean. */
function current(trace, view, where, row) {
  const [layer, head] = where.split(".");
  const {weights, heads} = trace.sides[view.side][layer];
  if (head !== "all") return [...weights.part(Number(head), row)];
  return Array.from(
    {length: weights.shape[2]},
    (_, column) =>
      Array.from({length: heads}, (_each, one) => weights.at(one, row, column)).reduce((sum, value) => sum + value, 0) /
      heads,
  );
}

function editsFor(layers, where, row, weights) {
  const [layer, head] = where.split(".");
  const {name, heads} = layers[layer];
  const chosen = head === "all" ? Array.from({length: heads}, (_, one) => one) : [Number(head)];
  return chosen.map((one) => ({kind: "set-row", attention: name, head: one, row, weights}));
}

const fillWith = (sliders, values) => sliders.forEach((each, place) => (each.value = values[place]));

/** A name that takes all the weight, a slider to drag, a number to type. */
function slider(label, disabled) {
  const range = element("input", {type: "range", min: 0, max: 1, step: 0.01, disabled, "aria-label": label});
  const typed = element("input", {
    type: "number",
    min: 0,
    max: 1,
    step: 0.01,
    disabled,
    "aria-label": `${label}, typed`,
  });
  let value = 0;
  const show = (next, from) => {
    value = Math.min(1, Math.max(0, Number(next) || 0));
    if (from !== range) range.value = value;
    if (from !== typed) typed.value = value.toFixed(2);
  };
  for (const input of [range, typed]) input.addEventListener("input", () => show(input.value, input));
  return {
    get value() {
      return value;
    },
    set value(next) {
      show(next);
    },
    focus: () => range.focus({preventScroll: true}),
    only(sliders, sum) {
      const all = () => {
        for (const each of sliders) each.value = 0;
        show(1);
        sum();
      };
      const name = element(
        "button.quiet.small",
        {disabled, title: "All the weight here", onclick: all},
        element("bdi", label),
      );
      return element("div.slider", name, range, typed);
    },
  };
}
