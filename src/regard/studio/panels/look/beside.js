// Beside attention: what each word did. Attention says where a model looked; it need not be what decided.

import {latest, post} from "../../api.js";
import {element} from "../../element.js";
import {segmented} from "../../pieces/forms.js";
import {heatmap} from "../../pieces/heatmap.js";
import {unpack} from "../../pieces/packed.js";
import {skeleton} from "../../pieces/skeleton.js";
import {trouble} from "../../pieces/trouble.js";

const KINDS = {
  masking: {
    text: "Masking",
    unit: " nats",
    idea:
      "How far the log-probability of each output word falls when a word it read is blanked out. Below zero, " +
      "the word stood in the way.",
    origin: "log p of the output word, less log p with the word’s embedding set to zero",
  },
  gradient: {
    text: "Gradient",
    unit: "",
    idea:
      "A first guess of the same from one backward pass for each word: " +
      "how the odds of the word change with each embedding.",
    origin: "gradient × input of the log-odds of each output word, summed over the pieces of words",
  },
  difference: {
    text: "Attention − masking",
    unit: "",
    idea:
      "Where looking and mattering part: blue, looked at more than it mattered; orange, " +
      "mattered more than it was looked at.",
    origin: "share of the row’s attention, less share of its masking effects above zero",
  },
};

/** @param {{onview: (values: object) => void}} actions */
export function besideCard({onview}) {
  const ask = latest();
  const maps = Object.fromEntries(
    Object.keys(KINDS).map((kind) => [
      kind,
      heatmap({label: KINDS[kind].text, scale: "diverging", unit: KINDS[kind].unit}),
    ]),
  );
  const chooser = element("div", {class: "row end selectors"});
  const [idea, origin, place] = [element("p", {class: "note idea"}), element("figcaption"), element("div", {})];
  const node = element(
    "section",
    {class: "card beside", "aria-labelledby": "beside-title"},
    element("h2", {id: "beside-title"}, "What each word did"),
    idea,
    chooser,
    element("figure", {}, place, origin),
  );
  /** @type {any} */
  let answered = null;
  let [kind, choices] = ["", ""];

  const draw = () => {
    const found = answered.numbers;
    const offered = Object.keys(KINDS)
      .filter((name) => found[name])
      .join();
    if (offered !== choices) {
      const options = offered.split(",").map((value) => ({value, text: KINDS[value].text}));
      chooser.kind = segmented({
        label: "Measure",
        options,
        value: "masking",
        onchange: (value) => onview({beside: value === "masking" ? "" : value}),
      });
      chooser.replaceChildren(chooser.kind);
      choices = offered;
    }
    const shown = found[kind] ? kind : "masking";
    chooser.kind.value = shown;
    idea.textContent = KINDS[shown].idea;
    origin.textContent = KINDS[shown].origin + (shown === "difference" ? `; attention is ${answered.origin}` : "");
    place.replaceChildren(maps[shown].node);
    maps[shown].show({rows: answered.rows, columns: answered.columns, values: found[shown].data});
  };

  const nothing = () => {
    answered = null;
    place.replaceChildren(
      element("p", {class: "note"}, "No word was read before one was written, so none can have mattered."),
    );
  };

  return {
    node,
    leave() {
      ask.stop();
      Object.values(maps).forEach((map) => map.leave());
    },
    view(chosen) {
      kind = chosen in KINDS ? chosen : "masking";
      if (answered) draw();
    },
    /** Ask for the numbers of a sentence. */
    async load(question) {
      answered = null;
      place.replaceChildren(skeleton("square"));
      try {
        const answer = await ask((signal) => post("/api/v1/importance", question, {signal}));
        if (!answer) return;
        const numbers = Object.fromEntries(
          Object.keys(KINDS).map((name) => [name, answer[name] && unpack(answer[name])]),
        );
        answered = {numbers, rows: answer.rows, columns: answer.columns, origin: answer.attention_origin};
        if (answer.rows.length && answer.columns.length) draw();
        else nothing();
      } catch (problem) {
        place.replaceChildren(trouble(problem, () => this.load(question)));
      }
    },
  };
}
