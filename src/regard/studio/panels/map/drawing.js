// The model as a drawing through which one can zoom: the whole, a layer, an attention, a head, one product.
//
//   const map = drawing({href: (at) => link("map", {…, at})});
//   map.show(answer, "encoder.0.self/2", inside);   // as /api/v1/map has it; `inside` are the numbers of the part
//   map.light("encoder.0.self");                     // where one is, in Learn
//
// A place is the name of a part, then what is chosen in it: head, row, column; or piece, unit. Every place has a scene,
// an ordinary piece of the page; going from one to the next moves both by `transform` and `opacity` alone, so that the
// place that was chosen grows until it is the new scene.

import {element, svg} from "../../element.js";
import {painter, range, whileShown} from "../../pieces/scales.js";
import {thumbnail} from "../../pieces/thumbnail.js";
import {meanOf, measureOf, partAt, piecesOf, wayTo} from "./model.js";

const TIME = 420; // milliseconds of a zoom
const TICK = 110; // milliseconds from one place to the next while the sentence flows
const SLANTED = 24; // pieces that are legible there; of more, every second or third is written
const LETTERS = 30; // of pieces that stand beside one another below a column; more are slanted
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * @typedef {import("./model.js").Part} Part
 * @typedef {import("./model.js").Model} Model
 * @typedef {import("./model.js").Inside} Inside
 * @param {{href: (at: string) => string, compact?: boolean, scene?: (model: Model, at: string, inside: Inside) => Node,
 *   onpoint?: (part: Part | null) => void}} about  `scene` draws the places inside; `compact`: titles alone
 */
export function drawing({href, compact = false, scene = undefined, onpoint = () => {}}) {
  return new Drawing({href, compact, scene, onpoint});
}

class Drawing {
  /** @type {Model} */ model;
  /** @type {number | undefined} */ flowing;

  constructor(about) {
    this.about = about;
    this.at = "";
    this.stage = element("div", {class: about.compact ? "map-stage compact" : "map-stage"});
    this.node = this.stage;
    this.observer = new ResizeObserver(() => this.wire());
    this.observer.observe(this.stage);
    this.stage.addEventListener("pointerover", (event) => this.pointed(event));
    this.stage.addEventListener("focusin", (event) => this.pointed(event));
    this.stage.addEventListener("keydown", (event) => this.key(event));
  }

  pointed({target}) {
    const name = target.closest?.("[data-part]")?.dataset.part;
    if (name !== this.pointedAt) this.about.onpoint(this.model?.byName.get(name) ?? null);
    this.pointedAt = name;
  }

  /** Show a place; from the one that is shown it is a zoom, if one is inside the other. */
  show(model, at, inside = {}) {
    const [before, from, same] = [this.scene, this.at, this.model === model];
    this.model = model;
    this.at = at;
    const drawn = at === "" ? whole(model, this.about) : this.about.scene(model, at, inside);
    this.scene = element("div.scene", {"data-at": at}, drawn);
    this.stop();
    if (before && same && from !== at && !calm.matches) this.zoom(before, from);
    else this.stage.replaceChildren(this.scene);
    this.wire();
  }

  /** One scene grows out of a place of the other, or shrinks back into it. */
  zoom(before, from) {
    const [deep, high] = [wayTo(this.model, this.at), wayTo(this.model, from)];
    const inwards = deep.includes(from) && deep.length > high.length;
    const outwards = high.includes(this.at) && high.length > deep.length;
    this.stage.replaceChildren(this.scene, before);
    before.classList.add("leaving");
    before.inert = true;
    const [outer, way] = inwards ? [before, deep] : [this.scene, high];
    const door = outwards || inwards ? doorIn(outer, way, outer.dataset.at) : null;
    const frame = this.stage.getBoundingClientRect();
    const place = door?.getBoundingClientRect() ?? centre(frame);
    const scale = Math.min(8, frame.width / Math.max(1, place.width));
    const [x, y] = [place.left - frame.left, place.top - frame.top];
    const near = `translate(${-x * scale}px, ${-y * scale}px) scale(${scale})`;
    const far = `translate(${x}px, ${y}px) scale(${1 / scale})`;
    const options = {duration: TIME, easing: "cubic-bezier(.4, 0, .2, 1)"};
    const [grows, shrinks] = outwards ? [near, far] : [far, near];
    const here = this.scene.animate(
      [
        {transform: grows, opacity: 0},
        {opacity: 1, offset: 0.75},
        {transform: "none", opacity: 1},
      ],
      options,
    );
    before.animate(
      [
        {transform: "none", opacity: 1},
        {transform: shrinks, opacity: 0},
      ],
      {...options, fill: "forwards"},
    );
    here.finished.then(
      () => before.remove(),
      () => before.remove(),
    );
  }

  /** Lines from each part to those that read it, drawn once their places are known. */
  wire() {
    const board = this.scene?.querySelector("svg.wires");
    if (!board || !this.stage.clientWidth) return;
    const frame = board.parentElement.getBoundingClientRect();
    const place = (node) => {
      const {left, right, top, height} = node.getBoundingClientRect();
      return {left: left - frame.left, right: right - frame.left, y: top - frame.top + height / 2};
    };
    board.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    const columns = board.parentElement.querySelectorAll(".column");
    const gap = columns.length > 1 ? (place(columns[0]).right + place(columns[1]).left) / 2 : 0;
    const find = (name) => this.scene.querySelector(`[data-end="${CSS.escape(name)}"]`);
    const lines = [...this.scene.querySelectorAll("[data-reads]")].flatMap((reader) =>
      reader.dataset.reads.split(" ").flatMap((name) => {
        const end = find(name);
        const column = reader.closest(".column");
        if (!end || (column && column === end.closest(".column"))) return []; // it stands below: a line is there
        const [from, to] = [place(end), place(reader)];
        const shift = name === "context" ? -4 : 4;
        const path = `M${from.right} ${from.y}H${gap + shift}V${to.y}H${to.left}`;
        return [svg("path", {d: path, class: name === "context" ? "wire once" : "wire"})];
      }),
    );
    board.replaceChildren(...lines);
  }

  /** Where one is. @param {string} name of a part */
  light(name) {
    for (const node of this.stage.querySelectorAll("[data-part]")) {
      const on = node.dataset.part === name || this.inside(name, node.dataset.part);
      node.classList.toggle("lit", on);
      if (on) node.setAttribute("aria-current", "location");
      else node.removeAttribute("aria-current");
    }
  }

  inside(name, outer) {
    for (let part = this.model.parent.get(name); part; part = this.model.parent.get(part.name))
      if (part.name === outer) return true;
    return false;
  }

  /**
   * The sentence goes through the model in the order of its computation: an encoder takes all pieces at once, or one
   * after the other if it is recurrent; a decoder writes piece by piece.
   */
  flow(done = () => {}) {
    this.stop();
    const order = orderOf(this.scene, this.model);
    this.scene.classList.add("flowing");
    let place = 0;
    const next = () => {
      for (const cell of order[place] ?? []) cell.classList.add("on");
      place += 1;
      if (place < order.length) this.flowing = setTimeout(next, TICK);
      else this.flowing = setTimeout(() => (this.stop(), done()), 4 * TICK);
    };
    next();
  }

  stop() {
    clearTimeout(this.flowing);
    this.flowing = undefined;
    for (const cell of this.stage.querySelectorAll(".cell.on")) cell.classList.remove("on");
    for (const each of this.stage.querySelectorAll(".flowing")) each.classList.remove("flowing");
  }

  /** The arrow keys go from part to part. */
  key(event) {
    const by = {ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0]}[event.key];
    const here = event.target.closest?.("[data-door]");
    if (!by || !here) return;
    const doors = [...this.scene.querySelectorAll("[data-door]")].filter((each) => each !== here);
    const middle = (node) => {
      const {left, top, width, height} = node.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    };
    const [x, y] = middle(here);
    const far = (node) => {
      const [dx, dy] = [middle(node)[0] - x, middle(node)[1] - y];
      const along = dx * by[0] + dy * by[1];
      return along > 2 ? along + 3 * Math.abs(dx * by[1] + dy * by[0]) : Infinity;
    };
    const nearest = doors.map((node) => ({node, away: far(node)})).sort((one, other) => one.away - other.away)[0];
    event.preventDefault();
    event.stopPropagation();
    if (nearest && nearest.away < Infinity) nearest.node.focus();
  }

  leave() {
    this.stop();
    this.observer.disconnect();
  }
}

/** What leads from a scene towards a place: the first that is there of those on the way. */
function doorIn(scene, way, at) {
  const [next] = way.slice(way.indexOf(at) + 1);
  return scene.querySelector(`[data-door="${CSS.escape(next)}"]`) ?? scene.querySelector("[data-picture]");
}

const centre = ({left, top, width, height}) => ({
  left: left + width * 0.3,
  top: top + height * 0.3,
  width: width * 0.4,
  height: height * 0.4,
});

/** Cells in the order in which they are computed: lists of those that come at the same time. */
function orderOf(scene, model) {
  const rows = [...scene.querySelectorAll(".strip")].map((strip) => ({
    part: partAt(model, strip.dataset.of),
    cells: [...strip.children],
  }));
  const order = [];
  for (const {part, cells} of rows.filter((row) => row.part.whose !== "target")) {
    if (part.kind === "recurrent") order.push(...cells.map((cell) => [cell]));
    else order.push(cells);
  }
  const written = rows.filter((row) => row.part.whose === "target");
  const count = Math.max(0, ...written.map(({cells}) => cells.length));
  for (let time = 0; time < count; time++) for (const {cells} of written) if (cells[time]) order.push([cells[time]]);
  return order;
}

/* The whole: columns of parts, from the words up */

function whole(model, about) {
  const column = (parts, sentence, name) =>
    element(
      "div.column",
      {"aria-label": `Parts of the ${name.toLowerCase()}`, role: "group"},
      about.compact ? null : sentence,
      ...parts.map((part) => box(model, part, about)),
    );
  const stacks = model.parts.filter(({kind}) => kind === "stack");
  const columns = stacks.map((stack) => {
    const own = stack.name === "encoder" ? ["context", "pool"] : [];
    const after = model.parts.filter(({name, kind}) => own.includes(name) || kind === "output");
    const mine = after.filter(({kind}) => kind !== "output" || stack === stacks.at(-1));
    return column([...stack.parts, ...mine], words(model, stack), stack.title);
  });
  return element(
    "div",
    {class: `whole of-${stacks.length}`},
    svg("svg", {class: "wires", "aria-hidden": "true"}),
    ...columns,
  );
}

/** The pieces that a column begins with. */
function words(model, stack) {
  const pieces = piecesOf(model, stack);
  const long = Math.max(0, ...pieces.map(({length}) => length)) * pieces.length > LETTERS;
  const each = Math.ceil(pieces.length / SLANTED);
  return element(
    long ? "div.pieces.long" : "div.pieces",
    {dir: "auto", "aria-label": stack.name === "encoder" ? "What is read" : "What is written"},
    pieces.map((piece, place) => element("span", {title: piece}, place % each ? "" : piece)),
  );
}

/** One part: its name and size, and what it made of each piece. */
export function box(model, part, {href, compact}) {
  const reads = part.reads.filter((name) => name === "encoder" || name === "context");
  const parent = model.parent.get(part.name);
  const last = parent?.kind === "stack" && parent.parts.at(-1) === part;
  const weights = compact ? null : stampOf(model, part);
  const inner = compact
    ? [element("span.title", part.title)]
    : [element("span.title", part.title), element("span.size.number", part.size), stripOf(model, part), weights];
  return element(
    "a",
    {
      class: `part ${part.kind}`,
      href: href(part.name),
      "data-part": part.name,
      "data-door": part.name,
      "data-reads": reads.length ? reads.join(" ") : null,
      "data-end": part.name === "context" ? "context" : last ? parent.name : null,
      "aria-label": spoken(model, part),
    },
    ...inner.filter(Boolean),
  );
}

/** "Layer 2, 64, 33,472 parameters". */
function spoken(model, part) {
  const owner = model.parent.get(part.name);
  const where =
    owner?.kind === "stack" && model.parts.filter(({kind}) => kind === "stack").length > 1 ? owner.title : "";
  const said = [
    where,
    part.title,
    part.size.replaceAll("→", "to"),
    `${part.parameters.toLocaleString("en")} parameters`,
  ];
  return said.filter(Boolean).join(", ");
}

/**
 * A cell for each piece: how far the part turned its vector, or how long it is; of the output, how probable it was.
 */
export function stripOf(model, part) {
  const {values, of} = measureOf(model, part);
  if (!values.length) return null;
  const pieces = piecesOf(model, part);
  const cells = values.map((value, place) => element("i.cell", {title: `${pieces[place]}: ${of(value)}`}));
  const node = element("span", {class: `strip ${part.kind}`, "data-of": part.name, "aria-hidden": "true"}, cells);
  const paint = () => {
    const {colour} = painter("sequential", range("sequential", values));
    cells.forEach((cell, place) => (cell.style.backgroundColor = colour(values[place])));
  };
  paint();
  whileShown(node, paint);
  return node;
}

/** A layer's attention as a stamp: the mean of its heads. A decoder's is that to the source. */
function stampOf(model, part) {
  const names = [`${part.name}.cross`, `${part.name}.self`, part.name];
  const found = names.map((name) => model.weights.get(name)).find(Boolean);
  if (!found || part.kind === "recurrent") return null;
  return thumbnail({...meanOf(found), range: [0, 1]});
}
