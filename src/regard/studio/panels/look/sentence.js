// The sentence and its output, one above the other, with lines between the words: what the page opens with.

import {element} from "../../element.js";
import {lines} from "../../pieces/lines.js";
import {markUnknown} from "../../pieces/question.js";
import {number, percent} from "../../pieces/scales.js";
import {tokenLine} from "../../pieces/tokens.js";
import {editedWords, wordsAfter} from "./edits.js";
import {namesOf, outputName, readsText, sourceName} from "./view.js";

/**
 * @param {{onedit: (...edits: object[]) => void, onpoint: (place: object | null) => void}} actions
 */
export function sentenceCard({onedit, onpoint}) {
  const node = element("section.card.sentence", {"aria-label": "The sentence and its output"});
  const menu = element("div.menu-of-word");
  /** @type {import("./view.js").Group[]} */
  let columns = [];
  /** @type {string[]} */
  let words = [];
  const pick = (place) => place in words && openMenu(menu, words, place, onedit);
  const drawing = lines({onpick: (column) => pick(columns[column]?.word), onpoint});
  return {
    node,
    leave: () => drawing.leave(),
    /** Light a cell of the heat map in the lines too. */
    point: (place) => drawing.point(place),
    /** One head's lines for a moment; null brings back those of the view. */
    look: (strand) => drawing.look(strand),
    /**
     * @typedef {import("./view.js").Group} Group
     * @param {import("./view.js").Trace} trace
     * @param {{rows: Group[], columns: Group[], values: ArrayLike<number>} | null} picture  none while it is awaited
     * @param {{text: string, edits: object[], side: string, strands?: any[], strip?: Node | null}} about  `strip`: all
     *   heads, to stand below the lines
     */
    show(trace, picture, {text, edits, side, strands = [], strip = null}) {
      menu.replaceChildren();
      words = wordsAfter(text, edits, trace);
      const edited = editedWords(text, edits, trace);
      const editable = picture !== null && readsText(trace, side);
      const parts = editable ? [] : [plain(sourceName(trace.task), words, edited, pick)];
      if (picture) {
        columns = picture.columns;
        const marks = editable
          ? new Map(columns.flatMap(({word}, place) => (edited.has(word) ? [[place, edited.get(word)]] : [])))
          : new Map();
        const labels = (groups) => groups.map(({label}) => label);
        drawing.show({
          rows: labels(picture.rows),
          columns: labels(columns),
          values: picture.values,
          names: namesOf(trace, side),
          marks,
          pickable: editable,
          strands,
        });
        parts.push(drawing.node);
        if (strip) parts.push(strip);
      }
      const told = trace.task !== "language" && (!picture || side === "encoder" || !picture.rows.length);
      if (told)
        parts.push(
          plain(
            outputName(trace.task),
            trace.target.words.length ? trace.target.words : trace.target.pieces,
            new Map(),
          ),
        );
      const note = element(
        "p.note.number",
        `${sureness(trace)} Tap or click a word of the ${sourceName(trace.task).toLowerCase()} to replace or mask it.`,
      );
      node.replaceChildren(...parts, menu, note);
      markUnknown(node, trace.unknown);
    },
  };
}

/** How sure the model was of all of it; the logarithm is for those who point. */
function sureness(trace) {
  const {log_probability: odds, log_probabilities: each, task} = trace;
  const pieces = Math.max(1, each.length);
  const what = {translate: "of the whole translation", tag: "of all tags together", classify: "of the class"}[task];
  if (task === "language")
    return (
      `Each piece had a probability of ${percent(Math.exp(odds / pieces))} on average (log-probability ` +
      `${number(odds, 2)} in all).`
    );
  return (
    `${percent(Math.exp(odds))} sure ` +
    `${what}${pieces > 1 && task === "translate" ? `, ${percent(Math.exp(odds / pieces))} a piece` : ""}.`
  );
}

function plain(name, words, edited, onpick) {
  const line = tokenLine(words, {label: name, onpick});
  if (onpick) line.node.classList.add("pickable");
  for (const [place, kind] of edited) line.node.querySelector(`[data-place="${place}"]`)?.classList.add(kind);
  return element("div.line", element("h2.label", name), line.node);
}

function openMenu(menu, words, place, onedit) {
  const word = words[place];
  const close = () => menu.replaceChildren();
  const by = element("input", {
    type: "text",
    "aria-label": `Instead of ${word}`,
    placeholder: "another word",
    autocapitalize: "off",
    spellcheck: "false",
  });
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
      "form.row",
      {onsubmit: replace},
      element("span", "What if ", element("strong", {dir: "auto"}, word), " were"),
      by,
      element("button.primary.small", {type: "submit"}, "Replace"),
      element("button.small", {onclick: mask, title: "Its place stays, its embedding is zero"}, "Mask"),
      element("button.quiet.small", {onclick: close}, "Cancel"),
    ),
  );
  by.focus();
}
