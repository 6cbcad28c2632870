// Recurrent models: what each step's choice hangs on (where there is no attention to show), gates, and states.

import {latest, post} from "../../api.js";
import {element} from "../../element.js";
import {check, field, segmented} from "../../pieces/forms.js";
import {heatmap} from "../../pieces/heatmap.js";
import {unpack} from "../../pieces/packed.js";
import {skeleton} from "../../pieces/skeleton.js";
import {trouble} from "../../pieces/trouble.js";
import {fold, groupsOf, legible} from "./view.js";

/** What a model without attention has in its place, by task. */
const WITHOUT = {
  translate:
    "This model has no attention: all that its decoder knows of the source went through one state. Row by row: " +
    "on which words the choice of that word hangs.",
  tag:
    "This model has no attention. It has a state for every word, and reads the word’s tag from it. Row by row: " +
    "on which words that tag hangs.",
  classify:
    "This model has no attention: the states of all words become one vector, and the class is read from it. " +
    "On which words the class hangs.",
  language:
    "This model has no attention: all that it knows of the words before went through one state. Row by row: " +
    "on which words the choice of that word hangs.",
};

/** What the encoder's last state is good for, by task. */
const LAST = {
  translate: (attends) =>
    attends ? "with which the decoder begins" : "which is all that a decoder without attention gets",
  tag: () => "which is only one of those that tags are read from",
  classify: () => "which is only one of those that the class is read from",
};

const UNITS = 24; // shown of a gate or a state: those that change most

/** "encoder.0.cell.backward.forget" → "1 backward forget" */
const cellName = (name) =>
  name
    .split(".")
    .slice(1)
    .filter((part) => part !== "cell")
    .map((part, place) => (place ? part : Number(part) + 1))
    .join(" ") + (name.endsWith(".cell.cell") ? " cell" : "");

/**
 * @param {{onview: (values: object) => void, onpicture: (picture: object) => void}} actions  `onpicture` gets what
 *   each choice hangs on, once it is there
 */
export function cellsCard({onview, onpicture}) {
  const ask = latest();
  const saliency = saliencyPart(onview);
  const gates = gatesPart(onview);
  const node = element("div.stack.cells", gates.node);
  /** @type {any} */
  let answer = null;
  /** @type {{trace: import("./view.js").Trace, values: Record<string, string>} | null} */
  let shown = null;
  const draw = () => {
    if (!answer || !shown) return;
    saliency.node.hidden = shown.trace.attentions.length > 0;
    if (!saliency.node.hidden) onpicture(saliency.show(answer, shown.trace, shown.values));
    gates.show(answer, shown.trace, shown.values);
  };
  return {
    node,
    saliency: saliency.node,
    leave() {
      ask.stop();
      saliency.leave();
      gates.leave();
    },
    view(trace, values) {
      shown = {trace, values};
      draw();
    },
    async load(question) {
      [answer, saliency.node.hidden] = [null, true];
      gates.wait();
      try {
        const found = await ask((signal) => post("/api/v1/gates", question, {signal}));
        if (!found) return;
        const numbers = (list) => list.map((one) => ({...one, values: unpack(one.values)}));
        answer = {
          ...found,
          saliency: unpack(found.saliency),
          gates: numbers(found.gates).map((gate) => ({...gate, mean: unpack(gate.mean)})),
          states: numbers(found.states),
          filling: found.filling.map((one) => ({...one, likeness: unpack(one.likeness), change: unpack(one.change)})),
        };
        draw();
      } catch (problem) {
        gates.fail(trouble(problem, () => this.load(question)));
      }
    },
  };
}

/** Gradient saliency, each row as shares of one. */
function saliencyPart(onview) {
  const map = heatmap({label: "Gradient saliency"});
  const idea = element("p.note.idea");
  const words = segmented({
    label: "Rows and columns",
    options: [
      {value: "words", text: "Words"},
      {value: "pieces", text: "Pieces"},
    ],
    value: "words",
    onchange: (value) => onview({words: value === "pieces" ? "0" : ""}),
  });
  const special = check("Special tokens", false, (yes) => onview({special: yes ? "1" : ""}));
  const node = element(
    "section.card.saliency",
    {"aria-labelledby": "saliency-title", hidden: true},
    element("h2", {id: "saliency-title"}, "Gradient saliency"),
    idea,
    element("div.row.end.selectors", words, special),
    element(
      "figure",
      map.node,
      element("figcaption", "norm of the gradient of the word’s log-odds at each embedding, as a share of its row"),
    ),
  );
  return {
    node,
    leave: () => map.leave(),
    show({saliency}, trace, values) {
      const view = {words: values.words !== "0", special: values.special === "1"};
      words.value = view.words ? "words" : "pieces";
      special.input.checked = view.special;
      idea.textContent = WITHOUT[trace.task];
      const read = trace.task === "language" ? trace.inputs : trace.source;
      const [rows, columns] = [groupsOf(trace.target, view), groupsOf(read, view)];
      const width = read.pieces.length;
      const shares = Float64Array.from(
        saliency.data,
        (value, place) => value / sumOf(saliency.part(Math.floor(place / width))),
      );
      const folded = fold(shares, width, rows, columns);
      map.show({
        rows: rows.map((row) => row.label),
        columns: columns.map((column) => column.label),
        values: folded,
        range: [0, 1],
      });
      return {rows, columns, values: folded};
    },
  };
}

const sumOf = (values) => values.reduce((sum, value) => sum + value, 0) || 1;

/** Gates by their mean, one of them by its units, and how the context fills. */
function gatesPart(onview) {
  const maps = {
    gates: heatmap({label: "Gates, mean over units"}),
    units: heatmap({label: "Units of a gate"}), // from 0 to 1
    state: heatmap({label: "Units of a state", scale: "diverging"}), // around 0
    likeness: heatmap({label: "Likeness to the last state", scale: "diverging"}),
    change: heatmap({label: "Movement of the state"}),
  };
  const chooser = element("div.row.end.selectors");
  const detail = element("select");
  detail.addEventListener("change", () => onview({gate: detail.value}));
  const figure = (kind, title, words) =>
    element("figure", {class: kind}, element("h3", title), element("p.note", words), maps[kind].node);
  const figures = {
    gates: figure("gates", "Gates", "The mean over the units of each gate: 0 closed, 1 open."),
    units: figure("units", "Unit by unit", `The ${UNITS} units that change most over the sentence.`),
    likeness: figure("likeness", "How the context fills: likeness", ""),
    change: figure(
      "change",
      "How the context fills: movement",
      "How far each piece moved the state, as a share of all movement.",
    ),
  };
  const {units, ...others} = figures;
  const body = element("div.two", element("div.stack", Object.values(others)), units);
  const place = element("div");
  const node = element(
    "section.card",
    {"aria-labelledby": "gates-title"},
    element("h2", {id: "gates-title"}, "Gates and states"),
    chooser,
    place,
  );

  return {
    node,
    leave: () => Object.values(maps).forEach((map) => map.leave()),
    wait: () => place.replaceChildren(skeleton("lines", 6)),
    fail: (line) => place.replaceChildren(line),
    show(answer, trace, values) {
      place.replaceChildren(body);
      const last = LAST[trace.task]?.(trace.attentions.length > 0);
      figures.likeness.querySelector(".note").textContent =
        `Cosine of the encoder’s state after each piece with its last state${last ? `, ${last}` : ""}.`;
      const sides = ["encoder", "decoder"].filter((side) => answer.states.some(({name}) => name.startsWith(side)));
      const side = sides.includes(values.cells) ? values.cells : sides[0];
      const mine = (list) => list.filter(({name}) => name.startsWith(side));
      const [gates, named] = [mine(answer.gates), mine([...answer.gates, ...answer.states])];
      detail.replaceChildren(...named.map(({name}) => element("option", {value: name}, cellName(name))));
      const one = named.find(({name}) => name === values.gate) ?? named[0];
      detail.value = one.name;
      if (chooser.dataset.sides !== sides.join()) {
        chooser.side = segmented({
          label: "Side",
          options: sides.map((value) => ({value, text: value})),
          value: side,
          onchange: (cells) => onview({cells, gate: ""}),
        });
        chooser.replaceChildren(...(sides.length > 1 ? [chooser.side] : []), field("Unit by unit", detail));
        chooser.dataset.sides = sides.join();
      }
      chooser.side.value = side;
      const columns = one.rows.map(legible);
      figures.gates.hidden = gates.length === 0;
      if (gates.length)
        maps.gates.show({
          rows: gates.map(({name}) => cellName(name)),
          columns,
          values: Float32Array.from(gates.flatMap(({mean}) => [...mean.data])),
          range: [0, 1],
        });
      const map = answer.gates.includes(one) ? maps.units : maps.state;
      figures.units.replaceChild(map.node, figures.units.lastElementChild);
      showUnits(map, one, columns, map === maps.units);
      const filling = side === "encoder" ? answer.filling : [];
      for (const kind of ["likeness", "change"]) {
        figures[kind].hidden = filling.length === 0;
        if (filling.length)
          maps[kind].show({
            rows: filling.map(({name}) => cellName(name) || "1"),
            columns,
            values: Float32Array.from(filling.flatMap((each) => [...each[kind].data])),
            range: kind === "likeness" ? [-1, 1] : [0, 1],
          });
      }
    },
  };
}

/** Units as rows, those with the largest spread first; a gate lies between 0 and 1, a state around 0. */
function showUnits(map, {values}, columns, isGate) {
  const [length, width] = values.shape;
  const spread = Array.from({length: width}, (_, unit) => {
    const all = Array.from({length}, (_each, piece) => values.at(piece, unit));
    return [Math.max(...all) - Math.min(...all), unit];
  });
  const chosen = spread
    .sort((one, other) => other[0] - one[0] || one[1] - other[1])
    .slice(0, UNITS)
    .map(([, unit]) => unit);
  const shown = chosen.flatMap((unit) => Array.from({length}, (_, piece) => values.at(piece, unit)));
  map.show({
    rows: chosen.map((unit) => `unit ${unit + 1}`),
    columns,
    values: Float32Array.from(shown),
    ...(isGate ? {range: [0, 1]} : {}),
  });
}
