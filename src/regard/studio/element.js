// DOM in one call: element("button.quiet", {onclick: stop}, "Stop"). Text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * `tag` may have classes behind it: "p.note.number". The first of the rest may be attributes, all others are children. A
 * button sends no form unless its type says so.
 */
export function element(tag, ...rest) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  if (name === "button") node.type = "button";
  return filled(node, rest);
}

export function svg(tag, ...rest) {
  return filled(document.createElementNS(SVG, tag), rest);
}

/** @returns {any} */
function filled(node, rest) {
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style")
      Object.assign(node.style, value); // never an attribute: the security policy forbids it
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...rest.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

const sheets = new Map();

/**
 * A page's own style sheet, by its place in the studio: `await sheet("panels/look.css")`. It is there once, however
 * often it is asked for, and the answer comes when it is applied, so that nothing is seen without it.
 */
export function sheet(path) {
  if (!sheets.has(path)) {
    const found = new Promise((done) => {
      const href = new URL(path, import.meta.url).href;
      document.head.append(element("link", {rel: "stylesheet", href, onload: done, onerror: done}));
    });
    sheets.set(path, found);
  }
  return sheets.get(path);
}
