// Folding in: the topic weights of counts, with the topics fixed. Steps and stopping rules are the same as in Python
// (_native/foldin.hpp, coordinate.hpp; core/dirichlet.py; core/logistic_normal.py).

const TOLERANCE = 1e-4; // upper bound of the gain from better weights, in nats per token
const MOST_ROUNDS = 1000;

// Returns P(w|z) of the words of a text that some topic has, as one matrix (words x topics), with these words and their
// counts. Inactive topics are zeros.
function wordRows({ byWord, K, inactive = [] }, counts) {
  const off = new Set(inactive);
  const used = (word) => byWord.columns.subarray(byWord.starts[word], byWord.starts[word + 1]).some((k) => !off.has(k));
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

// Functions that compute the weights of a text, by the kind of inference of the model.
const INFERENCES = {
  likelihood: foldByLikelihood, posterior: foldPosterior, dirichlet: foldDirichlet, "logistic-normal": foldLogisticNormal,
};

// Returns the weights of counts {words, values}: K numbers with sum one, or zeros if no topic has any of the words.
function foldIn(model, counts) {
  return INFERENCES[model.inference.kind](model, counts);
}

function foldByLikelihood(model, counts) {
  const { K, inference } = model;
  const matrix = wordRows(model, counts);
  if (inference.background > 0 || inference.temperature !== 1) return foldByEM(model, counts, matrix);
  if (matrix.total === 0) return new Float64Array(K);
  return foldByCoordinates(matrix, K);
}

// Coordinate ascent on sum_w x_w log q_w - sum_k theta_k with q_w = sum_k theta_k b_wk, until the duality gap is small.
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

// Moves one coordinate to the root of the hyperbola that has the slope and the curvature of the objective; returns the
// step.
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
    if (beta !== 1 ? change <= TOLERANCE : Math.log((total - mass + largest) / total) <= TOLERANCE) break;
  }
  return theta;
}

// Adds the words that only the background contains.
function withBackground(known, counts, background, K) {
  const place = new Map(Array.from(known.words, (word, row) => [word, row]));
  const words = Array.from(counts.words).filter((word) => place.has(word) || background[word] > 0);
  const count = new Map(Array.from(counts.words, (word, i) => [word, counts.values[i]]));
  const rows = new Float64Array(words.length * K);
  words.forEach((word, row) => {
    if (place.has(word)) rows.set(known.rows.subarray(place.get(word) * K, (place.get(word) + 1) * K), row * K);
  });
  const x = Float64Array.from(words, (word) => count.get(word));
  const base = Float64Array.from(words, (word) => background[word]);
  return { rows, x, base, total: x.reduce((sum, value) => sum + value, 0) };
}

// The posterior under the prior that the model has learned. A background is one more component with its own alpha.
function foldPosterior(model, counts) {
  const { K, alpha, background } = model;
  const known = wordRows(model, counts);
  const { rows, x, total, base } = background ? withBackground(known, counts, background, K) : known;
  const N = alpha.length;
  const scaled = new Float64Array(x.length * N);
  for (let w = 0; w < x.length; w++) {
    scaled.set(rows.subarray(w * K, (w + 1) * K), w * N);
    if (base) scaled[w * N + K] = base[w];
    let largest = 0;
    for (let k = 0; k < N; k++) largest = Math.max(largest, scaled[w * N + k]);
    for (let k = 0; k < N; k++) scaled[w * N + k] /= largest;
  }
  return total > 0 ? toOne(posteriorCounts(scaled, x, total, alpha).subarray(0, K)) : new Float64Array(K);
}

// The posterior of LDA: b = exp psi(lambda), scaled.
function foldDirichlet(model, counts) {
  const { K, alpha, totals } = model;
  const { rows, x, total } = wordRows(model, counts);
  const shift = Array.from(totals, digamma);
  for (let w = 0; w < x.length; w++) {
    let largest = -Infinity;
    for (let k = 0; k < K; k++) {
      const value = rows[w * K + k] > 0 ? digamma(rows[w * K + k] * totals[k]) - shift[k] : -Infinity;
      rows[w * K + k] = value;
      largest = Math.max(largest, value);
    }
    for (let k = 0; k < K; k++) rows[w * K + k] = Math.exp(rows[w * K + k] - largest);
  }
  return toOne(posteriorCounts(rows, x, total, alpha));
}

// Variational Bayes: n_k <- a_k sum_w x b_wk / (a . b_w), a = exp psi(alpha + n). Returns alpha + n.
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

// Logistic normal: theta = softmax(lambda), q(eta) = N(lambda, diag(v)), prior N(mean, inverse of precision). Each round
// finds the expected counts n, the best v, and takes a Newton step of lambda.
function foldLogisticNormal(model, counts) {
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

// The root v of P_kk v + c v exp(v / 2) = 1 with c = N exp(lambda_k) / zeta, by Newton's method from the right.
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
    return dotProduct(n, point) - total * logNormalizer(point, v) - dotProduct(product(precision, d), d) / 2;
  };
  const p = softmax(lambda.map((value, k) => value + v[k] / 2));
  const pull = product(precision, away(lambda));
  const step = solveNewton(n.map((value, k) => value - total * p[k] - pull[k]), p, total, precision);
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
    const image = product(precision, direction).map((value, k) => value + total * p[k] * (direction[k] - mean));
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

// psi(x) for x > 0: recurrence up to 6, then the asymptotic series.
function digamma(x) {
  let value = 0;
  for (; x < 6; x++) value -= 1 / x;
  const inverse = 1 / (x * x);
  const series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))));
  return value + Math.log(x) - 0.5 / x - series;
}

function toOne(values) {
  const sum = values.reduce((total, value) => total + value, 0);
  return sum > 0 ? values.map((value) => value / sum) : values;
}

// Returns the most probable topic of a word in a document with weights theta, and its P(z|d,w): {topic, share}. Topic -1
// is the background.
function likeliest(model, theta, word) {
  const { byWord, inference, background } = model;
  const beta = inference.temperature;
  let best = -1;
  let most = background ? (inference.background * background[word]) ** beta : 0;
  let total = most;
  for (let i = byWord.starts[word]; i < byWord.starts[word + 1]; i++) {
    const joint = ((1 - inference.background) * theta[byWord.columns[i]] * byWord.values[i]) ** beta;
    total += joint;
    if (joint > most) {
      most = joint;
      best = byWord.columns[i];
    }
  }
  return { topic: best, share: total > 0 ? most / total : 0 };
}
