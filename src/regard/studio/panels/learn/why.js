// Why attention came: the same sentence through a model that hands over one vector, one that looks back at each step,
// and one that is made of attention alone; as far as such runs are here.

import {link} from "../../address.js";
import {post} from "../../api.js";
import {element} from "../../element.js";
import {pair, usable} from "../../pieces/runs.js";

const KINDS = [
  {
    title: "Without attention",
    preset: "lstm",
    idea: "All of the sentence must go through one vector; long sentences do not fit.",
    fits: (run) => run.attention === false,
  },
  {
    title: "With attention",
    preset: "bahdanau",
    idea: "Before each word the decoder looks at every word of the source.",
    fits: (run) => run.attention === true && !run.architecture.startsWith("Transformer"),
  },
  {
    title: "Attention alone",
    preset: "transformer-tiny",
    idea: "Nothing is read piece by piece: every word looks at every word, at once.",
    fits: (run) => run.architecture.startsWith("Transformer"),
  },
];

/** The best run of each kind that translates the same languages. */
export function runsOfKinds(runs, name) {
  const own = runs.find((run) => run.name === name);
  const same = usable(runs, "translate").filter(
    (run) => pair(run.languages) === pair(own?.languages ?? null) && run.vectors === (own?.vectors ?? false),
  );
  const better = (one, other) => (other.score ?? -1) - (one.score ?? -1);
  return KINDS.map((kind) => ({...kind, run: same.filter(kind.fits).sort(better)[0] ?? null}));
}

export function whyAttention(runs, {run, text}) {
  const cards = runsOfKinds(runs, run).map((kind) => {
    const {run: found} = kind;
    const output = element("p.big", {dir: "auto"});
    if (found) fill(output, found.name, text);
    const act = found
      ? element(
          "p.row",
          element("a", {href: link("learn", {run: found.name, text})}, `Learn with ${found.name}`),
          element("a", {href: link("map", {run: found.name, text})}, "its map"),
        )
      : element(
          "p.note",
          "No such run is here yet. ",
          element("a", {href: link("train", {preset: kind.preset})}, `Train ${kind.preset}`),
        );
    return element(
      "section.kind",
      {"data-preset": kind.preset},
      element("h3", kind.title),
      element("p.note", kind.idea),
      output,
      act,
    );
  });
  return element(
    "section.why-attention.card",
    {"aria-labelledby": "why-title"},
    element("h2", {id: "why-title"}, "Why attention came"),
    element("p", "The same sentence, through three kinds of models:"),
    element("div.kinds", cards),
  );
}

async function fill(node, run, text) {
  node.textContent = "…";
  try {
    const {
      translations: [found],
    } = await post("/api/v1/translate", {run, texts: [text]});
    node.textContent = found.outputs[0]?.text || "(nothing)";
  } catch (problem) {
    node.textContent = problem.message;
  }
}
