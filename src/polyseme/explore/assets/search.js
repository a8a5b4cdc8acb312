// Search, as polyseme.retrieval.SearchIndex does it with method "plsi-q":
// score = (1 - t) cos(P(z|q), P(z|d)) + t cos(q idf, x_d idf), the query folded in by likelihood for every model: it has
// so few words that a prior would dominate; t = 1/2.

const TERM_WEIGHT = 0.5;

// Scores of all documents for counts {words, values}: {scores, latent, term, theta}.
function scoresOf(query, termWeight = TERM_WEIGHT) {
  const N = model.n_documents;
  const term = new Float64Array(N);
  const latent = new Float64Array(N);
  const length = Math.sqrt(query.words.reduce((sum, word, i) => sum + (query.values[i] * corpus.idf[word]) ** 2, 0));
  const { starts, columns, values } = corpus.byWord;
  query.words.forEach((word, i) => {
    const weight = length > 0 ? (query.values[i] * corpus.idf[word] ** 2) / length : 0;
    for (let j = starts[word]; j < starts[word + 1]; j++) term[columns[j]] += weight * values[j];
  });
  const theta = foldByLikelihood(model, query);
  const unit = unitOf(theta);
  const topics = corpus.byTopic;
  unit.forEach((weight, k) => {
    if (weight === 0) return;
    for (let j = topics.starts[k]; j < topics.starts[k + 1]; j++) latent[topics.columns[j]] += weight * topics.values[j];
  });
  const scores = new Float64Array(N);
  for (let d = 0; d < N; d++) {
    term[d] *= termWeight * corpus.scale[d];
    latent[d] = corpus.tokens[d] > 0 && corpus.lengths[d] > 0 ? ((1 - termWeight) * latent[d]) / corpus.lengths[d] : 0;
    scores[d] = term[d] + latent[d];
  }
  return { scores, latent, term, theta };
}

function unitOf(theta) {
  const length = Math.hypot(...theta);
  return length > 0 ? theta.map((value) => value / length) : theta;
}

// The best documents for counts, with the parts of their scores and reasons: [{document, score, term, latent, reasons}].
function search(query, count, { without = -1, termWeight = TERM_WEIGHT, reasons = 6 } = {}) {
  const { scores, latent, term, theta } = scoresOf(query, termWeight);
  if (without >= 0) scores[without] = 0;
  const explain = explainer(query, theta, termWeight);
  const hits = largest(scores, count).map((d) => ({
    document: d, score: scores[d], term: term[d], latent: latent[d], reasons: explain(d).slice(0, reasons),
  }));
  return { hits, theta };
}

// What gives, for a document, the words of query and document with what each adds to the score, weightiest first.
// The latent half of a score is split evenly along the query and along the document: see retrieval/scores.py.
function explainer(query, theta, termWeight) {
  const vector = unitOf(theta);
  const evidence = evidenceOf(query, theta);
  const norm = Math.sqrt(query.words.reduce((sum, word, i) => sum + (query.values[i] * corpus.idf[word]) ** 2, 0));
  const inQuery = new Set(query.words);
  return (d) => {
    const own = countsOfDocument(d);
    const weights = weightsOf(d);
    const byTopic = vector.map((value, k) => (corpus.lengths[d] > 0 ? (0.5 * value * weights[k]) / corpus.lengths[d] : 0));
    const parts = new Map();
    const add = (word, value) => parts.set(word, (parts.get(word) ?? 0) + value);
    for (const [counts, shares] of [[query, evidence], [own, evidenceOf(own, weights)]]) {
      counts.words.forEach((word, i) => add(word, (1 - termWeight) * dot(shares, i, byTopic)));
    }
    const count = new Map(Array.from(own.words, (word, i) => [word, own.values[i]]));
    query.words.forEach((word, i) => {
      const weight = norm > 0 ? (query.values[i] * corpus.idf[word] ** 2) / norm : 0;
      add(word, termWeight * weight * (count.get(word) ?? 0) * corpus.scale[d]);
    });
    return [...parts]
      .filter(([, weight]) => weight !== 0)
      .sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .map(([word, weight]) => ({ word, weight, inQuery: inQuery.has(word), inDocument: count.has(word) }));
  };
}

// Share of each word in each topic's weight: columns sum to one. Rows are sparse: {starts, columns, values}.
function evidenceOf(counts, theta) {
  const { byWord, inference, background } = model;
  const beta = inference.temperature;
  const starts = new Uint32Array(counts.words.length + 1);
  const columns = [];
  const values = [];
  const sums = new Float64Array(model.K);
  counts.words.forEach((word, row) => {
    let total = background ? (inference.background * background[word]) ** beta : 0;
    const from = values.length;
    for (let i = byWord.starts[word]; i < byWord.starts[word + 1]; i++) {
      const k = byWord.columns[i];
      if (theta[k] === 0) continue;
      const joint = ((1 - inference.background) * theta[k] * byWord.values[i]) ** beta;
      total += joint;
      columns.push(k);
      values.push(joint);
    }
    for (let i = from; i < values.length; i++) {
      values[i] = total > 0 ? (counts.values[row] * values[i]) / total : 0;
      sums[columns[i]] += values[i];
    }
    starts[row + 1] = values.length;
  });
  for (let i = 0; i < values.length; i++) if (sums[columns[i]] > 0) values[i] /= sums[columns[i]];
  return { starts, columns, values };
}

function dot(rows, row, vector) {
  let sum = 0;
  for (let i = rows.starts[row]; i < rows.starts[row + 1]; i++) sum += rows.values[i] * vector[rows.columns[i]];
  return sum;
}
