// One step of a walkthrough, told four times: idea, formula, numbers, code.

import {link} from "../../address.js";
import {element} from "../../element.js";
import {copyButton} from "../../pieces/forms.js";
import {PARTS} from "./chapters.js";
import {shape} from "./figures.js";
import {numbers} from "./numbers.js";
import {origin} from "./origins.js";
import {formula} from "./tex.js";

/**
 * @typedef {{name: string, kind: string, part: string, title: string, idea: string, formula: string, tex: string,
 *   snippet: string, recorded: string, shape: number[], shown: any, row: number | null,
 *   axes: {name: string, labels: string[], shown: number[]}[],
 *   inputs: Record<string, {from: string, shape: number[]}>}} Step
 * @typedef {{task: string, layer: number, head: number, position: number, source_position: number, steps: Step[],
 *   source: {words: string[], word_of: number[]}, target: {words: string[], word_of: number[]}}} Walk  as
 *   /api/v1/walkthrough has it
 * @typedef {{run: string, text: string, sentence: number, walk: Walk, byName: Map<string, Step>,
 *   places: Map<string, number>, count: number, setup: string[], top: boolean, go: (changes: object) => string}} World
 * @param {{step: Step, number: number, chapter: import("./chapters.js").Chapter}} shown  @param {World} world
 *   `go` is the address of another step; `top`: whether the layer is the encoder's last
 */
export function card({step, number, chapter}, world) {
  const opens = chapter.steps[0].number === number;
  return element(
    "article.step",
    {"data-step": step.name, "aria-labelledby": "step-title"},
    element("p.where", `Step ${number + 1} of ${world.count} · ${PARTS[step.part]} · ${chapter.title}`),
    element("h2", {id: "step-title", tabindex: -1}, step.title),
    opens && chapter.about ? element("p.opening", chapter.about) : null,
    element("p.idea", step.idea),
    section("Formula", "formula", written(step), made(step, world)),
    section("Numbers", "figures", numbers(step, world.byName), asMap(step, world)),
    section("PyTorch", "code", code(step, world)),
  );
}

function section(title, kind, ...children) {
  return element("section", {class: kind}, element("h3", title), ...children);
}

/** Weights are also a heat map: the same head on the page that is about it. */
function asMap({name}, {run, text, sentence, walk}) {
  const [, side, layer, kind] = /^(encoder|decoder)\.(?:(\d+)\.)?(self|cross)\.weights$/.exec(name) ?? [];
  if (!side) return null;
  const place = {side: kind === "cross" ? "cross" : side, layer: Number(layer ?? 0) + 1, head: walk.head + 1};
  const there = element(
    "a",
    {href: link("look", {run, text, sentence: sentence || "", ...place})},
    "This head in Look inside",
  );
  const rows = side === "encoder" ? "" : " In both, a row is named after the word that is predicted there.";
  return element("p.note", there, `, as a heat map, with what masking a word would change.${rows}`);
}

function written(step) {
  const box = element("div.tex", {tabindex: 0, role: "group", "aria-label": "Formula"});
  try {
    box.append(formula(step.tex, step.formula));
  } catch {
    box.append(element("code", step.formula)); // a formula of a newer service: its plain form says the same
  }
  return box;
}

/** What the step is made of: the name it has in the code, where it comes from, how large it is. */
function made(step, world) {
  const names = Object.keys(step.inputs);
  if (!names.length) return null;
  const rows = names.flatMap((name) => {
    const {from, shape: sizes} = step.inputs[name];
    return [
      element("dt", element("code", name)),
      element("dd", ...origin(from, world), element("span.size", ` ${shape(sizes)}`)),
    ];
  });
  return element("dl.made", {"aria-label": "Made of"}, rows);
}

function code(step, {setup: lines}) {
  const names = Object.keys(step.inputs);
  const taken = names.length ? [`${names.join(", ")} = (step.inputs[name] for name in ${python(names)})`] : [];
  if (names.length === 1) taken[0] = `${names[0]} = step.inputs["${names[0]}"]`;
  const before = [...lines, `step = walk[${JSON.stringify(step.name)}]`, ...taken].join("\n");
  const after = "torch.testing.assert_close(result, step.output)";
  const whole = [before, "", step.snippet, "", after, ""].join("\n");
  const recorded = step.recorded
    ? [
        "The model itself recorded this while it worked, as ",
        element("code", step.recorded),
        ". The code gives the same numbers again.",
      ]
    : [
        "The model does not show this value by itself. It is computed from recorded ones, " +
          "and what comes later is made of it.",
      ];
  const listing = element(
    "pre",
    {tabindex: 0, "aria-label": "Code"},
    element("code.setup", `${before}\n\n`),
    element("code.snippet", step.snippet),
    element("code.setup", `\n\n${after}`),
  );
  return [
    element(
      "div.listing",
      listing,
      copyButton(() => whole),
    ),
    element("p.note", ...recorded),
  ];
}

const python = (names) => `(${names.map((name) => JSON.stringify(name)).join(", ")})`;

/** The lines that a snippet needs before it: they make the same walkthrough in Python. */
export function setup({folder, task, text, layer, head, word, side}) {
  const places = [`layer=${layer}`, `head=${head}`, `word=${word}`, ...(side === "all" ? [] : [`side="${side}"`])];
  const translates = task === "translate";
  const load = translates ? "regard.load" : "load_predictor";
  return [
    "import torch",
    translates ? "import regard" : "from regard.tasks.load import load_predictor",
    "from regard.explain.walkthrough.walk import walk_text",
    "",
    `walk = walk_text(${load}(${JSON.stringify(folder)}), ${JSON.stringify(text)}, ${places.join(", ")})`,
  ];
}
