// What a row unfolds to: try the run, and what else can be done with it.

import {get, latest} from "../../api.js";
import {link} from "../../address.js";
import {element} from "../../element.js";
import {copyButton, field} from "../../pieces/forms.js";
import {usable} from "../../pieces/runs.js";
import {trouble} from "../../pieces/trouble.js";
import {tryCard} from "./attempt.js";

/**
 * @typedef {import("../../pieces/runs.js").Run} Run
 * @param {Run} run
 * @param {{runs: Run[], text: string, onrename: (to: string) => Promise<void>, onremove: () => Promise<void>,
 *   ontry: (text: string) => void}} about
 * @returns {{node: HTMLElement, leave: () => void}}
 */
export function runMore(run, {runs, text, onrename, onremove, ontry}) {
  const {name} = run;
  const ask = latest();
  const able = usable([run]).length > 0;
  const attempt = able ? tryCard(run, {text, ontry}) : null;
  const below = element("div.below");
  const fail = (problem) => below.replaceChildren(trouble(problem));
  const path = `/api/v1/runs/${encodeURIComponent(name)}`;
  const to = (words, href, more = {}) => element("a.button.small", {href, ...more}, words);
  const button = (words, onclick, kind = "small") => element("button", {class: kind, onclick}, words);

  const settings = async () => {
    if (below.querySelector("pre")) return below.replaceChildren();
    try {
      const found = await ask((signal) => get(`${path}/settings`, {signal}));
      if (!found) return undefined;
      const title = element(
        "div.row",
        element("h3", "Settings"),
        copyButton(() => found.toml),
      );
      return below.replaceChildren(
        title,
        element("pre", {tabindex: 0, "aria-label": `Settings of ${name}`}, found.toml),
      );
    } catch (problem) {
      return fail(problem);
    }
  };
  const shares = runs.some(
    (other) =>
      other !== run && run.test && other.test === run.test && other.task === run.task && usable([other]).length,
  );
  const actions = element(
    "div.row",
    able ? to("Look inside", link("look", {run: name, text})) : null,
    able && run.task !== "forecast" ? to("Map", link("map", {run: name, text})) : null,
    able ? to("Report", `${path}/report`, {target: "_blank", rel: "noopener"}) : null,
    button("Settings", settings),
    to("Training", link("train", {run: name})),
    able && !run.vectors ? to("Teach this model", link("train", {teach: name})) : null,
    able && shares ? to("Compare with…", link("compare", {run: name})) : null,
    able ? to("Export", `${path}/export`, {download: ""}) : null,
    run.fixed
      ? null
      : button("Rename", () => below.replaceChildren(...renaming(name, onrename, () => below.replaceChildren()))),
    run.fixed ? null : button("Remove", () => onremove().catch(fail), "quiet small"),
  );
  const origin = run.origin ? element("p.note.origin", `Made of ${run.origin}`) : null;
  const leave = () => {
    ask.stop();
    attempt?.leave();
  };
  return {node: element("div.run-more", attempt?.node, origin, actions, below), leave};
}

/** A form for another name; what is wrong with it stands below. */
function renaming(name, onrename, onclose) {
  const input = element("input", {
    type: "text",
    value: name,
    required: true,
    maxlength: 100,
    autocapitalize: "off",
    spellcheck: "false",
    autocomplete: "off",
  });
  const wrong = element("div");
  const submit = async (event) => {
    event.preventDefault();
    const wanted = input.value.trim();
    if (!wanted || wanted === name) return onclose();
    try {
      return await onrename(wanted);
    } catch (problem) {
      return wrong.replaceChildren(trouble(problem));
    }
  };
  const form = element(
    "form.row.end.rename",
    {onsubmit: submit},
    field("New name", input),
    element("button.primary.small", {type: "submit"}, "Rename"),
    element("button.quiet.small", {onclick: onclose}, "Cancel"),
  );
  queueMicrotask(() => input.select());
  return [form, wrong];
}
