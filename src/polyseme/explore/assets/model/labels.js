// The topics and the words of labels.

import { corpus, model } from "./corpus.js";
import { documentsOfLevel } from "./levels.js";
import { topicsOfSubset } from "./subset.js";

/** @typedef {import("./subset.js").Subset} Subset */

/**
 * Returns the share of each label's tokens in each topic of a level, labels x topics, and the
 * tokens and documents of each label.
 *
 * @param {Subset} subset
 * @param {number} [size] number of topics of the level
 * @returns {{shares: Float64Array[], tokens: Float64Array, documents: Uint32Array}}
 */
export function topicsByLabel(subset, size = model.K) {
  return subset.once(`labels ${size}`, () => {
    const { names, of } = corpus.labeled;
    const table = names.map(() => new Float64Array(size));
    const tokens = new Float64Array(names.length);
    const documents = new Uint32Array(names.length);
    const { starts, columns, values } = documentsOfLevel(size).topics;
    for (const d of subset.documents) {
      for (let i = of.starts[d]; i < of.starts[d + 1]; i++) {
        const label = of.columns[i];
        tokens[label] += corpus.tokens[d];
        documents[label]++;
        for (let j = starts[d]; j < starts[d + 1]; j++)
          table[label][columns[j]] += corpus.tokens[d] * values[j];
      }
    }
    return {
      shares: table.map((row, label) =>
        row.map((n) => (tokens[label] > 0 ? n / tokens[label] : 0)),
      ),
      tokens,
      documents,
    };
  });
}

/**
 * Returns whether a document has a label.
 *
 * @param {number} d
 * @param {number} label
 */
export function hasLabel(d, label) {
  const { of } = corpus.labeled;
  for (let i = of.starts[d]; i < of.starts[d + 1]; i++) if (of.columns[i] === label) return true;
  return false;
}

/**
 * Returns the share of a topic's tokens in the documents of each label.
 *
 * @param {number} topic
 * @param {Subset} subset
 * @param {number} [size] number of topics of the level
 * @returns {number[]}
 */
export function labelsOfTopic(topic, subset, size = model.K) {
  const { shares, tokens } = topicsByLabel(subset, size);
  const all = topicsOfSubset(subset, size).weights[topic] * subset.tokens;
  return shares.map((row, label) =>
    all > 0 ? Math.min(1, (row[topic] * tokens[label]) / all) : 0,
  );
}
