// A training's log as it comes in: what belongs together, in order. What a resumed run did again counts once, as it was
// done last.

const KEPT = {step: "moments", validation: "validations", watch: "watched"};
const POINTS = 240; // of a curve; more cannot be told apart

export class TrainingLog {
  constructor() {
    this.moments = [];
    this.validations = [];
    this.watched = [];
    this.notes = [];
  }

  add(event) {
    if (event.event === "note") this.notes.push(event);
    const list = this[KEPT[event.event]];
    if (!list) return;
    while (list.length && list.at(-1).step >= event.step) list.pop();
    list.push(event);
  }

  get last() {
    return this.moments.at(-1);
  }

  /** @returns {{x: number, y: number}[]} every point, or the mean of a few neighbours */
  curve(list, name) {
    const points = list.filter((event) => event[name] != null).map((event) => ({x: event.step, y: event[name]}));
    const each = Math.ceil(points.length / POINTS);
    if (each < 2) return points;
    const groups = Array.from({length: Math.ceil(points.length / each)}, (_, place) =>
      points.slice(place * each, (place + 1) * each),
    );
    return groups.map((group) => ({x: group.at(-1).x, y: group.reduce((sum, {y}) => sum + y, 0) / group.length}));
  }
}

/** "12 s", "3 min 20 s", "2 h 5 min" */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600)
    return whole % 60 && whole < 600
      ? `${Math.floor(whole / 60)} min ${whole % 60} s`
      : `${Math.round(whole / 60)} min`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

/** "43 MiB", "1.2 GiB" */
export const bytes = (value) =>
  value >= 2 ** 30
    ? `${(value / 2 ** 30).toFixed(1)} GiB`
    : value >= 2 ** 20
      ? `${Math.round(value / 2 ** 20)} MiB`
      : `${Math.ceil(value / 2 ** 10)} KiB`;

/**
 * Follow the log of a run, from its first line; a lost connection is taken up where it broke off.
 * @param {string} run
 * @param {{onevent: (event: object) => void, onstate: (state: object) => void, onend: (state: object) => void,
 *   onlost: (lost: boolean) => void}} about
 * @returns {() => void} stops following
 */
export function follow(run, {onevent, onstate, onend, onlost}) {
  const source = new EventSource(`/api/v1/trainings/${encodeURIComponent(run)}/events`);
  source.onopen = () => onlost(false);
  source.onerror = () => onlost(true); // the browser tries again by itself, and says which line it had last
  source.onmessage = ({data}) => onevent(JSON.parse(data));
  source.addEventListener("state", ({data}) => onstate(JSON.parse(data)));
  source.addEventListener("end", ({data}) => {
    source.close();
    onend(JSON.parse(data));
  });
  return () => source.close();
}
