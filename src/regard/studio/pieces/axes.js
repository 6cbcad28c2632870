// Axes of a chart: round numbers, powers of ten, or names.

/**
 * @typedef {{label: string, low: number, high: number, ticks: [number, string][],
 *   place: (value: number) => number}} Axis  `place` turns a value into a number between `low` and `high`
 */

/**
 * Round labels that hold all values, and 0 if asked or if it is near. `whole`: of whole things, there is nothing
 * between two; `most`: no value can be larger, so that the axis ends there. @returns {Axis}
 */
export function linear(label, values, {zero = false, count = 5, whole = false, most = Infinity} = {}) {
  let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  if (zero || (low > 0 && low < (high - low) / 2)) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const step = Math.max(roundStep((high - low) / count), whole ? 1 : 0);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.min(Math.ceil(high / step - 1e-9), Math.floor(most / step + 1e-9)));
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  /** @type {[number, string][]} */
  const ticks = Array.from({length: last - first + 1}, (_, place) => [
    (first + place) * step,
    figure((first + place) * step, digits),
  ]);
  return {label, low: ticks[0][0], high: ticks[ticks.length - 1][0], ticks, place: (value) => value};
}

/** Powers of ten, for values above 0. @returns {Axis} */
export function logarithmic(label, values) {
  const powers = values.filter((value) => value > 0).map(Math.log10);
  const [low, high] = powers.length ? [Math.min(...powers), Math.max(...powers)] : [0, 1];
  const factors = high - low < 2.5 ? [1, 2, 5] : [1];
  const marks = [];
  for (let power = Math.floor(low) - 1; power <= Math.ceil(high) + 1; power++)
    factors.forEach((factor) => marks.push(Math.log10(factor) + power));
  const first = marks.filter((mark) => mark <= low + 1e-9).at(-1);
  const last = marks.find((mark) => mark >= Math.max(high, first + 1e-3) - 1e-9);
  /** @type {[number, string][]} */
  const ticks = marks
    .filter((mark) => mark >= first && mark <= last)
    .map((mark) => [mark, `${Number((10 ** mark).toPrecision(3))}`]);
  return {label, low: first, high: last, ticks, place: (value) => (value > 0 ? Math.log10(value) : first)};
}

/** One name at each whole number from 0. @returns {Axis} */
export function categories(label, names) {
  return {
    label,
    low: -0.5,
    high: names.length - 0.5,
    ticks: names.map((name, place) => [place, name]),
    place: (value) => value,
  };
}

/** The next 1, 2 or 5 times a power of ten that is not smaller. */
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return [1, 2, 5].map((factor) => factor * power).find((each) => each >= step * (1 - 1e-9)) ?? 10 * power;
}

export function figure(value, digits) {
  return value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}).replace("-", "−");
}
