// Look inside: where the model looked while it wrote each word, what each word did, and what would change it.
//
// The address holds everything: run, text, what is looked into (target, rank, checkpoint), edits, the view (side,
// layer, head, words, special, beside, cells, gate), and which sentence of the text. What needs the model again asks
// for it; the rest is drawn anew.

import {write} from "../address.js";
import {latest, post} from "../api.js";
import {element, sheet} from "../element.js";
import {announce} from "../pieces/announce.js";
import {pageHead} from "../pieces/forms.js";
import {chosenSentence, placeOf, remarks, sentenceChoice, sentenceOf} from "../pieces/question.js";
import {chosen, usable} from "../pieces/runs.js";
import {skeleton} from "../pieces/skeleton.js";
import {questionForm} from "./look/ask.js";
import {whatIfBar} from "./look/bar.js";
import {besideCard} from "./look/beside.js";
import {cellsCard} from "./look/cells.js";
import {added, editedWords, editsOf, lasting, removed, wordsAfter, written} from "./look/edits.js";
import {editForms} from "./look/forms.js";
import {pictureCard} from "./look/picture.js";
import {rowEditor} from "./look/row.js";
import {SeriesPage} from "./look/series.js";
import {sentenceCard} from "./look/sentence.js";
import {sourceCard} from "./look/source.js";
import {headStrip, strandsOf} from "./look/strip.js";
import {beginning, textTrouble} from "./runs/attempt.js";
import {hasAttention, opened, readsText, viewOf} from "./look/view.js";

const LEAD =
  "Which words the model looked at, word by word, in every layer and head; what each word did; " +
  "and what happens if you change something.";
const WIDE = 24; // columns from which a picture needs the whole page
const REMEMBERED = 12; // answers, so that back is at once

export const tasks = ["translate", "tag", "classify", "language", "forecast"];
export const nothing = "There is nothing to look into yet.";

export async function mount(root, {values, runs}) {
  await sheet("panels/look.css");
  const able = usable(runs, ...tasks);
  /** @type {Look | SeriesPage | undefined} */
  let page;
  let asked = 0;
  const show = async (next) => {
    const mine = ++asked;
    const run = chosen(able, next.run);
    const Page = run.task === "forecast" ? SeriesPage : Look;
    if (!(page instanceof Page)) {
      page?.leave();
      root.replaceChildren();
      page = new Page(root, able, show);
    }
    const text = next.text ?? (await beginning(run));
    return mine === asked ? page.update({...next, text}) : undefined;
  };
  await show(values);
  return {update: show, leave: () => page?.leave()};
}

class Look {
  /** @type {object[]} */ edits;
  /** @type {any} import("./look/view.js").View, where there is attention */ view;

  constructor(root, runs, show) {
    this.runs = runs;
    this.showPage = show;
    this.ask = latest();
    this.answers = new Map();
    const onedit = (...edits) => this.change({edits: written(added(this.edits, ...edits))});
    const onview = (values) => this.change(values);
    const onremove = (some) => this.change({edits: written(removed(this.edits, some))});
    this.form = questionForm({runs, onask: (values) => this.asked(values)});
    this.choice = sentenceChoice((place) => this.change({sentence: place || "", edits: written(lasting(this.edits))}));
    this.remarks = element("div");
    this.sentence = sentenceCard({onedit, onpoint: (place) => this.picture.point(place)});
    this.picture = pictureCard({
      onview,
      onpoint: (place) => this.sentence.point(place),
      onrow: (row) => this.row.open(this.trace, this.view, row),
      onwhy: (against) => this.beside.why(against),
    });
    this.strip = headStrip({
      onpick: (layer, head) => this.change({layer, head}),
      onpreview: (strand) => this.sentence.look(strand),
    });
    this.row = rowEditor({onedit});
    this.source = sourceCard();
    this.beside = besideCard({onview});
    this.forms = editForms({onedit});
    this.cells = cellsCard({onview, onpicture: (picture) => this.open(picture)});
    this.bar = whatIfBar({onremove});
    this.pictures = element(
      "div.pictures",
      this.picture.node,
      this.cells.saliency,
      this.picture.step,
      this.beside.node,
    );
    this.found = element(
      "div.stack",
      this.sentence.node,
      this.picture.selectors,
      this.source.node,
      this.pictures,
      this.row.node,
      this.cells.node,
      this.forms.node,
    );
    this.news = element("div.news");
    this.body = element(
      "div.stack.results",
      {"aria-live": "off"},
      this.choice,
      this.remarks,
      this.news,
      this.found,
      this.bar.node,
    );
    root.append(pageHead("Look inside", LEAD), this.form.node, this.body);
  }

  /** Show what the address says. */
  update(values) {
    this.values = values;
    this.edits = editsOf(values);
    this.run = chosen(this.runs, values.run);
    this.form.show(this.run, values);
    const text = (values.text ?? "").trim();
    this.body.hidden = !text;
    if (text) this.form.fold();
    if (!text) {
      this.ask.stop();
      return undefined;
    }
    const {run: _, ...rest} = this.question();
    const key = JSON.stringify([this.run.name, rest]);
    if (key === this.key && this.trace) return this.draw();
    this.key = key;
    return this.load();
  }

  /** A step that back undoes. */
  change(values) {
    const next = {...this.values, run: this.run.name, ...values};
    write("look", next);
    this.showPage(next);
  }

  /** Another sentence or another run: what counted the old words goes, and with another run all edits do. */
  asked(values) {
    const edits = values.run === this.run.name ? lasting(this.edits) : [];
    const same = values.run === this.run.name && values.text === (this.values.text ?? "");
    const model = values.run === this.run.name ? {} : {side: "", layer: "", head: "", gate: "", cells: ""};
    const place = same ? {} : {sentence: ""};
    const other = this.runs.find(({name}) => name === values.run);
    const alike = other.vectors === this.run.vectors && other.task !== "forecast"; // a sentence is no picture
    const text = alike ? {} : {text: undefined};
    this.change({...values, ...text, ...model, ...place, edits: same ? this.values.edits : written(edits)});
  }

  question() {
    const {text, target, rank, checkpoint} = this.values;
    return {
      run: this.run.name,
      text: text.trim(),
      target: target || null,
      rank: Number(rank) || 0,
      checkpoint: checkpoint || null,
      edits: this.edits,
      ...chosenSentence(placeOf(this.values)),
    };
  }

  async load() {
    const [key, question] = [this.key, this.question()];
    this.row.close();
    this.body.setAttribute("aria-busy", "true");
    if (!this.trace) this.news.replaceChildren(skeleton("page"));
    this.found.hidden = !this.trace;
    try {
      const trace =
        this.answers.get(key) ??
        (await this.ask(async (signal) =>
          opened(await post("/api/v1/trace", {...question, beam: Math.max(5, question.rank + 1)}, {signal})),
        ));
      if (!trace || key !== this.key) return;
      this.remember(key, trace);
      this.trace = trace;
      this.news.replaceChildren();
      this.draw();
      this.more(question);
      announce(trace.difference ? `After the edits: ${trace.difference.after.text}` : trace.output);
    } catch (problem) {
      if (key === this.key) this.fail(problem, question);
    } finally {
      if (key === this.key) this.body.removeAttribute("aria-busy");
    }
  }

  /** What stands beside the trace, from routes of its own. */
  more({rank, checkpoint, ...question}) {
    const another = rank && !question.edits.length ? this.trace.output : null; // those routes know the best alone
    const asked = checkpoint ? null : {...question, target: question.target ?? another};
    this.beside.node.hidden = !asked;
    this.cells.saliency.hidden = true;
    this.cells.node.hidden = !asked || this.trace.attentions.some(({name}) => name.endsWith("self"));
    if (asked) this.beside.load(asked, this.trace);
    if (!this.cells.node.hidden) this.cells.load(asked);
  }

  remember(key, trace) {
    this.answers.delete(key);
    this.answers.set(key, trace);
    if (this.answers.size > REMEMBERED) this.answers.delete(this.answers.keys().next().value);
  }

  draw() {
    const {trace, values} = this;
    const attends = hasAttention(trace);
    const place = placeOf(values);
    this.text = sentenceOf(trace, values.text.trim(), place);
    this.found.hidden = false;
    this.choice.show(trace.sentences, place);
    this.remarks.replaceChildren(...remarks(trace));
    this.picture.node.hidden = this.picture.selectors.hidden = this.picture.step.hidden = !attends;
    if (attends) {
      this.view = viewOf(values, trace);
      const edited = editedWords(this.text, this.edits, trace);
      const editable = readsText(trace, this.view.side);
      this.pictures.classList.toggle(
        "wide",
        Math.max(trace.source.words.length, this.view.words ? 0 : trace.source.pieces.length) > WIDE,
      );
      const picture = this.picture.show(trace, this.view, ({word}) => editable && edited.has(word));
      this.strip.show(trace, this.view);
      this.open(picture, this.view.side);
      this.source.show(trace, this.view.side === "decoder" ? null : picture);
    } else {
      this.open(null);
      this.source.show(trace, null);
    }
    this.bar.show(trace, {text: this.text, edits: this.edits});
    this.beside.view(values.beside ?? "", trace);
    this.cells.view(trace, values);
    this.forms.show(trace, wordsAfter(this.text, this.edits, trace));
  }

  /** The picture that the page opens with: lines between the words. Without attention it follows the gradient. */
  open(picture, side = "") {
    const heads = side ? {strands: strandsOf(this.trace, this.view), strip: this.strip.node} : {};
    this.sentence.show(this.trace, picture, {text: this.text, edits: this.edits, side, ...heads});
  }

  fail(problem, {edits}) {
    this.trace = null;
    this.found.hidden = true;
    this.choice.hidden = true;
    this.remarks.replaceChildren();
    this.bar.show(undefined, {text: this.values.text.trim(), edits});
    const take = (text) => this.asked({run: this.run.name, text, target: "", rank: ""});
    const about = {run: this.run, again: () => this.load(), take: edits.length ? undefined : take};
    this.news.replaceChildren(textTrouble(problem, about));
  }

  leave() {
    this.ask.stop();
    for (const card of [this.sentence, this.picture, this.beside, this.cells]) card.leave();
  }
}
