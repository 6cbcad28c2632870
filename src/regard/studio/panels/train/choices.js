// What was chosen for a training, kept in the browser, so that it can be changed and started again.

const KEY = "regard.trainings";
const KEPT = 30; // trainings

/** @param {string} run  @param {object} choices of the form */
export function keepChoices(run, choices) {
  try {
    const kept = [[run, choices], ...all().filter(([name]) => name !== run)].slice(0, KEPT);
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // storage is forbidden: the form begins with what the service knows
  }
}

/** The choices for a training: those kept here, or else what the service tells of it. */
export function earlier({run, preset, task, time, watch}) {
  const found = all().find(([name]) => name === run)?.[1];
  return {name: run, ...(found ?? {preset, task, time, watch})};
}

function all() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}
