// The nearest words of each occurrence, with how near they are and where they stand.

import {element} from "../../element.js";

/**
 * @param {{word: string, sentence: string, cosine: number}[][]} found by occurrence
 * @param {import("./summary.js").Occurrence[]} own
 * @param {number[]} rows their places in the list of sentences
 */
export function neighbours(found, own, rows) {
  return own.map((one, place) =>
    element(
      "section",
      {class: `s${rows[place] % 6}`},
      element("h3", element("span.dot", {"aria-hidden": "true"}, String(rows[place] + 1)), one.translation || one.word),
      element("ol", found[place].map(neighbour)),
    ),
  );
}

function neighbour({word, sentence, cosine}) {
  const bar = element("i", {"aria-hidden": "true"});
  bar.style.width = `${Math.max(0, 100 * cosine)}%`;
  return element(
    "li",
    element("b", {dir: "auto"}, word),
    element("span.number", {"data-value": cosine}, cosine.toFixed(3)),
    element("span.gauge", bar),
    element("span.context", {dir: "auto", title: sentence}, sentence),
  );
}
