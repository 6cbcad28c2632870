// A problem, where it happened, with what to do about it.

import {element} from "../element.js";

/** @param {{message: string, hint?: string}} problem  @param {() => void} [again] what "Try again" does */
export function trouble(problem, again) {
  return element(
    "div.trouble",
    {role: "alert"},
    element("p", problem.message),
    problem.hint ? element("pre", {tabindex: 0}, problem.hint) : null,
    again ? element("button.small", {onclick: () => again()}, "Try again") : null,
  );
}
