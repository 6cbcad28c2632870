// The frame: reads the address, mounts the page it names, and mounts another when the address names another.

import {get} from "./api.js";
import {link, read} from "./address.js";
import {element} from "./element.js";
import {trouble} from "./pieces/trouble.js";

const PAGES = {
  translate: "Translate",
  look: "Look inside",
  beam: "Beam",
  meaning: "Meaning",
  train: "Train",
  compare: "Compare",
  learn: "Learn",
};

let shown = {page: "", leave: () => {}};

async function show() {
  const {page, values} = read();
  const name = page in PAGES ? page : "translate";
  mark(name, values);
  if (shown.page === name && shown.update) return shown.update(values);
  shown.leave?.();
  const root = document.getElementById("page");
  root.replaceChildren();
  document.title = `${PAGES[name]} · Regard`;
  shown = {page: name};
  try {
    const [{mount}, {runs}] = await Promise.all([import(`./panels/${name}.js`), get("/api/v1/runs")]);
    if (shown.page === name) shown = {page: name, ...(await mount(root, {values, runs}))};
  } catch (problem) {
    root.replaceChildren(trouble(problem, show));
  }
}

function mark(current, {run, text}) {
  document.getElementById("pages").replaceChildren(
    ...Object.entries(PAGES).map(([page, title]) =>
      element("a", {href: link(page, {run, text}), "aria-current": page === current ? "page" : null}, title),
    ),
  );
}

addEventListener("hashchange", show);
addEventListener("popstate", show);
show();
