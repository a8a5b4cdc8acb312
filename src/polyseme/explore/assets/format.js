// Numbers as text.

export const wholeNumber = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/**
 * Returns a number with its noun.
 *
 * @param {number} n
 * @param {string} one
 * @param {string} [many]
 * @returns {string}
 */
export function count(n, one, many = one + "s") {
  return `${wholeNumber.format(n)} ${n === 1 ? one : many}`;
}

/**
 * Returns a share in percent.
 *
 * @param {number} share
 * @returns {string}
 */
export function percent(share) {
  if (share === 0) return "0%";
  if (share < 0.0005) return "<0.1%";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

/**
 * Returns a number with some decimals.
 *
 * @param {number} value
 * @param {number} [digits]
 * @returns {string}
 */
export function decimal(value, digits = 3) {
  return Number.isFinite(value) ? value.toFixed(digits) : "–";
}

/**
 * Returns how many times as large something is.
 *
 * @param {number} ratio
 * @returns {string}
 */
export function timesText(ratio) {
  if (ratio >= 9.95 && ratio < Infinity) return `×${wholeNumber.format(ratio)}`;
  return `×${decimal(ratio, ratio < 0.95 ? 2 : 1)}`;
}

/**
 * Returns a number with three or four significant digits, and other values as text.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function figureOf(value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return wholeNumber.format(value);
  return Math.abs(value) >= 100 ? value.toFixed(1) : value.toPrecision(4);
}
