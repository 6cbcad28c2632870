// DOM in one call: element("button", {class: "quiet", onclick: stop}, "Stop"). Text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style")
      Object.assign(node.style, value); // never an attribute: the security policy forbids it
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
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
