// Where one number comes from: the arithmetic of a step at one place, with the numbers that went in.
//
// A reason is {text, value}: what is said, and what the arithmetic gives where all that it needs is shown (null where
// it needs more than is shown, as a product over 128 features does).

import {figure} from "./figures.js";

const FEW = 3; // terms of a sum that are written out

/** What a step took in, by the name it has in the code: the numbers that another step shows. */
class Inputs {
  constructor(step, byName) {
    this.step = step;
    this.byName = byName;
  }

  /** The step that made an input, and the row of it that was taken; nothing where it comes from elsewhere. */
  made(name) {
    const found = /^step ([^[]+)((?:\[[^\]]*\])*)$/.exec(this.step.inputs[name]?.from ?? "");
    const step = found && this.byName.get(found[1]);
    if (!step) return null;
    const rows = [...found[2].matchAll(/\[(\d+)\]/g)].map((match) => Number(match[1]));
    return {step, rows};
  }

  /** The number of an input at a place of the shown table; undefined where it is not shown. */
  at(name, ...place) {
    const from = this.step.inputs[name]?.from ?? "";
    if (from === "zeros") return 0;
    const found = this.made(name);
    if (!found) return undefined;
    let value = found.step.shown;
    for (const index of [...found.rows, ...place]) value = value?.[index];
    return typeof value === "number" || value === null ? value : undefined;
  }

  row(name, index) {
    const found = this.made(name);
    let value = found?.step.shown;
    for (const one of [...(found?.rows ?? []), index]) value = value?.[one];
    return Array.isArray(value) && value.every((one) => typeof one === "number" || one === null) ? value : undefined;
  }
}

const exp = (value) => (value === null ? 0 : Math.exp(value));
const known = (...values) => values.every((value) => typeof value === "number");
/** @type {(text: string, value?: number | null) => {text: string, value: number | null}} */
const say = (text, value = null) => ({text, value});
const label = (step, axis, index) => step.axes[axis]?.labels[index] ?? "";
const feature = (step) => step.axes.length - 1;

function sumOf(terms) {
  const largest = [...terms].sort((one, other) => Math.abs(other.value) - Math.abs(one.value)).slice(0, FEW);
  const rest = terms.length - largest.length;
  return largest.map((term) => term.text).join(" + ") + (rest ? ` + ${rest} smaller` : "");
}

function added(inputs, place, [first, firstName], [second, secondName]) {
  const [one, other] = [inputs.at(first, ...place), inputs.at(second, ...place)];
  if (!known(one, other)) return say(`${firstName} plus ${secondName}, at the same place`);
  return say(`${figure(one)} (${firstName}) + ${figure(other)} (${secondName})`, one + other);
}

/** A learned map: needs all features of a row, of which only some are shown. */
function mapped(name, inside) {
  return ({step}, place) => {
    const rows = step.axes.length > 1 ? `the vector of ${label(step, 0, place[0])}` : "the vector that comes in";
    const width = step.inputs[name]?.shape.at(-1);
    return say(`${rows}, all ${width} of its numbers, times row ${place.at(-1)} of the learned matrix${inside}`);
  };
}

function gate(squash) {
  return ({step}, place) => {
    const [x, h] = [step.inputs.x.shape.at(-1), step.inputs.h.shape.at(-1)];
    return say(
      `${squash} of: the ${x} numbers of the input and the ${h} of the state before, ` +
        `each times unit ${place[0]}'s own learned weights, added up`,
    );
  };
}

/** A sinusoid: sines and cosines in turn, or all sines first; the last wave is 10000 times the first, or the next. */
function waved(halves, last) {
  return ({step}, [row, column]) => {
    const width = step.shape[1];
    const waves = Math.ceil(width / 2);
    const pair = halves ? column % waves : Math.floor(column / 2);
    const wave = (halves ? column >= waves : column % 2) ? "cos" : "sin";
    const longest = last ? Math.max(2 * (waves - 1), 1) : width;
    const place = row + Number(/arange\((\d+), \d/.exec(String(step.snippet))?.[1] ?? 0); // where it begins to count
    return say(
      `${wave}(${place} / 10000^(${2 * pair}/${longest})): place ${place}, wave ${pair + 1} of ${waves}`,
      Math[wave](place / 10000 ** ((2 * pair) / longest)),
    );
  };
}

const REASONS = {
  pieces: ({step}, [row]) => say(`${label(step, 0, row)} is number ${step.shown[row]} of the vocabulary`),
  embedding: fromTable,
  one_hot: fromTable,
  sinusoidal: waved(false, false),
  sinusoidal_last: waved(false, true),
  halves: waved(true, false),
  halves_last: waved(true, true),
  learned: (_, [row, column]) => say(`the learned table of places: row ${row}, feature ${column}`),
  placed: (inputs, place) => added(inputs, place, ["x", "embedding"], ["position", "position"]),
  sum: (inputs, place) => added(inputs, place, ["x", "what was there"], ["found", "what was found"]),
  queries: mapped("x", ", plus its bias"),
  keys: mapped("x", ", plus its bias"),
  values: mapped("x", ", plus its bias"),
  output_map: mapped("x", ", plus its bias"),
  projected: mapped("x", ", plus its bias"),
  expand: mapped("x", ", plus its bias; below zero little or nothing is left"),
  contract: mapped("h", ", plus its bias"),
  contract_plain: mapped("h", ""),
  dot(inputs, [row, column]) {
    const {step} = inputs;
    const [query, key] = [inputs.row("q", row), inputs.row("k", column)];
    const width = step.inputs.q.shape.at(-1);
    if (!query || !key)
      return say(
        `the query of ${label(step, 0, row)} times the key of ${label(step, 1, column)}, over ${width} features`,
      );
    const terms = query.slice(0, FEW).map((one, place) => `${figure(one, 2)}·${figure(key[place], 2)}`);
    return say(
      `${terms.join(" + ")} + … over all ${width} features of q (${label(step, 0, row)}) and k ` +
        `(${label(step, 1, column)})`,
    );
  },
  scaled(inputs, place) {
    const product = inputs.at("products", ...place);
    const width = Number(/\/ (\d+)\*\*0\.5/.exec(inputs.step.snippet)?.[1]);
    return known(product, width)
      ? say(`${figure(product)} / √${width}`, product / Math.sqrt(width))
      : say("the score before, divided by √K");
  },
  general: fits,
  additive: fits,
  concat: fits,
  cosine: fits,
  masked(inputs, [row, column]) {
    const {step} = inputs;
    const score = inputs.at("scores", row, column);
    if (step.shown[row][column] !== null) return say("the score as it was: this may be seen", score ?? null);
    const why = step.snippet.includes("ahead") && column > row ? "it comes later" : "it lies outside the window";
    return say(`${label(step, 1, column)} is hidden from ${label(step, 0, row)}: ${why}`, null);
  },
  softmax(inputs, [row, column]) {
    const scores = inputs.row("scores", row);
    if (!scores) return say("the exponential of the score, as a share of the sum of its row");
    const total = scores.reduce((sum, score) => sum + exp(score), 0);
    const own = scores[column] === null ? "0 (hidden)" : `exp(${figure(scores[column])})`;
    return say(
      `${own} / Σ exp of its row = ${figure(exp(scores[column]))} / ${figure(total)}`,
      exp(scores[column]) / total,
    );
  },
  relu(inputs, [row, column]) {
    const scores = inputs.row("scores", row)?.map((score) => Math.max(score ?? 0, 0));
    if (!scores) return say("what is above zero, as a share of its row");
    const total = scores.reduce((sum, score) => sum + score, 0) || 1;
    return say(`${figure(scores[column])} / ${figure(total)}`, scores[column] / total);
  },
  hard({step}, [row, column]) {
    return say(
      step.shown[row][column] ? "the most probable place of its row" : "not the most probable place",
      step.shown[row][column],
    );
  },
  context(inputs, [row, column]) {
    const weights = inputs.row("weights", row);
    const made = inputs.made("v");
    const size = inputs.step.inputs.v.shape[0];
    if (!weights || !made) return say(`feature ${column} of all ${size} values, each times its weight, added up`);
    const terms = weights.map((weight, place) => {
      const value = made.step.shown[place][column];
      return {value: weight * value, text: `${figure(weight, 3)}·${figure(value, 3)} (${label(made.step, 0, place)})`};
    });
    return say(
      sumOf(terms),
      terms.reduce((sum, term) => sum + term.value, 0),
    );
  },
  heads({step}, [, column]) {
    const width = step.inputs.contexts.shape.at(-1);
    return say(
      `feature ${column % width} of head ${Math.floor(column / width) + 1}, ` +
        `of ${step.inputs.contexts.shape[0]} heads of ${width} features`,
    );
  },
  layer_norm: ({step}, place) =>
    say(
      `of the ${step.shape.at(-1)} numbers of ${label(step, 0, place[0]) || "the vector"}: ` +
        "this one less their mean, divided by their spread, times γ, plus β",
    ),
  rms_norm: ({step}, place) =>
    say(`this number divided by the size of all ${step.shape.at(-1)} of ${label(step, 0, place[0])}, times γ`),
  elman: gate("tanh"),
  input_gate: gate("σ"),
  forget_gate: gate("σ"),
  output_gate: gate("σ"),
  candidate: gate("tanh"),
  reset: gate("σ"),
  update: gate("σ"),
  gru_candidate: gate("tanh"),
  cell(inputs, [unit]) {
    const [f, c, i, g] = ["f", "c", "i", "g"].map((name) => inputs.at(name, unit));
    if (known(f, c, i, g))
      return say(`${figure(f)}·${figure(c)} (kept) + ${figure(i)}·${figure(g)} (written)`, f * c + i * g);
    return known(f, i, g)
      ? say(`${figure(f)} of what unit ${unit} remembered + ${figure(i)}·${figure(g)}`)
      : say("kept + written");
  },
  lstm_hidden(inputs, [unit]) {
    const [o, c] = [inputs.at("o", unit), inputs.at("c", unit)];
    return known(o, c)
      ? say(`${figure(o)} · tanh(${figure(c)})`, o * Math.tanh(c))
      : say("the output gate times tanh of the memory");
  },
  gru_hidden(inputs, [unit]) {
    const [z, n, h] = ["z", "n", "h"].map((name) => inputs.at(name, unit));
    if (known(z, n, h)) return say(`(1 − ${figure(z)})·${figure(n)} + ${figure(z)}·${figure(h)}`, (1 - z) * n + z * h);
    return known(z, n)
      ? say(`(1 − ${figure(z)})·${figure(n)} + ${figure(z)} of what unit ${unit} was before`)
      : say("candidate and old state, mixed");
  },
  loop: ({step}, [row, column]) => say(`unit ${column} of the state after reading ${label(step, 0, row)}`),
  both_ways(inputs, [row, column]) {
    const size = inputs.step.inputs.forward.shape.at(-1);
    const name = column < size ? "forward" : "backward";
    const value = inputs.at(name, row, column % size);
    return say(`unit ${column % size} of the ${name} reading at ${label(inputs.step, 0, row)}`, value ?? null);
  },
  final: ({step}, [unit]) =>
    say(`unit ${unit} of the state after the last piece that was read, of ${step.inputs.states.shape[0]}`),
  final_cell: (_, [unit]) => say(`unit ${unit} of the memory after the last piece that was read`),
  final_both: (_, [unit]) =>
    say(`unit ${unit} of the forward reading at the last piece; behind them, the backward reading at the first`),
  bridge: squeezed,
  readout: squeezed,
  combine: squeezed,
  monotonic: ({step}, [row]) => say("the number of the step, or the last place of the source", step.shown[row][0]),
  predicted: () => say("the query's own guess, between 0 and the length of the source"),
  mean_pool: (_, [unit]) => say(`the mean of feature ${unit} over the whole text`),
  max_pool: (_, [unit]) => say(`the largest feature ${unit} anywhere in the text`),
  with_context: beside("y", "c", "the piece read last", "the context"),
  with_fed: beside("y", "fed", "the piece read last", "the attentional state before"),
  logits: ({step}, [place]) =>
    say(
      `the ${step.inputs.x.shape.at(-1)} features times the row of ${label(step, 0, place)} in the output table, ` +
        "plus its bias",
    ),
  probabilities(inputs, [place]) {
    const score = inputs.at("logits", place);
    const size = inputs.step.shape[0].toLocaleString("en");
    return say(score == null ? "" : `= exp(${figure(score)}) / Σ exp of all ${size} scores`);
  },
  probability: (inputs) => {
    const index = inputs
      .made("probabilities")
      ?.step.axes[0].shown.indexOf(Number(/\[(\d+)\]/.exec(inputs.step.snippet)?.[1]));
    const value = index >= 0 ? inputs.at("probabilities", index) : undefined;
    return say("the entry of the word that was written", value ?? null);
  },
};

function fromTable(inputs, [row, column]) {
  return say(`row ${inputs.at("ids", row)} of the learned table (${label(inputs.step, 0, row)}), feature ${column}`);
}

function squeezed({step}, [unit]) {
  return say(
    `tanh of: the ${step.inputs.w.shape.at(-1)} numbers that come in, ` +
      `each times unit ${unit}'s own learned weights, added up`,
  );
}

function fits({step}, [row, column]) {
  return say(`how well the query of ${label(step, 0, row)} fits the key of ${label(step, 1, column)}`);
}

function beside(first, second, firstName, secondName) {
  return (inputs, [column]) => {
    const size = inputs.step.inputs[first].shape.at(-1);
    const own = column < size;
    const value = inputs.at(own ? first : second, own ? column : column - size);
    return say(`feature ${own ? column : column - size} of ${own ? firstName : secondName}`, value ?? null);
  };
}

/** @param {number[]} place in the shown table: row and column, unit, or nothing for a single number */
export function reason(step, byName, place) {
  const found = REASONS[step.kind]?.(new Inputs(step, byName), place);
  if (found?.text) return found;
  const row = step.axes.length > 1 ? `, from the row of ${label(step, 0, place[0])}` : "";
  return say(
    step.axes.length
      ? `${step.axes[feature(step)].name} ${label(step, feature(step), place.at(-1))}${row}`
      : step.title,
  );
}
