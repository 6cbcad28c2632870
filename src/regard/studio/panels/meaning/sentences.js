// The sentences: each can be changed, removed, and others added. One that does not have the word says so.

import {element} from "../../element.js";
import {unspaced} from "../../pieces/script.js";

const AROUND = /^["'.,;:!?()[\]«»“”‘’।]+|["'.,;:!?()[\]«»“”‘’।]+$/g;
export const MOST = 20; // sentences that the service takes

const plain = (word) => word.toLowerCase().replace(AROUND, "");

/** Whether a word stands in a sentence; capitals and punctuation around it do not matter. */
export function has(sentence, word) {
  if (unspaced(word)) return sentence.includes(word.trim());
  return sentence.split(/\s+/).some((other) => other !== "" && plain(other) === plain(word));
}

/**
 * @param {(sentences: string[]) => void} change
 * @returns {HTMLElement & {show: (sentences: string[], word: string) => void}}
 */
export function sentenceList(change) {
  const list = element("ol.sentences");
  const add = element("button.small", "Add a sentence");
  const node = element("div", list, add);
  const inputs = () => [...list.querySelectorAll("input")];
  const tell = () =>
    change(
      inputs()
        .map((input) => input.value.trim())
        .filter(Boolean),
    );
  let wanted = "";

  const row = (sentence, place) => {
    const about = `sentence-${place}`;
    const input = element("input", {
      type: "text",
      dir: "auto",
      spellcheck: "false",
      autocomplete: "off",
      "aria-label": `Sentence ${place + 1}`,
      "aria-describedby": about,
    });
    input.value = sentence;
    const note = element("p.note", {id: about});
    const check = () => {
      const lacks = input.value.trim() !== "" && !has(input.value, wanted);
      input.setAttribute("aria-invalid", String(lacks));
      note.textContent = lacks ? `${wanted} does not stand in this sentence, so it is left out.` : "";
    };
    check();
    input.addEventListener("change", () => {
      check();
      tell();
    });
    const drop = element("button.quiet.icon", {"aria-label": `Remove sentence ${place + 1}`, title: "Remove"}, "×");
    drop.addEventListener("click", () => {
      const others = inputs();
      item.remove();
      node.word = null; // the numbers of the others change
      if (input.value.trim()) tell();
      (others[place + 1] ?? others[place - 1] ?? add).focus();
    });
    const item = element(
      "li",
      {class: `s${place % 6}`},
      element("span.dot", {"aria-hidden": "true"}, String(place + 1)),
      input,
      drop,
      note,
    );
    return item;
  };

  add.addEventListener("click", () => {
    const item = row("", list.children.length);
    list.append(item);
    item.querySelector("input").focus();
  });
  node.show = (sentences, word) => {
    wanted = word;
    const shown = inputs()
      .map((input) => input.value.trim())
      .filter(Boolean);
    const focused = inputs().indexOf(document.activeElement);
    if (shown.join("\n") === sentences.join("\n") && node.word === word && shown.length === list.children.length)
      return;
    node.word = word;
    list.replaceChildren(...sentences.map(row));
    inputs()[focused]?.focus();
    add.hidden = sentences.length >= MOST;
  };
  return node;
}
