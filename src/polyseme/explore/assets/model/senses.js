// The topics of a word, its neighbors, and the documents that use it in one sense.

import { largest } from "./arrays.js";
import { corpus, model, oneOfEach } from "./corpus.js";

/**
 * @typedef {{topic: number, share: number}} Sense
 *
 * @typedef {import("./subset.js").Subset} Subset
 */

/**
 * Returns P(z|w), largest first.
 *
 * @param {number} word
 * @param {Subset} [subset] the documents whose tokens of the word are counted; all without it
 * @returns {Sense[]}
 */
export function sensesOf(word, subset) {
  if (subset && !subset.isWhole) return sensesWithin(word, subset);
  const { starts, columns, values } = model.byWord;
  const found = [];
  let total = 0;
  for (let i = starts[word]; i < starts[word + 1]; i++) {
    const joint = values[i] * model.weights[columns[i]];
    if (joint > 0) found.push({ topic: columns[i], share: joint });
    total += joint;
  }
  found.forEach((sense) => (sense.share /= total));
  return found.sort((a, b) => b.share - a.share || a.topic - b.topic);
}

/**
 * Returns the words that distinguish the topics of a word from the unigram, by p log(p / P(w)),
 * without hidden words.
 *
 * @param {number} word
 * @param {number} count
 * @returns {{word: number, weight: number}[]}
 */
export function neighborsOf(word, count) {
  const p = new Float64Array(model.n_words);
  const { starts, columns, values } = model.byTopic;
  for (const { topic, share } of sensesOf(word)) {
    for (let i = starts[topic]; i < starts[topic + 1]; i++) p[columns[i]] += share * values[i];
  }
  const parts = p.map((value, w) =>
    value > 0 && model.unigram[w] > 0 && w !== word && !model.hidden.includes(w)
      ? value * Math.log(value / model.unigram[w])
      : 0,
  );
  return largest(parts, count).map((other) => ({ word: other, weight: parts[other] }));
}

// Returns the share of each topic in the tokens of a word in some documents.
function sensesWithin(word, subset) {
  const topics = Array.from({ length: model.K }, (_, topic) => topic);
  const sums = tokensBySense(word, topics, subset).map((list) => list.reduce((a, b) => a + b, 0));
  const total = sums.reduce((a, b) => a + b, 0);
  return topics
    .filter((topic) => sums[topic] > 0)
    .map((topic) => ({ topic, share: sums[topic] / total }))
    .sort((a, b) => b.share - a.share || a.topic - b.topic);
}

/**
 * Returns the documents that use a word most in each of some senses, by its count times P(z|d,w): a
 * list for each topic.
 *
 * @param {number} word
 * @param {number[]} topics
 * @param {number} count
 * @param {Subset} [subset] all documents without it
 * @returns {{document: number, tokens: number}[][]}
 */
export function documentsOfSenses(word, topics, count, subset) {
  const { starts, columns } = corpus.byWord;
  const documentOf = (i) => columns[starts[word] + i];
  return tokensBySense(word, topics, subset).map((list) =>
    largest(oneOfEach(list, documentOf), count).map((i) => ({
      document: documentOf(i),
      tokens: list[i],
    })),
  );
}

// Returns the expected number of tokens of a word that belong to each of some topics, for each
// document with the word; zeros for those that are not in the subset.
function tokensBySense(word, topics, subset) {
  const { starts, columns, values } = corpus.byWord;
  const { byWord, inference, background } = model;
  const beta = inference.temperature;
  const phi = new Float64Array(model.K);
  for (let j = byWord.starts[word]; j < byWord.starts[word + 1]; j++)
    phi[byWord.columns[j]] = (1 - inference.background) * byWord.values[j];
  const common = background ? (inference.background * background[word]) ** beta : 0;
  const place = new Int32Array(model.K).fill(-1);
  topics.forEach((topic, i) => (place[topic] = i));
  const tokens = topics.map(() => new Float64Array(starts[word + 1] - starts[word]));
  const theta = corpus.topics;
  for (let i = starts[word]; i < starts[word + 1]; i++) {
    const d = columns[i];
    if (subset && !subset.has(d)) continue;
    let total = common;
    for (let j = theta.starts[d]; j < theta.starts[d + 1]; j++) {
      const k = theta.columns[j];
      const joint = beta === 1 ? theta.values[j] * phi[k] : (theta.values[j] * phi[k]) ** beta;
      total += joint;
      if (place[k] >= 0) tokens[place[k]][i - starts[word]] = values[i] * joint;
    }
    if (total > 0) for (const list of tokens) list[i - starts[word]] /= total;
  }
  return tokens;
}
