// What if: the forms that make edits. Words are edited in the sentence and rows in the picture; here is the rest.

import {element} from "../../element.js";
import {field} from "../../pieces/forms.js";
import {attentionName} from "./view.js";

/** @param {{onedit: (...edits: object[]) => void}} actions */
export function editForms({onedit}) {
  const forms = element("div.many");
  const lead = element("p.note");
  const node = element(
    "section.card.edit-forms",
    {"aria-labelledby": "edit-forms-title"},
    element("h2", {id: "edit-forms-title"}, "What if…"),
    lead,
    forms,
  );
  return {
    node,
    show(trace, words) {
      const attends = trace.attentions.length > 0;
      const writes = trace.task === "translate" || trace.task === "language";
      const transformer = trace.attentions.some(({name}) => name.endsWith("self"));
      lead.textContent =
        "Every edit is a step in the address: share the link, or go back to undo. " +
        `Click a source word to replace or mask it${attends ? ", a row of the heat map to set it by hand" : ""}. ` +
        `${writes ? "Outputs before and after are greedy, so that the difference is the edit’s." : ""}`;
      forms.replaceChildren(
        ...[
          writes ? prefixForm(onedit) : null,
          attends ? headForm(trace, words, onedit) : null,
          transformer ? positionsForm(trace, onedit) : null,
          transformer ? scaleForm(trace, onedit) : null,
        ].filter(Boolean),
      );
    },
  };
}

const form = (title, ...children) =>
  element("form.stack.what", {onsubmit: (event) => event.preventDefault()}, element("h3", title), children);
const button = (text, action, title = "") => element("button.small", {title, onclick: action}, text);

function prefixForm(onedit) {
  const prefix = element("input", {
    type: "text",
    placeholder: "its first words",
    autocapitalize: "off",
    spellcheck: "false",
  });
  const force = () => prefix.value.trim() && onedit({kind: "force-prefix", prefix: prefix.value.trim()});
  const made = form(
    "…the output began otherwise",
    field("It begins with", prefix),
    element("div.row", element("button.small", {type: "submit"}, "Force")),
  );
  made.addEventListener("submit", force);
  return made;
}

function attentionSelect(trace) {
  return element(
    "select",
    trace.attentions.map(({name}) => element("option", {value: name}, attentionName(name))),
  );
}

function headForm(trace, words, onedit) {
  const attention = attentionSelect(trace);
  const cross = trace.attentions.find(({side}) => side === "cross");
  if (cross) attention.value = cross.name;
  const head = element("select");
  const word = element(
    "select",
    words.map((each, place) => element("option", {value: place}, each)),
  );
  const force = button("Force it there", () =>
    onedit(...each((one) => ({kind: "force-head", attention: attention.value, head: one, word: Number(word.value)}))),
  );
  const fill = () => {
    const count = trace.attentions.find(({name}) => name === attention.value).heads;
    const options = Array.from({length: count}, (_, place) => element("option", {value: place}, `head ${place + 1}`));
    head.replaceChildren(...options, ...(count > 1 ? [element("option", {value: "all"}, `all ${count} heads`)] : []));
    const written = /^decoder.*self$/.test(attention.value); // it looks at what was written
    force.disabled = trace.task === "translate" && written;
  };
  const each = (edit) =>
    (head.value === "all" ? [...head.options].slice(0, -1).map(({value}) => Number(value)) : [Number(head.value)]).map(
      edit,
    );
  attention.addEventListener("change", fill);
  fill();
  const mute = button(
    "Mute it",
    () => onedit(...each((one) => ({kind: "mute-head", attention: attention.value, head: one}))),
    "It contributes nothing",
  );
  return form(
    "…a head looked elsewhere, or at nothing",
    field("Attention", attention),
    element("div.two", field("Head", head), field("Looks at", word)),
    element("div.row", mute, force),
  );
}

function positionsForm(trace, onedit) {
  const sides = ["encoder", "decoder"].filter((side) => trace.attentions.some(({name}) => name.startsWith(side)));
  const drop = (side) => button(`Not in the ${side}`, () => onedit({kind: "no-positions", side}));
  return form(
    "…there were no positions",
    element(
      "p.note",
      "Embeddings go on without the position that is added to them: to the model, the sentence becomes a bag of words.",
    ),
    element("div.row", sides.map(drop)),
  );
}

function scaleForm(trace, onedit) {
  const attention = attentionSelect(trace);
  const drop = button("Drop ÷ √d", () => onedit({kind: "no-scale", attention: attention.value}));
  return form(
    "…scores were not divided by √d",
    element("p.note", "Larger scores make the softmax sharper: a row looks at fewer words."),
    field("Attention", attention),
    element("div.row", drop),
  );
}
