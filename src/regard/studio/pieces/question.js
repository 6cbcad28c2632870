// What a page is asked, folded to one line once it is asked, so that the answer is seen first; and what is said of a
// text before its answer: its sentences to choose from, words that the run has never seen, warnings.

import {element} from "../element.js";
import {called, isVectors} from "./vectors.js";

/**
 * A form that folds. `fold(…parts)` shows one line with a button that unfolds it; `unfold()` shows the form.
 * @param {HTMLElement} form
 * @returns {HTMLElement & {fold: (...parts: (Node | string)[]) => void, unfold: () => void, folded: boolean}}
 */
export function folding(form) {
  const edit = element("button.small", {"data-unfold": "", onclick: () => begin()}, "Edit");
  const told = element("div.told");
  const line = element("div.question-line.controls", {hidden: true}, told, edit);
  const node = element("div.question-fold", line, form);
  const begin = () => {
    node.unfold();
    const first = form.querySelector("textarea, input[type=text], select");
    /** @type {HTMLElement | null} */ (first)?.focus();
  };
  node.unfold = () => {
    [line.hidden, form.hidden] = [true, false];
    node.dispatchEvent(new CustomEvent("fold", {bubbles: true}));
  };
  node.fold = (...parts) => {
    told.replaceChildren(...parts.filter(Boolean));
    if (form.hidden) return;
    const held = form.contains(document.activeElement);
    [line.hidden, form.hidden] = [false, true];
    if (held) edit.focus({preventScroll: true});
  };
  return Object.defineProperty(node, "folded", {get: () => form.hidden});
}

/** A text for a field of one line, which would join the words around a line's end. */
export const oneLine = (text) => text.replace(/\s+/g, " ");

/** The parts of that line: which run, and the text. */
export const saidRun = (name) => element("span.chip", element("bdi", name));
export const saidText = (text) =>
  isVectors(text)
    ? element("span.said", called(text))
    : element("span.said", {dir: "auto", title: text}, oneLine(text));

/**
 * The sentences of a text, as buttons; one of them is looked at. Hidden where there is only one.
 * @param {(place: number) => void} onpick
 * @returns {HTMLElement & {show: (sentences: {text: string}[] | undefined, place: number) => void}}
 */
export function sentenceChoice(onpick) {
  const node = element("div.sentence-choice", {role: "group", "aria-label": "Which sentence", hidden: true});
  let shown = "";
  node.show = (sentences = [], place = 0) => {
    node.hidden = sentences.length < 2;
    const key = JSON.stringify(sentences.map(({text}) => text));
    if (key !== shown) {
      shown = key;
      const button = ({text}, number) =>
        element(
          "button.small",
          {title: text, onclick: () => onpick(number)},
          element("span.count", {"aria-hidden": "true"}, number + 1),
          element("span.said", {dir: "auto"}, text),
        );
      node.replaceChildren(...sentences.map(button));
    }
    [...node.children].forEach((button, number) => button.setAttribute("aria-pressed", String(number === place)));
  };
  return node;
}

/** The sentence that an answer is about, as it was cut; without a list, the whole text. */
export const sentenceOf = (answer, text, place) => answer?.sentences?.[place]?.text ?? text;

/** Which sentence the address names; the first, if it names none. */
export const placeOf = (values) => Math.max(0, Math.trunc(Number(values.sentence)) || 0);

/** Of a body that is sent: the sentence, where it is not the first. */
export const chosenSentence = (place) => (place ? {sentence: place} : {});

/** What the service warns of; where it only names words, that the run has never seen them. */
export function remarks({unknown = [], warning = ""} = {}) {
  const words = [...new Set(unknown.map(({word}) => word))];
  const few =
    words.length === 1
      ? "1 word that this run has never seen: "
      : `${words.length} words that this run has never seen: `;
  const said =
    warning ||
    (words.length
      ? `${few}${words.join(", ")}. What it makes of ${words.length === 1 ? "it" : "them"} is a guess.`
      : "");
  return said ? [element("p.warning", {role: "status", dir: "auto"}, said)] : [];
}

export const AROUND = /^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu; // marks around a word
export const bare = (word) => word.replace(AROUND, "") || word;

/** A wavy line under the words of a line that the run has never seen. */
export function markUnknown(line, unknown = []) {
  const words = new Set(unknown.flatMap(({word}) => [word, bare(word)]));
  for (const span of line.querySelectorAll(".word, .token")) {
    const strange = words.has(span.textContent) || words.has(bare(span.textContent));
    span.classList.toggle("unknown", strange);
    if (strange) span.title = "This run has never seen this word";
  }
}
