// A text as its sentences, and translations of sentences that are remembered: what did not change is not asked again.

import {post} from "../../api.js";

const TOGETHER = 24; // sentences in one request: the first ones are shown while the others are on their way
const REMEMBERED = 1000;

/**
 * @typedef {{text: string, start: number, line: number}} Sentence
 * @param {string} text  @param {string} [language]
 * @returns {Sentence[]} without the space around them; `line` counts the lines of the text
 */
export function sentencesOf(text, language) {
  const split = text === text.toLowerCase() ? plainly : carefully(language);
  const found = [];
  let offset = 0;
  text.split("\n").forEach((line, number) => {
    for (const {segment, index} of split(line)) {
      const trimmed = segment.trim();
      if (trimmed) found.push({text: trimmed, start: offset + index + segment.indexOf(trimmed), line: number});
    }
    offset += line.length + 1;
  });
  return found;
}

/** As Unicode has it: a full stop before a small letter may be that of an abbreviation. */
function carefully(language) {
  const segmenter = new Intl.Segmenter(language || undefined, {granularity: "sentence"});
  return (line) => segmenter.segment(line);
}

/** Where all letters are small, or have no size, only the signs can tell. */
function plainly(line) {
  const found = line.matchAll(/.+?(?:[.!?…।؟。！？]+(?=\s|$)|$)/gu);
  return Array.from(found, ({0: segment, index}) => ({segment, index}));
}

const remembered = new Map();
const keyOf = ({run, beam}, text) => JSON.stringify([run, beam, text]);

/** What is known already, or undefined. */
export const recall = (asked, text) => remembered.get(keyOf(asked, text));

/**
 * Ask for all sentences that are not known yet, some at a time, and tell of progress after each answer.
 * @param {{run: string, beam: number}} asked  @param {Sentence[]} sentences
 * @param {{signal: AbortSignal, onprogress: (milliseconds: number) => void}} options
 */
export async function translateAll(asked, sentences, {signal, onprogress}) {
  const unknown = [...new Set(sentences.map(({text}) => text))].filter((text) => !recall(asked, text));
  for (let start = 0; start < unknown.length; start += TOGETHER) {
    const texts = unknown.slice(start, start + TOGETHER);
    const best = Math.min(asked.beam, 5);
    const {translations, milliseconds} = await post(
      "/api/v1/translate",
      {run: asked.run, texts, beam: asked.beam, best},
      {signal},
    );
    translations.forEach((translation, place) => remembered.set(keyOf(asked, texts[place]), translation));
    onprogress(milliseconds);
  }
  while (remembered.size > REMEMBERED) remembered.delete(remembered.keys().next().value);
}
