// What a reader should know of a translation: words the run has never seen, how the text was read, warnings.

import {element} from "../../element.js";

/** @param {({unknown?: {word: string}[], read_as?: string, warning?: string} | undefined)[]} translations */
export function remarks(translations) {
  const known = translations.filter(Boolean);
  const words = [...new Set(known.flatMap(({unknown = []}) => unknown.map(({word}) => word)))];
  const readings = [...new Set(known.map((each) => each.read_as).filter(Boolean))];
  const warnings = [...new Set(known.flatMap(({unknown = [], warning}) => (warning && !onlyOf(warning, unknown) ? [warning] : [])))];
  const line = (...parts) => element("p", {class: "warning", dir: "auto"}, parts);
  return [
    words.length ? line(count(words), listed(words), " What it makes of ", words.length === 1 ? "it" : "them", " is a guess.") : null,
    ...warnings.map((warning) => line(warning)),
    readings.length ? line("Read as ", readings.map((reading) => element("q", {dir: "auto"}, reading))) : null,
  ].filter(Boolean);
}

/** Whether a warning says no more than which words are unknown: those of all sentences are counted together. */
const onlyOf = (warning, unknown) => unknown.length > 0 && /never seen/.test(warning) && !/[.!] ./.test(warning);

const count = (words) => (words.length === 1 ? "1 word this run has never seen: " : `${words.length} words this run has never seen: `);

function listed(words) {
  const shown = words.slice(0, 8);
  const more = words.length > shown.length ? ` and ${words.length - shown.length} more` : "";
  return [...shown.flatMap((word, place) => [place ? ", " : "", element("bdi", {}, word)]), `${more}.`];
}
