// The words and the documents of a topic.

import { corpus, model, weightsOf } from "./corpus.js";

/**
 * @typedef {{word: number, p: number, relevance: number, inTopic: number, overall: number}}
 *   RelevantWord
 */

// P(w|z).
function probabilityOf(word, topic) {
  const { starts, columns, values } = model.byWord;
  for (let i = starts[word]; i < starts[word + 1]; i++) if (columns[i] === topic) return values[i];
  return 0;
}

/**
 * Returns the words of a topic by relevance, as metrics/words.py ranks them:
 *   lambda log(n / D_z) + (1 - lambda) log((n / D_z) / (df / D)), rounded to four decimals,
 * where n is the expected number of documents that use the word in this topic, D_z that of the
 * topic, df the number of documents with the word, and D the number of all documents.
 *
 * @param {number} topic
 * @param {number} lambda
 * @param {number} count
 * @returns {RelevantWord[]}
 */
export function relevantWords(topic, lambda, count) {
  const counted = [];
  for (let i = model.candidates[topic]; i < model.candidates[topic + 1]; i++)
    counted.push([
      model.candidate_words[i],
      model.candidate_documents[i],
      model.candidate_frequency[i],
    ]);
  const share = model.topic_documents[topic];
  return rankedWords(topic, lambda, counted, share, model.documents).slice(0, count);
}

/**
 * Returns words by relevance.
 *
 * @param {number} topic
 * @param {number} lambda
 * @param {number[][]} counted w, n and df_w of each word
 * @param {number} share D_z
 * @param {number} documents D
 * @returns {RelevantWord[]}
 */
export function rankedWords(topic, lambda, counted, share, documents) {
  const found = counted.map(([word, n, df]) => {
    const exact = Math.log(n / share) - (1 - lambda) * Math.log(df / documents);
    const relevance = n > 0 ? Math.round(exact * 1e4) / 1e4 : -1e9;
    return { word, p: probabilityOf(word, topic), relevance, inTopic: n, overall: df };
  });
  const rare = ({ inTopic }) => Number(inTopic < model.least_documents);
  return found.sort(
    (a, b) =>
      rare(a) - rare(b) ||
      b.relevance - a.relevance ||
      (a.inTopic > 0 ? 0 : b.p - a.p) ||
      a.word - b.word,
  );
}

/** @type {WeakMap<import("./corpus.js").Model, Map<number, string[]>>} */
const wordsKept = new WeakMap();

/**
 * Returns the words shown for a topic.
 *
 * @param {number} topic
 * @param {number} count at most 15
 * @returns {string[]}
 */
export function topWords(topic, count) {
  if (!wordsKept.has(model)) wordsKept.set(model, new Map());
  const kept = wordsKept.get(model);
  if (!kept.has(topic))
    kept.set(
      topic,
      relevantWords(topic, model.relevance, 15).map(({ word }) => model.words[word]),
    );
  return kept.get(topic).slice(0, count);
}

/**
 * Returns the name of a topic, or its first three words if it has no name.
 *
 * @param {number} topic
 * @returns {string}
 */
export function nameOfTopic(topic) {
  return model.topic_names[topic] ?? topWords(topic, 3).join(", ");
}

/**
 * Returns the documents that a topic explains best relative to their length (runs/typical.py), with
 * a quote of each (runs/quotes.py).
 *
 * @param {number} topic
 * @returns {{document: number, share: number, tokens: number, nats: number, quote?: string}[]}
 */
export function typicalDocuments(topic) {
  const [from, to] = [corpus.typical[topic], corpus.typical[topic + 1]];
  return Array.from(corpus.typical_documents.subarray(from, to), (d, i) => {
    const share = weightsOf(d)[topic];
    return {
      document: d,
      share,
      tokens: share * corpus.tokens[d],
      nats: corpus.typical_nats[from + i],
      quote: corpus.quotes?.[from + i],
    };
  });
}
