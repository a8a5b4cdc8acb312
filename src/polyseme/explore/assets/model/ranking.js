// The scores of documents, as polyseme.retrieval.SearchIndex computes them by default (bm25+topics,
// see retrieval/postings.py):
//   score(d) = bm25(d) + c [p(d) + (I - p(d)) cos(F, P(z|d))]
// with i_w = q_w idf_w, I = sum of i_w, p(d) = sum of i_w over the words that d contains, and F the
// mean of P(z|d) over the first documents by bm25(d) + c p(d), weighted by these. The constants are
// in model.search.

import { largest } from "./arrays.js";
import { corpus, model, oneOfEach, weightsOf } from "./corpus.js";

/**
 * @typedef {import("./words.js").Counts} Counts
 *
 * @typedef {object} RankOptions
 * @property {Uint8Array} [allowed] whether each document may be returned; all may without it
 * @property {Float64Array} [topics] F if it is known
 * @property {boolean} [once] whether to return only one document of each group of near-duplicates
 *
 * @typedef {object} Ranking
 * @property {number[]} order
 * @property {Float64Array} scores
 * @property {Float64Array} term
 * @property {Float64Array} latent
 * @property {Float64Array} topics
 */

// Returns bm25(d) + c p(d) (term) and p(d) (covered) of all documents, and I (total).
function termScores(query) {
  const {
    n_documents: N,
    search: { weight, k1, b },
  } = model;
  const term = new Float64Array(N);
  const covered = new Float64Array(N);
  let total = 0;
  const mean = model.n_tokens > 0 ? model.n_tokens / N : 1;
  const { starts, columns, values } = corpus.byWord;
  query.words.forEach((word, i) => {
    if (starts[word] === starts[word + 1]) return;
    const amount = query.values[i] * rarityOf(word);
    total += amount;
    for (let j = starts[word]; j < starts[word + 1]; j++) {
      const d = columns[j];
      term[d] +=
        amount * (values[j] / (values[j] + k1 * (1 - b + (b * corpus.tokens[d]) / mean)) + weight);
      covered[d] += amount;
    }
  });
  return { term, covered, total };
}

/**
 * Returns the idf of a word.
 *
 * @param {number} word
 * @returns {number}
 */
export function rarityOf(word) {
  const n = corpus.frequency[word];
  return Math.log1p((model.n_documents - n + 0.5) / (n + 0.5));
}

// Returns F: the mean topics of some documents, weighted by their scores.
function topicsOfFirst(first, term) {
  const mean = new Float64Array(model.K);
  let total = 0;
  for (const d of first) {
    const theta = weightsOf(d);
    const sum = theta.reduce((a, b) => a + b, 0);
    if (sum > 0) theta.forEach((share, k) => (mean[k] += (term[d] * share) / sum));
    total += term[d];
  }
  return mean.map((share) => share / total);
}

// Returns the documents with the largest cosine to a topic.
function typicalOf(topic, count, allowed) {
  const { starts, columns, values } = corpus.byTopic;
  const cosine = new Float64Array(model.n_documents);
  for (let i = starts[topic]; i < starts[topic + 1]; i++) {
    const d = columns[i];
    if (corpus.tokens[d] > 0 && (!allowed || allowed[d])) cosine[d] = values[i] / corpus.lengths[d];
  }
  return largest(cosine, count);
}

function cosineOf(topics, length, d) {
  const { starts, columns, values } = corpus.topics;
  if (!(corpus.tokens[d] > 0 && corpus.lengths[d] > 0 && length > 0)) return 0;
  let sum = 0;
  for (let i = starts[d]; i < starts[d + 1]; i++) sum += topics[columns[i]] * values[i];
  return Math.min(1, sum / (length * corpus.lengths[d]));
}

/**
 * Returns the best documents for counts.
 *
 * @param {Counts} query
 * @param {number} count
 * @param {RankOptions} [options]
 * @returns {Ranking}
 */
export function rank(query, count, { allowed = null, topics = null, once = true } = {}) {
  const { weight, feedback, pool, leading, typical } = model.search;
  const { term, covered, total } = termScores(query);
  if (allowed) allowed.forEach((is, d) => is || (term[d] = 0));
  const first = largest(term, pool);
  if (!first.length) return { order: [], scores: term, term, latent: term, topics: null };
  topics ??= topicsOfFirst(first.slice(0, feedback), term);
  const length = Math.hypot(...topics);
  const order = Array.from(topics.keys())
    .sort((a, b) => topics[b] - topics[a] || a - b)
    .slice(0, leading);
  const candidates = new Set([
    ...first,
    ...order.flatMap((topic) => typicalOf(topic, typical, allowed)),
  ]);
  const latent = new Float64Array(model.n_documents);
  for (const d of candidates)
    latent[d] = weight * (total - covered[d]) * cosineOf(topics, length, d);
  const scores = term.map((value, d) => value + latent[d]);
  return {
    order: largest(once ? oneOfEach(scores.slice()) : scores, count),
    scores,
    term,
    latent,
    topics,
  };
}
