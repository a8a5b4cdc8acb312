// The topics and the words of labels.

import { largest } from "./arrays.js";
import { corpus, countsOfDocument, model } from "./corpus.js";

let labelTable = null;
let labelTableOf = null; // the corpus; edits replace it

/**
 * Returns the share of each label's tokens in each topic, labels x topics, and the tokens and
 * documents of each label.
 *
 * @returns {{shares: Float64Array[], tokens: Float64Array, documents: Uint32Array}}
 */
export function topicsByLabel() {
  if (labelTableOf === corpus) return labelTable;
  const { names, of } = corpus.labeled;
  const table = names.map(() => new Float64Array(model.K));
  const tokens = new Float64Array(names.length);
  const documents = new Uint32Array(names.length);
  const { starts, columns, values } = corpus.topics;
  for (let d = 0; d < model.n_documents; d++) {
    for (let i = of.starts[d]; i < of.starts[d + 1]; i++) {
      const label = of.columns[i];
      tokens[label] += corpus.tokens[d];
      documents[label]++;
      for (let j = starts[d]; j < starts[d + 1]; j++)
        table[label][columns[j]] += corpus.tokens[d] * values[j];
    }
  }
  labelTableOf = corpus;
  labelTable = {
    shares: table.map((row, label) => row.map((n) => (tokens[label] > 0 ? n / tokens[label] : 0))),
    tokens,
    documents,
  };
  return labelTable;
}

/**
 * Returns the share of a topic's tokens in the documents of each label.
 *
 * @param {number} topic
 * @returns {number[]}
 */
export function labelsOfTopic(topic) {
  const { shares, tokens } = topicsByLabel();
  const all = model.weights[topic] * model.n_tokens;
  return shares.map((row, label) =>
    all > 0 ? Math.min(1, (row[topic] * tokens[label]) / all) : 0,
  );
}

/**
 * Returns the words that set a label apart, as in metrics.distinctive_words: by the log of the
 * ratio of their odds inside and outside, divided by its standard error (Monroe, Colaresi and Quinn
 * 2008), with a prior of 0.01 counts per word on average.
 *
 * @param {number} label
 * @param {number} most
 * @returns {{word: number, weight: number, times: number}[]}
 */
export function wordsOfLabel(label, most) {
  const V = model.n_words;
  const [inside, totals] = [new Float64Array(V), new Float64Array(V)];
  const { of } = corpus.labeled;
  for (let d = 0; d < model.n_documents; d++) {
    if (of.starts[d] === of.starts[d + 1]) continue;
    const has = of.columns.subarray(of.starts[d], of.starts[d + 1]).includes(label);
    const { words, values } = countsOfDocument(d);
    for (let i = 0; i < words.length; i++) {
      totals[words[i]] += values[i];
      if (has) inside[words[i]] += values[i];
    }
  }
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  const [all, within] = [sum(totals), sum(inside)];
  const pseudo = 0.01 * totals.reduce((seen, n) => seen + Number(n > 0), 0);
  if (!(within > 0 && within < all)) return [];
  const scores = totals.map((total, w) => {
    if (!(total > 0)) return 0;
    const prior = (pseudo * total) / all;
    const logOdds = (y, n) => Math.log((y + prior) / (n + pseudo - y - prior));
    const [y, rest] = [inside[w], total - inside[w]];
    return (
      (logOdds(y, within) - logOdds(rest, all - within)) /
      Math.sqrt(1 / (y + prior) + 1 / (rest + prior))
    );
  });
  return largest(scores, most).map((word) => ({
    word,
    weight: scores[word],
    times: inside[word] / within / (totals[word] / all),
  }));
}
