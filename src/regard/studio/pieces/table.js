// Tables: one that scrolls in its own box, and one that is made only when it is opened.

import {element} from "../element.js";

/**
 * The first cell of a row is its name.
 * @param {(string | Node)[]} head  @param {(string | number | Node)[][]} rows
 * @param {{caption: string, left?: number[]}} about  `caption` is read, not shown; `left`: columns that hold no numbers
 */
export function table(head, rows, {caption, left = []}) {
  const kind = (place) => (left.includes(place) ? "left" : null);
  const titles = head.map((name, place) =>
    name === "" ? element("td") : element("th", {scope: "col", class: kind(place)}, name),
  );
  const body = rows.map(([name, ...cells]) =>
    element(
      "tr",
      element("th", {scope: "row"}, name),
      cells.map((cell, place) => element("td", {class: kind(place + 1)}, cell)),
    ),
  );
  return element(
    "div.scroll",
    {tabindex: 0, role: "region", "aria-label": caption},
    element(
      "table",
      element("caption.visually-hidden", caption),
      element("thead", element("tr", titles)),
      element("tbody", body),
    ),
  );
}

/** What is long and rarely wanted: `make` is asked when it is opened for the first time. */
export function folded(summary, make) {
  const details = element("details", element("summary", summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(make());
  });
  return details;
}
