// Points on two axes that stay the same while the layers pass: where each occurrence is, and the way it came.

import {element, svg} from "../../element.js";

const [MARGIN, DOT, NEAR, MOVE] = [28, 8, 20, 550]; // pixels, and milliseconds
const LABEL = 13; // height of a line of letters
const still = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * @typedef {{name: string, number: number, hue: number}} Mark
 * @typedef {{marks: Mark[], at: (layer: number, mark: number) => number[], layers: number,
 *   sameAxes: (one: number, other: number) => boolean}} Picture
 */
export function plane(label) {
  return new Plane(label);
}

class Plane {
  /** @type {Picture} */ picture;
  /** @type {number} */ width;
  /** @type {number} */ height;
  /** @type {number} of the animation that is awaited */ frame;

  constructor(label) {
    this.stage = element("div.plane", {role: "img", "aria-label": label});
    this.node = this.stage;
    this.observer = new ResizeObserver(
      ([entry]) => Math.abs(entry.contentRect.width - (this.width ?? 0)) > 1 && this.draw(),
    );
    this.observer.observe(this.stage);
  }

  /** @param {Picture} picture */
  show(picture, layer) {
    this.picture = picture;
    this.layer = layer;
    this.place = layer; // on the way between two layers it is a fraction
    this.node.picture = picture;
    this.draw();
  }

  /** Go to a layer: the points travel, unless the user wants less motion or the axes are others. */
  move(layer) {
    if (!this.picture || layer === this.layer) return;
    const from = this.place;
    this.layer = layer;
    cancelAnimationFrame(this.frame);
    if (still.matches || !this.picture.sameAxes(Math.round(from), layer)) return this.jump(layer);
    const begun = performance.now();
    const travel = (now) => {
      const share = Math.min(1, (now - begun) / MOVE);
      this.place = from + (layer - from) * (share * share * (3 - 2 * share));
      this.draw();
      if (share < 1) this.frame = requestAnimationFrame(travel);
    };
    this.frame = requestAnimationFrame(travel);
  }

  jump(layer) {
    this.place = layer;
    this.draw();
  }

  draw() {
    this.width = this.stage.clientWidth;
    if (!this.width || !this.picture) return;
    this.height = Math.min(420, Math.max(260, 0.72 * this.width));
    const {marks} = this.picture;
    const places = marks.map((_, mark) => this.position(mark));
    const middle = this.pixel([0, 0]);
    this.stage.replaceChildren(
      svg(
        "svg",
        {viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height, "aria-hidden": "true"},
        svg("path", {
          class: "cross",
          d:
            `M${MARGIN / 2} ${middle[1]}H${this.width - MARGIN / 2}M${middle[0]} ` +
            `${MARGIN / 2}V${this.height - MARGIN / 2}`,
        }),
        marks.map((mark, number) => this.trail(mark, number)),
        marks.map((mark, number) =>
          svg("circle", {
            class: `s${mark.hue}`,
            "data-mark": number,
            cx: places[number][0],
            cy: places[number][1],
            r: DOT,
          }),
        ),
        this.labels(places),
      ),
    );
  }

  /** Where a mark is now; between two layers, on the straight line from one to the other. */
  position(mark) {
    const [before, after] = [Math.floor(this.place), Math.ceil(this.place)];
    const share = this.place - before;
    const [one, other] = [this.picture.at(before, mark), this.picture.at(after, mark)];
    return this.pixel([0, 1].map((axis) => one[axis] + share * (other[axis] - one[axis])));
  }

  /**
   * From the axes to the picture. One scale for both axes and all layers, so that distances can be compared.
   * @param {number[]} point  @returns {number[]}
   */
  pixel([x, y]) {
    const {left, right, top, bottom} = this.bounds();
    const scale = Math.min(
      (this.width - 2 * MARGIN - 60) / (right - left || 1),
      (this.height - 2 * MARGIN) / (top - bottom || 1),
    );
    return [this.width / 2 - 30 + scale * (x - (left + right) / 2), this.height / 2 - scale * (y - (top + bottom) / 2)];
  }

  bounds() {
    const {marks, layers, at} = this.picture;
    const all = Array.from({length: layers}, (_, layer) => marks.map((_mark, place) => at(layer, place))).flat();
    const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
    return {left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys)};
  }

  trail(mark, number) {
    const passed = Array.from({length: Math.floor(this.place) + 1}, (_, layer) => layer).filter((layer) =>
      this.picture.sameAxes(layer, this.layer),
    );
    if (!passed.length) return null;
    const points = [...passed.map((layer) => this.pixel(this.picture.at(layer, number))), this.position(number)];
    return svg("polyline", {
      class: `trail s${mark.hue}`,
      points: points.map((point) => point.map((part) => part.toFixed(1)).join(",")).join(" "),
    });
  }

  /** Names beside the points; those of points that lie on each other stand below one another. */
  labels(places) {
    const groups = [];
    places.forEach((place, number) => {
      const group = groups.find(({at}) => Math.hypot(at[0] - place[0], at[1] - place[1]) < NEAR);
      if (group) group.numbers.push(number);
      else groups.push({at: place, numbers: [number]});
    });
    return groups.flatMap(({at, numbers}) => {
      const names = told(numbers.map((number) => this.picture.marks[number]));
      const first = Math.min(
        Math.max(at[1] + 4 - ((names.length - 1) * LABEL) / 2, LABEL),
        this.height - names.length * LABEL,
      );
      return names.map((text, line) => svg("text", {x: at[0] + DOT + 5, y: first + line * LABEL}, text));
    });
  }

  leave() {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
  }
}

/** Names of points in one place: each name once, with all its numbers before it. */
function told(marks) {
  const found = new Map();
  for (const {number, name} of marks) found.set(name, [...(found.get(name) ?? []), number]);
  return [...found].map(([name, numbers]) => `${numbers.join(", ")} ${name}`);
}
