// Folding in by likelihood: coordinate ascent, or EM with a background or a temperature.

import { MOST_ROUNDS, TOLERANCE, toOne, withBackground, wordRows } from "./word_rows.js";

/**
 * @typedef {import("./corpus.js").Model} Model
 *
 * @typedef {import("./words.js").Counts} Counts
 */

/**
 * Returns the weights with the largest likelihood.
 *
 * @param {Model} model
 * @param {Counts} counts
 * @returns {Float64Array}
 */
export function foldByLikelihood(model, counts) {
  const { K, inference } = model;
  const matrix = wordRows(model, counts);
  if (inference.background > 0 || inference.temperature !== 1)
    return foldByEM(model, counts, matrix);
  if (matrix.total === 0) return new Float64Array(K);
  return foldByCoordinates(matrix, K);
}

// Coordinate ascent on sum_w x_w log q_w - sum_k theta_k with q_w = sum_k theta_k b_wk, until the
// duality gap is small.
function foldByCoordinates({ rows, x, total }, K) {
  const n = x.length;
  const theta = new Float64Array(K).fill(total / K);
  const q = new Float64Array(n);
  const slopes = new Float64Array(K);
  for (let round = 0; round < MOST_ROUNDS; round++) {
    mix(rows, theta, q, K);
    slopes.fill(0);
    for (let w = 0; w < n; w++) {
      const r = x[w] / q[w];
      for (let k = 0; k < K; k++) slopes[k] += r * rows[w * K + k];
    }
    const steepest = slopes.reduce((most, slope) => Math.max(most, slope), 0);
    const mass = theta.reduce((sum, value) => sum + value, 0);
    if (total * Math.log(steepest) - total + mass <= TOLERANCE * total) break;
    const active = [];
    for (let k = 0; k < K; k++) if (theta[k] > 0 || slopes[k] > 1) active.push(k);
    for (let pass = 0; pass < 4; pass++) {
      let moved = 0;
      for (const k of active) moved += Math.abs(improve(k, theta, q, x, rows, K));
      if (moved <= 1e-6 * total) break;
    }
  }
  return toOne(theta);
}

function mix(rows, theta, q, K) {
  for (let w = 0; w < q.length; w++) {
    let sum = 0;
    for (let k = 0; k < K; k++) sum += theta[k] * rows[w * K + k];
    q[w] = sum;
  }
}

// Moves one coordinate to the root of the hyperbola that has the slope and the curvature of the
// objective; returns the step.
function improve(k, theta, q, x, rows, K) {
  const old = theta[k];
  let g = 0;
  let h = 0;
  for (let w = 0; w < q.length; w++) {
    const ratio = rows[w * K + k] / q[w];
    g += x[w] * ratio;
    h += x[w] * ratio * ratio;
  }
  if (!(h > 0)) {
    theta[k] = 0;
    return old;
  }
  let step = Math.max(0, old + ((g - 1) * g) / h) - old;
  if (Math.abs(step) <= 1e-6 * old || step === 0) return 0;
  if (step < 0) {
    let least = Infinity;
    let there = 0;
    for (let w = 0; w < q.length; w++) {
      const b = rows[w * K + k];
      const shifted = q[w] + step * b;
      least = Math.min(least, shifted);
      there += (x[w] * b) / shifted;
    }
    if (!(least > 1e-27) || !(g + there <= 2)) step = old * g - old;
  }
  for (let w = 0; w < q.length; w++) q[w] += step * rows[w * K + k];
  theta[k] = old + step;
  return step;
}

// EM with a background of fixed share, or at a temperature.
/**
 * @param {Model} model
 * @param {Counts} counts
 * @param {import("./word_rows.js").WordRows} known
 */
function foldByEM({ K, inference, background }, counts, known) {
  const { background: share, temperature: beta } = inference;
  const matrix = background ? withBackground(known, counts, background, K) : known;
  const { x, total } = matrix;
  const base = matrix.base ?? new Float64Array(x.length);
  if (total === 0) return new Float64Array(K);
  const rows = beta === 1 ? matrix.rows : matrix.rows.map((value) => value ** beta);
  const fixed = base.map((value) => (share * value) ** beta);
  const keep = (1 - share) ** beta;
  const theta = new Float64Array(K).fill(1 / K);
  const a = new Float64Array(K);
  const sums = new Float64Array(K);
  for (let step = 0; step < MOST_ROUNDS; step++) {
    for (let k = 0; k < K; k++) a[k] = keep * (beta === 1 ? theta[k] : theta[k] ** beta);
    sums.fill(0);
    for (let w = 0; w < x.length; w++) {
      let q = fixed[w];
      for (let k = 0; k < K; k++) q += a[k] * rows[w * K + k];
      const r = q > 0 ? x[w] / q : 0;
      for (let k = 0; k < K; k++) sums[k] += r * rows[w * K + k];
    }
    let mass = 0;
    let largest = 0;
    for (let k = 0; k < K; k++) {
      mass += a[k] * sums[k];
      largest = Math.max(largest, keep * sums[k]);
    }
    if (!(mass > 0)) break;
    let change = 0;
    for (let k = 0; k < K; k++) {
      const next = (a[k] * sums[k]) / mass;
      change += Math.abs(next - theta[k]);
      theta[k] = next;
    }
    if (beta !== 1 ? change <= TOLERANCE : Math.log((total - mass + largest) / total) <= TOLERANCE)
      break;
  }
  return theta;
}
