// What was found: figures, the plane, the chart, the table of cosines, neighbours and translations. One slider, the
// layer, moves them all.

import {element} from "../../element.js";
import {segmented} from "../../pieces/forms.js";
import {HUES, lineChart} from "../../pieces/chart.js";
import {heatmap} from "../../pieces/heatmap.js";
import {extent, shortened} from "../../pieces/letters.js";
import {bare} from "../../pieces/question.js";
import {neighbours} from "./neighbours.js";
import {plane} from "./plane.js";
import {controlsOf, summarise} from "./summary.js";
import {translated} from "./translated.js";

const BEAT = 1100; // milliseconds that a layer stays when all are played
const AXES = "The axes are the same for all layers, so that the way of a point can be followed.";
const ROOM = 180; // pixels of a name at the most: a translation may be one word without an end
const BROKEN = " The broken line is the control word in the same sentences.";

/**
 * @param {any} found the service's answer, its tensors unpacked, with the translations of the sentences and `rows`,
 *   the place of each of them in the list
 * @param {{change: (changes: object, options?: object) => void}} about
 * @returns {{node: HTMLElement, go: (state: {layer: number | null, from: number}) => void, leave: () => void}}
 */
export function results(found, {change}) {
  return new Results(found, change);
}

const fitting = (text) => shortened(text, ROOM, extent);

class Results {
  constructor(found, change) {
    this.found = found;
    this.change = change;
    this.own = found.occurrences.filter((one) => !one.control);
    this.controls = controlsOf(found.occurrences);
    this.names = this.own.map((one, place) => `${found.rows[place] + 1} ${fitting(one.translation || one.word)}`);
    this.plane = plane("The occurrences on two axes; the table of cosines has the numbers.");
    this.chart = lineChart({
      title: "Cosine by layer",
      x: {label: "", names: found.layers},
      y: {label: "cosine", high: 1},
      digits: 3,
    });
    this.map = heatmap({
      label: "Cosines of every pair",
      digits: 3,
      describe: (row, column, value) => `${row} and ${column}  ${value}`,
    });
    this.node = this.layout();
    this.plane.show(this.picture(), 0);
  }

  layout() {
    const {found} = this;
    this.figures = element("dl.figures", {"aria-live": "polite"});
    this.level = element("p.note.level");
    this.near = element("div.near");
    this.from = element("div");
    this.axes = element("p.note");
    const control = found.occurrences.some((one) => one.control);
    const word = bare(this.own[0].word);
    return element(
      "div",
      found.translations.length
        ? part(
            "How each is translated",
            "Marked is the word and what it became. Tap or point at any other to see its links.",
            translated(found, this.own),
          )
        : null,
      this.slider(),
      this.level,
      this.figures,
      element(
        "div.two",
        part(
          "Where they are",
          `Each point is ${word} in one sentence. Near means alike. ${AXES}`,
          this.plane.node,
          this.axes,
        ),
        part(
          "How alike they are",
          `The cosine of ${word} in one sentence with ${word} in each of the others; ` +
            `1 is the same direction.${control ? BROKEN : ""}`,
          this.from,
          this.chart.node,
        ),
      ),
      element(
        "div.two.uneven",
        part("Every pair", "The cosine of every pair, at this layer.", this.map.node),
        part(
          "Nearest words",
          `The words with the nearest vectors at this layer, among ${found.searched ?? "some"} sentences: ` +
            `yours${found.searched === found.rows.length ? "" : ", and those that the run was validated on"}.`,
          this.near,
        ),
      ),
    );
  }

  /** The layer, as a slider with a name for each stop, and a button that goes through them all. */
  slider() {
    const {layers} = this.found;
    const range = element("input", {type: "range", min: 0, max: layers.length - 1, step: 1, id: "meaning-layer"});
    range.addEventListener("input", () => this.change({layer: Number(range.value)}, {replace: true}));
    const stops = element(
      "div.stops",
      {"aria-hidden": "true"},
      layers.map((name) => element("span", name)),
    );
    this.play = element("button.small", {onclick: () => this.toggle()}, "Play");
    this.range = range;
    return element(
      "div.layers-bar",
      element("label", {for: "meaning-layer"}, "Layer"),
      element("div.track", range, stops),
      this.play,
    );
  }

  /** From the embedding up, one layer at a time. */
  toggle() {
    if (this.playing) return this.stop();
    this.play.textContent = "Stop";
    const step = (layer) => {
      this.change({layer}, {replace: true});
      this.playing =
        layer + 1 < this.found.layers.length
          ? setTimeout(() => step(layer + 1), BEAT)
          : setTimeout(() => this.stop(), BEAT);
    };
    step(0);
  }

  stop() {
    clearTimeout(this.playing);
    this.playing = undefined;
    this.play.textContent = "Play";
  }

  picture() {
    const {points, explained, layers} = this.found;
    const marks = this.own.map((one, place) => ({
      name: one.translation || one.word,
      number: this.found.rows[place] + 1,
      hue: this.found.rows[place] % HUES,
    }));
    return {
      marks,
      layers: layers.length,
      at: (layer, mark) => [...points.part(layer, mark)],
      sameAxes: (one, other) => explained[one] === explained[other],
    };
  }

  /** Show a layer, and the chart from one of the occurrences. */
  go({layer, from}) {
    const last = this.found.layers.length - 1;
    const now = Math.min(last, Math.max(0, layer ?? last));
    const first = Math.min(from, this.own.length - 1);
    this.range.value = now;
    this.range.setAttribute("aria-valuetext", this.found.layers[now]);
    this.plane.move(now);
    const share = Math.round(100 * this.found.explained[now]);
    this.axes.textContent = `The two axes show ${share} % of how the vectors differ.`;
    this.tell(now);
    this.draw(now, first);
    this.near.replaceChildren(...neighbours(this.found.neighbours[now], this.own, this.found.rows));
  }

  tell(layer) {
    const {same, different, all, control} = summarise(this.found, layer);
    const word = bare(this.found.occurrences.find((one) => one.control)?.word ?? "");
    /** @type {[string, number | null][]} */
    const rows =
      different === null
        ? [["All of them", all]]
        : [
            ["Translated alike", same],
            ["Translated differently", different],
          ];
    if (control !== null) rows.push([`Control: ${word}`, control]);
    const known = rows.filter(([, value]) => value !== null);
    const shown = ([name, value]) =>
      element("div", element("dt", name), element("dd", {"data-value": value}, value.toFixed(3)));
    this.figures.replaceChildren(...known.map(shown));
    this.level.textContent = layer
      ? `Mean cosine at ${this.found.layers[layer]}`
      : "Mean cosine at the embedding, where the sentence is not yet mixed in";
  }

  draw(layer, first) {
    const {layers} = this.found;
    if (this.drawn !== first) {
      this.drawn = first;
      this.chart.show(this.series(first));
      const options = this.own.map((_, place) => ({value: String(place), text: this.names[place]}));
      this.from.replaceChildren(
        this.own.length > 2
          ? segmented({
              label: "From",
              options,
              value: String(first),
              onchange: (value) => this.change({from: Number(value)}),
            })
          : "",
      );
    }
    const all = layers.flatMap((_, each) => this.square(each));
    const values = this.square(layer);
    this.map.show({
      rows: this.names,
      columns: this.names,
      values: Float32Array.from(values),
      range: [Math.min(...all, 0.9999), 1],
    });
  }

  /** The cosines of the occurrences among themselves at a layer, row by row. */
  square(layer) {
    return this.own.flatMap((_, one) => this.own.map((_other, other) => this.found.cosines.at(layer, one, other)));
  }

  series(first) {
    const {cosines, layers, occurrences} = this.found;
    const line = (value) => layers.map((_, layer) => ({x: layer, y: Math.min(1, value(layer))})); // 1.0000001 is 1
    const others = this.own.map((_, place) => place).filter((place) => place !== first || this.own.length === 1);
    const found = others.map((place) => ({
      name: `with ${this.names[place]}`,
      hue: this.found.rows[place],
      points: line((layer) => cosines.at(layer, first, place)),
    }));
    const [own, rest] = [
      this.controls[first],
      others.map((place) => this.controls[place]).filter((place) => place !== undefined),
    ];
    if (own === undefined || !rest.length) return found;
    const mean = (layer) => rest.reduce((sum, place) => sum + cosines.at(layer, own, place), 0) / rest.length;
    return [
      ...found,
      {
        name: `control: ${bare(occurrences[own].word)}${rest.length > 1 ? ", mean" : ""}`,
        hue: 5,
        dashed: true,
        points: line(mean),
      },
    ];
  }

  leave() {
    this.stop();
    for (const piece of [this.plane, this.chart, this.map]) piece.leave();
  }
}

function part(title, about, ...children) {
  return element("section.part", element("h2", title), element("p.note", about), ...children);
}
