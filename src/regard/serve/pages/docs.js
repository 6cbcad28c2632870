// The service's own description of itself, /openapi.json, as a page. Nothing is loaded from anywhere else.

import {element} from "./element.js";

const METHODS = ["get", "post", "put", "delete"];
const [BODY, ANSWER] = ["Body", "Answer"];
const FORM = "application/x-www-form-urlencoded";

/** A schema, with what it refers to in its place. An object that says how its fields are called has these. */
function resolve(schema, root) {
  const {propertyNames: names, additionalProperties: each} = schema ?? {};
  if (names?.enum ?? names?.const)
    return {...schema, properties: Object.fromEntries((names.enum ?? [names.const]).map((name) => [name, each]))};
  if (!schema?.$ref) return schema ?? {};
  const place = schema.$ref.replace("#/", "").split("/");
  return place.reduce((value, key) => value[key], root);
}

/** What a value is, in words: `list of text`, `number or nothing`. */
function kind(schema, root) {
  const found = resolve(schema, root);
  const options = found.anyOf ?? found.oneOf;
  if (options) return options.map((each) => kind(each, root)).join(" or ");
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (found.prefixItems) return `[${found.prefixItems.map((each) => kind(each, root)).join(", ")}]`;
  if (found.type === "array") return `list of ${kind(found.items ?? {}, root)}`;
  const names = {string: "text", integer: "whole number", boolean: "true or false", null: "nothing"};
  return found.title && found.type === "object" ? found.title : (names[found.type] ?? found.type ?? "anything");
}

/** An example of a schema: its own where it has one, else its default, else one made of its parts. */
function example(schema, root) {
  const found = resolve(schema, root);
  if (found.example !== undefined) return found.example;
  if (found.examples?.length) return found.examples[0];
  if (found.default !== undefined) return found.default;
  if (found.anyOf) return example(found.anyOf[0], root);
  if (found.enum) return found.enum[0];
  if (found.type === "array") return found.items ? [example(found.items, root)] : [];
  if (found.type === "object") {
    const needed = found.required ?? [];
    return Object.fromEntries(needed.map((name) => [name, example(found.properties?.[name] ?? {}, root)]));
  }
  return {string: "text", integer: 0, number: 0, boolean: true}[found.type] ?? null;
}

const bodySchema = (operation) => operation.requestBody?.content?.["application/json"]?.schema;

/** The address of an operation, its path filled with examples. */
function address(path, operation, root) {
  const parameters = (operation.parameters ?? []).filter((each) => each.in === "path");
  const fill = (whole, {name, schema, examples, example: one}) =>
    whole.replace(`{${name}}`, one ?? Object.values(examples ?? {})[0]?.value ?? example(schema, root));
  return parameters.reduce(fill, path);
}

/** The same request on the command line. Single quotes inside a body are closed, escaped and opened again. */
function command(method, path, operation, root) {
  const words = ["curl"];
  const schema = bodySchema(operation);
  if (method !== "get" && !(method === "post" && schema)) words.push("-X", method.toUpperCase());
  words.push(location.origin + address(path, operation, root));
  if (schema) {
    const body = JSON.stringify(example(schema, root)).replaceAll("'", "'\\''");
    words.push("\\\n  -H 'Content-Type: application/json'", `\\\n  -d '${body}'`);
  }
  return words.join(" ");
}

/** The description of a field, without the marks of Markdown. */
const plain = (text) => (text ?? "").replaceAll(/`|\*/g, "");

/** The object that a schema is, or is a list of, or may be; nothing where there is none. */
function inside(schema, root) {
  const found = resolve(schema, root);
  if (found.properties) return found;
  const next = found.items ? [found.items] : (found.anyOf ?? found.oneOf ?? []);
  return next.map((each) => inside(each, root)).find((each) => each);
}

/** The fields of a body or of an answer; what has fields of its own can be opened, a few levels deep. */
function fields(title, schema, root, depth = 0) {
  const found = inside(schema, root);
  if (!found) return "";
  const needed = new Set(title === BODY ? (found.required ?? []) : []);
  const rows = Object.entries(found.properties).map(([name, field]) => {
    const inner = inside(field, root);
    const standing = needed.has(name)
      ? ", needed"
      : field.default === undefined
        ? ""
        : `, else ${JSON.stringify(field.default)}`;
    return element(
      "tr",
      {},
      element("th", {scope: "row"}, name),
      element("td", {}, kind(field, root) + standing),
      element(
        "td",
        {class: "note"},
        plain(field.description ?? resolve(field, root).description),
        inner && depth < 3
          ? element(
              "details",
              {},
              element("summary", {}, `fields of ${inner.title}`),
              fields("", field, root, depth + 1),
            )
          : "",
      ),
    );
  });
  const caption = title ? element("caption", {}, title) : "";
  return element("table", {}, caption, element("tbody", {}, ...rows));
}

/** A button that sends the example and shows what comes back. */
function trial(method, path, operation, root) {
  const answer = element("pre", {hidden: "", tabindex: "0", "aria-label": "Answer"});
  const button = element("button", {type: "button"}, "Try it");
  button.addEventListener("click", async () => {
    const schema = bodySchema(operation);
    const options = {method: method.toUpperCase(), headers: {"X-Regard": "docs"}};
    if (schema) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(example(schema, root));
    }
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const response = await fetch(address(path, operation, root), options);
      answer.textContent = `${response.status}\n${shown(await response.text())}`;
    } catch (problem) {
      answer.textContent = `no answer: ${problem.message}`;
    }
  });
  return element("div", {}, button, answer);
}

function shown(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function article(method, path, operation, root) {
  const content = operation.responses?.["200"]?.content ?? {};
  const answer = content["application/json"]?.schema;
  const alsoForm = FORM in (operation.requestBody?.content ?? {}) ? "The body may be JSON or a form." : "";
  const about = plain(operation.description ?? operation.summary);
  const heading = element(
    "summary",
    {},
    element("h3", {}, element("span", {class: "method"}, method.toUpperCase()), path),
    element("span", {class: "note"}, about.split(/(?<=\.)\s/)[0]),
  );
  return element(
    "details",
    {class: "operation", "data-operation": `${method} ${path}`},
    heading,
    element("p", {}, about),
    alsoForm ? element("p", {class: "note"}, alsoForm) : "",
    bodySchema(operation) ? fields(BODY, bodySchema(operation), root) : "",
    answer ? fields(ANSWER, answer, root) : "",
    element(
      "pre",
      {tabindex: "0", "aria-label": "On the command line"},
      element("code", {class: "command"}, command(method, path, operation, root)),
    ),
    method === "get" || bodySchema(operation) ? trial(method, path, operation, root) : "",
  );
}

/** Every operation, by its first tag. */
function sections(root) {
  const found = new Map();
  for (const [path, operations] of Object.entries(root.paths))
    for (const method of METHODS)
      if (operations[method]) {
        const tag = operations[method].tags?.[0] ?? "other";
        found.set(tag, [...(found.get(tag) ?? []), article(method, path, operations[method], root)]);
      }
  return found;
}

const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id)); // of index.html

async function draw() {
  const about = part("about");
  try {
    const root = await (await fetch("/openapi.json")).json();
    about.textContent = plain(root.info.description);
    for (const [tag, articles] of sections(root)) {
      const id = tag.toLowerCase().replaceAll(/\W+/g, "-");
      part("contents").append(element("a", {href: `#${id}`}, tag));
      part("operations").append(element("h2", {id}, tag), ...articles);
    }
  } catch (problem) {
    about.textContent = `The description could not be read: ${problem.message}`;
  }
}

draw();
