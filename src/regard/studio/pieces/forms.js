// Parts of forms: a control under its name, one of several, yes or no, a button that copies.

import {element} from "../element.js";
import {toast} from "./announce.js";
import {named} from "./glossary.js";

let count = 0;

/** A control under its label; `note` stands below and is read with it. */
export function field(label, control, note = "") {
  control.id ||= `field-${++count}`;
  const about = note ? element("span.note", {id: `${control.id}-note`}, note) : null;
  if (about) control.setAttribute("aria-describedby", about.id);
  return element("div.field", element("label", {for: control.id}, named(label)), control, about);
}

/**
 * One of a few, side by side; radio buttons, so the arrow keys work.
 * @param {{label: string, options: {value: string, text: string, disabled?: boolean, title?: string}[], value: string,
 *   onchange: (value: string) => void, hideLabel?: boolean}} about
 * @returns {HTMLElement & {value: string}} setting `value` shows another without calling onchange
 */
export function segmented({label, options, value, onchange, hideLabel = false}) {
  const name = `segmented-${++count}`;
  const inputs = options.map((option) =>
    element("input", {type: "radio", name, value: option.value, disabled: option.disabled}),
  );
  const show = (chosen) => inputs.forEach((input) => (input.checked = input.value === String(chosen)));
  inputs.forEach((input) => input.addEventListener("change", () => onchange(input.value)));
  show(value);
  const labels = options.map((option, place) => element("label", {title: option.title}, inputs[place], option.text));
  const node = element(
    "fieldset.field",
    element("legend", {class: hideLabel ? "visually-hidden" : "label"}, named(label)),
    element("div.segmented", labels),
  );
  return Object.defineProperty(node, "value", {get: () => inputs.find((input) => input.checked)?.value, set: show});
}

/** Yes or no. `node.input` is the box itself. */
export function check(label, checked, onchange) {
  const input = element("input", {type: "checkbox"});
  input.checked = checked;
  input.addEventListener("change", () => onchange(input.checked));
  return Object.assign(element("label.check", input, label), {input});
}

/** @param {() => string} text asked when pressed */
export function copyButton(text, label = "Copy") {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      toast("Copied");
    } catch {
      toast("The browser does not let a page copy here", {bad: true});
    }
  };
  return element("button.quiet.small", {onclick: copy}, label);
}

/** What a page is called, and what it is for. */
export function pageHead(title, lead = "") {
  return element("div.head", element("h1", title), lead ? element("p.lead", lead) : null);
}
