// The parts of a model as /api/v1/map has them: by name, with their weights, their pieces and what is measured of them.

import {legible} from "../../pieces/letters.js";
import {unpack} from "../../pieces/packed.js";
import {number, percent} from "../../pieces/scales.js";
import {axesOf, opened} from "../look/view.js";

/**
 * @typedef {{name: string, kind: string, title: string, about: string, whose: "source" | "target" | "whole",
 *   size: string, parameters: number, heads: number, reads: string[], steps: string[], lengths: number[],
 *   turned: number[], parts: Part[]}} Part
 * @typedef {{task: string, run: string, output: string, parameters: number, parts: Part[], source: any, inputs: any,
 *   target: any, probabilities: number[], attentions: any[], sides: Record<string, any[]>,
 *   weights: Map<string, any>, parent: Map<string, Part | null>, byName: Map<string, Part>}} Model
 * @typedef {Record<string, {shape: number[], data: Float32Array, at: (...place: number[]) => number,
 *   part: (...place: number[]) => Float32Array}>} Inside
 */

/** The answer of the service, its tensors opened and its parts by name. @returns {Model} */
export function prepared(answer) {
  const model = opened(answer);
  model.weights = new Map(Object.values(model.sides).flatMap((layers) => layers.map((each) => [each.name, each])));
  model.byName = new Map();
  model.parent = new Map();
  const enter = (part, above) => {
    model.byName.set(part.name, part);
    model.parent.set(part.name, above);
    part.parts.forEach((each) => enter(each, part));
  };
  model.parts.forEach((part) => enter(part, null));
  return model;
}

/** @returns {Inside} */
export const openedInside = (packed) =>
  Object.fromEntries(Object.entries(packed).map(([name, value]) => [name, unpack(value)]));

/** The name of the part of a place, and the numbers after it. @returns {{name: string, chosen: number[]}} */
export function readPlace(at) {
  const [name = "", ...rest] = at.split("/");
  return {name, chosen: rest.map(Number)};
}

/** The places from the whole to this one, each inside the one before. @returns {string[]} */
export function wayTo(model, at) {
  const {name, chosen} = readPlace(at);
  const parts = [];
  for (let part = model.byName.get(name); part; part = model.parent.get(part.name))
    if (part.kind !== "stack") parts.unshift(part.name);
  const deeper = chosen.map((_, count) => [name, ...chosen.slice(0, count + 1)].join("/"));
  const own = chosen.length > 2 ? deeper.filter((_, count) => count !== 1) : deeper; // a row alone has no scene
  return ["", ...parts, ...own];
}

/** A part that is there. @returns {Part} */
export const partAt = (model, name) => model.byName.get(name);

/** The part that a step of a walkthrough is in: that with the longest beginning of its name. @returns {Part | null} */
export function partOfStep(model, step) {
  let [found, length] = [null, -1];
  for (const part of model.byName.values())
    for (const start of part.steps)
      if (step.startsWith(start) && start.length >= length) [found, length] = [part, start.length];
  return found;
}

/** The pieces that a part has vectors for. */
export function piecesOf(model, part) {
  if (part.whose === "source") return model.source.pieces.map(legible);
  if (part.whose === "whole") return [""];
  return (part.kind === "output" ? model.target : model.inputs).pieces.map(legible);
}

/** Rows and columns of an attention, as pieces. */
export function axesOfPart(model, name) {
  const {side} = model.weights.get(name);
  return axesOf(model, side).map(({pieces}) => pieces.map(legible));
}

/** What a cell of a part's strip says. @returns {{values: number[], what: string, of: (value: number) => string}} */
export function measureOf(model, part) {
  if (part.kind === "output")
    return {values: model.probabilities, what: "how probable each piece was", of: (value) => percent(value)};
  if (part.turned.length)
    return {
      values: part.turned,
      what: "how far it turned each vector: 0 not at all, 1 to a right angle",
      of: (value) => number(value),
    };
  return {values: part.lengths, what: "how long each vector is (√ of the mean square)", of: (value) => number(value)};
}

/** The mean of the heads of an attention. */
export function meanOf({weights, heads}) {
  const [, rows, columns] = weights.shape;
  const values = new Float64Array(rows * columns);
  for (let head = 0; head < heads; head++)
    weights.part(head).forEach((value, place) => (values[place] += value / heads));
  return {values, rows, columns};
}
