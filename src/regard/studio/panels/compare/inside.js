// One sentence inside several runs, side by side: the cross-attention of each, by its own best aligner.

import {post} from "../../api.js";
import {link} from "../../address.js";
import {element} from "../../element.js";
import {heatmap} from "../../pieces/heatmap.js";
import {skeleton} from "../../pieces/skeleton.js";
import {trouble} from "../../pieces/trouble.js";
import {hasAttention, opened, originOf, pictureOf, viewOf} from "../look/view.js";

/**
 * Folded until it is opened; then every run is asked once.
 * @param {{text: string, runs: string[], beam: number, maps: {leave: () => void}[]}} about  `maps`: what is made is
 *   added
 */
export function sideBySide({text, runs, beam, maps}) {
  const place = element("div.inside");
  const details = element("details", element("summary", "Look inside, side by side"), place);
  details.addEventListener("toggle", () => {
    if (!details.open || place.childElementCount) return;
    place.replaceChildren(
      ...runs.map((run) => {
        const figure = element("figure", skeleton("lines", 3));
        look(figure, {run, text, beam, maps});
        return figure;
      }),
    );
  });
  return details;
}

async function look(figure, {run, text, beam, maps}) {
  const title = element("h3", element("a", {href: link("look", {run, text})}, run));
  try {
    const trace = opened(await post("/api/v1/trace", {run, text, beam: beam ?? 5}));
    if (!hasAttention(trace)) {
      figure.replaceChildren(
        title,
        element(
          "p.note",
          "This model has no attention: one vector holds the whole sentence. Its gates and states are in Look inside.",
        ),
      );
      return;
    }
    const view = viewOf({}, trace);
    const map = heatmap({label: `${run}: ${originOf(trace, view)}`});
    maps.push(map);
    figure.replaceChildren(title, map.node, element("figcaption", `${trace.output} — ${originOf(trace, view)}`));
    const {rows, columns, values} = pictureOf(trace, view);
    map.show({rows: rows.map(({label}) => label), columns: columns.map(({label}) => label), values, range: [0, 1]});
  } catch (problem) {
    figure.replaceChildren(title, trouble(problem));
  }
}
