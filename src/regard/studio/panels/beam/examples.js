// Sentences to try. One where a wider beam finds another output is offered only after the run has shown that it does.

import {latest, post} from "../../api.js";
import {element} from "../../element.js";
import {called, isVectors} from "../../pieces/vectors.js";
import {EXAMPLES, examplesOf} from "../runs/attempt.js";

const [NARROW, WIDE] = [1, 5];
const MOST = 12; // sentences that are tried for one that differs
const differing = new Map(); // run → the sentence, or null; asked once a visit

/**
 * @param {(text: string, beam: number | string) => void} take
 * @returns {{node: HTMLElement, show: (run: import("../../pieces/runs.js").Run) => void}}
 */
export function examples(take) {
  const ask = latest();
  const node = element("div.row.examples", {role: "group", "aria-label": "Examples"});
  const button = (text, beam = /** @type {number | string} */ (""), note = "") =>
    element(
      "button.small",
      {onclick: () => take(text, beam)},
      isVectors(text) ? called(text) : text,
      note ? element("span.note", note) : null,
    );
  let shown = "";
  return {
    node,
    async show({name, task}) {
      if (shown === name) return;
      shown = name;
      const found = await examplesOf(name);
      if (shown !== name) return;
      const own = found.length ? found : EXAMPLES;
      const differs = element("span", {hidden: true});
      const search = element("button.small.quiet", "Find one where a wider beam finds another output");
      search.addEventListener("click", async () => {
        search.disabled = true;
        search.textContent = "Searching…";
        const other = await ask((signal) =>
          differing.has(name) ? differing.get(name) : seek(name, own, signal),
        ).catch(() => null);
        if (other === undefined) return;
        differing.set(name, other);
        search.hidden = true;
        differs.hidden = false;
        differs.replaceChildren(
          other
            ? button(other, WIDE, ` beams of ${NARROW} and ${WIDE} differ`)
            : element(
                "span.note",
                `For ${Math.min(MOST, own.length)} sentences, beams of ${NARROW} and ${WIDE} write the same.`,
              ),
        );
      });
      const both = task === "translate" ? [differs, search] : [];
      node.replaceChildren(element("span.note", "Try"), ...own.slice(0, 3).map((text) => button(text)), ...both);
    },
  };
}

/** The first sentence for which the two beams write different outputs; null if none does. */
async function seek(run, texts, signal) {
  for (const text of texts.slice(0, MOST)) {
    const written = [];
    for (const beam of [NARROW, WIDE]) {
      const {translations} = await post("/api/v1/translate", {run, texts: [text], beam}, {signal});
      written.push(translations[0].outputs[0].text);
    }
    if (written[0] !== written[1]) return text;
  }
  return null;
}
