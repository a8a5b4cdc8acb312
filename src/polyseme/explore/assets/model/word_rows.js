// What all ways of folding in share: P(w|z) of the words of a text, and when to stop.

/**
 * @typedef {import("./corpus.js").Model} Model
 *
 * @typedef {import("./words.js").Counts} Counts
 *
 * @typedef {object} WordRows
 * @property {Float64Array} rows words x topics
 * @property {number[] | Uint32Array} words
 * @property {Float64Array} x the count of each word
 * @property {number} total
 * @property {Float64Array} [base] P(w) of the background
 */

/** Upper bound of the gain from better weights, in nats per token. */
export const TOLERANCE = 1e-4;

export const MOST_ROUNDS = 1000;

/**
 * Returns P(w|z) of the words of a text that some topic has, as one matrix (words x topics), with
 * these words and their counts. Inactive topics are zeros.
 *
 * @param {Model} model
 * @param {Counts} counts
 * @returns {WordRows}
 */
export function wordRows({ byWord, K, inactive }, counts) {
  const off = new Set(inactive);
  const used = (word) =>
    byWord.columns.subarray(byWord.starts[word], byWord.starts[word + 1]).some((k) => !off.has(k));
  const known = [];
  counts.words.forEach((word, i) => {
    if (used(word)) known.push(i);
  });
  const rows = new Float64Array(known.length * K);
  known.forEach((place, row) => {
    const word = counts.words[place];
    for (let i = byWord.starts[word]; i < byWord.starts[word + 1]; i++) {
      if (!off.has(byWord.columns[i])) rows[row * K + byWord.columns[i]] = byWord.values[i];
    }
  });
  const words = Uint32Array.from(known, (place) => counts.words[place]);
  const x = Float64Array.from(known, (place) => counts.values[place]);
  return { rows, words, x, total: x.reduce((sum, value) => sum + value, 0) };
}

/**
 * Adds the words that only the background contains.
 *
 * @param {WordRows} known
 * @param {Counts} counts
 * @param {Float64Array} background P(w) of the background
 * @param {number} K
 * @returns {WordRows}
 */
export function withBackground(known, counts, background, K) {
  const place = new Map(Array.from(known.words, (word, row) => [word, row]));
  const words = Array.from(counts.words).filter((word) => place.has(word) || background[word] > 0);
  const count = new Map(Array.from(counts.words, (word, i) => [word, counts.values[i]]));
  const rows = new Float64Array(words.length * K);
  words.forEach((word, row) => {
    if (place.has(word))
      rows.set(known.rows.subarray(place.get(word) * K, (place.get(word) + 1) * K), row * K);
  });
  const x = Float64Array.from(words, (word) => count.get(word));
  const base = Float64Array.from(words, (word) => background[word]);
  return { rows, words, x, base, total: x.reduce((sum, value) => sum + value, 0) };
}

/**
 * Returns values divided by their sum.
 *
 * @param {Float64Array} values
 * @returns {Float64Array}
 */
export function toOne(values) {
  const sum = values.reduce((total, value) => total + value, 0);
  return sum > 0 ? values.map((value) => value / sum) : values;
}
