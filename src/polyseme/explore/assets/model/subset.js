// Some of the documents, and what can be computed from them with the topics fixed.

import { largest } from "./arrays.js";
import { corpus, model, oneOfEach } from "./corpus.js";
import { documentsOfLevel } from "./levels.js";

/** Documents that views show: all, or those that pass the filters. */
export class Subset {
  /** @param {Uint8Array | null} mask whether each document belongs to it; null: all do */
  constructor(mask) {
    this.mask = mask;
    this.results = new Map();
    this.resultsOf = null; // the model and the corpus; edits replace them
  }

  /** Whether these are all documents. */
  get isWhole() {
    return this.mask === null;
  }

  /**
   * Returns whether a document belongs to it.
   *
   * @param {number} d
   */
  has(d) {
    return this.mask === null || this.mask[d] === 1;
  }

  /** @returns {number} */
  get size() {
    return this.mask === null ? model.n_documents : this.documents.length;
  }

  /**
   * The documents in increasing order.
   *
   * @returns {Uint32Array}
   */
  get documents() {
    return this.once("documents", () => {
      const found = [];
      for (let d = 0; d < model.n_documents; d++) if (this.has(d)) found.push(d);
      return Uint32Array.from(found);
    });
  }

  /** @returns {number} */
  get tokens() {
    if (this.mask === null) return model.n_tokens;
    return this.once("tokens", () => this.documents.reduce((sum, d) => sum + corpus.tokens[d], 0));
  }

  /**
   * Returns what compute() returns; it is computed once.
   *
   * @template T
   * @param {string} name
   * @param {() => T} compute
   * @returns {T}
   */
  once(name, compute) {
    if (this.resultsOf?.model !== model || this.resultsOf.corpus !== corpus) {
      this.results.clear();
      this.resultsOf = { model, corpus };
    }
    if (!this.results.has(name)) this.results.set(name, compute());
    return this.results.get(name);
  }

  /**
   * Returns the documents that also pass a test.
   *
   * @param {(d: number) => boolean} test
   * @returns {Subset}
   */
  where(test) {
    return new Subset(
      Uint8Array.from({ length: model.n_documents }, (_, d) => Number(this.has(d) && test(d))),
    );
  }
}

/**
 * Returns P(z) and the fit of the topics of a level in some documents (zeros without words), and
 * how many of them have each topic as their main topic.
 *
 * @param {Subset} subset
 * @param {number} size number of topics of the level
 * @returns {{weights: Float64Array, fit: Float64Array, documents: Uint32Array}}
 */
export function topicsOfSubset(subset, size) {
  return subset.once(`topics ${size}`, () => {
    const { topics, main } = documentsOfLevel(size);
    const [sums, squares] = [new Float64Array(size), new Float64Array(size)];
    const documents = new Uint32Array(size);
    for (const d of subset.documents) {
      if (main[d] < size) documents[main[d]]++;
      for (let i = topics.starts[d]; i < topics.starts[d + 1]; i++) {
        const amount = corpus.tokens[d] * topics.values[i];
        sums[topics.columns[i]] += amount;
        squares[topics.columns[i]] += amount * topics.values[i];
      }
    }
    return {
      weights: sums.map((sum) => (subset.tokens > 0 ? sum / subset.tokens : 0)),
      fit: squares.map((square, topic) => (sums[topic] > 0 ? square / sums[topic] : 0)),
      documents,
    };
  });
}

/**
 * Returns the tokens and the documents of each word in some documents.
 *
 * @param {Subset} subset
 * @returns {{tokens: Float64Array, documents: Uint32Array}}
 */
export function wordsOfSubset(subset) {
  return subset.once("words", () => {
    if (subset.isWhole) return { tokens: model.word_totals, documents: corpus.frequency };
    const [tokens, documents] = [new Float64Array(model.n_words), new Uint32Array(model.n_words)];
    const { starts, columns, values } = corpus.byDocument;
    for (const d of subset.documents) {
      for (let i = starts[d]; i < starts[d + 1]; i++) {
        tokens[columns[i]] += values[i];
        documents[columns[i]]++;
      }
    }
    return { tokens, documents };
  });
}

/**
 * Returns the documents with the most tokens of a topic of a level, by their expected number
 * n_d P(z|d), one of each group of near-duplicates.
 *
 * @param {Subset} subset
 * @param {number} topic
 * @param {number} size number of topics of the level
 * @param {number} most
 * @returns {{document: number, share: number, tokens: number}[]}
 */
export function documentsOfTopic(subset, topic, size, most) {
  const { starts, columns, values } = documentsOfLevel(size).byTopic;
  const from = starts[topic];
  const expected = new Float64Array(starts[topic + 1] - from);
  expected.forEach((_, i) => {
    const d = columns[from + i];
    if (subset.has(d)) expected[i] = values[from + i] * corpus.tokens[d];
  });
  return largest(
    oneOfEach(expected, (i) => columns[from + i]),
    most,
  ).map((i) => ({ document: columns[from + i], share: values[from + i], tokens: expected[i] }));
}

/**
 * Returns the documents whose topics are most similar to those of some documents as a whole, by the
 * cosine, one of each group of near-duplicates.
 *
 * @param {Subset} part
 * @param {number} most
 * @returns {{document: number, cosine: number}[]}
 */
export function typicalOfSubset(part, most) {
  const { weights } = topicsOfSubset(part, model.K);
  const length = Math.hypot(...weights);
  const { starts, columns, values } = corpus.topics;
  const near = new Float64Array(model.n_documents);
  for (const d of part.documents) {
    if (!(corpus.tokens[d] > 0 && corpus.lengths[d] > 0 && length > 0)) continue;
    for (let i = starts[d]; i < starts[d + 1]; i++)
      near[d] += (values[i] * weights[columns[i]]) / (length * corpus.lengths[d]);
  }
  return largest(oneOfEach(near), most).map((d) => ({ document: d, cosine: near[d] }));
}
