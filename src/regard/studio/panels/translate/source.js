// A field to write in whose words light up. Behind the field lies the same text, letter upon letter, and it is the
// words of that one that are painted; the pointer and the caret say which word is meant.

import {element} from "../../element.js";
import {paint, rangesOf} from "../../pieces/tokens.js";

/** @typedef {{kind: string, start: number, end: number}} Mark  a word with a line under it: unknown or omitted */

/**
 * @param {{onwrite: (text: string) => void, onpoint: (place: {sentence: number, word: number,
 *   start: number} | null) => void}} options  `start`: where the word begins in its sentence
 */
export function sourceField({onwrite, onpoint}) {
  const mirror = element("div.mirror", {"aria-hidden": "true", dir: "auto"});
  const area = element("textarea", {
    "aria-label": "Text to translate",
    placeholder: "Write something…",
    dir: "auto",
    spellcheck: "false",
    rows: 3,
    autocapitalize: "off",
  });
  const node = element("div.source-field", mirror, area);
  let spans = []; // {sentence, word, start, end, node}
  let lit = [];
  let pointed = null;

  const tell = (found) => {
    if (found === pointed) return;
    pointed = found;
    onpoint(found ? {sentence: found.sentence, word: found.word, start: found.start - found.from} : null);
  };
  const atCaret = () =>
    spans.find(({start, end}) => area.selectionStart >= start && area.selectionStart <= end) ?? null;
  const moved = () => document.activeElement === area && tell(atCaret());
  area.addEventListener("input", () => onwrite(area.value));
  area.addEventListener("pointermove", ({clientX, clientY}) => {
    const under = /** @type {HTMLElement[]} */ (document.elementsFromPoint(clientX, clientY));
    const word = under.find((each) => each.parentNode === mirror && each.dataset.number);
    tell(word ? spans[Number(word.dataset.number)] : null);
  });
  area.addEventListener("pointerleave", () => tell(document.activeElement === area ? atCaret() : null));
  area.addEventListener("blur", () => tell(null));
  document.addEventListener("selectionchange", moved);

  return {
    node,
    area,
    get text() {
      return area.value;
    },
    set text(text) {
      if (area.value !== text) area.value = text;
    },
    /**
     * Lay the words behind the field; `marks` are the words that the run has never seen or that its output seems to leave
     * out, by their places in the sentence.
     * @param {{text: string, start: number, words: string[], marks: Mark[]}[]} sentences
     */
    spread(sentences) {
      spans = spansOf(sentences);
      [lit, pointed] = [[], null];
      mirror.replaceChildren(...behind(area.value, spans));
    },
    /** Light words of a sentence by where they stand in it: Map of start → weight. */
    light(sentence, weights, own = null) {
      lit.forEach((span) => paint(span.node));
      lit = spans.filter((span) => span.sentence === sentence);
      lit.forEach((span) => paint(span.node, weights.get(span.start - span.from), span.word === own));
    },
    leave: () => document.removeEventListener("selectionchange", moved),
  };
}

function spansOf(sentences) {
  const found = [];
  sentences.forEach(({text, start: from, words, marks}, sentence) => {
    rangesOf(text, words).forEach((range, word) => {
      if (!range) return;
      const node = element("span.word", {"data-number": found.length}, marked(text, range, marks));
      found.push({sentence, word, from, start: from + range[0], end: from + range[1], node});
    });
  });
  return found;
}

/**
 * A word with a line under what is unknown or left out of it: often it is the word without its full stop.
 * @param {string} text  @param {[number, number]} range  @param {Mark[]} marks
 */
function marked(text, [from, to], marks) {
  const parts = [];
  let place = from;
  const inside = marks.filter(({start, end}) => start < to && end > from);
  for (const {kind, start, end} of inside.sort((one, other) => one.start - other.start)) {
    const [left, right] = [Math.max(start, place), Math.min(end, to)];
    if (left >= right) continue;
    parts.push(text.slice(place, left), element(`i.${kind}`, text.slice(left, right)));
    place = right;
  }
  return [...parts, text.slice(place, to)];
}

/** The text in pieces: words, and what stands between them. */
function behind(text, spans) {
  const parts = [];
  let from = 0;
  for (const {start, end, node} of spans) {
    parts.push(text.slice(from, start), node);
    from = end;
  }
  return [...parts, text.slice(from), "\u200b"]; // the last one gives a last, empty line its height
}
