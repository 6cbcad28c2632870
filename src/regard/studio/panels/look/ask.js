// What to look into: a run, a sentence and, if wanted, another output than the run's best, or another checkpoint.

import {get, latest} from "../../api.js";
import {element} from "../../element.js";
import {field} from "../../pieces/forms.js";
import {folding, oneLine, saidRun, saidText} from "../../pieces/question.js";
import {runPicker} from "../../pieces/runs.js";
import {trouble} from "../../pieces/trouble.js";
import {called, fileButton, isVectors} from "../../pieces/vectors.js";
import {offered} from "../runs/attempt.js";

const RANKS = ["the best", "the second best", "the third", "the fourth", "the fifth"];

/** @param {{runs: import("../../pieces/runs.js").Run[], onask: (values: object) => void}} about */
export function questionForm({runs, onask}) {
  const fetched = latest();
  const run = runPicker({runs, value: runs[0].name, onchange: () => ask()});
  const text = element("input", {
    type: "text",
    autocapitalize: "off",
    spellcheck: "false",
    autocomplete: "off",
    maxlength: 1000000,
    placeholder: "a sentence…",
    dir: "auto",
  });
  const target = element("input", {
    type: "text",
    autocapitalize: "off",
    spellcheck: "false",
    autocomplete: "off",
    maxlength: 5000,
    placeholder: "the run’s own",
    dir: "auto",
  });
  const rank = element(
    "select",
    {onchange: () => ask()},
    RANKS.map((words, value) => element("option", {value}, words)),
  );
  const checkpoint = element("select", {onchange: () => ask()});
  const ask = () =>
    onask({
      run: run.value,
      text: text.value.trim(),
      target: target.value.trim(),
      rank: rank.value === "0" ? "" : rank.value,
      checkpoint: checkpoint.value,
    });
  const examples = element("p.examples");
  const offer = async (one) => {
    const texts = await offered(one);
    if (run.value !== one.name) return;
    examples.replaceChildren(
      element("span.note", "Try "),
      ...texts.map((each) =>
        element("button.small", {onclick: () => ((text.value = each), ask())}, isVectors(each) ? called(each) : each),
      ),
    );
  };
  const more = element(
    "details",
    element("summary", "Another output or checkpoint"),
    element(
      "div.many",
      field("A translation of your own", target),
      field("Which output", rank),
      field("Which checkpoint", checkpoint),
    ),
  );
  const submit = (event) => {
    event.preventDefault();
    ask();
  };
  const form = element(
    "form.question.controls",
    {onsubmit: submit},
    element("div.ask", run, field("Sentence", text), element("button.primary", {type: "submit"}, "Look")),
    examples,
    more,
  );
  const wrong = element("div");
  const file = fileButton(
    form,
    (found) => (wrong.replaceChildren(), (text.value = found), ask()),
    (problem) => wrong.replaceChildren(trouble(problem)),
  );
  form.append(file, wrong);
  const node = folding(form);
  const fill = async (name, wanted) => {
    checkpoint.replaceChildren(
      element("option", {value: ""}, "the best"),
      ...(wanted ? [element("option", {value: wanted}, wanted)] : []),
    );
    checkpoint.value = wanted;
    try {
      const found = await fetched((signal) => get(`/api/v1/runs/${encodeURIComponent(name)}`, {signal}));
      if (!found) return;
      const names = found.checkpoints.map((one) =>
        element("option", {value: one.name}, one.best ? `${one.name}, the best` : one.name),
      );
      checkpoint.replaceChildren(element("option", {value: ""}, "the best"), ...names);
      checkpoint.value = wanted;
    } catch {
      // the list is a convenience: what the address names is asked for all the same
    }
  };
  let filled = "";
  return {
    node,
    /** Once there is an answer, one line says what was asked. */
    fold() {
      const other = [
        target.value && `translated as “${target.value}”`,
        rank.value !== "0" && RANKS[rank.value],
        checkpoint.value,
      ].filter(Boolean);
      node.fold(saidRun(run.value), saidText(text.value), ...other.map((words) => element("span.note", words)));
    },
    show(chosen, values) {
      run.value = chosen.name;
      if (document.activeElement !== text) text.value = oneLine(values.text ?? "");
      target.value = values.target ?? "";
      rank.value = RANKS[values.rank] ? values.rank : "0";
      checkpoint.value = values.checkpoint ?? "";
      const translates = chosen.task === "translate";
      file.hidden = !chosen.vectors;
      for (const each of [target, rank]) each.closest(".field").hidden = !translates;
      if (!values.text) node.unfold();
      if (values.target || values.rank || values.checkpoint) more.open = true;
      examples.hidden = Boolean(values.text);
      if (!examples.hidden) offer(chosen);
      if (filled !== chosen.name || checkpoint.value !== (values.checkpoint ?? ""))
        fill(chosen.name, values.checkpoint ?? "");
      filled = chosen.name;
    },
  };
}
