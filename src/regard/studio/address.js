// The state of a page is its address: #look?run=demo&text=the+cat&edits=[…]. Back and forward undo and redo.

export function read() {
  const [page, query] = location.hash.slice(1).split("?");
  return {page: page || "translate", values: Object.fromEntries(new URLSearchParams(query))};
}

export function link(page, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  return `#${page}?${new URLSearchParams(kept)}`;
}

// A step that undo should come back to pushes; what changes with every keystroke replaces.
export function write(page, values, {replace = false} = {}) {
  const address = link(page, values);
  if (address === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
}
