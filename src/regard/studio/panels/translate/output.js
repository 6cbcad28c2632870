// What one run makes of a text: its sentences, word by word, and what else it thought of for one of them.

import {link} from "../../address.js";
import {element} from "../../element.js";
import {copyButton} from "../../pieces/forms.js";
import {skeleton} from "../../pieces/skeleton.js";
import {number} from "../../pieces/scales.js";
import {partners, rangesOf, sentenceOf, tokenLine} from "../../pieces/tokens.js";

/**
 * @typedef {{source: string, source_words: string[], outputs: object[], aligner: string, warning: string}} Translation
 * @param {{onpoint: (sentence: number, target: number | null) => void,
 *   onpick: (sentence: number, rank: number) => void}} options
 */
export function outputPane({onpoint, onpick}) {
  const title = element("h2", {class: "pane-title"});
  const time = element("span", {class: "note number"});
  const text = element("div", {class: "written", dir: "auto", "aria-busy": "false"});
  const notes = element("div", {class: "notes"});
  const others = element("section", {class: "card others", "aria-label": "What else it found", hidden: true});
  let lines = []; // by sentence: {light, translation, output} once it is known
  const copied = () => byLine(lines).map((line) => line.map(({output}) => output?.text ?? "").join(" ")).join("\n");
  const node = element(
    "section",
    {class: "card pane output", "aria-label": "Translation"},
    element("div", {class: "row"}, title, time, element("span", {class: "push"}), copyButton(copied)),
    text,
    notes,
  );

  const lineOf = (sentence, place, translation, rank) => {
    if (!translation) return {line: sentence.line, node: element("span", {class: "pending"}), light: () => {}};
    const output = translation.outputs[Math.min(rank, translation.outputs.length - 1)];
    const say = (target) => sentenceOf(output.links, "target", target, output.words, translation.source_words);
    const shown = tokenLine(
      output.words,
      {tag: "span", text: output.text, label: output.text, onpoint: (target) => onpoint(place, target), say},
    );
    return {line: sentence.line, translation, rank, output, ...shown};
  };

  return {
    node,
    others,
    /**
     * @param {{run: object, sentences: object[], translations: (Translation | undefined)[],
     *   picks: Map<number, number>, busy: boolean}} found
     */
    show({run, sentences, translations, picks, busy}) {
      title.textContent = run.name;
      node.setAttribute("aria-label", `Translation by ${run.name}`);
      text.setAttribute("aria-busy", busy);
      lines = sentences.map((sentence, place) => {
        const [rank, before] = [picks.get(place) ?? 0, lines[place]];
        if (before?.translation && before.translation === translations[place] && before.rank === rank) {
          return {...before, line: sentence.line}; // as it was: a long text is not built anew for each letter
        }
        return lineOf(sentence, place, translations[place], rank);
      });
      const paragraph = (line) => element("p", {dir: "auto"}, line.map(({node: span}) => [span, " "]));
      text.replaceChildren(...byLine(lines).map(paragraph));
      const warnings = [...new Set(translations.map((each) => each?.warning).filter(Boolean))];
      notes.replaceChildren(...warnings.map((warning) => element("p", {class: "warning"}, warning)));
    },
    /** While nothing is known yet of what was asked: what was there, a little paler, or the shape of it. */
    stale(run) {
      title.textContent = run.name;
      text.setAttribute("aria-busy", "true");
      if (!text.childNodes.length) text.replaceChildren(skeleton("lines", 2));
    },
    time(milliseconds) {
      time.textContent = milliseconds === null ? "" : `${Math.max(1, Math.round(milliseconds))} ms`;
    },
    problem(...nodes) {
      notes.replaceChildren(...nodes);
    },
    /** Of a word of the output: what lights in the source, as start of a word → weight, and a line about it. */
    linksOf(sentence, target) {
      const {translation, output} = lines[sentence] ?? {};
      if (!output) return {weights: new Map(), words: ""};
      const ranges = rangesOf(translation.source, translation.source_words);
      const found = [...partners(output.links, "target", target)].map(
        ([place, weight]) => [ranges[place]?.[0], weight],
      );
      return {
        weights: new Map(found),
        words: sentenceOf(output.links, "target", target, output.words, translation.source_words),
        aligner: output.links.length ? translation.aligner : "",
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
      return {
        words: sentenceOf(output.links, "source", place, translation.source_words, output.words),
        aligner: output.links.length ? translation.aligner : "",
      };
    },
    lightOwn: (sentence, target) => lines.forEach(
      (line, place) => line.light(new Map(), place === sentence ? target : null),
    ),
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

/** Sentences of one line of the text together; a line without any is an empty list. */
function byLine(sentences) {
  const found = [];
  for (const sentence of sentences) (found[sentence.line] ??= []).push(sentence);
  return Array.from(found, (line) => line ?? []);
}

function alternatives(run, {source, outputs}, picked, onpick, several) {
  const items = outputs.map((output, rank) => {
    const chosen = rank === Math.min(picked, outputs.length - 1);
    const scores = `${number(output.log_probability)} · ${number(output.score)}`;
    return element(
      "li",
      {},
      element(
        "button",
        {type: "button", class: "alternative", "aria-pressed": String(chosen), onclick: () => onpick(rank)},
        element("span", {class: "rank number"}, rank + 1),
        element("span", {class: "words", dir: "auto"}, output.text || "(nothing)"),
        element("span", {class: "note number"}, scores),
      ),
    );
  });
  const deeper = {run: run.name, text: source};
  return [
    element(
      "h2",
      {},
      outputs.length > 1 ? `The best that ${run.name} found` : `All that ${run.name} found`,
      several ? element("span", {class: "note", dir: "auto"}, ` for “${source}”`) : null,
    ),
    element("ol", {class: "alternatives"}, items),
    element(
      "p",
      {class: "note"},
      "Log-probability · the same, normalised for length. ",
      element("a", {href: link("beam", deeper)}, "How it searched"),
      " · ",
      element("a", {href: link("look", {...deeper, rank: picked || ""})}, "Look inside"),
    ),
  ];
}
