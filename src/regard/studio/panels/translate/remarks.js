// What a reader should know of a translation: words the run has never seen, how the text was read, warnings, doubt.

import {element} from "../../element.js";
import {percent} from "../../pieces/scales.js";

const DOUBTFUL = 0.5; // of how many translations like this one more than half were bad
const DOUBTS = 3; // sentences that are named

const OF_UNKNOWN = /^\d+ words? this run has never seen/; // these are counted over all sentences
const AS_IT_IS = /^no word of this sentence was in the training text/;
const PARTS = /; (?![^(]*\))/; // one after another, but not within brackets
const LEFT_OUT = /^left out: /;

/**
 * A dotted line under the words of an output that the model found improbable.
 * @param {HTMLElement} line  @param {{words: {place: number, probability: number}[]} | null | undefined} doubt
 */
export function markDoubtful(line, doubt) {
  const words = new Map((doubt?.words ?? []).map(({place, probability}) => [place, probability]));
  for (const span of /** @type {NodeListOf<HTMLElement>} */ (line.querySelectorAll(".word"))) {
    const probability = words.get(Number(span.dataset.place));
    span.classList.toggle("doubtful", probability !== undefined);
    if (probability !== undefined) span.title = `The model gave this word ${percent(probability)}`;
  }
}

/** Of sentences that are more likely bad than not, the most doubtful: how sure that is, and why. */
function doubtful(translations) {
  const found = translations
    .map(({source, outputs}) => ({source, doubt: outputs?.[0]?.doubt}))
    .filter(({doubt}) => doubt && doubt.value !== null && doubt.value >= DOUBTFUL)
    .sort((one, other) => other.doubt.value - one.doubt.value);
  const told = found.slice(0, DOUBTS).map(({source, doubt}) => {
    const which = translations.length > 1 ? [" of ", element("q", {dir: "auto"}, source)] : [];
    const why = doubt.reasons.length ? `: ${doubt.reasons.join("; ")}.` : ".";
    return ["Doubtful translation", ...which, ` (${percent(doubt.value)})${why}`];
  });
  const more = found.length - told.length;
  return more ? [...told, [`${more} more ${more === 1 ? "sentence is" : "sentences are"} doubtful.`]] : told;
}

/**
 * @param {({source?: string, outputs?: any[], unknown?: {word: string}[], omitted?: {word: string}[],
 *   read_as?: string, warning?: string} | undefined)[]} translations
 */
export function remarks(translations) {
  const known = translations.filter((each) => each !== undefined);
  const told = known.length === 1 && AS_IT_IS.test(known[0].warning ?? ""); // then all its words are unknown
  const words = told ? [] : [...new Set(known.flatMap(({unknown = []}) => unknown.map(({word}) => word)))];
  const omitted = [...new Set(known.flatMap((each) => (each.omitted ?? []).map(({word}) => word)))];
  const readings = [...new Set(known.map((each) => each.read_as).filter(Boolean))];
  const parts = [...new Set(known.flatMap(({warning}) => (warning ? warning.split(PARTS) : [])))];
  const others = parts.filter((part) => !words.length || !(OF_UNKNOWN.test(part) || LEFT_OUT.test(part)));
  const lost = words.length
    ? parts.filter((part) => LEFT_OUT.test(part)).map((part) => part.replace(LEFT_OUT, ""))
    : [];
  const line = (...children) => element("p.warning", {dir: "auto"}, children);
  return [
    words.length ? line(count(words), listed(words), lost.length ? ` Left out: ${lost.join(", ")}.` : "") : null,
    ...others.map((part) => line(sentence(part))),
    omitted.length ? line("The translation seems to leave out: ", listed(omitted)) : null,
    ...doubtful(known).map((about) => line(...about)),
    readings.length
      ? line(
          "Read as ",
          readings.map((reading) => element("q", {dir: "auto"}, reading)),
        )
      : null,
  ].filter(Boolean);
}

const sentence = (part) => `${part[0].toUpperCase()}${part.slice(1)}${/[.!?]$/.test(part) ? "" : "."}`;
const count = (words) =>
  words.length === 1 ? "1 word this run has never seen: " : `${words.length} words this run has never seen: `;

function listed(words) {
  const shown = words.slice(0, 8);
  const more = words.length > shown.length ? ` and ${words.length - shown.length} more` : "";
  return [...shown.flatMap((word, place) => [place ? ", " : "", element("bdi", word)]), `${more}.`];
}
