// What changed, for those who listen: said once, politely, wherever the focus is. And shown, if it is a toast.

import {element} from "../element.js";

const STAYS = 4000; // milliseconds
let region;
let shelf;

export function announce(words) {
  region ??= document.body.appendChild(element("div.visually-hidden", {"aria-live": "polite", id: "announced"}));
  region.textContent = words;
}

let undoing;

/** Something was taken away: a bar at the foot of the window that brings it back. It stays until it is closed. */
export function offerUndo(words, undo) {
  undoing?.remove();
  const close = () => bar.remove();
  const back = element("button.small", {onclick: () => (close(), undo())}, "Undo");
  const shut = element("button.quiet.small", {"aria-label": "Close", onclick: close}, "×");
  const bar = element("div.undo", {role: "region", "aria-label": "Undo"}, element("p", words), back, shut);
  undoing = document.body.appendChild(bar);
  announce(words);
  back.focus({preventScroll: true});
}

/** A short line at the foot of the window: toast("Copied"). It says nothing that is not also elsewhere. */
export function toast(words, {bad = false} = {}) {
  shelf ??= document.body.appendChild(element("div.toasts", {"aria-hidden": "true"}));
  const shown = shelf.appendChild(element("p", {class: bad ? "toast bad" : "toast"}, words));
  announce(words);
  setTimeout(() => shown.remove(), STAYS);
}
