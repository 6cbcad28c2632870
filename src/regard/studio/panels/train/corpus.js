// The corpus: a built-in one, one that was sent before, or files dropped here. Checked, with what is wrong in place.

import {get, post, put, remove} from "../../api.js";
import {element} from "../../element.js";
import {announce, offerUndo, toast} from "../../pieces/announce.js";
import {field} from "../../pieces/forms.js";
import {pair} from "../../pieces/runs.js";
import {skeleton} from "../../pieces/skeleton.js";
import {trouble} from "../../pieces/trouble.js";
import {bytes} from "./log.js";

const TABLES = ["tsv", "csv", "jsonl", "parquet", "tmx", "conllu"];
const ROLES = [
  ["train.source", "training, source"],
  ["train.target", "training, target"],
  ["valid.source", "validation, source"],
  ["valid.target", "validation, target"],
  ["test.source", "test, source"],
  ["test.target", "test, target"],
  ["train.text", "training, text alone"],
  ["valid.text", "validation, text alone"],
];
const TABLE_ROLES = [
  ["train", "training, all columns"],
  ["valid", "validation, all columns"],
  ["test", "test, all columns"],
];
const KINDS = {
  encoding: "not UTF-8",
  format: "not in its format",
  mismatch: "sides that do not pair",
  empty: "empty",
  ratio: "unusual lengths",
  identical: "source and target alike",
  duplicate: "repeated",
  leak: "also held out",
  count: "words without tags",
  conflict: "one text with two labels",
};
const HELD_OUT = 500; // pairs at the most
const VECTORS = /\.(npy|npz|png|jpe?g|wav)$/i;
const ELSEWHERE = "Series, pictures and sounds are learned from in a terminal; the run is then used here: ";
const COMMAND = "regard train gru task=forecast --corpus visitors.csv";

/** A tenth of a small corpus; of one that was not counted, what is usual. */
const heldOut = ({pairs}) => Math.min(HELD_OUT, pairs ? Math.ceil(pairs / 10) : HELD_OUT);

/**
 * @param {{value: string, task: () => string, fits?: (corpus: any) => boolean, onchange: (corpus: object) => void}}
 *   about  `fits`: whether a corpus is offered
 */
export function corpusPicker(about) {
  return new CorpusPicker(about);
}

class CorpusPicker {
  /** @type {() => Promise<void>} */ take;

  /** @param {{value: string, task: () => string, fits?: (corpus: any) => boolean, onchange: (corpus: object) => void}} about */
  constructor({value, task, fits, onchange}) {
    this.wanted = value;
    this.fits = fits ?? (() => true);
    this.task = task;
    this.onchange = onchange;
    const about = {role: "radiogroup", "aria-label": "Corpus", "aria-busy": "true"}; // until there are choices
    this.choices = element("div.choices", about, skeleton("lines", 2));
    this.findings = element("div", {"aria-live": "polite"});
    this.sending = element("div");
    this.input = element("input.visually-hidden", {type: "file", multiple: true, id: "corpus-files"});
    this.zone = element(
      "label.drop",
      {for: "corpus-files"},
      element("b", "Drop files here, or choose them"),
      element(
        "span.note",
        "Two parallel text files, or one with columns (tsv, csv, jsonl, parquet, tmx, conllu); .gz and .zst too. " +
          "They stay on this machine.",
      ),
      element("span.note", ELSEWHERE, element("code", COMMAND)),
    );
    this.node = element("div.corpus", this.choices, this.input, this.zone, this.sending, this.findings);
    this.input.addEventListener("change", () => this.offer([...this.input.files]));
    this.zone.addEventListener("dragover", (event) => (event.preventDefault(), this.zone.classList.add("over")));
    this.zone.addEventListener("dragleave", () => this.zone.classList.remove("over"));
    this.zone.addEventListener("drop", (event) => {
      event.preventDefault();
      this.zone.classList.remove("over");
      this.offer([...event.dataTransfer.files]);
    });
  }

  async load() {
    this.all = (await get("/api/v1/corpora")).corpora;
    this.list();
  }

  /** Those that fit, and which is chosen; none where none does. */
  list() {
    this.corpora = (this.all ?? []).filter(this.fits);
    this.corpus = this.corpora.find(({name}) => name === (this.corpus?.name ?? this.wanted)) ?? this.corpora[0];
    this.choices.replaceChildren(...this.corpora.map((corpus) => this.choice(corpus)));
    this.choices.removeAttribute("aria-busy");
    this.onchange(this.corpus);
  }

  choice(corpus) {
    const input = element("input", {type: "radio", name: "corpus", value: corpus.name});
    input.checked = corpus === this.corpus;
    input.addEventListener("change", () => this.choose(corpus));
    const title = corpus.built_in
      ? {"fable:fr": "English to French", "fable:hi": "English to Hindi"}[corpus.name]
      : corpus.name;
    const state = {
      "built in": "built in",
      clean: "nothing wrong",
      findings: "checked, with findings",
      unchecked: "not checked",
      incomplete: "incomplete",
    }[corpus.state];
    const size = corpus.built_in
      ? corpus.name
      : [
          pair(corpus.languages),
          corpus.pairs == null ? "" : `${corpus.pairs.toLocaleString("en")} pairs`,
          bytes(corpus.bytes),
        ]
          .filter(Boolean)
          .join(" · ");
    const kind = {clean: "chip good", findings: "chip", incomplete: "chip bad"}[corpus.state] ?? "chip";
    return element(
      "label.choice",
      input,
      element("b", title),
      element("span.note", size),
      element("span", {class: kind}, state),
    );
  }

  choose(corpus) {
    this.corpus = corpus;
    this.findings.replaceChildren(...this.tools(corpus));
    this.onchange(corpus);
  }

  /** What can be done with a corpus that was sent. */
  tools(corpus) {
    if (corpus.built_in) return [];
    const button = (words, action, kind = "small") =>
      element("button", {class: kind, onclick: () => this.attempt(action)}, words);
    const lacks = corpus.parts.train && !corpus.parts.valid;
    return [
      element(
        "p.note",
        Object.entries(corpus.parts)
          .map(([part, files]) => `${part}: ${files.join(", ")}`)
          .join(" · ") || "no files yet",
      ),
      lacks
        ? element(
            "p.note",
            "There is no validation part: each training holds out some pairs by itself. " +
              "Held out here, once, they are the same for all trainings.",
          )
        : null,
      element(
        "div.row",
        button("Check it", () => this.check()),
        lacks ? button(`Hold out ${heldOut(corpus)} pairs`, () => this.split()) : null,
        button("Remove it", () => this.delete(), "quiet small"),
      ),
    ].filter(Boolean);
  }

  /** Do something that may go wrong; what went wrong is shown here. */
  async attempt(action) {
    try {
      await action();
    } catch (problem) {
      this.findings.append(trouble(problem));
    }
  }

  async check() {
    const {name} = this.corpus;
    this.findings.replaceChildren(element("p.note", {role: "status"}, "Checking every line…"));
    let found;
    try {
      found = await post(`/api/v1/corpora/${encodeURIComponent(name)}/check`, {task: this.task()});
    } catch (problem) {
      this.findings.replaceChildren(...this.tools(this.corpus), trouble(problem));
      return;
    }
    await this.load();
    this.findings.replaceChildren(...this.tools(this.corpus), ...reports(found));
    announce(found.clean ? "Nothing is wrong with the corpus" : "The corpus was checked; there are findings");
  }

  async split() {
    await post(`/api/v1/corpora/${encodeURIComponent(this.corpus.name)}/split`, {valid: heldOut(this.corpus), test: 0});
    await this.check();
  }

  async delete() {
    const {name} = this.corpus;
    const address = `/api/v1/corpora/${encodeURIComponent(name)}`;
    await remove(address);
    this.findings.replaceChildren();
    this.corpus = undefined;
    await this.load();
    offerUndo(`Removed the corpus ${name}.`, async () => {
      try {
        await post(`${address}/restore`, {}, {lasting: true});
        toast(`${name} is back`);
        if (this.node.isConnected) await this.load();
      } catch (problem) {
        toast(problem.message, {bad: true});
      }
    });
  }

  /** Files that were dropped: what each is, by its name; people can say otherwise. */
  offer(files) {
    if (!files.length) return;
    const strange = files.find(({name}) => VECTORS.test(name));
    if (strange) {
      this.sending.replaceChildren(trouble(new Error(`${strange.name}: is no text. ${ELSEWHERE}${COMMAND}`)));
      return;
    }
    const seen = {};
    const rows = files.map((file) => ({file, select: roleSelect(file, seen)}));
    const name = element("input", {
      type: "text",
      value: suggested(files[0].name),
      pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*",
      required: true,
    });
    const form = element(
      "form.card.sending",
      element("h3", "What is what?"),
      rows.map(({file, select}) => field(`${file.name} (${bytes(file.size)})`, select)),
      field("Name of the corpus", name, "Letters, digits, dots and dashes."),
      element(
        "div.row",
        element("button.primary", {type: "submit"}, "Take and check"),
        element("button.quiet", {onclick: () => this.sending.replaceChildren()}, "Cancel"),
      ),
    );
    this.take = () =>
      this.send(
        name.value.trim(),
        rows.map(({file, select}) => [select.value, file]),
        form,
      );
    form.addEventListener("submit", (event) => (event.preventDefault(), this.take()));
    this.sending.replaceChildren(form);
    name.focus();
  }

  /** Files that were dropped and not taken yet are taken now. Answers whether a training can start. */
  async settled() {
    const form = this.sending.querySelector("form");
    if (!form) return true;
    if (!form.reportValidity()) return false;
    await this.take();
    return !form.isConnected;
  }

  async send(name, files, form) {
    const told = element("p.note", {role: "status"});
    form.querySelectorAll("p[role=status], .trouble").forEach((old) => old.remove());
    form.append(told);
    try {
      for (const [place, [role, file]] of files.entries()) {
        told.textContent = `Taking ${file.name}, ${place + 1} of ${files.length}…`;
        const path = [name, role + packing(file.name)].map(encodeURIComponent).join("/");
        const called = encodeURIComponent(file.name); // from its name the language is known
        await put(`/api/v1/corpora/${path}?called=${called}`, file);
      }
    } catch (problem) {
      told.remove();
      form.append(trouble(problem));
      return;
    }
    this.sending.replaceChildren();
    this.input.value = "";
    this.wanted = name;
    this.corpus = undefined;
    await this.load();
    await this.check();
  }
}

const packing = (name) => (name.endsWith(".gz") ? ".gz" : /\.zstd?$/.test(name) ? ".zst" : "");
const bare = (name) => name.toLowerCase().replace(/\.(gz|zstd?)$/, "");
const suggested = (name) =>
  bare(name)
    .replace(/\.[^.]*$/, "")
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "") || "corpus";
const partOf = (name) =>
  /(^|[^a-z])(val|valid|dev)/.test(name) ? "valid" : /(^|[^a-z])test/.test(name) ? "test" : "train";

function roleSelect(file, seen) {
  const name = bare(file.name);
  const table = TABLES.find((form) => name.endsWith(`.${form}`));
  const part = partOf(name);
  const roles = table ? TABLE_ROLES.map(([each, words]) => [`${each}.${table}`, words]) : ROLES;
  seen[part] = (seen[part] ?? 0) + 1;
  const select = element(
    "select",
    roles.map(([value, words]) => element("option", {value}, words)),
  );
  select.value = table ? `${part}.${table}` : `${part}.${seen[part] === 1 ? "source" : "target"}`;
  return select;
}

/** What the check found, as the command line has it. */
function reports({clean, parts}) {
  const lines = Object.entries(parts).map(
    ([part, {pairs}]) => `${part}: ${pairs.toLocaleString("en")} ${pairs === 1 ? "row" : "rows"}`,
  );
  const head = element(
    "p",
    {class: clean ? "good" : ""},
    `${lines.join(" · ")}. ${clean ? "Nothing is wrong." : "Found:"}`,
  );
  const found = Object.entries(parts).flatMap(([part, {findings}]) => findings.map((finding) => one(part, finding)));
  return [head, ...found];
}

function one(part, {kind, count, examples}) {
  const line = ({line: number, note, source, target}) =>
    element(
      "li",
      element("b", `line ${number.toLocaleString("en")}: `),
      note,
      source || target ? element("span.note", {dir: "auto"}, `  ${source} | ${target}`) : null,
    );
  return element(
    "details.finding",
    {open: kind === "mismatch" || kind === "format" || kind === "encoding"},
    element("summary", `${part}: ${KINDS[kind] ?? kind}, ${count.toLocaleString("en")}`),
    element("ul", examples.map(line)),
  );
}
