// Why a document is found: what each word adds to its score.

import { corpus, countsOfDocument, model, weightsOf } from "./corpus.js";
import { rarityOf } from "./ranking.js";

/**
 * @typedef {import("./words.js").Counts} Counts
 *
 * @typedef {{word: number, weight: number, inQuery: boolean, inDocument: boolean}} Reason
 */

/**
 * Returns a function that lists, for a document and the latent part of its score, the words of
 * query and document with what each adds to the score, in decreasing order. One half of the latent
 * part is divided among the missing words of the query by i_w, one half among the words of the
 * document by their shares in its topics: see retrieval/spaces.py.
 *
 * @param {Counts} query
 * @param {Float64Array} topics
 * @returns {(d: number, latent: number) => Reason[]}
 */
export function explainer(query, topics) {
  const { weight, k1, b } = model.search;
  const inQuery = new Set(query.words);
  const mean = model.n_tokens > 0 ? model.n_tokens / model.n_documents : 1;
  return (d, latent) => {
    const counts = countsOfDocument(d);
    const count = new Map(Array.from(counts.words, (word, i) => [word, counts.values[i]]));
    const parts = new Map();
    const add = (word, value) => parts.set(word, (parts.get(word) ?? 0) + value);
    const missing = [];
    query.words.forEach((word, i) => {
      if (!corpus.frequency[word]) return;
      const amount = query.values[i] * rarityOf(word);
      const x = count.get(word) ?? 0;
      if (x > 0)
        add(word, amount * (x / (x + k1 * (1 - b + (b * corpus.tokens[d]) / mean)) + weight));
      else missing.push([word, amount]);
    });
    const amounts = missing.reduce((sum, [, amount]) => sum + amount, 0);
    if (latent > 0 && amounts > 0) {
      missing.forEach(([word, amount]) => add(word, (0.5 * latent * amount) / amounts));
      const theta = weightsOf(d);
      const shares = evidenceOf(counts, theta);
      const common = theta.map((share, k) => share * topics[k]);
      const evidence = Array.from(counts.words, (_, i) => dot(shares, i, common));
      const sum = evidence.reduce((a, b) => a + b, 0);
      if (sum > 0) counts.words.forEach((word, i) => add(word, (0.5 * latent * evidence[i]) / sum));
    }
    return [...parts]
      .filter(([, value]) => value !== 0)
      .sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .map(([word, value]) => ({
        word,
        weight: value,
        inQuery: inQuery.has(word),
        inDocument: count.has(word),
      }));
  };
}

// Returns the share of each word in the weight of each topic: columns sum to one. Rows are sparse:
// {starts, columns, values}.
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
  for (let i = rows.starts[row]; i < rows.starts[row + 1]; i++)
    sum += rows.values[i] * vector[rows.columns[i]];
  return sum;
}
