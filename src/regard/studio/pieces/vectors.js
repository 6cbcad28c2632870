// Vectors in the place of a text: the contents of a file, numbers that were pasted, and a name for either.

import {element} from "../element.js";

const MEDIA = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  wav: "audio/wav",
  csv: "text/csv",
  npy: "application/x-npy",
  npz: "application/x-npz",
};
const MOST = 700_000; // bytes of a file: as text it is a third larger, and the service takes a mebibyte
const KINDS = {"image/": "a picture", "audio/": "a sound", "text/csv": "a CSV file"};

const packed = (kind, bytes) =>
  `data:${kind};base64,${btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""))}`;

/** A file as the service reads it. @param {File} file */
export async function contents(file) {
  const kind = MEDIA[file.name.split(".").at(-1)?.toLowerCase() ?? ""];
  if (!kind) throw new Error(`${file.name}: cannot be read; ${Object.keys(MEDIA).join(", ")} can`);
  if (file.size > MOST)
    throw new Error(`${file.name}: ${Math.round(file.size / 1000)} kB; at most ${MOST / 1000} would be right`);
  return packed(kind, new Uint8Array(await file.arrayBuffer()));
}

/** What was pasted as the service reads it: lines are a table, anything else stays as it is. */
export function pasted(text) {
  const plain = text.trim();
  if (/^(\[|data:)/.test(plain) || !plain.includes("\n")) return plain;
  return packed("text/csv", new TextEncoder().encode(`${plain}\n`));
}

/** A short name: the picture itself, how many moments there are, or what kind of file it is. @returns {Node | string} */
export function called(text) {
  if (text.startsWith("data:image/")) return element("img.example", {src: text, alt: "a picture"});
  if (text.startsWith("data:"))
    return KINDS[Object.keys(KINDS).find((kind) => text.startsWith(`data:${kind}`))] ?? "a file";
  try {
    const found = JSON.parse(text);
    const shown = (place) => JSON.stringify(found.at(place)).replace(/[[\]]/g, "").replaceAll(",", ", ");
    return `${found.length} moments: ${shown(0)} … ${shown(-1)}`;
  } catch {
    return text;
  }
}

/** Whether a text is of vectors, and better called than shown. */
export const isVectors = (text) => /^\s*(\[|data:)/.test(text);

/**
 * A button that opens a file, and a place to drop one: the form it stands in.
 * @param {HTMLElement} form  @param {(text: string) => void} ontext  @param {(problem: Error) => void} onproblem
 */
export function fileButton(form, ontext, onproblem) {
  const input = element("input", {
    type: "file",
    accept: Object.keys(MEDIA)
      .map((each) => `.${each}`)
      .join(","),
    class: "visually-hidden",
    tabindex: -1,
    "aria-hidden": "true",
  });
  const take = async (files) => {
    if (files?.length) await contents(files[0]).then(ontext, onproblem);
    input.value = "";
  };
  input.addEventListener("change", () => take(input.files));
  form.addEventListener("dragover", (event) => !node.hidden && event.preventDefault());
  form.addEventListener("drop", (event) => {
    if (node.hidden || !event.dataTransfer?.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files);
  });
  const node = element("span.file", element("button.small", {onclick: () => input.click()}, "Open a file…"), input);
  return node;
}
