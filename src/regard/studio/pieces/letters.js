// Text on canvases and in SVG: which way it runs, how much of it fits.

const LEFT = /[\u0591-\u07ff\u0860-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const DIRECTED = /\p{L}/u;
const segmenter = new Intl.Segmenter(undefined, {granularity: "grapheme"});

const JOINER = /￭/g; // before a piece that had no space before it; few fonts have it
const TIE = "‿";

/** A piece in signs that fonts have. */
export const legible = (piece) => piece.replace(JOINER, TIE);

const CASES = {"⇧": "the next word has a capital letter", "⇪": "the next word is in capital letters"};

/** What a piece that is no letter stands for: a mark of case before a word; of all others, nothing. */
export const meaningOf = (piece) => CASES[piece.replace(JOINER, "").replace(TIE, "")] ?? "";

/** A piece with what it stands for, where it is no letter. */
export const explained = (piece) => (meaningOf(piece) ? `${piece} (${meaningOf(piece)})` : piece);

/** Whether the first letter that has a direction runs to the left. */
export function rightToLeft(text) {
  const first = DIRECTED.exec(text);
  return first !== null && LEFT.test(first[0]);
}

/** What a reader sees as one letter: with its marks, joined signs and all. */
export const graphemes = (text) => Array.from(segmenter.segment(text), ({segment}) => segment);

/** A text that fits, with an ellipsis where its end had to go. `measure(text)` is its width. */
export function shortened(text, width, measure) {
  if (measure(text) <= width) return text;
  const kept = graphemes(text);
  while (kept.length > 1 && measure(`${kept.join("")}…`) > width) kept.pop();
  return `${kept.join("").trimEnd()}…`;
}

let context;
export const FACE = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif';

/** How wide a text is in the studio's typeface, in pixels. */
export function extent(text, size = 12, weight = 400) {
  context ??= document.createElement("canvas").getContext("2d");
  context.font = `${weight} ${size}px ${FACE}`;
  return context.measureText(text).width;
}
