// The words and the typical documents of a topic in some of the documents: as those of the topic in
// all documents, with the numbers of documents counted anew.

import { largest } from "./arrays.js";
import { corpus, model, oneOfEach, weightsOf } from "./corpus.js";
import { wordsOfSubset } from "./subset.js";
import { rankedWords, relevantWords, typicalDocuments } from "./topics.js";

/** @typedef {import("./subset.js").Subset} Subset */

const TYPICAL = 10;

/**
 * Returns the words of a topic by relevance in some documents.
 *
 * @param {number} topic
 * @param {number} lambda
 * @param {number} count
 * @param {Subset} subset
 */
export function narrowedWords(topic, lambda, count, subset) {
  if (subset.isWhole) return relevantWords(topic, lambda, count);
  const { amounts, share, documents } = usesOf(topic, subset);
  const { documents: frequency } = wordsOfSubset(subset);
  const hidden = new Set(model.hidden);
  const words = [];
  amounts.forEach((n, word) => n > 0 && !hidden.has(word) && words.push(word));
  const counted = words.map((word) => [word, amounts[word], frequency[word]]);
  return rankedWords(topic, lambda, counted, share, documents).slice(0, count);
}

/**
 * Returns the documents that a topic explains best relative to their length among some documents.
 *
 * @param {number} topic
 * @param {Subset} subset
 * @returns {ReturnType<typeof typicalDocuments>}
 */
export function narrowedTypical(topic, subset) {
  if (subset.isWhole) return typicalDocuments(topic);
  const { scores } = usesOf(topic, subset);
  const lengths = Array.from(subset.documents, (d) => corpus.tokens[d]).filter((n) => n > 0);
  lengths.sort((a, b) => a - b);
  const at = (lengths.length - 1) / 2;
  const median = (lengths[Math.floor(at)] + lengths[Math.ceil(at)]) / 2;
  const least = model.typical.length * median * (1 - 1e-12);
  const long = scores.map((score, d) => (corpus.tokens[d] >= least ? score : 0));
  const quotes = new Map(typicalDocuments(topic).map(({ document, quote }) => [document, quote]));
  return largest(oneOfEach(long), TYPICAL).map((d) => {
    const share = weightsOf(d)[topic];
    const tokens = share * corpus.tokens[d];
    return { document: d, share, tokens, nats: scores[d], quote: quotes.get(d) };
  });
}

// Returns, of the documents of a subset: amounts, the expected number that use each word in the
// topic; share, the sum of P(z|d); documents, the number with words; and scores, the nats per token
// that the topic explains in each (runs/typical.py).
function usesOf(topic, subset) {
  return subset.once(`uses ${topic}`, () => {
    const { byWord, inference, background, K } = model;
    const beta = inference.temperature;
    const power = (value) => (beta === 1 ? value : value ** beta);
    const amounts = new Float64Array(model.n_words);
    const scores = new Float64Array(model.n_documents);
    const gains = gainsOf(topic);
    const theta = new Float64Array(K);
    const { topics, byDocument } = corpus;
    let [share, documents] = [0, 0];
    for (const d of subset.documents) {
      if (!(corpus.tokens[d] > 0)) continue;
      documents++;
      theta.fill(0);
      for (let i = topics.starts[d]; i < topics.starts[d + 1]; i++)
        theta[topics.columns[i]] = (1 - inference.background) * topics.values[i];
      if (theta[topic] === 0) continue;
      share += theta[topic] / (1 - inference.background);
      let sum = 0;
      for (let i = byDocument.starts[d]; i < byDocument.starts[d + 1]; i++) {
        const word = byDocument.columns[i];
        let total = background ? power(inference.background * background[word]) : 0;
        let mine = 0;
        for (let j = byWord.starts[word]; j < byWord.starts[word + 1]; j++) {
          const k = byWord.columns[j];
          const joint = power(theta[k] * byWord.values[j]);
          total += joint;
          if (k === topic) mine = joint;
        }
        if (!(mine > 0)) continue;
        amounts[word] += mine / total;
        sum += (byDocument.values[i] * gains[word] * mine) / total;
      }
      scores[d] = sum / corpus.tokens[d];
    }
    return { amounts, share, documents, scores };
  });
}

// Returns log r_zw of each word, see runs/typical.py.
function gainsOf(topic) {
  const gains = new Float64Array(model.n_words);
  const { starts, columns, values } = model.byTopic;
  const { prior } = model.typical;
  for (let i = starts[topic]; i < starts[topic + 1]; i++) {
    const word = columns[i];
    const df = corpus.frequency[word];
    const ratio = model.unigram[word] > 0 ? values[i] / model.unigram[word] : 1;
    gains[word] = Math.log((df * ratio + prior) / (df + prior));
  }
  return gains;
}
