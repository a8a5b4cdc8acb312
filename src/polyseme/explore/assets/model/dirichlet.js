// Folding in with a Dirichlet prior.

import { MOST_ROUNDS, TOLERANCE, toOne, withBackground, wordRows } from "./word_rows.js";

/**
 * @typedef {import("./corpus.js").Model} Model
 *
 * @typedef {import("./words.js").Counts} Counts
 */

/**
 * Returns the mean of the posterior under the prior that the model has learned. A background is one
 * more component with its own alpha.
 *
 * @param {Model} model
 * @param {Counts} counts
 * @returns {Float64Array}
 */
export function foldPosterior(model, counts) {
  const { K, alpha, background } = model;
  const known = wordRows(model, counts);
  const { rows, x, total, base } = background
    ? withBackground(known, counts, background, K)
    : known;
  const N = alpha.length;
  const scaled = new Float64Array(x.length * N);
  for (let w = 0; w < x.length; w++) {
    scaled.set(rows.subarray(w * K, (w + 1) * K), w * N);
    if (base) scaled[w * N + K] = base[w];
    let largest = 0;
    for (let k = 0; k < N; k++) largest = Math.max(largest, scaled[w * N + k]);
    for (let k = 0; k < N; k++) scaled[w * N + k] /= largest;
  }
  return total > 0
    ? toOne(posteriorCounts(scaled, x, total, alpha).subarray(0, K))
    : new Float64Array(K);
}

/**
 * Returns the mean of the posterior of LDA: b = exp psi(lambda), scaled.
 *
 * @param {Model} model
 * @param {Counts} counts
 * @returns {Float64Array}
 */
export function foldDirichlet(model, counts) {
  const { K, alpha, totals } = model;
  const { rows, x, total } = wordRows(model, counts);
  const shift = Array.from(totals, digamma);
  for (let w = 0; w < x.length; w++) {
    let largest = -Infinity;
    for (let k = 0; k < K; k++) {
      const value =
        rows[w * K + k] > 0 ? digamma(rows[w * K + k] * totals[k]) - shift[k] : -Infinity;
      rows[w * K + k] = value;
      largest = Math.max(largest, value);
    }
    for (let k = 0; k < K; k++) rows[w * K + k] = Math.exp(rows[w * K + k] - largest);
  }
  return toOne(posteriorCounts(rows, x, total, alpha));
}

// Variational Bayes: n_k <- a_k sum_w x b_wk / (a . b_w), a = exp psi(alpha + n). Returns alpha +
// n.
function posteriorCounts(rows, x, total, alpha) {
  const K = alpha.length;
  const n = new Float64Array(K).fill(total / K);
  const a = new Float64Array(K);
  const sums = new Float64Array(K);
  for (let step = 0; step < MOST_ROUNDS && total > 0; step++) {
    let largest = -Infinity;
    for (let k = 0; k < K; k++) {
      a[k] = digamma(alpha[k] + n[k]);
      largest = Math.max(largest, a[k]);
    }
    for (let k = 0; k < K; k++) a[k] = Math.exp(a[k] - largest);
    sums.fill(0);
    for (let w = 0; w < x.length; w++) {
      let q = 0;
      for (let k = 0; k < K; k++) q += a[k] * rows[w * K + k];
      const r = q > 0 ? x[w] / q : 0;
      for (let k = 0; k < K; k++) sums[k] += r * rows[w * K + k];
    }
    let moved = 0;
    for (let k = 0; k < K; k++) {
      moved += Math.abs(a[k] * sums[k] - n[k]);
      n[k] = a[k] * sums[k];
    }
    if (moved <= TOLERANCE * total) break;
  }
  return n.map((value, k) => value + alpha[k]);
}

// psi(x) for x > 0: recurrence up to 6, then the asymptotic series.
function digamma(x) {
  let value = 0;
  for (; x < 6; x++) value -= 1 / x;
  const inverse = 1 / (x * x);
  const series =
    inverse *
    (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))));
  return value + Math.log(x) - 0.5 / x - series;
}
