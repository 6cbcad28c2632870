// Look inside a forecaster: how a series goes on, and which of its moments each moment ahead hangs on.
//
// The address holds the run, the series (what was read of it, once that is known), the moment ahead, the channel and by
// what the weights come about.

import {write} from "../../address.js";
import {latest, post} from "../../api.js";
import {element} from "../../element.js";
import {announce} from "../../pieces/announce.js";
import {forecastChart, lookedAt} from "../../pieces/forecast.js";
import {field, pageHead, segmented} from "../../pieces/forms.js";
import {folding, saidRun} from "../../pieces/question.js";
import {chosen, runPicker} from "../../pieces/runs.js";
import {skeleton} from "../../pieces/skeleton.js";
import {trouble} from "../../pieces/trouble.js";
import {called, fileButton, pasted} from "../../pieces/vectors.js";
import {examplesOf} from "../runs/attempt.js";

const LEAD =
  "How a series goes on: the median, intervals that hold the truth in 80 and 90 of 100 cases, the naive forecast " +
  "beside it, and which moments of the past each moment ahead hangs on.";
const MEANS = {
  attention: "The shade is where the decoder looked, the mean of all layers and heads.",
  gradient: "The shade is how much the median would move with each moment.",
};
const OFFERED = 3;
const ITS_OWN = {by: "", checkpoint: "", moment: "", channel: ""}; // what was chosen of one run, and another may not have

export class SeriesPage {
  /** @type {any} of a run, once there is one */ run;
  /** @type {any} import("../../pieces/forecast.js").Forecasted */ found;
  /** @type {any} */ slider;
  /** @type {any} where there are several */ channel;
  /** @type {any} the chart */ drawn;
  /** @type {any} a run */ picker;

  constructor(root, runs, show) {
    this.runs = runs;
    this.showPage = show;
    this.ask = latest();
    this.form = this.questionForm();
    this.chart = element("div");
    this.told = element("p.told-moment", {"aria-live": "polite"});
    this.controls = element("div.row.selectors");
    this.card = element(
      "section.card",
      {"aria-labelledby": "series-title"},
      element("h2", {id: "series-title"}, "How it goes on"),
      this.chart,
      this.controls,
      this.told,
    );
    this.news = element("div.news");
    this.body = element("div.stack.results", this.news, this.card);
    root.append(pageHead("Look inside", LEAD), this.form, this.body);
  }

  questionForm() {
    this.picker = runPicker({
      runs: this.runs,
      value: this.runs[0].name,
      onchange: (run) => this.change({run, text: undefined, ...ITS_OWN}),
    });
    this.text = element("textarea", {
      rows: 3,
      spellcheck: "false",
      autocomplete: "off",
      placeholder: "numbers: 12, 15, 11, … or the lines of a CSV file",
    });
    this.examples = element("p.examples");
    const form = element(
      "form.question.controls",
      {onsubmit: (event) => (event.preventDefault(), this.asked(pasted(this.text.value)))},
      element(
        "div.ask",
        this.picker,
        field("Series", this.text),
        element("button.primary", {type: "submit"}, "Forecast"),
      ),
      this.examples,
    );
    const opened = fileButton(
      form,
      (text) => this.asked(text),
      (problem) => this.fail(problem),
    );
    form.append(element("p.row.note", opened, "or drop one here: CSV, .npy or .npz"));
    return folding(form);
  }

  /** Show what the address says. */
  update(values) {
    this.values = values;
    this.run = chosen(this.runs, values.run);
    this.picker.value = this.run.name;
    const text = (values.text ?? "").trim();
    this.body.hidden = !text;
    if (document.activeElement !== this.text) this.text.value = text.startsWith("data:") ? "" : text;
    this.examples.hidden = Boolean(text);
    if (!text) {
      this.ask.stop();
      this.form.unfold();
      this.offer();
      return undefined;
    }
    this.form.fold(saidRun(this.run.name), element("span.said", called(text)));
    const key = JSON.stringify([this.run.name, text, values.by ?? "", values.checkpoint ?? ""]);
    if (key === this.key && this.found) return this.draw();
    this.key = key;
    return this.load(text);
  }

  async offer() {
    const {name} = this.run;
    const texts = (await examplesOf(name)).slice(0, OFFERED);
    if (this.run.name !== name) return;
    const button = (text) => element("button.small", {onclick: () => this.asked(text)}, called(text));
    this.examples.replaceChildren(element("span.note", "Try "), ...texts.map(button));
  }

  /** A step that back undoes. */
  change(values) {
    const next = {...this.values, run: this.run.name, ...values};
    write("look", next);
    this.showPage(next);
  }

  asked(text) {
    this.change({text, moment: "", channel: ""});
  }

  async load(text) {
    const key = this.key;
    this.body.setAttribute("aria-busy", "true");
    if (!this.found) this.news.replaceChildren(skeleton("page"));
    this.card.hidden = !this.found;
    try {
      const question = {
        run: this.run.name,
        text,
        method: this.values.by ?? "",
        checkpoint: this.values.checkpoint || null,
      };
      const found = await this.ask((signal) => post("/api/v1/forecast", question, {signal}));
      if (!found || key !== this.key) return;
      this.found = found;
      this.news.replaceChildren();
      this.drawn?.leave();
      this.drawn = forecastChart(found);
      this.chart.replaceChildren(this.drawn.node);
      this.controls.replaceChildren(...this.choices());
      this.draw();
      announce(`${found.forecast.length} moments ahead`);
    } catch (problem) {
      if (key === this.key) this.fail(problem);
    } finally {
      if (key === this.key) this.body.removeAttribute("aria-busy");
    }
  }

  /** What of the answer is shown: which moment ahead, which channel, and by which method its weights came about. */
  choices() {
    const {found} = this;
    this.slider = element("input", {type: "range", min: 1, max: found.forecast.length, step: 1});
    this.slider.addEventListener("input", () => this.point({moment: this.slider.value}));
    const parts = [field("Moment ahead", this.slider)];
    if (found.forecast[0].length > 1) {
      const names = found.forecast[0].map((_, place) => element("option", {value: place + 1}, place + 1));
      this.channel = element("select", {onchange: () => this.point({channel: this.channel.value})}, names);
      parts.push(field("Channel", this.channel));
    } else this.channel = null;
    if (found.methods.length > 1) {
      const options = found.methods.map((value) => ({value, text: value[0].toUpperCase() + value.slice(1)}));
      parts.push(segmented({label: "By", options, value: found.method, onchange: (by) => this.change({by})}));
    }
    return parts;
  }

  /** Another moment or channel needs no new answer, and no step of its own in the history. */
  point(values) {
    this.values = {...this.values, ...values};
    write("look", this.values, {replace: true});
    this.draw();
  }

  draw() {
    const {forecast, method} = this.found;
    const within = (value, most) => Math.min(most, Math.max(1, Math.trunc(Number(value)) || 1)) - 1;
    const moment = within(this.values.moment, forecast.length);
    const channel = within(this.values.channel, forecast[0].length);
    this.card.hidden = false;
    this.slider.value = moment + 1;
    this.slider.setAttribute("aria-valuetext", `+${moment + 1}`);
    if (this.channel) this.channel.value = channel + 1;
    this.drawn.show({channel, moment});
    this.told.textContent = `${lookedAt(this.found, moment)} ${MEANS[method]}`;
  }

  fail(problem) {
    this.found = null;
    this.body.hidden = false;
    this.card.hidden = true;
    this.news.replaceChildren(trouble(problem));
    this.form.unfold();
  }

  leave() {
    this.ask.stop();
    this.drawn?.leave();
  }
}
