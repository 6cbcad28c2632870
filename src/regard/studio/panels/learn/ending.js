// After the last step: what has happened, and where to go on.

import {element} from "../../element.js";
import {legible} from "../../pieces/letters.js";
import {percent} from "../../pieces/scales.js";

/**
 * @param {{walk: import("./step.js").Walk, path: import("./step.js").Step[], story: import("./chapters.js").Chapter[], state: Record<string, any>,
 *   model: Record<string, any> | null, task: string}} about
 * @param {(changes: object) => void} go
 */
export function ending({walk, path, story, state, model, task}, go) {
  const onSource = walk.task === "label" || state.side === "encoder";
  const side = onSource ? walk.source : walk.target;
  const here = side.word_of[walk.position] ?? state.word;
  const next = task === "classify" ? undefined : side.words[here + 1];
  const button = (words, kind, changes) => element("button", {class: kind, onclick: () => go(changes)}, ...words);
  const bdi = (word) => element("bdi", word);
  const layers = Math.min(...[model?.encoder_layers, model?.decoder_layers].filter(Boolean), Infinity);
  const higher = Number.isFinite(layers) && walk.layer + 1 < layers;
  const unseen =
    Number.isFinite(layers) && layers > 1
      ? ` The other ${layers === 2 ? "layer does the same with weights of its" : `${layers - 1} layers do the same with weights of their`} own.`
      : "";
  return element(
    "section.ending.card",
    {"aria-labelledby": "ending-title"},
    element("h2", {id: "ending-title"}, "That was all of it"),
    element(
      "p",
      ...outcome(walk, task),
      `${path.length < walk.steps.length ? ` These were ${path.length} of its ${walk.steps.length} steps` : ` It took ${walk.steps.length} steps`} in ${story.length} chapters:`,
    ),
    element(
      "ol",
      story.map(({title, steps}) =>
        element("li", title, element("span.note", ` ${steps.length === 1 ? "1 step" : `${steps.length} steps`}`)),
      ),
    ),
    element("p.note", `We watched one layer${(model?.heads ?? 1) > 1 ? " and one head" : ""}.${unseen}`),
    element(
      "div.row",
      next === undefined ? null : button(["Now the next word: ", bdi(next), " →"], "primary", {word: here + 1}),
      next === undefined && here > 0 && task !== "classify"
        ? button(["From the first word: ", bdi(side.words[0])], "primary", {word: 0})
        : null,
      path.length < walk.steps.length ? button([`All ${walk.steps.length} steps of this word`], "", {way: ""}) : null,
      higher ? button([`The same in layer ${walk.layer + 2}`], "", {layer: walk.layer + 1}) : null,
    ),
  );
}

/** "The word chat was written with a probability of 98 %." */
function outcome(walk, task) {
  const probability = walk.steps.find(({kind}) => kind === "probability")?.shown;
  const piece =
    walk.task === "label" && task === "classify" ? walk.target.pieces[0] : (walk.target.pieces[walk.position] ?? "");
  const name = element("strong", {dir: "auto"}, legible(piece));
  if (probability === undefined) return ["From words to vectors that know their neighbours."];
  const did = {tag: "The tag ", classify: "The class "}[task] ?? "The word ";
  return [did, name, ` got a probability of ${percent(probability)}.`];
}
