// What the forms of a training begin with: what an earlier one was asked for, to be changed, and a name that is free.

const IN_FORM = ["task", "text.vocabulary", "text.size", "data.pairs"]; // settings that have a control of their own

/**
 * @param {{run: string, request: {preset: string, corpus: string, time: string, watch: string, languages: string,
 *   overrides: string[]} | null, error: {right: string} | null, preset: string, task: string, time: string,
 *   watch: string}} training
 * @param {string[]} known what can be chosen as pieces
 * @returns {Record<string, any>}
 */
export function earlier({run, request, error, preset, task, time, watch}, known) {
  if (!request) return {name: run, preset, task, time, watch}; // it was not started here: what its settings say
  const given = new Map((request.overrides ?? []).map((line) => [line.split("=", 1)[0].trim(), line]));
  const value = (name) => given.get(name)?.slice(name.length + 1);
  const pieces = [value("text.vocabulary"), value("text.size")].filter(Boolean).join(" ");
  const offered = known.includes(pieces);
  const rest = [...given]
    .filter(([name]) => !IN_FORM.includes(name) || (!offered && name.startsWith("text.")))
    .map(([, line]) => line);
  return {
    ...request,
    name: run,
    task: value("task") ?? task,
    pieces: offered ? pieces : null,
    pairs: value("data.pairs"),
    right: error?.right ?? "",
    own: [...rest, error?.right].filter(Boolean).join("\n"),
  };
}

/** A name that no run has yet. @param {string} name @param {string[]} taken */
export function freeName(name, taken) {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? name : `${name}-${number}`;
    if (!taken.includes(candidate)) return candidate;
  }
}
