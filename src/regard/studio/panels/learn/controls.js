// What the page is about: run, sentence, word, and where in the model.

import {element} from "../../element.js";
import {field, segmented} from "../../pieces/forms.js";
import {folding, oneLine, saidRun, saidText} from "../../pieces/question.js";
import {runPicker} from "../../pieces/runs.js";

const SIDES = [
  ["all", "Everything"],
  ["encoder", "Encoder"],
  ["decoder", "Decoder"],
  ["cross", "Cross-attention"],
];

/** A select with places counted as people count; hidden where there is nothing to choose. */
function places(label, change) {
  const select = element("select");
  const node = field(label, select);
  select.addEventListener("change", () => change(Number(select.value)));
  node.show = (count, value) => {
    node.hidden = count < 2;
    select.replaceChildren(
      ...Array.from({length: count}, (_, place) => element("option", {value: place}, String(place + 1))),
    );
    select.value = String(value);
  };
  return node;
}

/**
 * @param {import("../../pieces/runs.js").Run[]} runs
 * @param {(changes: object) => void} change
 * @returns {HTMLElement & {show: (state: object, model: object | null) => void}}
 */
export function controls(runs, change) {
  const picker = runPicker({runs, value: "", onchange: (run) => change({run})});
  const text = element("input", {
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    dir: "auto",
    enterkeyhint: "go",
  });
  text.addEventListener("change", () => text.value.trim() && change({text: text.value.trim()}));
  text.addEventListener("keydown", (event) => event.key === "Enter" && text.blur()); // an answer is read, not written
  const form = element(
    "form.sentence.controls",
    {onsubmit: (event) => event.preventDefault()},
    field("Sentence", text),
    picker,
  );
  const question = folding(form);
  const layer = places("Layer", (value) => change({layer: value}));
  const head = places("Head", (value) => change({head: value}));
  const side = element("div.part");
  const node = element("div", question, element("div.controls.places", side, layer, head));
  node.show = (state, model) => {
    if (document.activeElement !== text) question.fold(saidRun(state.run), saidText(state.text));
    picker.value = state.run;
    if (document.activeElement !== text) text.value = oneLine(state.text);
    layer.show(layersOf(model, state.side), state.layer);
    head.show(headsOf(model, state.side), state.head);
    side.replaceChildren(sides(model, state.side, (value) => change({side: value})));
  };
  return node;
}

function sides(model, value, onchange) {
  const has = {
    encoder: model?.encoder_layers && model?.decoder_layers,
    decoder: model?.decoder_layers && model?.encoder_layers,
    cross: attends(model),
  };
  const options = SIDES.filter(([name]) => name === "all" || name === value || has[name]).map(([name, title]) => ({
    value: name,
    text: title,
  }));
  if (options.length < 2) return element("span");
  return segmented({label: "Part", options, value, onchange});
}

const attends = (model) => Boolean(model?.attentions?.some((name) => name.endsWith("cross")));

function layersOf(model, side) {
  if (!model) return 0;
  const {encoder_layers: encoder, decoder_layers: decoder} = model;
  if (side === "encoder") return encoder;
  if (side === "decoder" || side === "cross") return decoder;
  return Math.min(...[encoder, decoder].filter(Boolean));
}

function headsOf(model, side) {
  if (!model) return 0;
  if (side === "encoder" && !model.attentions?.some((name) => name.startsWith("encoder"))) return 0;
  return model.heads ?? 0;
}

/**
 * The words of the text and of what the run made of it. Those that can be followed are buttons.
 * @param {{walk: import("./step.js").Walk, side: string, choose: (word: number) => void}} about
 */
export function words({walk, side, choose}) {
  const {source, target, task} = walk;
  const onSource = task === "label" || side === "encoder";
  const looked = source.word_of[walk.source_position];
  const rows = [];
  if (source.words.length)
    rows.push(
      line(
        task === "label" ? "Text" : "Source",
        source.words,
        onSource ? {chosen: source.word_of[walk.position], choose} : {looked},
      ),
    );
  if (task !== "label")
    rows.push(
      line(
        source.words.length ? "Translation" : "Text",
        target.words,
        onSource ? {} : {chosen: target.word_of[walk.position], choose},
      ),
    );
  return element("div.words", rows);
}

/**
 * @param {string} label  @param {string[]} list
 * @param {{chosen?: number, choose?: (word: number) => void, looked?: number}} about
 */
function line(label, list, {chosen, choose, looked}) {
  const tokens = list.map((text, place) => {
    if (!choose) return element("span", {class: place === looked ? "token looked" : "token"}, text);
    return element("button.token", {"aria-pressed": String(place === chosen), onclick: () => choose(place)}, text);
  });
  if (!tokens.length) tokens.push(element("span.token.note", "nothing: the run ends at once"));
  const about = choose && list.length ? {role: "group", "aria-label": "Word to follow"} : {};
  return element("div.line", element("span.label", label), element("div.tokens", {dir: "auto", ...about}, tokens));
}
