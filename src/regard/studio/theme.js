// Light or dark: as the system has it, or as the switch says. Canvases ask here; style sheets use light-dark().

const DARK = matchMedia("(prefers-color-scheme: dark)");
const KEY = "regard.theme";
const followers = new Set();
const tokens = new Map();

/** @returns {"light" | "dark"} what is shown now */
export function theme() {
  const {theme: chosen} = document.documentElement.dataset;
  return /** @type {"light" | "dark" | undefined} */ (chosen) ?? (DARK.matches ? "dark" : "light");
}

/** Call this after every change; the answer stops it. */
export function onTheme(follow) {
  followers.add(follow);
  return () => followers.delete(follow);
}

/** The other one. To choose what the system has is to follow the system again. */
export function switchTheme() {
  const chosen = theme() === "dark" ? "light" : "dark";
  const root = document.documentElement;
  if (chosen === (DARK.matches ? "dark" : "light")) delete root.dataset.theme;
  else root.dataset.theme = chosen;
  remember(root.dataset.theme);
  followers.forEach((follow) => follow(chosen));
}

/** The value of a token of style.css, for what CSS cannot paint: token("--ink"). Asked once for each theme. */
export function token(name) {
  const key = `${name} ${theme()}`;
  if (!tokens.has(key)) tokens.set(key, computed(name));
  return tokens.get(key);
}

function computed(name) {
  const probe = document.documentElement.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function remember(chosen) {
  try {
    if (chosen) localStorage.setItem(KEY, chosen);
    else localStorage.removeItem(KEY);
  } catch {
    // storage is forbidden: the choice lasts as long as the page
  }
}

DARK.addEventListener("change", () => followers.forEach((follow) => follow(theme())));
