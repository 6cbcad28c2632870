// What if, in sight: the edits as chips and what they did, before → after, at the foot of the screen.

import {element} from "../../element.js";
import {number, painter, percent} from "../../pieces/scales.js";
import {describe, grouped} from "./edits.js";
import {legible} from "./view.js";

/** @param {{onremove: (edits: object[]) => void}} actions */
export function whatIfBar({onremove}) {
  const node = element("section.card.what-if", {"aria-label": "What your edits did", hidden: true});
  return {
    node,
    /** Without an answer (`trace` undefined) the chips are still there, to take the reason away. */
    show(trace, {text, edits}) {
      node.hidden = !edits.length;
      const open = node.querySelector("details")?.open ?? false;
      node.replaceChildren(
        ...[chips(text, edits, trace, onremove), trace?.difference ? difference(trace, open) : null].filter(Boolean),
      );
    },
  };
}

function chips(text, edits, trace, onremove) {
  if (!edits.length) return null;
  const all = grouped(edits).map((group) => {
    const words = describe(group, {text, edits, trace});
    return element(
      "li.chip.now",
      words,
      element("button", {"aria-label": `Undo: ${words}`, title: "Undo", onclick: () => onremove(group)}, "×"),
    );
  });
  const clear = element("li", element("button.quiet.small", {onclick: () => onremove(edits)}, "Undo all"));
  return element(
    "ul.chips",
    {"aria-label": "Edits"},
    element("li.note", "What if"),
    all,
    all.length > 1 ? clear : null,
  );
}

/** Before and after, greedy both, with what was exchanged marked. */
function difference(trace, open) {
  const {before, after, same, changes, change_in_log_probability: change} = trace.difference;
  const sign = change > 0 ? "+" : "";
  const details = element(
    "details",
    {open},
    element("summary", "In numbers"),
    element(
      "p.number.change",
      "Change in log-probability: ",
      element("strong", `${sign}${number(change, 3)}`),
      ` (${number(before.log_probability, 3)} before). The old output, under the edits: ` +
        `${number(same.log_probability, 3)}.`,
    ),
    falls(trace.difference),
  );
  const kept = before.text === after.text;
  return element(
    "div.difference",
    output(
      "Before",
      before,
      changes.map((one) => one.before),
    ),
    element("span.arrow", {"aria-hidden": "true"}, "→"),
    output(
      "After",
      after,
      changes.map((one) => one.after),
      kept ? "the same output, " : "",
    ),
    details,
  );
}

function output(title, {text, log_probability: odds}, exchanged, also = "") {
  const words = text.split(" ");
  let from = 0;
  const marked = new Set();
  for (const some of exchanged) {
    const start = words.findIndex(
      (_, place) => place >= from && some.length && some.every((word, next) => words[place + next] === word),
    );
    if (start < 0) continue;
    some.forEach((_, next) => marked.add(start + next));
    from = start + some.length;
  }
  const shown = words.flatMap((word, place) => [marked.has(place) ? element("mark", word) : word, " "]);
  return element(
    "div",
    {class: `line ${title.toLowerCase()}`},
    element("h2.label", title, element("span.note.number", ` ${also}${percent(Math.exp(odds))} sure`)),
    element("p.tokens", {dir: "auto"}, shown),
  );
}

/** How far each piece of the old output fell; what rose is not coloured. */
function falls({fall, pieces}) {
  const {colour, ink} = painter("sequential", [0, Math.max(1, ...fall)]);
  const shown = pieces.map((piece, place) => {
    const node = element(
      "span.fall",
      {title: `${legible(piece)}: ${number(fall[place], 3)} nats`},
      element("bdi", legible(piece)),
      element("small.number", number(fall[place], 1)),
    );
    if (fall[place] > 0.05) Object.assign(node.style, {backgroundColor: colour(fall[place]), color: ink(fall[place])});
    return node;
  });
  return [
    element(
      "p.note",
      "How far each piece of the old output fell: its log-probability before, less under the edits, in nats.",
    ),
    element("p.falls", shown),
  ];
}
