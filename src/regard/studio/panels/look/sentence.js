// The sentence and its output, the edits as chips, and what they did.

import {element} from "../../element.js";
import {number, painter} from "../../pieces/scales.js";
import {tokenLine} from "../../pieces/tokens.js";
import {describe, grouped, wordsAfter} from "./edits.js";
import {legible} from "./view.js";

const NAMES = {translate: "Translation", tag: "Tags", classify: "Class"};

/**
 * @param {{onedit: (...edits: object[]) => void, onremove: (edits: object[]) => void}} actions
 */
export function sentenceCard({onedit, onremove}) {
  const node = element("section", {class: "card sentence", "aria-label": "The sentence and its output"});
  let [lines, lit] = [{}, {}];
  const card = {
    node,
    show(trace, {text, edits}) {
      lit = {};
      const menu = element("div", {class: "menu-of-word"});
      const words = wordsAfter(text, edits);
      lines = linesOf(words, trace, (place) => openMenu(menu, words, place, onedit));
      node.replaceChildren(
        ...[
          part(trace.task === "language" ? "Text" : "Source", lines.source.node, `${trace.task === "language" ? `${outputNote(trace)}. ` : ""}Click a word to replace or mask it.`),
          menu,
          chips(text, edits, trace, onremove),
          trace.difference ? difference(trace) : trace.task === "language" ? null : part(NAMES[trace.task], lines.target.node, outputNote(trace)),
        ].filter(Boolean),
      );
    },
    /** Without an answer the chips are still there, to take the reason away. */
    showChips(text, edits) {
      node.replaceChildren(chips(text, edits, undefined, onremove));
      node.hidden = edits.length === 0;
    },
    /** Light these words, place → weight, and no others. Only a line that changes is touched: a pointer moves often. */
    light(source, target) {
      for (const [side, weights] of Object.entries({source, target})) {
        const key = JSON.stringify([...weights]);
        if (lines[side] && lit[side] !== key) lines[side].light(weights);
        lit[side] = key;
      }
    },
  };
  return card;
}

function linesOf(words, trace, onpick) {
  const source = tokenLine(words, {label: "Source", onpick});
  source.node.classList.add("pickable");
  if (trace.task === "language") return {source, target: source}; // what it predicts is the text itself
  return {source, target: tokenLine(trace.target.words.length ? trace.target.words : trace.target.pieces, {label: NAMES[trace.task]})};
}

const part = (title, line, note) => element("div", {class: "line"}, element("h2", {class: "label"}, title), line, element("p", {class: "note number"}, note));

const outputNote = (trace) => `log-probability ${number(trace.log_probability, 3)}, ${number(trace.log_probability / Math.max(1, trace.log_probabilities.length), 3)} a piece`;

function openMenu(menu, words, place, onedit) {
  const word = words[place];
  const close = () => menu.replaceChildren();
  const by = element("input", {type: "text", "aria-label": `Instead of ${word}`, placeholder: "another word", autocapitalize: "off", spellcheck: "false"});
  const replace = (event) => {
    event.preventDefault();
    close();
    onedit({kind: "replace-word", word: place, by: by.value.trim()});
  };
  const mask = () => {
    close();
    onedit({kind: "mask-word", word: place});
  };
  menu.replaceChildren(
    element(
      "form",
      {class: "row", onsubmit: replace},
      element("span", {}, "What if ", element("strong", {dir: "auto"}, word), " were"),
      by,
      element("button", {class: "primary small"}, "Replace"),
      element("button", {type: "button", class: "small", onclick: mask, title: "Its place stays, its embedding is zero"}, "Mask"),
      element("button", {type: "button", class: "quiet small", onclick: close}, "Cancel"),
    ),
  );
  by.focus();
}

function chips(text, edits, trace, onremove) {
  if (!edits.length) return null;
  const all = grouped(edits).map((group) => {
    const words = describe(group, {text, edits, trace});
    return element("li", {class: "chip now"}, words, element("button", {type: "button", "aria-label": `Undo: ${words}`, title: "Undo", onclick: () => onremove(group)}, "×"));
  });
  const clear = element("li", {}, element("button", {type: "button", class: "quiet small", onclick: () => onremove(edits)}, "Undo all"));
  return element("ul", {class: "chips", "aria-label": "Edits"}, all, all.length > 1 ? clear : null);
}

/** Before and after, greedy both, with what was exchanged marked. */
function difference(trace) {
  const {before, after, same, changes, change_in_log_probability: change} = trace.difference;
  const sign = change > 0 ? "+" : "";
  return element(
    "div",
    {class: "difference"},
    element("div", {class: "two"}, output("Before", before, changes.map((one) => one.before)), output("After", after, changes.map((one) => one.after))),
    element("p", {class: "number change"}, "Change in log-probability: ", element("strong", {}, `${sign}${number(change, 3)}`), `. The old output, under the edits: ${number(same.log_probability, 3)}.`),
    falls(trace.difference),
  );
}

function output(title, {text, log_probability: odds}, exchanged) {
  const words = text.split(" ");
  let from = 0;
  const marked = new Set();
  for (const some of exchanged) {
    const start = words.findIndex((_, place) => place >= from && some.length && some.every((word, next) => words[place + next] === word));
    if (start < 0) continue;
    some.forEach((_, next) => marked.add(start + next));
    from = start + some.length;
  }
  const shown = words.flatMap((word, place) => [marked.has(place) ? element("mark", {}, word) : word, " "]);
  return element("div", {class: `line ${title.toLowerCase()}`}, element("h2", {class: "label"}, title), element("p", {class: "tokens", dir: "auto"}, shown), element("p", {class: "note number"}, `log-probability ${number(odds, 3)}`));
}

/** How far each piece of the old output fell; what rose is not coloured. */
function falls({fall, pieces}) {
  const {colour, ink} = painter("sequential", [0, Math.max(1, ...fall)]);
  const shown = pieces.map((piece, place) => {
    const node = element("span", {class: "fall", title: `${legible(piece)}: ${number(fall[place], 3)} nats`}, element("bdi", {}, legible(piece)), element("small", {class: "number"}, number(fall[place], 1)));
    if (fall[place] > 0.05) Object.assign(node.style, {backgroundColor: colour(fall[place]), color: ink(fall[place])});
    return node;
  });
  return element("details", {}, element("summary", {}, "How far each piece of the old output fell"), element("p", {class: "falls"}, shown), element("p", {class: "note"}, "Its log-probability before, less under the edits, in nats."));
}
