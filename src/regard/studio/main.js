// The frame: reads the address, mounts the page it names, and mounts another when the address names another.

import {get} from "./api.js";
import {link, read} from "./address.js";
import {element, svg} from "./element.js";
import {shortcut, showKeys} from "./keys.js";
import {skeleton} from "./pieces/skeleton.js";
import {trouble} from "./pieces/trouble.js";
import {switchTheme} from "./theme.js";

const PAGES = {
  translate: "Translate",
  look: "Look inside",
  beam: "Beam",
  meaning: "Meaning",
  train: "Train",
  compare: "Compare",
  learn: "Learn",
};
const SLOW = 150; // milliseconds before a skeleton is better than nothing

const root = document.getElementById("page");
const menu = document.getElementById("menu");
const links = Object.fromEntries(Object.entries(PAGES).map(([page, title]) => [page, element("a", {}, title)]));
let shown = {page: ""};
let visit = 0; // a page that arrives after another was asked for is not shown
let handled = null;

async function show() {
  const {page, values} = read();
  const name = page in PAGES ? page : "translate";
  handled = location.hash;
  mark();
  if (shown.page === name && shown.update) return shown.update(values);
  const first = shown.page === "";
  await leave();
  shown = {page: name};
  document.title = `${PAGES[name]} · Regard`;
  if (!first) arrive();
  await mounted(name, values, ++visit);
}

async function mounted(name, values, mine) {
  const waiting = setTimeout(() => root.replaceChildren(skeleton("page")), SLOW);
  try {
    const [{mount}, {runs}] = await Promise.all([import(`./panels/${name}.js`), get("/api/v1/runs")]);
    if (mine !== visit) return;
    clearTimeout(waiting);
    root.replaceChildren();
    const panel = (await mount(root, {values, runs})) ?? {};
    if (mine === visit) shown = {page: name, ...panel};
    else panel.leave?.();
  } catch (problem) {
    if (mine !== visit) return;
    shown = {page: ""};
    root.replaceChildren(trouble(problem, show));
  } finally {
    clearTimeout(waiting);
  }
}

async function leave() {
  const {leave: left} = shown;
  shown = {page: ""};
  root.replaceChildren();
  await left?.();
}

/** A new page begins at its top, for the eye and for the keyboard. */
function arrive() {
  scrollTo(0, 0);
  root.focus({preventScroll: true});
  open(false);
}

/** The links take the run and the text along. */
function mark() {
  const {page, values} = read();
  const current = page in PAGES ? page : "translate";
  for (const [name, node] of Object.entries(links)) {
    node.href = link(name, {run: values.run, text: values.text});
    if (name === current) node.setAttribute("aria-current", "page");
    else node.removeAttribute("aria-current");
  }
  menu.textContent = PAGES[current];
}

function open(yes) {
  menu.setAttribute("aria-expanded", yes);
}

const icon = (path) => svg(
  "svg",
  {viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true"},
  svg("path", {d: path}),
);

function tools() {
  const half = "M10 2.5a7.5 7.5 0 1 0 0 15a7.5 7.5 0 1 0 0-15ZM10 4v12a6 6 0 0 0 0-12Z";
  return [
    element(
      "button",
      {
        class: "quiet icon",
        type: "button",
        "aria-label": "Light or dark",
        title: "Light or dark (d)",
        onclick: switchTheme,
      },
      icon(half),
    ),
    element(
      "button",
      {class: "quiet icon", type: "button", "aria-label": "Keys", title: "Keys (?)", onclick: showKeys},
      "?",
    ),
  ];
}

function begin() {
  document.getElementById("pages").append(...Object.values(links));
  document.getElementById("tools").append(...tools());
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash is the address of the page
    root.focus();
  });
  menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
  document.getElementById("pages").addEventListener("click", () => open(false));
  Object.entries(PAGES).forEach(
    ([page, title], place) => shortcut(String(place + 1), title, () => links[page].click()),
  );
  shortcut("/", "write: to the first text field", () => root.querySelector("textarea, input[type=text]")?.focus());
  shortcut("d", "light or dark", switchTheme);
  shortcut("?", "this list", showKeys);
  for (const name of ["hashchange", "popstate"]) addEventListener(name, () => location.hash !== handled && show());
  addEventListener("address", () => {
    handled = location.hash;
    mark();
  });
  show();
}

begin();
