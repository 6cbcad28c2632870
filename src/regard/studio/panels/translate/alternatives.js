// The best few outputs of one sentence: how sure the run is of each, where they differ, and the numbers behind it.

import {link} from "../../address.js";
import {element} from "../../element.js";
import {term} from "../../pieces/glossary.js";
import {number, percent} from "../../pieces/scales.js";

/**
 * @param {import("../../pieces/runs.js").Run} run
 * @param {import("./output.js").Translation} translation  @param {number} picked
 * @param {(rank: number) => void} onpick  @param {boolean} several whether the text has more sentences
 */
export function alternatives(run, {source, outputs, aligner}, picked, onpick, several) {
  const left = isLeft(source, outputs[0]);
  const items = outputs.map((output, rank) => {
    const chosen = rank === Math.min(picked, outputs.length - 1);
    const sure = Math.exp(output.log_probability);
    return element(
      "li",
      element(
        "button.alternative",
        {"aria-pressed": String(chosen), onclick: () => onpick(rank)},
        element("span.rank.number", rank + 1),
        element("span.words", {dir: "auto"}, rank ? differing(output, outputs[0]) : output.text || "(nothing)"),
        left
          ? element("span.note.sure", "not translated")
          : element("span.note.number.sure", `${percent(sure)} sure`, bar(sure)),
      ),
    );
  });
  const deeper = {run: run.name, text: source};
  const about = several ? element("span.note", {dir: "auto"}, ` for “${source}”`) : null;
  return [
    element("h2", outputs.length > 1 ? "Best outputs of " : "The only output of ", element("bdi", run.name), about),
    element("ol.alternatives", items),
    ...(left
      ? []
      : [
          element(
            "p.note",
            element("a", {href: link("beam", deeper)}, "How it searched"),
            " · ",
            element("a", {href: link("look", {...deeper, rank: picked || ""})}, "Look inside"),
          ),
          details(outputs, aligner),
        ]),
  ];
}

/** Whether a sentence was left as it is, having no word that the run knows: it was not searched for. */
const isLeft = (source, {text, log_probability: sum, links}) => text === source && sum === 0 && !links.length;

const bar = (share) => element("span.bar", {"aria-hidden": "true"}, element("i", {style: {width: `${100 * share}%`}}));

/** An output whose words that the best one does not have are marked. */
function differing({text, words}, first) {
  if (!text) return "(nothing)";
  const known = new Map();
  for (const word of first.words) known.set(word, (known.get(word) ?? 0) + 1);
  return words.flatMap((word, place) => {
    const left = known.get(word) ?? 0;
    known.set(word, left - 1);
    return [place ? " " : "", left > 0 ? word : element("mark", word)];
  });
}

/** The numbers behind it, for those who want them. */
function details(outputs, aligner) {
  const rows = outputs.map((output, rank) =>
    element("li", `${rank + 1}: ${number(output.log_probability)} · ${number(output.score)}`),
  );
  return element(
    "details",
    element("summary", "Details"),
    element(
      "p.note",
      term("log-probability", "Log-probability"),
      " of each output · the same, normalised for its length:",
    ),
    element("ul.note.number", rows),
    aligner ? element("p.note.weights", "Links between words are ", term("attention"), ` weights: ${aligner}.`) : null,
  );
}
