// Folding in with a logistic normal prior.

import { toOne, wordRows } from "./word_rows.js";

/**
 * @typedef {import("./corpus.js").Model} Model
 *
 * @typedef {import("./words.js").Counts} Counts
 */

/**
 * Returns theta = softmax(lambda) with q(eta) = N(lambda, diag(v)) and the prior N(mean, inverse of
 * precision). Each round finds the expected counts n, the best v, and takes a Newton step of
 * lambda.
 *
 * @param {Model} model
 * @param {Counts} counts
 * @returns {Float64Array}
 */
export function foldLogisticNormal(model, counts) {
  const { K, mean, precision } = model;
  const { rows, x, total } = wordRows(model, counts);
  let lambda = Float64Array.from(mean);
  const diagonal = Float64Array.from(mean, (_, k) => precision[k * K + k]);
  let v = diagonal.map((value) => 1 / value);
  const n = new Float64Array(K);
  for (let round = 0; round < 500 && total > 0; round++) {
    const largest = Math.max(...lambda);
    const a = lambda.map((value) => Math.max(Math.exp(value - largest), 1e-200));
    n.fill(0);
    for (let w = 0; w < x.length; w++) {
      let q = 0;
      for (let k = 0; k < K; k++) q += a[k] * rows[w * K + k];
      const r = q > 0 ? x[w] / q : 0;
      for (let k = 0; k < K; k++) n[k] += r * a[k] * rows[w * K + k];
    }
    const before = softmax(lambda);
    v = bestVariance(lambda, v, total, diagonal);
    lambda = newtonStep(lambda, v, n, total, mean, precision);
    const after = softmax(lambda);
    const moved = after.reduce((sum, value, k) => sum + Math.abs(value - before[k]), 0) / 2;
    if (moved <= 1e-5) break;
  }
  return softmax(lambda);
}

function softmax(values) {
  const largest = Math.max(...values);
  return toOne(values.map((value) => Math.exp(value - largest)));
}

function dotProduct(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

// The product of a symmetric matrix (K x K numbers in one array) and a vector.
function product(matrix, vector) {
  const K = vector.length;
  return vector.map((_, k) => dotProduct(matrix.subarray(k * K, (k + 1) * K), vector));
}

// log sum_k exp(lambda_k + v_k / 2).
function logNormalizer(lambda, v) {
  const values = lambda.map((value, k) => value + v[k] / 2);
  const largest = Math.max(...values);
  return largest + Math.log(values.reduce((sum, value) => sum + Math.exp(value - largest), 0));
}

// The root v of P_kk v + c v exp(v / 2) = 1 with c = N exp(lambda_k) / zeta, by Newton's method
// from the right.
function bestVariance(lambda, v, total, diagonal) {
  const zeta = logNormalizer(lambda, v);
  return lambda.map((value, k) => {
    const c = Math.max(total * Math.exp(value - zeta), 1e-300);
    let root = Math.min(1 / Math.max(diagonal[k], c), Math.max(1, -2 * Math.log(c)));
    for (let step = 0; step < 8; step++) {
      const grown = c * Math.exp(root / 2);
      root -= (diagonal[k] * root + grown * root - 1) / (diagonal[k] + grown * (1 + root / 2));
    }
    return root;
  });
}

// A Newton step of lambda, halved until it does not lower the bound.
function newtonStep(lambda, v, n, total, mean, precision) {
  const away = (point) => point.map((value, k) => value - mean[k]);
  const bound = (point) => {
    const d = away(point);
    return (
      dotProduct(n, point) -
      total * logNormalizer(point, v) -
      dotProduct(product(precision, d), d) / 2
    );
  };
  const p = softmax(lambda.map((value, k) => value + v[k] / 2));
  const pull = product(precision, away(lambda));
  const step = solveNewton(
    n.map((value, k) => value - total * p[k] - pull[k]),
    p,
    total,
    precision,
  );
  const now = bound(lambda);
  let size = 1;
  for (let half = 0; half < 12; half++) {
    const tried = lambda.map((value, k) => value + size * step[k]);
    if (bound(tried) >= now - 1e-14 * Math.abs(now)) return tried;
    size /= 2;
  }
  return lambda;
}

// (P + N (diag(p) - p p'))^-1 gradient by preconditioned conjugate gradients.
function solveNewton(gradient, p, total, precision) {
  const K = gradient.length;
  const scale = p.map((value, k) => precision[k * K + k] + total * value);
  const x = new Float64Array(K);
  const residual = gradient.slice();
  let direction = residual.map((value, k) => value / scale[k]);
  let rz = dotProduct(residual, direction);
  const small = 1e-16 * rz;
  for (let step = 0; step < 12; step++) {
    const mean = dotProduct(p, direction);
    const image = product(precision, direction).map(
      (value, k) => value + total * p[k] * (direction[k] - mean),
    );
    const curvature = dotProduct(direction, image);
    if (!(rz > small && curvature > 0)) break;
    const length = rz / curvature;
    for (let k = 0; k < K; k++) {
      x[k] += length * direction[k];
      residual[k] -= length * image[k];
    }
    const z = residual.map((value, k) => value / scale[k]);
    const next = dotProduct(residual, z);
    direction = z.map((value, k) => value + (next / rz) * direction[k]);
    rz = next;
  }
  return x;
}
