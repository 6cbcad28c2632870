// One sentence, learned before your eyes: its output and its attention at every moment the training has looked at it.

import {read, write} from "../../address.js";
import {element} from "../../element.js";
import {field, segmented} from "../../pieces/forms.js";
import {heatmap} from "../../pieces/heatmap.js";
import {legible} from "../../pieces/letters.js";

const WIDEST = 60; // pieces that a picture still shows well

export class WatchedSentence {
  constructor(text) {
    this.input = element("p.input", {dir: "auto"}, text);
    this.frames = [];
    this.slider = element("input", {type: "range", min: 0, max: 0, step: 1, value: 0});
    this.output = element("p.output", {
      dir: "auto",
      "aria-live": "off",
      tabindex: 0,
      role: "group",
      "aria-label": "What it writes",
    });
    this.when = element("p.note.number");
    this.map = heatmap({
      label: "Cross-attention of the watched sentence",
      describe: (row, column, value) => `${row} ← ${column}  ${value}`,
    });
    this.layers = element("div");
    this.caption = element("figcaption");
    const box = element(
      "div.limited",
      {tabindex: 0, role: "group", "aria-label": "Attention of the watched sentence"},
      this.map.node,
    );
    this.figure = element("figure", {hidden: true}, this.layers, box, this.caption);
    this.slider.addEventListener("input", () => this.choose(Number(this.slider.value)));
    const moment = field("Moment of the training", this.slider);
    this.node = element(
      "section.card.watched",
      {"aria-labelledby": "watched-title"},
      element("h2", {id: "watched-title"}, "Watch one sentence learn"),
      element(
        "p.note",
        "What the model makes of the same sentence after 1, 2, 4, 8, … steps and at each validation, " +
          "and where it looks.",
      ),
      this.input,
      this.output,
      element("div.row.end", element("div.moment", moment), this.when),
      this.figure,
    );
    this.node.hidden = true;
  }

  /** The newest is shown until the slider is moved away from it. */
  show(frames) {
    const following = this.place === undefined || this.place === this.frames.length - 1;
    this.frames = [...frames]; // the log grows
    this.node.hidden = frames.length === 0;
    if (!frames.length) return;
    this.slider.max = frames.length - 1;
    const asked = Number(read().values.at);
    const found = asked ? frames.findIndex(({step}) => step === asked) : -1;
    this.paint(found >= 0 ? found : following || this.place >= frames.length ? frames.length - 1 : this.place);
  }

  choose(place) {
    const {values} = read();
    const newest = place === this.frames.length - 1;
    write("train", {...values, at: newest ? "" : this.frames[place].step}, {replace: true});
    this.paint(place);
  }

  paint(place) {
    const frame = this.frames[place];
    const same = this.painted === frame && this.place === place;
    this.place = place;
    this.slider.value = place;
    this.slider.setAttribute("aria-valuetext", `step ${frame.step}: ${frame.output || "nothing"}`);
    this.when.textContent = `step ${frame.step.toLocaleString("en")} · ${place + 1} of ${this.frames.length} looks`;
    if (same) return;
    this.painted = frame;
    this.input.textContent = frame.text;
    this.output.textContent = frame.output || "(nothing yet)";
    this.output.classList.toggle("nothing", !frame.output);
    this.attention(frame);
  }

  attention({source, target, layers}) {
    const drawn = layers?.length > 0 && source.length <= WIDEST && target.length <= 2 * WIDEST;
    this.figure.hidden = !drawn;
    if (!drawn) return;
    this.layer = Math.min(this.layer ?? layers.length - 1, layers.length - 1);
    if (this.layers.childElementCount === 0 && layers.length > 1) {
      const options = layers.map((_, layer) => ({value: String(layer), text: `layer ${layer + 1}`}));
      const pick = (value) => {
        this.layer = Number(value);
        this.attention(this.frames[this.place]);
      };
      this.layers.append(segmented({label: "Layer", options, value: String(this.layer), onchange: pick}));
    }
    this.map.show({
      rows: target.map(legible),
      columns: source.map(legible),
      values: Float32Array.from(layers[this.layer].flat()),
      range: [0, 1],
    });
    const which = layers.length > 1 ? `layer ${this.layer + 1}, mean of its heads` : "the model's attention";
    this.caption.textContent =
      `Cross-attention, ${which}: each row is where the model looked when it wrote that piece. ` +
      "It begins as noise and becomes an alignment.";
  }

  leave() {
    this.map.leave();
  }
}
