// Where one is in the model: the whole map, small, with the part lit whose step is shown. Its parts lead to their steps.

import {latest, post} from "../../api.js";
import {element} from "../../element.js";
import {drawing} from "../map/drawing.js";
import {partOfStep, prepared} from "../map/model.js";

const narrow = matchMedia("(max-width: 820px)");

/**
 * @param {(part: import("../map/model.js").Part) => string} href  where a part leads
 * @returns {{node: HTMLElement, draw: (question: object) => Promise<void>, light: (step: string) => void,
 *   leave: () => void}}
 */
export function whereWeAre(href) {
  const ask = latest();
  /** @type {any} */
  let model = null;
  let [shown, lit] = ["", ""];
  const map = drawing({compact: true, href: (name) => (model ? href(model.byName.get(name)) : "#learn")});
  const node = element(
    "details.where-we-are",
    {open: !narrow.matches},
    element("summary", "The model"),
    element("nav", {"aria-label": "The model, and where we are in it"}, map.node),
  );
  const light = (step) => {
    lit = step;
    const part = model && partOfStep(model, step);
    if (!part) return;
    map.show(model, ""); // its links lead to the steps of the walk that is shown now
    map.light(part.name);
  };
  const arrived = (key, found) => {
    if (!found) return;
    [shown, model, node.hidden] = [key, prepared(found), false];
    light(lit);
  };
  return {
    node,
    light,
    /** Nothing is lost without it: where the map cannot be drawn, the list of steps is still there. */
    async draw(question) {
      const key = JSON.stringify(question);
      if (key === shown) {
        light(lit);
        return;
      }
      try {
        arrived(key, await ask((signal) => post("/api/v1/map", question, {signal})));
      } catch {
        node.hidden = true;
      }
    },
    leave() {
      ask.stop();
      map.leave();
    },
  };
}
