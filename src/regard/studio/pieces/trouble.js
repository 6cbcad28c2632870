// A problem, where it happened, with what to do about it.

import {element} from "../element.js";

export function trouble(problem, again) {
  return element(
    "div",
    {class: "trouble", role: "alert"},
    element("p", {}, problem.message),
    problem.hint ? element("pre", {}, problem.hint) : null,
    again ? element("button", {type: "button", onclick: again}, "Try again") : null,
  );
}
