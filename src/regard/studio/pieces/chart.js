// Lines over an axis, with intervals: the report's charts, but one can point at them.
//
//   const chart = lineChart({title: "Loss", x: {label: "step"}, y: {label: "loss", log: true}});
//   root.append(chart.node);
//   chart.show([{name: "train", points: [{x: 0, y: 4.1}, {x: 100, y: 2.3, low: 2.1, high: 2.5}]}]);
//
// A series is told apart by colour, marker and dash. The arrow keys move from place to place; values are announced.

import {element, svg} from "../element.js";
import {announce} from "./announce.js";
import {categories, figure, linear, logarithmic} from "./axes.js";
import {extent} from "./letters.js";
import {folded, table} from "./table.js";

export const HUES = 6; // colours that tell series apart
const DASHES = [null, "7 3", "2 3", "9 3 2 3"];
const MARKERS = [
  "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0Z",
  "M-4 -4h8v8h-8Z",
  "M0 -5.5L5 4H-5Z",
  "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
  "M0 5.5L5 -4H-5Z",
];
const MOST_MARKED = 24; // points of a series that get a marker each
const [GAP, LINE] = [8, 16];

/**
 * @typedef {{x: number, y: number | null, low?: number, high?: number, near?: number[], note?: string}} Point  `near`:
 *   the ends of a second interval within the first
 * @typedef {{name: string, points: Point[], hue?: number, dashed?: boolean, band?: boolean}} Series  `hue`: a colour and
 *   marker other than that of its place among the series; `band`: intervals are a surface, not bars
 * @param {{title: string, height?: number, digits?: number,
 *   x: {label: string, names?: string[], log?: boolean, whole?: boolean},
 *   y: {label: string, log?: boolean, zero?: boolean, low?: number, high?: number, most?: number}}} options
 */
export function lineChart(options) {
  return new LineChart({height: 240, digits: 2, ...options});
}

class LineChart {
  /** @type {number[]} x of all points, once there is a picture */ places;
  /** @type {(value: number) => number} */ across;
  /** @type {(value: number) => number} */ up;

  constructor(options) {
    this.options = options;
    this.series = [];
    this.shades = [];
    this.tip = element("output.tip", {hidden: true, "aria-hidden": "true"});
    this.names = element("div.names");
    this.stage = element("div.stage", {
      role: "application",
      tabindex: 0,
      "aria-roledescription": "chart",
      "aria-label": `${options.title}. Chart. The arrow keys move from place to place.`,
    });
    this.foot = element("div.foot");
    this.node = element("div.chart", this.names, this.stage, this.tip, this.foot);
    this.stage.addEventListener("pointermove", (event) => this.pointed(event));
    this.stage.addEventListener("pointerleave", () => this.point(null));
    this.stage.addEventListener("blur", () => this.point(null));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.observer = new ResizeObserver(([entry]) => entry.contentRect.width !== this.width && this.draw());
    this.observer.observe(this.stage);
  }

  /** @param {Series[]} series  @param {number[][]} [shades] x and strength, from 0 to 1, of columns behind the lines */
  show(series, shades = []) {
    this.series = series;
    this.shades = shades;
    this.node.shown = series;
    this.names.replaceChildren(...(series.length > 1 ? series.map(nameTag) : []));
    const open = this.foot.querySelector("details")?.open ?? false;
    this.foot.replaceChildren(asTable(this.options, series, (x) => this.wordOf(x)));
    this.foot.firstChild.open = open; // a curve that grows does not fold its table away
    this.draw();
  }

  draw() {
    this.width = this.stage.clientWidth;
    if (!this.width) return;
    const {x, y} = this.axes();
    const left = Math.max(0, ...y.ticks.map(([, text]) => extent(text))) + GAP;
    const box = {left, right: this.width - GAP - 4, top: LINE + 2 * GAP, bottom: this.options.height - 2 * LINE - GAP};
    const share = (axis, value) => (axis.place(value) - axis.low) / (axis.high - axis.low || 1);
    const scale = (axis, start, end) => (value) => start + (end - start) * share(axis, value);
    this.across = scale(x, box.left, box.right);
    this.up = scale(y, box.bottom, box.top);
    this.places = [
      ...new Set(this.series.flatMap(({points}) => points.filter((point) => point.y != null).map((point) => point.x))),
    ].sort((a, b) => a - b);
    this.rule = svg("line", {class: "rule", y1: box.top, y2: box.bottom, visibility: "hidden"});
    const size = {viewBox: `0 0 ${this.width} ${this.options.height}`, width: this.width, height: this.options.height};
    const dodge = this.dodge();
    const lines = this.series.map((one, number) =>
      this.line(one, number, dodge * (number - (this.series.length - 1) / 2)),
    );
    const behind = [this.columns(box), this.grid(x, y, box), this.rule];
    this.stage.replaceChildren(svg("svg", {"aria-hidden": "true", ...size}, behind, lines));
  }

  columns({top, bottom}) {
    return this.shades.map(([x, strength]) => {
      const [left, right] = [this.across(x - 0.5), this.across(x + 0.5)];
      const size = {x: left, width: right - left, y: top, height: bottom - top};
      return svg("rect", {class: "shade", ...size, "fill-opacity": strength.toFixed(3)});
    });
  }

  /** The surface between two ends of each point. */
  band(points, ends, kind) {
    const there = points.filter((point) => ends(point).every((end) => end != null));
    const side = (which) => there.map((point) => `${this.across(point.x)} ${this.up(ends(point)[which])}`);
    return svg("path", {class: kind, d: `M${[...side(0), ...side(1).reverse()].join("L")}Z`});
  }

  axes() {
    const {x, y} = this.options;
    const points = this.series.flatMap((one) => one.points).filter((point) => point.y != null);
    const across = points.map((point) => point.x);
    const up = points
      .flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y])
      .concat([y.low, y.high].filter((end) => end !== undefined));
    return {
      x: x.names
        ? categories(x.label, x.names)
        : x.log
          ? logarithmic(x.label, across)
          : linear(x.label, across, {count: this.width > 480 ? 7 : 4, whole: x.whole}),
      y: y.log ? logarithmic(y.label, up) : linear(y.label, up, {zero: y.zero, most: y.most}),
    };
  }

  grid(x, y, {left, right, top, bottom}) {
    const up = (mark) => bottom + ((top - bottom) * (mark - y.low)) / (y.high - y.low || 1);
    const across = (mark) => left + ((right - left) * (mark - x.low)) / (x.high - x.low || 1);
    const rows = y.ticks.flatMap(([mark, text]) => [
      svg("line", {class: "grid", x1: left, x2: right, y1: up(mark), y2: up(mark)}),
      label(left - GAP / 2, up(mark) + 4, text, "end"),
    ]);
    const columns = thinned(
      x.ticks.map(([mark, text]) => [across(mark), text]),
      this.width,
    ).map(([place, text, anchor]) => label(place, bottom + GAP + 12, text, anchor));
    return [
      ...rows,
      ...columns,
      label(0, 12, y.label, "start"),
      label((left + right) / 2, this.options.height - 4, x.label, "middle"),
    ];
  }

  /** How far apart series stand at one place: not at all without intervals. */
  dodge() {
    if (!this.series.some(({points, band}) => !band && points.some((point) => point.low != null))) return 0;
    const pixels = this.places.map(this.across);
    const room = Math.min(this.width, ...pixels.slice(1).map((place, before) => place - pixels[before]));
    return Math.min(10, (0.6 * room) / this.series.length);
  }

  line(series, place, shift) {
    const {points} = series;
    const number = hueOf(series, place);
    let [path, pen] = ["", "M"];
    /** @type {SVGElement[][]} */
    const [intervals, markers] = [[], []];
    for (const point of points) {
      if (point.y == null) {
        pen = "M";
        continue;
      }
      const [x, y] = [this.across(point.x) + shift, this.up(point.y)];
      path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = "L";
      if (point.low != null && point.high != null && !series.band) {
        const [low, high] = [this.up(point.low), this.up(point.high)];
        intervals.push(svg("path", {class: "interval", d: `M${x - 3} ${low}h6M${x} ${low}V${high}m-3 0h6`}));
      }
      if (points.length <= MOST_MARKED || point.note) {
        const transform = `translate(${x} ${y})`;
        markers.push(svg("path", {class: "marker", d: MARKERS[number % MARKERS.length], transform}));
      }
    }
    const dash = series.dashed ? DASHES[1] : DASHES[Math.floor(number / HUES) % DASHES.length];
    return svg(
      "g",
      {class: `s${number % HUES}`},
      series.band ? this.band(points, ({low, high}) => [low, high], "band") : null,
      series.band ? this.band(points, ({near = []}) => [near[0], near[1]], "band near") : null,
      intervals,
      path ? svg("path", {class: "path", d: path, "stroke-dasharray": dash}) : null,
      markers,
    );
  }

  pointed(event) {
    const x = event.clientX - this.stage.getBoundingClientRect().left;
    const near = (place) => Math.abs(this.across(place) - x);
    this.point(
      this.places?.reduce((best, place, number) => (near(place) < near(this.places[best]) ? number : best), 0) ?? null,
    );
  }

  point(number) {
    const place = number === null ? undefined : this.places?.[number];
    this.number = place === undefined ? null : number;
    this.tip.hidden = place === undefined;
    this.rule?.setAttribute("visibility", place === undefined ? "hidden" : "visible");
    if (place === undefined) return;
    const x = this.across(place);
    this.rule.setAttribute("x1", x);
    this.rule.setAttribute("x2", x);
    this.tip.replaceChildren(
      element("b", this.wordOf(place)),
      ...this.at(place).map(({text, series}) => element("span", {class: `s${series % HUES} tagged`}, text)),
    );
    const room = this.node.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, x + 12 > room ? x - this.tip.offsetWidth - 12 : x + 12))}px`;
    this.tip.style.top = `${this.stage.offsetTop + LINE}px`;
  }

  key(event) {
    const last = (this.places?.length ?? 0) - 1;
    const from = this.number ?? -1;
    const next = {
      ArrowLeft: Math.max(0, from - 1),
      ArrowRight: Math.min(last, from + 1),
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined || last < 0) return;
    event.preventDefault();
    this.point(next);
    announce([this.wordOf(this.places[next]), ...this.at(this.places[next]).map(({text}) => text)].join("; "));
  }

  wordOf(place) {
    const {names, label: name} = this.options.x;
    return names ? names[place] : `${name} ${figure(place, Number.isInteger(place) ? 0 : 2)}`;
  }

  at(place) {
    return this.series.flatMap((series, number) => {
      const {name, points} = series;
      const point = points.find((each) => each.x === place && each.y != null);
      return point ? [{series: hueOf(series, number), text: `${name} ${written(point, this.options.digits)}`}] : [];
    });
  }

  leave() {
    this.observer.disconnect();
  }
}

const label = (x, y, text, anchor) => svg("text", {x, y, "text-anchor": anchor}, text);

function written({y, low, high, note}, digits) {
  const interval = low != null && high != null ? ` (${figure(low, digits)} to ${figure(high, digits)})` : "";
  return figure(y, digits) + interval + (note ? `, ${note}` : "");
}

const hueOf = ({hue}, place) => hue ?? place;

function nameTag(series, place) {
  const number = hueOf(series, place);
  const shape = svg(
    "svg",
    {viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true"},
    svg("path", {class: "marker", d: MARKERS[number % MARKERS.length]}),
  );
  return element("span", {class: `s${number % HUES}`}, shape, series.name);
}

/** Every label, or only every second, third, …: whatever leaves a gap. The last one stays within the picture. */
function thinned(places, width) {
  for (let every = 1; every <= places.length; every++) {
    const kept = places.filter((_, number) => number % every === 0);
    const room = ([x, text], [before, earlier]) => x - before - (extent(text) + extent(earlier)) / 2;
    const fits = kept.every((one, number) => !number || room(one, kept[number - 1]) >= GAP);
    if (fits) return kept.map(([x, text]) => [x, text, x + extent(text) / 2 > width ? "end" : "middle"]);
  }
  return [];
}

function asTable({title, x, digits}, series, wordOf) {
  const places = [...new Set(series.flatMap(({points}) => points.map((point) => point.x)))].sort((a, b) => a - b);
  const cell = ({points}, place) => {
    const point = points.find((each) => each.x === place);
    return point?.y == null ? "–" : written(point, digits);
  };
  const rows = () => places.map((place) => [wordOf(place), ...series.map((one) => cell(one, place))]);
  const head = [x.label, ...series.map(({name}) => name)];
  return folded("As a table", () => table(head, rows(), {caption: `${title}, as a table`}));
}
