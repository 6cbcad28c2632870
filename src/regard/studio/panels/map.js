// Map: the very model that is loaded as a drawing, with the sentence inside it. One zooms in from the whole to a single
// product; the address says where one is.

import {link, write} from "../address.js";
import {latest, post} from "../api.js";
import {element, sheet} from "../element.js";
import {shortcut} from "../keys.js";
import {announce} from "../pieces/announce.js";
import {field, pageHead} from "../pieces/forms.js";
import {named} from "../pieces/glossary.js";
import {
  chosenSentence,
  folding,
  oneLine,
  placeOf,
  remarks,
  saidRun,
  saidText,
  sentenceChoice,
} from "../pieces/question.js";
import {chosen, runPicker, usable} from "../pieces/runs.js";
import {percent} from "../pieces/scales.js";
import {skeleton} from "../pieces/skeleton.js";
import {drawing} from "./map/drawing.js";
import {measureOf, openedInside, prepared, readPlace, wayTo} from "./map/model.js";
import {scenes} from "./map/scenes.js";
import {beginning, textTrouble} from "./runs/attempt.js";

const LEAD =
  "The model that is loaded, with your sentence inside it. Choose a part to go into it: a layer, a head, one product.";

export const tasks = ["translate", "tag", "classify", "language"];
export const nothing = "There is no model to draw yet.";

export async function mount(root, {values, runs}) {
  await sheet("panels/map.css");
  root.append(pageHead("Map", LEAD));
  const page = new MapPage(root, usable(runs, ...tasks));
  await page.update(values);
  return {update: (next) => page.update(next), leave: () => page.leave()};
}

class MapPage {
  /** @type {any} what the address says: run, text, sentence, at */ values;
  /** @type {ReturnType<typeof runPicker>} */ run;
  /** @type {any} import("./map/model.js").Model, once it is there */ model = null;

  constructor(root, runs) {
    this.runs = runs;
    this.ask = latest();
    this.insides = new Map(); // what was recorded in a part, by its name
    this.question = "";
    const href = (at) => link("map", {...this.values, at});
    const scene = scenes({href, go: (at) => this.go(at)});
    this.drawing = drawing({href, scene, onpoint: (part) => this.tell(part)});
    this.choice = sentenceChoice((place) => this.change({sentence: place || "", at: ""}));
    this.remarks = element("div");
    this.way = element("nav.way", {"aria-label": "Where you are in the model"});
    this.play = element("button.small", {onclick: () => this.flow()}, "▶ Let the sentence flow");
    this.aside = element("aside.card.about-part", {"aria-live": "off"});
    this.news = element("div");
    this.body = element(
      "div.map-body",
      element("div.row.map-head", this.way, this.play),
      element("div.map-desk", element("div.map-frame.card", this.drawing.node), this.aside),
    );
    this.form = folding(this.controls());
    root.append(this.form, this.choice, this.remarks, this.news, this.body);
    this.keys = [shortcut("Escape", "on the map: one step out", () => this.out())];
  }

  controls() {
    this.run = runPicker({
      runs: this.runs,
      value: this.runs[0].name,
      onchange: (run) => this.change({run, at: "", sentence: ""}),
    });
    this.text = element("input", {
      type: "text",
      dir: "auto",
      spellcheck: "false",
      autocomplete: "off",
      maxlength: 5000,
    });
    const submit = (event) => {
      event.preventDefault();
      if (this.text.value.trim()) this.change({text: this.text.value.trim(), sentence: "", at: this.values.at ?? ""});
    };
    return element(
      "form.controls.map-question",
      {onsubmit: submit},
      this.run,
      field("Sentence", this.text),
      element("button.primary", {type: "submit"}, "Draw"),
    );
  }

  /** A step that back undoes. */
  change(changes) {
    const next = {...this.values, ...changes};
    write("map", next);
    return this.update(next);
  }

  go(at) {
    return this.change({at});
  }

  out() {
    const {at = ""} = this.values;
    if (this.model && at) this.go(wayTo(this.model, at).at(-2) ?? "");
  }

  async update(values) {
    const run = chosen(this.runs, values.run);
    const {name} = run;
    const mine = (this.visit = (this.visit ?? 0) + 1);
    const text = values.text?.trim() || (await beginning(run));
    if (mine !== this.visit) return; // another question came meanwhile
    this.values = {...values, run: name, text};
    this.run.value = name;
    if (document.activeElement !== this.text) this.text.value = oneLine(text);
    this.form.fold(saidRun(name), saidText(text));
    const place = placeOf(values);
    const body = {run: name, text, ...chosenSentence(place)};
    const asked = JSON.stringify(body);
    if (asked !== this.question) {
      this.model = null;
      this.insides.clear();
    }
    this.question = asked;
    const {name: part, chosen: inner} = readPlace(values.at ?? "");
    const wanted = part && (!this.model || this.needs(part, inner)) && !this.insides.has(part) ? part : "";
    try {
      if (!this.model) this.news.replaceChildren(skeleton("page"));
      this.body.hidden = !this.model;
      if (!this.model || wanted) {
        const found = await this.ask((signal) => post("/api/v1/map", {...body, part: wanted}, {signal}));
        if (!found || asked !== this.question) return;
        this.model ??= prepared(found);
        if (wanted) this.insides.set(wanted, openedInside(found.inside));
        this.choice.show(found.sentences, place);
        this.remarks.replaceChildren(...remarks(found));
      }
      this.news.replaceChildren();
      this.show(this.model.byName.has(part) ? (values.at ?? "") : "");
    } catch (problem) {
      this.body.hidden = this.choice.hidden = true; // what was shown belongs to the text before
      this.remarks.replaceChildren();
      const take = (other) => this.change({text: other, sentence: "", at: ""});
      this.news.replaceChildren(textTrouble(problem, {run, again: () => this.update(this.values), take}));
    }
  }

  /** Whether a place shows numbers beyond those of the whole. */
  needs(part, inner) {
    const found = this.model?.byName.get(part);
    return (
      Boolean(found) &&
      !found.parts.length &&
      found.kind !== "output" &&
      !(found.kind === "attention" && inner.length === 1)
    );
  }

  show(at) {
    const {name} = readPlace(at);
    this.body.hidden = false;
    const moved = this.drawing.at !== at && this.drawing.scene;
    this.drawing.show(this.model, at, this.insides.get(name) ?? {});
    this.crumbs(at);
    this.play.hidden = at !== "";
    this.tell(null);
    if (moved) {
      announce(this.nameOf(at));
      this.drawing.scene?.querySelector("[data-door]")?.focus({preventScroll: true});
    }
  }

  crumbs(at) {
    const way = wayTo(this.model, at);
    const items = way.map((each, place) =>
      place === way.length - 1
        ? element("li", {"aria-current": "location"}, this.nameOf(each))
        : element("li", element("a", {href: link("map", {...this.values, at: each})}, this.nameOf(each))),
    );
    this.way.replaceChildren(element("ol", items));
  }

  /** "Layer 2", "Head 3", "chat ← cat". */
  nameOf(at) {
    if (at === "") return `${this.values.run}, whole`;
    const {name, chosen: inner} = readPlace(at);
    const part = this.model.byName.get(name);
    const owner = this.model.parent.get(name);
    if (!inner.length) return owner?.kind === "stack" ? `${owner.title}: ${part.title}` : part.title;
    if (part.kind !== "attention") return inner.length > 1 ? `Unit ${inner[1] + 1}` : `Piece ${inner[0] + 1}`;
    return inner.length > 2 ? "One product" : `Head ${inner[0] + 1}`;
  }

  /** What a part is; without one, the place that is shown. */
  tell(pointed) {
    if (!this.model) return;
    const {name} = readPlace(this.drawing.at);
    const part = pointed ?? this.model.byName.get(name);
    if (!part) {
      const size = this.model.parameters.toLocaleString("en");
      const {task, probabilities, target} = this.model;
      const own = probabilities.filter((_, place) => task !== "tag" || target.word_of[place] >= 0); // a tag a word
      const parts = [
        element("h2", "The whole"),
        element(
          "p",
          `${size} parameters. A cell of a strip is one piece of the sentence: the stronger its colour, the further the layer turned its vector.`,
        ),
        element("p.said-output", {dir: "auto"}, this.model.output),
        element(
          "p.note",
          `${percent(Math.exp(own.reduce((sum, one) => sum + Math.log(one), 0)))} sure of all of it. The arrow keys go from part to part, Enter goes in, Escape goes out.`,
        ),
      ];
      this.aside.replaceChildren(...parts);
      return;
    }
    const {what, values} = measureOf(this.model, part);
    const facts = [
      part.size && ["widths", part.size],
      ["parameters", part.parameters.toLocaleString("en")],
      part.heads && ["heads", String(part.heads)],
    ].filter(Boolean);
    this.aside.replaceChildren(
      element("h2", named(part.title)),
      element("p", part.about),
      element(
        "dl.facts.number",
        facts.flatMap(([term, value]) => [element("dt", term), element("dd", value)]),
      ),
      ...(values.length ? [element("p.note", `The strip shows ${what}.`)] : []),
      element("p.note", element("a", {href: this.learn(part)}, "Its mathematics in Learn")),
    );
  }

  learn(part) {
    const {run, text, sentence} = this.values;
    const layer = /\.(\d+)(\.|$)/.exec(part.name)?.[1];
    const place = layer === undefined ? {} : {layer};
    return link("learn", {
      run,
      text,
      sentence,
      ...place,
      head: layer === undefined ? "" : 0,
      step: part.steps[0] ?? "",
    });
  }

  flow() {
    this.play.disabled = true;
    this.drawing.flow(() => (this.play.disabled = false));
  }

  leave() {
    this.ask.stop();
    this.keys.forEach((forget) => forget());
    this.drawing.leave();
  }
}
