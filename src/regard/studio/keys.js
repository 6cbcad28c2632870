// Keys that do something wherever the focus is, and the list of them. While a person writes they are letters.

import {element} from "./element.js";
import {WORDS} from "./pieces/glossary.js";
import {tourLinks} from "./tours.js";

const OFF = "regard.keys";
const known = new Map(); // key → {does, action}

/**
 * `const forget = shortcut("n", "the next layer", next)`; a page forgets its keys when it is left. The key is as the
 * browser names it (KeyboardEvent.key).
 */
export function shortcut(key, does, action) {
  const mine = {does, action};
  known.set(key, mine);
  return () => known.get(key) === mine && known.delete(key);
}

export const isWriting = (node) =>
  Boolean(node?.closest?.("input:not([type=checkbox],[type=radio],[type=range]),textarea,select,[contenteditable]"));

function heard(event) {
  if (event.key === "Escape" && isWriting(event.target)) return event.target.blur();
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
  if (document.querySelector("dialog[open]") || (stored() === "off" && event.key !== "?")) return;
  const found = known.get(event.key);
  if (!found) return;
  event.preventDefault();
  found.action();
}

/** The dialog with the words of the field and all keys; it can turn these off, for software that types by itself. */
export function showHelp() {
  const list = (pairs) =>
    element(
      "dl",
      pairs.map(([name, what]) => [element("dt", name), element("dd", what)]),
    );
  const keys = [...known].map(([key, {does}]) => [element("kbd", key), does]);
  const switched = element("input", {type: "checkbox", checked: stored() !== "off"});
  switched.addEventListener("change", () => store(switched.checked ? "on" : "off"));
  /** @type {HTMLDialogElement} */
  const dialog = element(
    "dialog.keys",
    {"aria-labelledby": "help-title"},
    element("h2", {id: "help-title"}, "Help"),
    element(
      "p",
      "Everything here happens on this machine. The address of a page holds what it shows: copy it to share it.",
    ),
    element("h3", "Tours"),
    element(
      "ul",
      tourLinks(() => dialog.close()).map((each) => element("li", each)),
    ),
    element("h3", "Words"),
    list(Object.entries(WORDS)),
    element("h3", "Keys"),
    list(keys),
    element(
      "p.note",
      "In heat maps, charts and trees the arrow keys move from one value to the next. Escape leaves a text field.",
    ),
    element("label.check", switched, "Use single keys as shortcuts"),
    element("h3", "For programs"),
    element("p", element("a", {href: "/docs"}, "The API"), ", with examples to try and to copy."),
    element("form", {method: "dialog"}, element("button.primary", {type: "submit"}, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}

function stored() {
  try {
    return localStorage.getItem(OFF);
  } catch {
    return null;
  }
}

function store(value) {
  try {
    localStorage.setItem(OFF, value);
  } catch {
    // storage is forbidden: nothing to be done
  }
}

addEventListener("keydown", heard);
