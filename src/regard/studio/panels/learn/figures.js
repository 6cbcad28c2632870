// Numbers as people read them.

export const LEAST = 5e-5; // below this a number of four decimals would say nothing

/** @param {number | null} value null is minus infinity, which JSON does not have */
export function figure(value, decimals = 4) {
  if (value === null) return "−∞";
  if (Number.isInteger(value)) return signed(String(value));
  const size = Math.abs(value);
  if (size >= 10_000) return signed(value.toExponential(2));
  if (size < LEAST) return signed(value.toExponential(1));
  return signed(value.toFixed(decimals));
}

/** For a cell, where all numbers have as many decimals. Only what is exactly nothing is a bare 0. */
export function short(value, decimals) {
  if (value === null) return "−∞";
  if (value === 0) return "0";
  if (decimals && Math.abs(value) >= 10_000) return signed(value.toExponential(1)); // whole numbers are ids
  return signed(value.toFixed(decimals));
}

const signed = (text) => text.replace(/^-/, "−").replace(/^−(0(\.0+)?)$/, "$1");

export const shape = (sizes) =>
  sizes.length ? sizes.map((size) => size.toLocaleString("en")).join(" × ") : "one number";
