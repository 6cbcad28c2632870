// A text as its sentences, cut by the service, and translations of sentences that are remembered: what did not change
// is not asked again.

import {post} from "../../api.js";

const TOGETHER = 24; // sentences in one request: the first ones are shown while the others are on their way
const REMEMBERED = 1000;

/**
 * @typedef {{text: string, start: number, end: number}} Sentence  `start` and `end` are places in the text as
 *   JavaScript counts them
 */

const cuts = new Map(); // run and text → sentences
const cutKey = (text, run) => JSON.stringify([run, text]);

/** What is known already of where the sentences of a text are, or undefined. @returns {Sentence[] | undefined} */
export const recallCut = (text, run) => (text.trim() ? cuts.get(cutKey(text, run)) : []);

/**
 * Where the sentences of a text are, as a run reads it.
 * @param {string} text  @param {string} run  @param {{signal?: AbortSignal}} options  @returns {Promise<Sentence[]>}
 */
export async function cut(text, run, {signal} = {}) {
  const known = recallCut(text, run);
  if (known) return known;
  const {sentences} = await post("/api/v1/sentences", {text, run}, {signal});
  const at = unitsOf(text);
  const found = sentences.map(({start, end}) => ({
    start: at(start),
    end: at(end),
    text: text.slice(at(start), at(end)),
  }));
  cuts.set(cutKey(text, run), found);
  while (cuts.size > REMEMBERED) cuts.delete(cuts.keys().next().value);
  return found;
}

/**
 * The service counts characters, JavaScript counts halves of some of them (emoji, rare scripts): from one place to the
 * other.
 */
export function unitsOf(text) {
  const places = [0];
  for (const character of text) places.push(places.at(-1) + character.length);
  return (place) => places[Math.min(place, places.length - 1)];
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
      {run: asked.run, texts, beam: asked.beam, best, doubt: true, omitted: true},
      {signal},
    );
    translations.forEach((translation, place) => remembered.set(keyOf(asked, texts[place]), translation));
    onprogress(milliseconds);
  }
  while (remembered.size > REMEMBERED) remembered.delete(remembered.keys().next().value);
}
