// What a reader should know of a translation: words the run has never seen, how the text was read, warnings.

import {element} from "../../element.js";

const OF_UNKNOWN = /^\d+ words? this run has never seen/; // these are counted over all sentences
const PARTS = /; (?![^(]*\))/; // one after another, but not within brackets
const LEFT_OUT = /^left out: /;

/** @param {({unknown?: {word: string}[], read_as?: string, warning?: string} | undefined)[]} translations */
export function remarks(translations) {
  const known = translations.filter((each) => each !== undefined);
  const words = [...new Set(known.flatMap(({unknown = []}) => unknown.map(({word}) => word)))];
  const readings = [...new Set(known.map((each) => each.read_as).filter(Boolean))];
  const parts = [...new Set(known.flatMap(({warning}) => (warning ? warning.split(PARTS) : [])))];
  const others = parts.filter((part) => !words.length || !(OF_UNKNOWN.test(part) || LEFT_OUT.test(part)));
  const lost = words.length
    ? parts.filter((part) => LEFT_OUT.test(part)).map((part) => part.replace(LEFT_OUT, ""))
    : [];
  const line = (...children) => element("p", {class: "warning", dir: "auto"}, children);
  return [
    words.length ? line(count(words), listed(words), lost.length ? ` Left out: ${lost.join(", ")}.` : "") : null,
    ...others.map((part) => line(sentence(part))),
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
  return [...shown.flatMap((word, place) => [place ? ", " : "", element("bdi", {}, word)]), `${more}.`];
}
