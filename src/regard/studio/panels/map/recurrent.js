// Recurrent layers from inside: the ladder of all pieces, the cell at one of them, and one number of its state.

import {element} from "../../element.js";
import {number, painter, whileShown} from "../../pieces/scales.js";
import {piecesOf} from "./model.js";
import {line, sumOf, vector} from "./numbers.js";

const GATES = ["input", "forget", "candidate", "output", "reset", "update", "cell", "hidden"];
const SAID = {
  input: "input gate: how much of the candidate is taken in",
  forget: "forget gate: how much of the memory stays",
  candidate: "candidate: what would be written",
  output: "output gate: how much of the memory is shown",
  reset: "reset gate: how much of the old state the candidate sees",
  update: "update gate: how much of the old state stays",
  cell: "memory",
  hidden: "state",
};

/** The readings of a layer: "" or forward and backward; each gate (T, D). */
function readings(inside) {
  const found = new Map();
  for (const [name, value] of Object.entries(inside)) {
    const [, way, gate] = /^(?:cell\.)?(forward\.|backward\.)?(\w+)$/.exec(name) ?? [];
    if (!gate || !GATES.includes(gate) || value.shape.length !== 2) continue;
    const key = (way ?? "").replace(".", "");
    found.set(key, {...found.get(key), [gate]: value});
  }
  return found;
}

export function recurring(model, part, chosen, inside, about) {
  const ways = [...readings(inside)];
  const pieces = piecesOf(model, part);
  if (chosen.length === 0) return ladderScene(part, ways, pieces, about);
  const [place, unit] = chosen;
  const shown = ways.map(([way, gates]) =>
    unit === undefined
      ? cellScene(part, [way, gates], pieces, place, about)
      : unitScene(part, [way, gates], pieces, [place, unit]),
  );
  return element("div.recurrent-scene", shown);
}

const wayName = {forward: "From left to right", backward: "From right to left"};

function ladderScene(part, ways, pieces, {href}) {
  const ladders = ways.map(([way, gates]) => {
    const names = GATES.filter((name) => name in gates);
    const steps = pieces.map((piece, place) => {
      const cells = names.map((name) => {
        const mean =
          sumOf(gates[name].part(place).map(["candidate", "cell", "hidden"].includes(name) ? Math.abs : (one) => one)) /
          gates[name].shape[1];
        const cell = element("i.gate", {title: `${SAID[name]}: ${number(mean)} on average`}, number(mean));
        const paint = () => {
          const {colour, ink} = painter("sequential", [0, 1]);
          Object.assign(cell.style, {backgroundColor: colour(mean), color: ink(mean)});
        };
        paint();
        whileShown(cell, paint);
        return cell;
      });
      const at = `${part.name}/${place}`;
      return element(
        "li",
        element(
          "a.rung",
          {href: href(at), "data-door": at, "data-part": part.name, "aria-label": `The cell at ${piece}`},
          element("bdi.piece", piece),
          ...cells,
        ),
      );
    });
    const head = element(
      "div.rung.names",
      element("span", " "),
      ...names.map((name) => element("span.gate", {title: SAID[name]}, name)),
    );
    return element(
      "section",
      ways.length > 1 ? element("h2", wayName[way]) : null,
      element("div", {class: `ladder ${way}`}, head, element("ol", steps)),
    );
  });
  return element(
    "div.ladder-scene",
    element(
      "p.note",
      "One cell, used at every piece; what it keeps goes to the next. Each number is the mean over the layer's units (of candidate, memory and state, of their sizes). Choose a piece to see its cell.",
    ),
    ladders,
  );
}

function cellScene(part, [way, gates], pieces, place, {href}) {
  const names = GATES.filter((name) => name in gates);
  const size = gates[names[0]].shape[1];
  const at = (unit) => `${part.name}/${place}/${unit}`;
  const widest = mostMoved(gates, place, way);
  return element(
    "section.cell-scene",
    element("h2", way ? `${wayName[way]}: the cell at ` : "The cell at ", element("bdi", pieces[place] ?? "")),
    names.map((name) =>
      vector(
        name,
        gates[name].part(place),
        ["cell", "hidden", "candidate"].includes(name) ? "diverging" : "sequential",
      ),
    ),
    element(
      "p.note",
      `${size} units work side by side. See one of them: `,
      [...new Set([widest, 0, Math.floor(size / 2)])].map((unit, count) =>
        element(
          "a.button.small",
          {href: href(at(unit)), "data-door": at(unit)},
          `unit ${unit + 1}${count === 0 ? ", which changed most" : ""}`,
        ),
      ),
    ),
  );
}

/** The place before this one, in the order of reading; null at the beginning. */
const earlier = (way, place, count) => {
  const before = way === "backward" ? place + 1 : place - 1;
  return before >= 0 && before < count ? before : null;
};

function mostMoved(gates, place, way) {
  const kept = gates.cell ?? gates.hidden;
  const before = earlier(way, place, kept.shape[0]);
  let [best, unit] = [-1, 0];
  kept.part(place).forEach((value, each) => {
    const moved = Math.abs(value - (before === null ? 0 : kept.at(before, each)));
    if (moved > best) [best, unit] = [moved, each];
  });
  return unit;
}

/** One unit of a cell: the arithmetic with its numbers. */
function unitScene(part, [way, gates], pieces, [place, unit]) {
  const count = gates.hidden.shape[0];
  const before = earlier(way, place, count);
  const value = (name) => gates[name].at(place, unit);
  const old = (name) => (before === null ? null : gates[name].at(before, unit));
  const from = before === null ? "what it began with" : `after ${pieces[before]}`;
  const lines = [];
  if ("cell" in gates && "input" in gates) {
    const kept = old("cell");
    const known = kept === null ? (value("cell") - value("input") * value("candidate")) / value("forget") : kept;
    lines.push(
      line(
        "memory",
        number(value("cell"), 4),
        `forget ${number(value("forget"), 3)} × memory ${from} ${number(known, 3)} + input ${number(value("input"), 3)} × candidate ${number(value("candidate"), 3)}`,
      ),
      line(
        "state",
        number(value("hidden"), 4),
        `output ${number(value("output"), 3)} × tanh(memory) ${number(Math.tanh(value("cell")), 3)}`,
      ),
    );
  } else if ("cell" in gates) {
    const kept = old("cell") ?? 0;
    lines.push(
      line(
        "memory",
        number(value("cell"), 4),
        `forget ${number(value("forget"), 3)} × memory ${from} ${number(kept, 3)} + (1 − forget) × candidate ${number(value("candidate"), 3)}`,
      ),
      line("state", number(value("hidden"), 4), "the memory, or 0 where it is below 0"),
    );
  } else if ("update" in gates) {
    const [update, candidate] = [value("update"), value("candidate")];
    const known = old("hidden") ?? (value("hidden") - (1 - update) * candidate) / update;
    lines.push(
      line(
        "state",
        number(value("hidden"), 4),
        `(1 − update ${number(update, 3)}) × candidate ${number(candidate, 3)} + update × state ${from} ${number(known, 3)}`,
      ),
    );
  } else
    lines.push(
      line("state", number(value("hidden"), 4), "tanh of what is read and the state before, each times its weights"),
    );
  return element(
    "section.unit-scene",
    element(
      "h2",
      `Unit ${unit + 1} at `,
      element("bdi", pieces[place] ?? ""),
      way ? `, ${wayName[way].toLowerCase()}` : "",
    ),
    lines,
  );
}
