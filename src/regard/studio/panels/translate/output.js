// What one run makes of a text: its sentences, word by word, with what stands between them in the text.

import {element} from "../../element.js";
import {copyButton} from "../../pieces/forms.js";
import {skeleton} from "../../pieces/skeleton.js";
import {percent} from "../../pieces/scales.js";
import {partners, rangesOf, sentenceOf, tokenLine} from "../../pieces/tokens.js";
import {alternatives} from "./alternatives.js";
import {markDoubtful, remarks} from "./remarks.js";
import {unspaced} from "../../pieces/script.js";

/** What is between two outputs whose sentences had nothing between them, as in Chinese: a space, if both have such. */
const apart = (before, after) =>
  before && after && !unspaced(before.at(-1) + after[0]) && /\S$/.test(before) ? " " : "";

/**
 * @typedef {{source: string, source_words: string[], outputs: any[], aligner: string, warning: string,
 *   unknown: {word: string}[], read_as: string}} Translation
 * @param {{head: Node, onpoint: (sentence: number, target: number | null) => void,
 *   onpick: (sentence: number, rank: number) => void}} options  `head`: what stands above it
 */
export function outputPane({head, onpoint, onpick}) {
  const time = element("span.note.number.time", {role: "status"});
  const text = element("div.written", {dir: "auto", "aria-busy": "false"});
  const notes = element("div.notes");
  const others = element("section.card.others", {hidden: true});
  let lines = []; // by sentence: {light, translation, output} once it is known
  let between = []; // what stands before, between and after them
  const copied = () => between.map((kept, place) => kept + (lines[place]?.output?.text ?? "")).join("");
  const node = element(
    "section.card.pane.output",
    {"aria-label": "Translation"},
    element("div.row", head, time, element("span.push"), copyButton(copied)),
    text,
    notes,
  );

  const lineOf = (place, translation, rank) => {
    if (!translation) return {node: element("span.pending"), light: () => {}};
    const output = translation.outputs[Math.min(rank, translation.outputs.length - 1)];
    const say = (target) => sentenceOf(output.links, "target", target, output.words, translation.source_words);
    const shown = tokenLine(output.words, {
      tag: "span",
      text: output.text,
      label: output.text,
      onpoint: (target) => onpoint(place, target),
      say,
    });
    markDoubtful(shown.node, output.doubt);
    return {translation, rank, output, ...shown};
  };

  return {
    node,
    others,
    get text() {
      return copied();
    },
    /**
     * @param {{run: import("../../pieces/runs.js").Run, sentences: object[], between: string[],
     *   translations: (Translation | undefined)[], picks: Map<number, number>, busy: boolean}} found
     */
    show({run, sentences, between: kept, translations, picks, busy}) {
      node.setAttribute("aria-label", `Translation by ${run.name}`);
      others.setAttribute("aria-label", `Best outputs of ${run.name}`);
      text.setAttribute("aria-busy", busy);
      text.classList.remove("old");
      time.classList.toggle("working", busy);
      if (busy) time.textContent = "translating…";
      lines = sentences.map((_, place) => {
        const [rank, before] = [picks.get(place) ?? 0, lines[place]];
        const same = before?.translation && before.translation === translations[place] && before.rank === rank;
        // a long text is not built anew for each letter
        return same ? before : lineOf(place, translations[place], rank);
      });
      between = kept.map((gap, place) => gap || apart(lines[place - 1]?.output?.text, lines[place]?.output?.text));
      text.replaceChildren(...between.flatMap((each, place) => [each, lines[place]?.node ?? ""]));
      notes.replaceChildren(...remarks(translations));
    },
    /** While nothing is known yet of what was asked: the old output in grey, or a placeholder. */
    stale() {
      text.setAttribute("aria-busy", "true");
      text.classList.add("old");
      time.classList.add("working");
      time.textContent = "translating…";
      if (!text.childNodes.length) text.replaceChildren(skeleton("lines", 2));
    },
    time(milliseconds) {
      time.classList.remove("working");
      time.textContent =
        milliseconds === null
          ? ""
          : milliseconds < 1000
            ? `${Math.max(1, Math.round(milliseconds))} ms`
            : `${(milliseconds / 1000).toFixed(1)} s`;
    },
    problem(...nodes) {
      text.setAttribute("aria-busy", "false");
      text.querySelector(".skeleton")?.remove(); // nothing is on its way
      this.time(null);
      notes.replaceChildren(...nodes);
    },
    /** The word of a sentence whose link is strongest, among the longer ones: what an example is shown with. */
    telling(sentence) {
      const {output} = lines[sentence] ?? {};
      const length = ({target}) => Math.min(6, output.words[target].length);
      return (
        output?.links.reduce((best, link) => (!best || length(link) > length(best) ? link : best), null)?.target ?? null
      );
    },
    /** Of a word of the output: what lights in the source, as start of a word → weight, and a line about it. */
    linksOf(sentence, target) {
      const {translation, output} = lines[sentence] ?? {};
      if (!output) return {weights: new Map(), words: null};
      const ranges = rangesOf(translation.source, translation.source_words);
      const weights = new Map();
      for (const [place, weight] of partners(output.links, "target", target)) weights.set(ranges[place]?.[0], weight);
      return {
        weights,
        words: told(output.links, "target", target, output.words, translation.source_words),
      };
    },
    /** Light what a word of the source led to. */
    lightFrom(sentence, start) {
      lines.forEach((line) => line.light(new Map()));
      const {translation, output, light} = lines[sentence] ?? {};
      if (!output || start === null) return null;
      const place = rangesOf(translation.source, translation.source_words).findIndex((range) => range?.[0] === start);
      light(partners(output.links, "source", place));
      if (place < 0) return null;
      return {words: told(output.links, "source", place, translation.source_words, output.words)};
    },
    lightOwn: (sentence, target) =>
      lines.forEach((line, place) => line.light(new Map(), place === sentence ? target : null)),
    /** What else there was for a sentence. */
    alternatives(run, sentence, picked) {
      const {translation} = lines[sentence] ?? {};
      others.hidden = !translation;
      if (!translation) return;
      const pick = (rank) => onpick(sentence, rank);
      others.replaceChildren(...alternatives(run, translation, picked, pick, lines.length > 1));
    },
  };
}

/** "chat ← cat 95 %"; each word by itself, so that two directions of writing do not mix. */
function told(links, side, place, words, others) {
  const found = [...partners(links, side, place)].sort((one, other) => other[1] - one[1]);
  const word = (text) => element("bdi", text);
  if (!links.length) return null; // there is no attention to tell of
  if (!found.length) return [word(words[place]), side === "target" ? " ← nothing" : " → nothing"];
  const parts = found.flatMap(([other, weight], number) => [
    number ? ", " : "",
    word(others[other]),
    ` ${percent(weight)}`,
  ]);
  return [word(words[place]), side === "target" ? " ← " : " → ", ...parts];
}
