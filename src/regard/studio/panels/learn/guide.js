// The contents: every step by chapter, the one that is shown marked. On a telephone it folds away.

import {element} from "../../element.js";
import {PARTS} from "./chapters.js";

const narrow = matchMedia("(max-width: 820px)");

/** @returns {HTMLElement & {mark: (name: string) => void}} */
export function guide(story, go) {
  const links = new Map();
  const parts = [];
  for (const chapter of story) {
    if (parts.at(-1)?.part !== chapter.part) parts.push({part: chapter.part, chapters: []});
    parts.at(-1).chapters.push(chapter);
  }
  const list = ({steps}) => {
    const items = steps.map(({number, step}) => {
      const link = element("a", {href: go(step.name)}, element("span.count", String(number + 1)), step.title);
      links.set(step.name, link);
      return element("li", link);
    });
    return element("ol", items);
  };
  const inside = parts.flatMap(({part, chapters}) => [
    element("h2", PARTS[part] ?? part),
    ...chapters.map((chapter) => element("div.chapter", element("h3", chapter.title), list(chapter))),
  ]);
  const summary = element("summary", "All steps");
  const folded = element(
    "details.guide",
    {open: !narrow.matches},
    summary,
    element("nav", {"aria-label": "Steps"}, inside),
  );
  folded.addEventListener("click", ({target}) => {
    if (target.closest("a") && narrow.matches) folded.open = false;
  });
  let shown = "";
  const reveal = () => bringIntoView(links.get(shown), folded);
  new ResizeObserver(reveal).observe(folded); // the drawing above it arrives later, and takes room from the list
  return Object.assign(folded, {
    mark(name) {
      shown = name;
      for (const [other, link] of links) {
        if (other === name) link.setAttribute("aria-current", "step");
        else link.removeAttribute("aria-current");
      }
      reveal();
    },
  });
}

function bringIntoView(link, folded) {
  const box = narrow.matches ? folded.querySelector("nav") : folded;
  if (link && box.scrollHeight > box.clientHeight) {
    // only the box moves, never the page
    const top = link.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 40) box.scrollTop = top - box.clientHeight / 2;
  }
}
