// What if: edits as data. They live in the address as JSON, so that a link shares them and back undoes them.
// All count from 0. Replacements come first, in order; the others count the words of the sentence that results.

import {unspaced} from "../../pieces/script.js";
import {isVectors} from "../../pieces/vectors.js";
import {attentionName, legible} from "./view.js";

const OF_A_WORD = ["mask-word", "force-head"];
const OF_THE_MODEL = ["mute-head", "no-positions", "no-scale"];

/** @returns {object[]} none, if the address holds something else */
export function editsOf(values) {
  try {
    const found = JSON.parse(values.edits || "[]");
    return Array.isArray(found) ? found.filter((edit) => edit && typeof edit === "object") : [];
  } catch {
    return [];
  }
}

export const written = (edits) => (edits.length ? JSON.stringify(edits) : "");

/** Those that still make sense with another sentence. */
export const lasting = (edits) => edits.filter((edit) => OF_THE_MODEL.includes(edit.kind));

export const wordsOf = (text) => text.split(/\s+/).filter(Boolean);

/**
 * The words of the sentence after the replacements; of vectors, and in a script without spaces, those of its trace.
 * @param {string} text
 * @param {any[]} edits
 * @param {{source: {words: string[]}}} [trace]
 */
export function wordsAfter(text, edits, trace) {
  if (trace && isVectors(text)) return trace.source.words; // a sentence in brackets too: its trace has them replaced
  const words = wordsOf(text);
  for (const edit of edits) if (edit.kind === "replace-word") words.splice(edit.word, 1, ...wordsOf(edit.by ?? ""));
  return apart(text, words, trace) ?? words;
}

/** The pieces of a trace where no spaces set its words apart. */
function apart(text, words, trace) {
  return trace && unspaced(text) && trace.source.words.length > words.length ? trace.source.words : null;
}

/**
 * Which words of that sentence were edited, and how: place → "masked" or "replaced".
 * @param {string} text
 * @param {any[]} edits
 * @param {{source: {words: string[]}}} [trace]
 */
export function editedWords(text, edits, trace) {
  let words = wordsOf(text).map(() => "");
  for (const edit of edits)
    if (edit.kind === "replace-word") words.splice(edit.word, 1, ...wordsOf(edit.by ?? "").map(() => "replaced"));
  words = apart(text, words, trace)?.map(() => "") ?? words;
  for (const edit of edits) if (edit.kind === "mask-word" && edit.word in words) words[edit.word] = "masked";
  return new Map(words.map((kind, place) => [place, kind]).filter(([, kind]) => kind));
}

/** With others: each takes the place of one like it, and those behind a replaced word move with their words. */
export function added(edits, ...others) {
  let found = [...edits];
  for (const edit of others) {
    found = found.filter((old) => slot(old) !== slot(edit));
    if (edit.kind === "replace-word") found = moved(found, edit.word, wordsOf(edit.by).length - 1);
    found.push(edit);
  }
  return found;
}

/** Without some: taken back, a replacement lets the others return to where they were. */
export function removed(edits, some) {
  let found = [...edits];
  for (const place of some.map((edit) => edits.indexOf(edit)).sort((one, other) => other - one)) {
    const edit = found[place];
    const by = edit.kind === "replace-word" ? 1 - wordsOf(edit.by).length : 0;
    const later = moved(found.slice(place + 1), edit.word, by, [...OF_A_WORD, "replace-word"]);
    found = [...moved(found.slice(0, place), edit.word, by), ...later];
  }
  return found;
}

function moved(edits, behind, by, kinds = OF_A_WORD) {
  return edits.map((edit) =>
    by && kinds.includes(edit.kind) && edit.word > behind ? {...edit, word: edit.word + by} : edit,
  );
}

/** Two edits with the same slot cannot both be meant. */
function slot({kind, ...rest}) {
  const own = {
    "mask-word": ["word"],
    "set-row": ["attention", "head", "row"],
    "mute-head": ["attention", "head"],
    "force-head": ["attention", "head"],
    "no-positions": ["side"],
    "no-scale": ["attention"],
    "force-prefix": [],
  }[kind];
  return own ? JSON.stringify([kind, ...own.map((name) => rest[name])]) : {}; // a replacement is like no other
}

/** Alike but for their head: one chip. @returns {object[][]} */
export function grouped(edits) {
  const groups = new Map();
  edits.forEach((edit, place) => {
    const {head, ...rest} = edit;
    const key = head === undefined ? place : JSON.stringify(rest);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(edit);
  });
  return [...groups.values()];
}

/** A few words for one or several alike. `trace` is that of the sentence under the edits, where it is there. */
export function describe(group, {text, edits, trace}) {
  const [edit] = group;
  const words = wordsAfter(text, edits, trace);
  const word = `“${words[edit.word] ?? `word ${edit.word + 1}`}”`;
  const heads = group.length > 1 ? `${group.length} heads` : `head ${edit.head + 1}`;
  const where = edit.attention ? attentionName(String(edit.attention)) : "";
  switch (edit.kind) {
    case "replace-word": {
      const before = wordsAfter(text, edits.slice(0, edits.indexOf(edit)))[edit.word] ?? `word ${edit.word + 1}`;
      return edit.by ? `“${before}” → “${edit.by}”` : `without “${before}”`;
    }
    case "mask-word":
      return `${word} masked`;
    case "force-prefix":
      return `begins with “${edit.prefix}”`;
    case "set-row":
      return `row “${rowLabel(edit, trace)}” set by hand: ${where}, ${heads}`;
    case "mute-head":
      return `${where}: ${heads} muted`;
    case "force-head":
      return `${where}: ${heads} at ${word}`;
    case "no-positions":
      return `no positions in the ${edit.side ?? "encoder"}`;
    case "no-scale":
      return `${where}: not ÷ √d`;
    default:
      return String(edit.kind);
  }
}

function rowLabel({attention, row}, trace) {
  const side = String(attention).startsWith("encoder") ? trace?.source : trace?.target;
  return legible(side?.pieces[row] ?? String(row + 1));
}

/** Weights that sum to 1 in as few digits as a link needs; what rounding leaves goes to the largest. */
export function distribution(weights) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const shares = weights.map((weight) => Math.round((1e4 * weight) / total));
  const largest = shares.indexOf(Math.max(...shares));
  shares[largest] += 1e4 - shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / 1e4);
}
