// Where what goes into a step comes from: a link to the step that made it wherever there is one, else in words.

import {element} from "../../element.js";

/**
 * @param {string} from "step NAME[row]", "trace NAME[row]", "parameter NAME[rows]" or "zeros"
 * @param {import("./step.js").World} world
 * @returns {(Node | string)[]}
 */
export function origin(from, world) {
  if (from === "zeros") return ["zeros: nothing came before"];
  const [, kind, name, index] = /^(\w+) ([^[]+)(.*)$/.exec(from) ?? [null, "", from, ""];
  if (kind === "step" && world.byName.has(name)) return made(world.byName.get(name), index, world);
  if (kind === "trace") return recorded(name, index, world);
  return ["learned: ", element("code", name + index)];
}

function made(step, index, {places, go}, also = "") {
  const number = places.get(step.name); // none where the short way passes it by
  return [
    element("a", {href: go({step: step.name})}, number === undefined ? step.title : `${number + 1}. ${step.title}`),
    also || rowOf(step, index),
  ];
}

function rowOf(step, index) {
  const row = Number(/^\[(\d+)\]/.exec(index)?.[1]);
  const label = step.axes.length > 1 && step.axes[0].labels[row];
  return label ? `, the row of ${label}` : "";
}

/** What a replay recorded: often a step of this walk has it too, or one of another layer would. */
function recorded(name, index, world) {
  const steps = [...world.byName.values()];
  const own = steps.find((step) => step.recorded === name + index);
  if (own) return made(own, "", world);
  const whole = steps.find((step) => step.recorded === name);
  if (whole) return made(whole, index, world);
  const head = steps.find((step) => step.recorded.startsWith(`${name}[`) && step.kind === "context");
  if (head) return made(head, "", world, ", of every head");
  if (name === "encoder.states" && world.top) {
    const last = steps.findLast((step) => step.part === "encoder");
    if (last) return made(last, "", world);
  }
  return below(name, world) ?? [before(name, index), element("code", name + index)];
}

/** The states of another layer: a link to the same walk, there. */
function below(name, {walk, byName, go}) {
  const [, side, layer] = /^(encoder|decoder)\.(\d+)\.states$/.exec(name) ?? [];
  if (side === undefined || Number(layer) === walk.layer) return null;
  const step = byName.has(`${side}.${walk.layer}.states`)
    ? `${side}.${layer}.states`
    : `${side}.${layer}.cell.${side === "encoder" ? "every" : "hidden"}`;
  return [element("a", {href: go({layer: Number(layer), step})}, `the states of layer ${Number(layer) + 1}`)];
}

function before(name, index) {
  const earlier = name.startsWith("decoder.") && /^\[\d+\]/.test(index);
  if (earlier && name.endsWith(".cell.cell")) return "the memory after the step before: ";
  if (earlier && name.endsWith(".cell.hidden")) return "the state after the step before: ";
  if (earlier && name === "decoder.features") return "the attentional state of the step before: ";
  return "recorded: ";
}
