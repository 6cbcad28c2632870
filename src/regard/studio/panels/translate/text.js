// The card with the text: its language, how many sentences it has, examples to try, and what is too long.

import {element} from "../../element.js";
import {language} from "../../pieces/runs.js";
import {examplesOf} from "../runs/attempt.js";

const LONGEST = 5000; // characters of a text, as the service has it
const TRIED = 3; // examples that are offered
const figure = (value) => value.toLocaleString("en");

/** @param {{field: Node, onswap: () => void, onclear: () => void, ontry: (text: string) => void}} about */
export function textCard({field, onswap, onclear, ontry}) {
  const button = (words, action, label) =>
    element("button.quiet.small", {onclick: action, "aria-label": label, title: label}, words);
  const title = element("h2.pane-title", "Text");
  const swap = button("⇄", onswap, "Swap the languages");
  const counted = element("span.note.number");
  const limit = element("p.warning", {role: "status", hidden: true});
  const examples = element("p.examples");
  let offered = "";

  /** Sentences of the run's own validation text. */
  const offer = async (name) => {
    if (offered === name) return;
    offered = name;
    examples.replaceChildren();
    const found = await examplesOf(name);
    if (!found.length || offered !== name) return;
    const one = (text) => element("button.small", {dir: "auto", onclick: () => ontry(text)}, text);
    examples.replaceChildren(element("span.note", "Try "), ...found.slice(0, TRIED).map(one));
  };

  return {
    node: element(
      "section.card.pane",
      {"aria-label": "Text"},
      element("div.row", title, swap, counted, element("span.push"), button("Clear", onclear)),
      field,
      limit,
      examples,
    ),
    /**
     * @typedef {import("../../pieces/runs.js").Run} Run
     * @param {Run} run  @param {{back?: Run}} about  `back`: one for the other direction
     */
    show({name, languages}, {back}) {
      title.textContent = languages?.source ? language(languages.source) : "Text";
      swap.hidden = !back;
      offer(name);
    },
    count(text, sentences) {
      examples.hidden = text.trim() !== "";
      counted.textContent = sentences > 1 ? `${sentences} sentences` : "";
    },
    /** Said before it is sent: a longer text would be refused. */
    tooLong(text) {
      const {length} = [...text];
      limit.hidden = length <= LONGEST;
      limit.textContent = limit.hidden
        ? ""
        : `${figure(length)} characters: at most ${figure(LONGEST)} are translated at once; ` +
          `shorten the text by ${figure(length - LONGEST)}.`;
      return !limit.hidden;
    },
  };
}
