// What the words of the field mean, in a sentence each: docs/glossary.md, for the help and for those who point at a word.

import {element} from "../element.js";
import {TERMS} from "./words.js";

/** @type {Record<string, string>} */
export const WORDS = Object.fromEntries(TERMS);
const known = new Map(TERMS.map(([word, meaning]) => [word.toLowerCase(), meaning]));

/** A word of the list, with what it means for those who point at it. */
export const term = (word, shown = word) =>
  WORDS[word] ? element("abbr", {title: WORDS[word]}, shown) : element("span", shown);

/** The name of a control: explained, if the list has it. @returns {Node | string} */
export function named(label) {
  const meaning = known.get(label.toLowerCase());
  return meaning ? element("abbr", {title: meaning}, label) : label;
}
