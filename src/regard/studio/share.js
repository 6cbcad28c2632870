// What can be taken along from any page: its link, a picture of it, the page as one file; and a mode for showing it to
// others, with larger type and without forms.

import {element} from "./element.js";
import {announce, toast} from "./pieces/announce.js";
import {theme} from "./theme.js";

const SHARP = 2; // pixels of a picture for one of the page
const MOST = 16_384; // pixels of a canvas's side
const LEFT_OUT = ".visually-hidden, .skip, dialog, .toasts, .undo, [hidden], noscript, script";

/** A button that opens the list of what can be done with the page that is shown. */
export function shareMenu(root) {
  const item = (words, action) =>
    element("button.quiet", {role: "menuitem", onclick: () => (close(), action())}, words);
  const list = element(
    "div.share-list.card",
    {role: "menu", "aria-label": "Share", hidden: true},
    item("Copy link", copyLink),
    item("Save as picture", () => savePicture(root)),
    item("Save as page", () => savePage(root)),
    item("Present (p)", present),
  );
  const button = element(
    "button.quiet",
    {"aria-haspopup": "menu", "aria-expanded": "false", title: "Link, picture, page"},
    "Share",
  );
  const open = (yes) => {
    list.hidden = !yes;
    button.setAttribute("aria-expanded", String(yes));
  };
  const close = () => open(false);
  button.addEventListener("click", () => {
    open(list.hidden);
    if (!list.hidden) /** @type {HTMLElement} */ (list.firstChild).focus();
  });
  const node = element("div.share", button, list);
  node.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !list.hidden) {
      event.stopPropagation();
      close();
      button.focus();
    }
    const items = [...list.children];
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!by || list.hidden) return;
    event.preventDefault();
    const place = items.indexOf(/** @type {Element} */ (document.activeElement));
    /** @type {HTMLElement} */ (items[(place + by + items.length) % items.length]).focus();
  });
  document.addEventListener("click", (event) => {
    if (!node.contains(/** @type {Node} */ (event.target))) close();
  });
  return node;
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    toast("The link is copied");
  } catch {
    toast("The browser does not let a page copy here", {bad: true});
  }
}

/** Larger type, no forms; the same key, or Escape, ends it. */
export function present() {
  const on = document.documentElement.classList.toggle("presenting");
  announce(on ? "Presenting. Press p or Escape to end." : "No longer presenting");
  if (on) toast("Press p or Escape to end");
}

export function endPresenting() {
  if (document.documentElement.classList.contains("presenting")) present();
}

/** The page as nodes that need no script: canvases are pictures, fields their values, what is not seen is not there. */
function copied(root) {
  const copy = /** @type {HTMLElement} */ (root.cloneNode(true));
  const [canvases, copies] = [root.querySelectorAll("canvas"), copy.querySelectorAll("canvas")];
  canvases.forEach((canvas, place) => {
    const picture = element("img", {class: canvas.className, alt: canvas.getAttribute("aria-label") ?? ""});
    const {width, height} = canvas.getBoundingClientRect();
    picture.src = canvas.width && canvas.height ? canvas.toDataURL() : "data:,";
    Object.assign(picture.style, {width: `${width}px`, height: `${height}px`, imageRendering: "pixelated"});
    copies[place].replaceWith(picture);
  });
  const [fields, shown] = [
    root.querySelectorAll("input, textarea, select"),
    copy.querySelectorAll("input, textarea, select"),
  ];
  fields.forEach((each, place) => {
    if (each.type === "checkbox" || each.type === "radio") shown[place].toggleAttribute("checked", each.checked);
    else if (shown[place].tagName === "TEXTAREA") shown[place].textContent = each.value;
    else shown[place].setAttribute("value", each.value);
    shown[place].setAttribute("disabled", "");
  });
  copy.querySelectorAll(LEFT_OUT).forEach((each) => each.remove());
  copy.querySelectorAll("a[href^='#']").forEach((each) => each.removeAttribute("href"));
  return copy;
}

/** All rules of the page's own style sheets. */
const rules = () =>
  [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join("\n");

/** `Look inside · Regard` → `look-inside` */
const fileName = () => document.title.split("·")[0].trim().toLowerCase().replace(/\s+/g, "-");

function saved(blob, name) {
  const href = URL.createObjectURL(blob);
  element("a", {href, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** What is inside a node, as HTML. */
const written = (/** @type {any} */ node) => node.getHTML();

/** One file that opens anywhere, without this service and without a script. */
export function pageText(root) {
  const text = (words) => written(element("i", words));
  return [
    `<!doctype html>\n<html lang="en" data-theme="${theme()}"><head><meta charset="utf-8">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${text(document.title)}</title><style>${rules().replaceAll("</", "<\\/")}</style></head><body>`,
    `<main id="page">${written(copied(root))}</main>`,
    `<footer class="saved-from"><p class="note">Saved from Regard, ${new Date().toISOString().slice(0, 10)}: `,
    `<code>${text(location.hash)}</code></p></footer></body></html>\n`,
  ].join("");
}

function savePage(root) {
  saved(new Blob([pageText(root)], {type: "text/html"}), `${fileName()}.html`);
  toast("Saved as a page");
}

/** The page as it is seen, as PNG. */
export async function pictureOf(root) {
  const {width, height} = root.getBoundingClientRect();
  const scale = Math.min(SHARP, MOST / Math.max(width, height));
  const copy = copied(root);
  const style = document.createElement("style");
  style.textContent = rules();
  const page = element(
    "div.picture-of-page",
    {xmlns: "http://www.w3.org/1999/xhtml", "data-theme": theme()},
    style,
    copy,
  );
  page.style.colorScheme = theme();
  copy.style.margin = "0";
  const inside = new XMLSerializer().serializeToString(page);
  const drawing =
    `<svg xmlns="http://www.w3.org/2000/svg" data-theme="${theme()}" width="${width * scale}" height="${height * scale}" ` +
    `viewBox="0 0 ${width} ${height}"><foreignObject width="${width}" height="${height}">${inside}</foreignObject></svg>`;
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await picture.decode();
  const canvas = element("canvas", {width: Math.ceil(width * scale), height: Math.ceil(height * scale)});
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0);
  return new Promise((done) => {
    canvas.toBlob(done, "image/png");
  });
}

async function savePicture(root) {
  try {
    saved(await pictureOf(root), `${fileName()}.png`);
    toast("Saved as a picture");
  } catch {
    toast("The browser could not draw this page; saving it as a page works", {bad: true});
  }
}
