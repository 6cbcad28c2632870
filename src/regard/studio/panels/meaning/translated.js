// Each sentence with its translation; the word and what it became are marked, the other links light up when pointed at.

import {element} from "../../element.js";
import {markUnknown} from "../../pieces/question.js";
import {unspaced} from "../../pieces/script.js";
import {linked, partners} from "../../pieces/tokens.js";

/**
 * @param {{translations: any[], rows: number[]}} found
 * @param {import("./summary.js").Occurrence[]} own the occurrences, in the order of the sentences
 */
export function translated({translations, rows}, own) {
  return element(
    "ol.translated",
    own.map((one, place) => pair(one, rows[place], translations[place])),
  );
}

function pair(one, row, {source_words: source, outputs: [output], warning, unknown}) {
  const links = output.links ?? [];
  const lines = linked(source, output.words, links);
  markUnknown(lines.source, unknown);
  if (unspaced(one.word)) markInside(lines, one, output.words);
  else {
    mark(lines.source, [one.place]);
    mark(lines.target, [...partners(links, "source", one.place).keys()]);
  }
  return element(
    "li",
    {class: `s${row % 6}`},
    element("span.dot", {"aria-hidden": "true"}, String(row + 1)),
    element("div", lines.source, lines.target, warning ? element("p.warning", warning) : null),
    element(
      "p.became",
      element("b", {dir: "auto"}, one.word),
      " → ",
      element("b", {dir: "auto"}, one.translation || "no link"),
    ),
  );
}

/** A word that no spaces set apart: links of the whole sentence say nothing of it, its own translation does. */
function markInside({source, target}, {sentence, word, translation}, words) {
  const [before, ...after] = sentence.split(word);
  source.replaceChildren(before, element("span.word.found", word), after.join(word));
  const became = new Set(translation.split(" "));
  mark(
    target,
    [...words.keys()].filter((place) => became.has(words[place])),
  );
}

function mark(line, places) {
  const words = line.querySelectorAll(".word");
  for (const place of places) words[place]?.classList.add("found");
}
