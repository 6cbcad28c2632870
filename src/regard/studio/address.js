// The state of a page is its address: #look?run=demo&text=the+cat&edits=[…]. Back and forward undo and redo.

export function read() {
  const [page, query] = location.hash.slice(1).split("?");
  return {page: page || "translate", values: Object.fromEntries(new URLSearchParams(query))};
}

// What the links of the navigation take along, also from a page that has neither: the run and the text of the last one.
export const carried = {run: "", text: ""};

export function link(page, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  return kept.length ? `#${page}?${new URLSearchParams(kept)}` : `#${page}`;
}

// A step that undo should come back to pushes; what changes with every keystroke replaces. The browser says nothing
// of either, so this does: the frame keeps the links of its navigation up to date with it.
export function write(page, values, {replace = false} = {}) {
  const address = link(page, values);
  if (address === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("address"));
}
