// What `regard serve` shows at its address: what is here, and one text to try.

import {element} from "./element.js";

const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id)); // of home.html
const form = /** @type {HTMLFormElement} */ (part("try"));
const fields = /** @type {any} */ (form.elements); // by name: q, pair
const answer = part("answer");

/** The request on the command line. Single quotes inside a text are closed, escaped and opened again. */
function command(text, [source, target]) {
  const quoted = text.replaceAll("'", "'\\''");
  const about = `-d source=${source} -d target=${target}`;
  return `curl ${location.origin}/translate \\\n  --data-urlencode 'q=${quoted}' ${about}`;
}

const chosen = () => fields.pair.value.split(" ");
const showCommand = () => (part("command").textContent = command(fields.q.value, chosen()));

async function translate(event) {
  event.preventDefault();
  answer.textContent = "…";
  const [source, target] = chosen();
  const headers = {"Content-Type": "application/json", "X-Regard": "home"};
  const body = JSON.stringify({q: fields.q.value, source, target});
  try {
    const response = await fetch("/translate", {method: "POST", headers, body});
    const found = await response.json();
    answer.replaceChildren(response.ok ? found.translatedText : found.error);
    if (found.warning) answer.append(element("small", {class: "note"}, ` ${found.warning}`));
    if (response.ok) answer.append(element("small", {class: "note"}, ` (run ${response.headers.get("X-Regard-Run")})`));
  } catch (problem) {
    answer.textContent = `no answer: ${problem.message}`;
  }
}

function table(runs) {
  const pair = ({languages}) => (languages ? `${languages.source} → ${languages.target}` : "");
  const score = (run) => (run.score === null ? "" : `${run.score_name} ${run.score.toFixed(1)}`);
  const rows = runs.map((run) =>
    element(
      "tr",
      {},
      element("th", {scope: "row"}, run.name, run.best ? element("small", {class: "note"}, " used") : ""),
      ...[run.task, pair(run), score(run), run.architecture, run.state].map((text) => element("td", {}, text)),
    ),
  );
  const head = ["Run", "Task", "Languages", "Score", "Architecture", "State"].map((name) =>
    element("th", {scope: "col"}, name),
  );
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}

async function asked(path) {
  const response = await fetch(path, {headers: {"X-Regard": "home"}});
  if (response.status === 401) throw new Error("a token is needed: open this page once as /?token=TOKEN");
  if (!response.ok) throw new Error((await response.json()).error);
  return response.json();
}

async function draw() {
  const place = part("runs");
  part("command").textContent = command(fields.q.value, ["en", "fr"]);
  try {
    const [{runs}, languages] = await Promise.all([asked("/api/v1/runs"), asked("/languages")]);
    place.replaceChildren(runs.length ? table(runs) : element("p", {}, "No run yet; regard train makes one."));
    const names = Object.fromEntries(languages.map(({code, name}) => [code, name]));
    const pairs = languages.flatMap(({code, targets}) => targets.map((target) => [code, target]));
    fields.pair.append(
      ...pairs.map(([source, target]) =>
        element("option", {value: `${source} ${target}`}, `${names[source]} → ${names[target]}`),
      ),
    );
    form.hidden = !pairs.length;
    if (pairs.length) showCommand();
  } catch (problem) {
    place.replaceChildren(element("p", {}, problem.message));
  }
}

form.addEventListener("submit", translate);
form.addEventListener("input", showCommand);
draw();
