// Folding in with one topic per document (core/mixture.py).

import { toOne, wordRows } from "./word_rows.js";

// P(w|z) that the page leaves out, as a share of the largest one of the word
// (MIN_RELATIVE_PROBABILITY in page.py).
const LEFT_OUT = 1e-6;

/**
 * Returns P(z|d), proportional to P(z) prod_w P(w|z)^x.
 *
 * @param {import("./corpus.js").Model} model
 * @param {import("./words.js").Counts} counts
 * @returns {Float64Array}
 */
export function foldMixture(model, counts) {
  const { K, topic_shares } = model;
  const { rows, x, total } = wordRows(model, counts);
  if (!(total > 0)) return new Float64Array(K);
  const logs = topic_shares.map(Math.log);
  for (let w = 0; w < x.length; w++) {
    const row = rows.subarray(w * K, (w + 1) * K);
    const least = LEFT_OUT * row.reduce((most, value) => Math.max(most, value), 0);
    for (let k = 0; k < K; k++) logs[k] += x[w] * Math.log(Math.max(row[k], least));
  }
  const largest = logs.reduce((most, value) => Math.max(most, value), -Infinity);
  return toOne(logs.map((value) => Math.exp(value - largest)));
}
