// The frame: reads the address, mounts the page it names, and mounts another when the address names another.

import {get, leaveRequests} from "./api.js";
import {carried, link, read, write} from "./address.js";
import {element, svg} from "./element.js";
import {shortcut, showHelp} from "./keys.js";
import {pageHead} from "./pieces/forms.js";
import {chosenRun, instead} from "./pieces/runs.js";
import {skeleton} from "./pieces/skeleton.js";
import {trouble} from "./pieces/trouble.js";
import {endPresenting, present, shareMenu} from "./share.js";
import {switchTheme} from "./theme.js";
import {startTour} from "./tours.js";

const PAGES = {
  runs: "Runs",
  translate: "Translate",
  look: "Look inside",
  map: "Map",
  beam: "Beam",
  meaning: "Meaning",
  train: "Train",
  compare: "Compare",
  learn: "Learn",
};
const FIRST = "translate"; // where the studio opens
const OF_TEXTS = ["translate", "look", "map", "beam", "learn"]; // pages whose address has the text, if there is one
const SLOW = 150; // milliseconds before a skeleton is better than nothing

const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id)); // of index.html
const root = part("page");
const menu = part("menu");
const links = Object.fromEntries(
  Object.entries(PAGES).map(([page, title]) => [page, element("a", {"data-title": title}, title)]),
);
let shown = {page: ""};
let visit = 0; // a page that arrives after another was asked for is not shown
let handled = ""; // the address that is shown

const known = (page) => (page in PAGES ? page : FIRST);

async function show() {
  const opening = location.hash.length < 2; // no page was asked for: the page may begin with an example
  const {page, values} = read();
  handled = location.hash;
  if (page === "tour") return startTour(values.name);
  const name = known(page);
  mark();
  if (shown.page === name && shown.update) {
    const found = settled(shown.panel, name, values, shown.runs);
    if (found) return shown.update(found);
  }
  const first = shown.page === "";
  leave();
  shown = {page: name};
  document.title = `${PAGES[name]} · Regard`;
  if (!first) arrive();
  return mounted(name, values, {mine: ++visit, opening});
}

/** Every visit has a node of its own: what a page that was left still writes is not seen. */
async function mounted(name, values, {mine, opening}) {
  const node = element("div.visit");
  root.replaceChildren(node);
  const waiting = setTimeout(() => node.replaceChildren(skeleton("page")), SLOW);
  try {
    const [panel, {runs}] = await Promise.all([import(`./panels/${name}.js`), get("/api/v1/runs")]);
    if (mine !== visit) return;
    clearTimeout(waiting);
    const ready = settled(panel, name, values, runs);
    if (!ready) {
      node.replaceChildren(
        pageHead(PAGES[name], ""),
        instead(runs, panel.tasks, values, {page: name, what: panel.nothing, wordsOnly: panel.wordsOnly}),
      );
      return;
    }
    node.replaceChildren();
    const found = (await panel.mount(node, {values: ready, runs, opening})) ?? {};
    if (mine === visit) shown = {page: name, panel, runs, ...found};
    else found.leave?.();
  } catch (problem) {
    if (mine !== visit) return;
    shown = {page: ""};
    node.replaceChildren(trouble(problem, show));
  } finally {
    clearTimeout(waiting);
  }
}

/**
 * The values a page is shown with. A page that says for which tasks it is (`export const tasks`), and whether for runs of
 * words alone (`wordsOnly`), gets a run that fits, and the address says which; null where it has to say that there is none.
 */
function settled(panel, name, values, runs) {
  if (!panel?.tasks) return values;
  const {run} = chosenRun(runs, panel.tasks, values.run, panel.wordsOnly);
  if (!run) return null;
  if (values.run === run.name) return values;
  const full = {...values, run: run.name};
  write(name, full, {replace: true});
  return full;
}

function leave() {
  const {leave: left} = shown;
  shown = {page: ""};
  leaveRequests();
  left?.();
}

/** A new page begins at its top, for the eye and for the keyboard. */
function arrive() {
  scrollTo(0, 0);
  root.focus({preventScroll: true});
  open(false);
}

/** The links take the run and the text along; only the one to Train begins anew. */
function mark() {
  const {page, values} = read();
  const current = known(page);
  if (current !== "train") carried.run = values.run ?? carried.run;
  if (values.text || OF_TEXTS.includes(current)) carried.text = values.text ?? "";
  for (const [name, node] of Object.entries(links)) {
    node.href = link(name, name === "train" ? {} : carried);
    if (name === current) node.setAttribute("aria-current", "page");
    else node.removeAttribute("aria-current");
  }
  menu.textContent = PAGES[current];
}

function open(yes) {
  menu.setAttribute("aria-expanded", yes);
}

const icon = (path) =>
  svg("svg", {viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true"}, svg("path", {d: path}));

function tools() {
  const half = "M10 2.5a7.5 7.5 0 1 0 0 15a7.5 7.5 0 1 0 0-15ZM10 4v12a6 6 0 0 0 0-12Z";
  return [
    shareMenu(root),
    element(
      "button.quiet.icon",
      {"aria-label": "Light or dark", title: "Light or dark (d)", onclick: switchTheme},
      icon(half),
    ),
    element("a.button.quiet", {href: "/docs", title: "The service, for programs"}, "API"),
    element("button.quiet", {title: "Help (?)", onclick: showHelp}, "Help"),
  ];
}

function begin() {
  part("pages").append(...Object.values(links));
  part("tools").append(...tools());
  part("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash is the address of the page
    root.focus();
  });
  menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
  part("pages").addEventListener("click", () => open(false));
  Object.entries(PAGES).forEach(([page, title], place) =>
    shortcut(String(place + 1), title, () => links[page].click()),
  );
  shortcut("/", "write: to the first text field", () => {
    const first = (what) => /** @type {HTMLElement | null} */ (root.querySelector(what));
    first("[data-unfold]")?.click(); // a question that folded to one line
    first("textarea, input[type=text]")?.focus();
  });
  shortcut("d", "light or dark", switchTheme);
  shortcut("p", "present: larger type, no forms", present);
  shortcut("?", "this help", showHelp);
  addEventListener("keydown", (event) => event.key === "Escape" && endPresenting());
  for (const name of ["hashchange", "popstate"]) addEventListener(name, () => location.hash !== handled && show());
  addEventListener("address", () => {
    handled = location.hash;
    mark();
  });
  show();
}

begin();
