// Compare: the same test through several runs. It is worked out by a process of its own; the address keeps its number,
// so that a page that is opened again finds it.

import {get, post, remove} from "../api.js";
import {link, read, write} from "../address.js";
import {element, sheet} from "../element.js";
import {announce} from "../pieces/announce.js";
import {field, pageHead} from "../pieces/forms.js";
import {chosenRun, describe, noRun, pair} from "../pieces/runs.js";
import {trouble} from "../pieces/trouble.js";
import {comparisonResult} from "./compare/result.js";

const LOOK = 500; // milliseconds between two looks at a job

export async function mount(root, {values, runs}) {
  await sheet("panels/compare.css");
  const able = runs.filter((run) => run.parameters != null);
  if (!able.length) {
    root.replaceChildren(pageHead("Compare", LEAD), noRun("There is nothing to compare before models have learned."));
    return {};
  }
  const {corpora, changes} = await get("/api/v1/corpora");
  if (able.length === 1 && able[0].task !== "classify" && !values.job) {
    root.replaceChildren(pageHead("Compare", LEAD), onlyOne(able[0], changes));
    return {};
  }
  const page = new ComparePage(root, able, corpora, changes);
  page.show(values);
  return {update: (next) => page.show(next), leave: () => page.leave()};
}

const LEAD =
  "The same sentences through several runs: which is better, by how much, whether that is more than luck, " +
  "and on which sentences.";

/** With one run there is nothing to compare: a second is offered, where one can be trained. */
function onlyOne({name, task}, changes) {
  const preset = task === "translate" ? "bahdanau" : "lstm";
  return element(
    "section.empty.card",
    element("h2", "A second run is needed"),
    element(
      "p",
      "So far there is only ",
      element("bdi", name),
      ". Train another on the same corpus, of another architecture or for another time, and see which is better.",
    ),
    changes
      ? element(
          "div.row",
          element("a.button.primary", {href: link("train", {preset})}, "Train another"),
          name === "demo"
            ? null
            : element(
                "a.button",
                {href: link("train", {name: "demo", preset: "demo", corpus: "fable:fr"})},
                "Train the demo",
              ),
        )
      : null,
  );
}

const UNLIKE =
  "These runs were not measured on the same text: choose a test for them. A corpus that you give to the page Train is " +
  "among the tests once it has a validation part.";

/** A problem in the words of the form: options of the command line are not on this page. */
function inWords(problem) {
  const lacks = /--source|share no test/.test(problem.message);
  return lacks ? {message: "These runs share no test: choose one under Test, and compare again."} : problem;
}

/** Why these runs cannot be compared on this test, where they cannot. */
function reasonAgainst(picked, corpus) {
  const tasks = new Set(picked.map(({task}) => task));
  if (tasks.size > 1) return "These runs are for different tasks.";
  const sources = new Set(picked.map(({vectors}) => vectors));
  if (sources.size > 1) return "Some of these runs read words, others numbers, pictures or sounds.";
  if (sources.has(true) && corpus)
    return "Runs that read numbers, pictures or sounds cannot read this test: choose one that they share.";
  const pairs = new Set(picked.map(({languages}) => pair(languages)).filter(Boolean));
  if (pairs.size > 1) return `These runs translate different languages: ${[...pairs].join(", ")}.`;
  const alone = picked.length === 1 && tasks.has("classify"); // a classifier is compared with counting words
  if (picked.length < 2 && !alone) return "Choose at least two.";
  const shared = new Set(picked.map(({test}) => test)).size === 1 && picked[0].test !== "";
  return shared || corpus ? "" : UNLIKE;
}

class ComparePage {
  /** `changes`: whether this user may start a comparison. */
  constructor(root, runs, corpora, changes) {
    this.runs = runs;
    this.changes = changes;
    this.build(root, corpora);
  }

  build(root, corpora) {
    this.boxes = this.runs.map((run) => {
      const input = element("input", {type: "checkbox", name: "run", value: run.name});
      input.addEventListener("change", () => this.allow());
      return element("label.pick", input, element("b", element("bdi", run.name)), element("span.note", describe(run)));
    });
    const tests = [
      element("option", {value: ""}, "a test that the runs share"),
      ...corpora
        .filter((corpus) => corpus.built_in || corpus.parts.test || corpus.parts.valid)
        .map(({name, built_in: builtIn}) =>
          element("option", {value: name}, builtIn ? `${name}, its test part` : name),
        ),
    ];
    this.corpus = element("select", tests);
    this.corpus.addEventListener("change", () => this.allow());
    this.limit = element("input", {type: "number", min: 2, max: 10000, value: 200});
    this.beam = element("input", {type: "number", min: 1, max: 20, value: 5});
    this.button = element("button.primary", {type: "submit"}, "Compare");
    this.why = element("p.note");
    this.form = element(
      "form.card.compare-form",
      element("fieldset", element("legend", "Runs"), element("div.picks", this.boxes)),
      element(
        "div.knobs",
        field("Test", this.corpus, "What every run translates."),
        field("Sentences at most", this.limit),
        field("Beam", this.beam),
      ),
      this.changes
        ? element("div.row", this.button, this.why)
        : element(
            "p.note",
            "Nothing is compared from this page: the service is read-only, or wants its other token. In a terminal: ",
            element("code", "regard compare"),
            ".",
          ),
    );
    this.result = element("div.compare-result", {"aria-live": "off"});
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    this.chosen = element("span.note");
    this.folded = element(
      "details.compare-fold",
      {open: true},
      element("summary", "Runs and test", this.chosen),
      this.form,
    );
    root.replaceChildren(pageHead("Compare", LEAD), this.folded, this.result);
  }

  /** By default: the run that pages begin with and the best that shares a test with it; else none. */
  suggested(name) {
    const {run} = chosenRun(this.runs, [], name);
    const partners = this.runs.filter(
      (other) => run?.test && other.test === run.test && other.task === run.task && other !== run,
    );
    const best = partners.reduce(
      (found, other) => ((other.score ?? -1) > (found?.score ?? -2) ? other : found),
      undefined,
    );
    return run && best ? [run.name, best.name] : name ? [name] : [];
  }

  /** What the address says. */
  show({runs = "", run = "", corpus = "", limit = "200", beam = "5", job = ""}) {
    const wanted = runs ? runs.split(",") : this.suggested(run);
    const lost = wanted.filter((name) => !this.runs.some((each) => each.name === name));
    this.lost = lost.length ? `There is no run named ${lost.map((name) => `“${name}”`).join(" or ")} here.` : "";
    for (const box of this.boxes) box.firstChild.checked = wanted.includes(box.firstChild.value);
    this.corpus.value = corpus;
    this.limit.value = limit;
    this.beam.value = beam;
    this.allow();
    this.folded.open = !job || (this.folded.open && job === this.job);
    if (job === this.job) return;
    this.leave();
    this.job = job;
    this.result.replaceChildren();
    if (job) this.watch(job);
  }

  picked() {
    return this.boxes
      .map((box) => box.firstChild)
      .filter((input) => input.checked)
      .map((input) => input.value);
  }

  allow() {
    const picked = this.runs.filter(({name}) => this.picked().includes(name));
    const why = reasonAgainst(picked, this.corpus.value);
    this.why.textContent = [this.lost, why].filter(Boolean).join(" ");
    this.button.disabled = Boolean(why);
    this.chosen.textContent = picked.length
      ? `: ${picked.map(({name}) => name).join(", ")} · ${this.corpus.selectedOptions[0]?.textContent ?? ""}`
      : "";
  }

  async start() {
    const wish = {
      runs: this.picked(),
      corpus: this.corpus.value,
      limit: Number(this.limit.value),
      beam: Number(this.beam.value),
    };
    if (this.starting) return; // a double click
    this.starting = true;
    try {
      const {job} = await post("/api/v1/compare", wish, {lasting: true});
      write("compare", {...wish, run: read().values.run, runs: wish.runs.join(","), job});
      this.show(read().values);
    } catch (problem) {
      this.result.replaceChildren(trouble(inWords(problem)));
    } finally {
      this.starting = false;
    }
  }

  watch(job) {
    const bar = element("progress", {max: 1, value: 0, "aria-label": "Progress of the comparison"});
    const line = element("p.note", {role: "status"}, "Starting…");
    const stop = element(
      "button.small",
      {onclick: () => remove(`/api/v1/jobs/${encodeURIComponent(job)}`).catch(() => {})},
      "Stop",
    );
    this.result.replaceChildren(
      element("section.card.compare-progress", {"aria-label": "Progress"}, bar, line, this.changes ? stop : null),
    );
    const look = async () => {
      let found;
      try {
        found = await get(`/api/v1/jobs/${encodeURIComponent(job)}`);
      } catch (problem) {
        if (this.job === job) this.result.replaceChildren(trouble(problem));
        return;
      }
      if (this.job !== job) return;
      if (found.state === "running") {
        bar.value = found.progress;
        line.textContent = `${found.line}…`;
        this.timer = setTimeout(look, LOOK);
      } else this.ended(found);
    };
    look();
  }

  ended({state, line, result}) {
    if (state === "done") {
      announce("The comparison is done");
      this.shown = comparisonResult(result, this.runs);
      this.result.replaceChildren(this.shown.node);
    } else if (state === "stopped") this.result.replaceChildren(element("p.note", "Stopped."));
    else {
      this.folded.open = true;
      this.result.replaceChildren(trouble(inWords({message: line})));
    }
  }

  leave() {
    clearTimeout(this.timer);
    this.job = undefined;
    this.shown?.leave();
    this.shown = undefined;
  }
}
