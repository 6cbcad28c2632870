// Words of a sentence, each of which can be pointed at or reached with the arrow keys; and two sentences whose words
// light up what they are linked with.
//
//   const pair = linked(["the", "cat"], ["le", "chat"], [{target: 1, source: 1, weight: 0.95}]);
//   root.append(pair.source, pair.target);

import {element} from "../element.js";
import {announce} from "./announce.js";
import {meaningOf} from "./letters.js";

/**
 * A line of words. It is one stop for the Tab key; the arrow keys go from word to word.
 * @param {string[]} words
 * @param {{label: string, onpoint?: (place: number | null) => void, onpick?: (place: number) => void,
 *   say?: (place: number) => string, text?: string, tag?: string}} about  `say`: what is announced
 *   when the keyboard reaches a word; `text`: the words as they stand, with what is between them, if it is not a space
 * @returns {{node: HTMLElement, light: (weights: Map<number, number>, own?: number | null) => void}}
 */
export function tokenLine(words, {label, onpoint, onpick, say, text, tag = "p"}) {
  const about = onpick ? {role: "button"} : {};
  const spans = words.map((word, place) =>
    element(
      "span.word",
      {tabindex: place ? -1 : 0, "data-place": place, title: meaningOf(word) || null, ...about},
      word,
    ),
  );
  const node = element(
    tag,
    {class: "tokens", role: "group", "aria-label": label, dir: "auto"},
    spaced(words, spans, text),
  );
  const placeOf = (event) => event.target.closest?.(".word")?.dataset.place;
  const told = (event, action) => placeOf(event) !== undefined && action?.(Number(placeOf(event)));
  node.addEventListener("pointerover", (event) => told(event, onpoint));
  node.addEventListener("pointerleave", () => onpoint?.(null));
  node.addEventListener("focusin", (event) => told(event, onpoint));
  node.addEventListener("focusout", () => onpoint?.(null));
  node.addEventListener("click", (event) => told(event, onpick));
  node.addEventListener("keydown", (event) => walk(event, node, spans, {onpick, say}));
  return {node, light: lighter(spans)};
}

/** The words with what stands between them. */
function spaced(words, spans, text = words.join(" ")) {
  const ranges = rangesOf(text, words);
  const between = (place) =>
    ranges[place] && ranges[place + 1] ? text.slice(ranges[place][1], ranges[place + 1][0]) : " ";
  return spans.flatMap((span, place) => (place + 1 < spans.length ? [span, between(place)] : [span]));
}

/**
 * Where each word stands in a text, as [start, end]. A word that is not found (a tokenizer may have changed it) has no
 * place, and those after it are still found.
 */
export function rangesOf(text, words) {
  let from = 0;
  return words.map((word) => {
    const start = text.indexOf(word, from);
    if (start < 0) return null;
    from = start + word.length;
    return [start, from];
  });
}

function walk(event, node, spans, {onpick, say}) {
  const here = spans.indexOf(document.activeElement);
  if (here < 0) return;
  if ((event.key === "Enter" || event.key === " ") && onpick) {
    event.preventDefault();
    return onpick(here);
  }
  const forward = getComputedStyle(node).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  const steps = {
    ArrowLeft: forward === "ArrowLeft" ? 1 : -1,
    ArrowRight: forward === "ArrowRight" ? 1 : -1,
    Home: -here,
    End: spans.length - 1 - here,
  };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const next = spans[Math.max(0, Math.min(spans.length - 1, here + steps[event.key]))];
  spans[here].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  if (say) announce(say(spans.indexOf(next)));
}

/** What lights words by their place, and only touches those that change. */
function lighter(spans) {
  let lit = [];
  return (weights, own) => {
    lit.forEach((span) => paint(span));
    const places = [...new Set([...weights.keys(), ...(own == null ? [] : [own])])].filter((place) => place in spans);
    lit = places.map((place) => spans[place]);
    lit.forEach((span, number) => paint(span, weights.get(places[number]), places[number] === own));
  };
}

/** Lit, the more the larger its weight, or as it was. */
export function paint(span, weight, own = false) {
  span.classList.toggle("own", own);
  span.classList.toggle("lit", weight !== undefined);
  span.style.setProperty("--weight", weight ?? 0);
}

/** What is linked with a word: place → weight. `side` is the side of the word. */
export function partners(links, side, place) {
  const other = side === "target" ? "source" : "target";
  const found = new Map();
  for (const link of links.filter((each) => each[side] === place)) {
    found.set(link[other], Math.max(link.weight, found.get(link[other]) ?? 0));
  }
  return found;
}

/** "chat ← cat 0.95" */
export function sentenceOf(links, side, place, words, others) {
  const found = [...partners(links, side, place)].sort((one, other) => other[1] - one[1]);
  const arrow = side === "target" ? "←" : "→";
  if (!found.length) return `${words[place]} ${arrow} nothing`;
  const told = found.map(([other, weight]) => `${others[other]} ${weight.toFixed(2)}`);
  return `${words[place]} ${arrow} ${told.join(", ")}`;
}

/**
 * Two lines that light up one another.
 * @param {string[]} source  @param {string[]} target
 * @param {{target: number, source: number, weight: number}[]} links
 * @param {{onpoint?: (told: string) => void}} actions
 */
export function linked(source, target, links, {onpoint} = {}) {
  const words = {source, target};
  const lines = {};
  const point = (side, place) => {
    const other = side === "target" ? "source" : "target";
    lines[side].light(new Map(), place);
    lines[other].light(place === null ? new Map() : partners(links, side, place));
    onpoint?.(place === null ? "" : sentenceOf(links, side, place, words[side], words[other]));
  };
  for (const side of ["source", "target"]) {
    const other = side === "target" ? "source" : "target";
    const say = (place) => sentenceOf(links, side, place, words[side], words[other]);
    lines[side] = tokenLine(words[side], {
      label: side === "source" ? "Source" : "Translation",
      onpoint: (place) => point(side, place),
      say,
    });
  }
  return {source: lines.source.node, target: lines.target.node, point};
}
