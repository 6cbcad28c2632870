// One row of the picture: what the step it belongs to found probable, and how its weights sum.

import {element} from "../../element.js";
import {meaningOf} from "../../pieces/letters.js";
import {number, percent} from "../../pieces/scales.js";
import {legible, pools} from "./view.js";

/**
 * @param {{onrow: (row: number) => void, onwhy: (against: {piece: string, step: number}) => void}} actions
 *   `onrow` gets the place of the row's first piece; `onwhy` what might have been written there
 */
export function stepPanel({onrow, onwhy}) {
  const node = element("section.card.step", {"aria-label": "What was probable for a row"});
  /** @type {any[]} */
  let [trace, view, picture, shown] = [null, null, null, null];
  const point = (row) => {
    if (row === shown) return;
    shown = row;
    node.replaceChildren(...content(trace, view, picture, row, {onrow, onwhy}));
  };
  return {
    node,
    point,
    /** By a click or Enter: the row may also be set by hand. */
    pick(row) {
      point(row);
      onrow(picture.rows[row].places[0]);
    },
    show(nextTrace, nextView, nextPicture) {
      const kept =
        nextTrace === trace && nextView.side === view.side && nextPicture.rows.length === picture.rows.length
          ? shown
          : null;
      [trace, view, picture, shown] = [nextTrace, nextView, nextPicture, null];
      point(kept ?? 0);
    },
  };
}

function content(trace, view, picture, row, {onrow, onwhy}) {
  const {label, places} = picture.rows[row];
  const name = element("strong", {dir: "auto"}, label);
  const sum = element("span.note.number", `Σ of the row as shown: ${number(picture.sums[row])}`);
  const set = element("button.small.quiet", {onclick: () => onrow(places[0])}, "Set this row…");
  if (view.side === "encoder" && trace.task !== "tag")
    return [element("p.row", element("span", "The row of ", name), sum, set)];
  const when =
    view.side === "encoder" ? "It labelled " : pools(trace, view.side) ? "For the class " : "When it predicted ";
  const title = element("p.row", element("span", when, name, ", these were the most probable"), sum, set);
  // of a word, not the mark of its capital
  const telling = places.find((place) => !meaningOf(trace.target.pieces[place])) ?? places[0];
  return [
    title,
    element(
      "ol.candidates",
      trace.top[telling].map((one) => candidate(one, trace.target.pieces[telling], telling, onwhy)),
    ),
  ];
}

function candidate({piece, probability}, taken, step, onwhy) {
  const bar = element("i", {"aria-hidden": "true"});
  bar.style.width = `${100 * probability}%`;
  return element(
    "li",
    {class: piece === taken ? "taken" : ""},
    element("bdi", {title: meaningOf(piece) || null}, legible(piece)),
    element("span.bar", bar),
    element("span.number", percent(probability)),
    piece === taken
      ? null
      : element(
          "button.small.quiet",
          {title: `Why not ${legible(piece)}?`, onclick: () => onwhy({piece, step})},
          "Why not?",
        ),
  );
}
