// Search with counts, or with a text that may have phrases.

import { corpus, model, rules, textOf } from "./corpus.js";
import { parsedQuery, phrasePattern, plainText } from "./query.js";
import { rank } from "./ranking.js";
import { explainer } from "./reasons.js";
import { BARRIER } from "./words.js";

/**
 * @typedef {import("./words.js").Counts} Counts
 *
 * @typedef {object} Hit
 * @property {number} document
 * @property {number} score
 * @property {number} term
 * @property {number} latent
 * @property {import("./reasons.js").Reason[]} reasons
 *
 * @typedef {object} Found
 * @property {Counts & {known: number, unknown: string[]}} query
 * @property {RegExp[]} phrases
 * @property {string} problem
 * @property {Hit[]} hits
 * @property {Hit[]} others
 * @property {Float64Array} topics
 */

// Returns some documents of a ranking with the parts of their scores: [{document, score, term,
// latent, reasons}].
function explained(query, { scores, term, latent, topics }, documents, reasons) {
  const explain = explainer(query, topics);
  return documents.map((d) => ({
    document: d,
    score: scores[d],
    term: term[d],
    latent: latent[d],
    reasons: explain(d, latent[d]).slice(0, reasons),
  }));
}

/**
 * Returns the best documents for counts, and the topics of the query.
 *
 * @param {Counts} query
 * @param {number} count
 * @param {{reasons?: number} & import("./ranking.js").RankOptions} [options]
 * @returns {{hits: Hit[], topics: Float64Array}}
 */
export function search(query, count, { reasons = 6, ...options } = {}) {
  const ranking = rank(query, count, options);
  return { hits: explained(query, ranking, ranking.order, reasons), topics: ranking.topics };
}

/**
 * Returns the best documents for a text that may have phrases in quotation marks. `hits` contain
 * the phrases. A page without full texts cannot check this for all documents: `others` contain all
 * words of the phrases, but not the phrases in the part of the text that the page has.
 *
 * @param {string} text
 * @param {number} count
 * @param {{reasons?: number}} [options]
 * @returns {Promise<Found>}
 */
export async function searchText(text, count, { reasons = 6 } = {}) {
  const { words, phrases, problem } = parsedQuery(text);
  const query = rules.counts(words);
  const found = {
    query,
    phrases: phrases.map(phrasePattern),
    problem,
    hits: [],
    others: [],
    topics: null,
  };
  if (problem) return found;
  if (!phrases.length) return { ...found, ...search(query, count, { reasons }) };
  const ranking = rank(query, model.n_documents, { allowed: withAllWords(phrases), once: false });
  const [having, unknown] = [[], []];
  const listed = new Set(); // groups of near-duplicates
  for (const d of ranking.order) {
    if (having.length === count) break;
    if (listed.has(corpus.groups[d])) continue;
    const content = plainText((await textOf(d)) ?? "");
    if (found.phrases.every((pattern) => content.search(pattern) >= 0)) {
      having.push(d);
      listed.add(corpus.groups[d]);
    } else if (model.text !== "full" && unknown.length < count) unknown.push(d);
  }
  const [hits, others] = [having, unknown].map((documents) =>
    explained(query, ranking, documents, reasons),
  );
  return { ...found, hits, others, topics: ranking.topics };
}

// Returns a mask of the documents that contain all words of some phrases, alone or joined. Words
// that are not in the vocabulary are ignored; null if none is.
function withAllWords(phrases) {
  const { starts, columns } = corpus.byWord;
  const wanted = phrases
    .flatMap((phrase) => {
      if (!rules.phrases.length) return Array.from(rules.counts(phrase).words, (word) => [word]);
      const names = new Set(rules.separate(phrase).filter((name) => name !== BARRIER));
      return Array.from(names, (name) =>
        model.words.flatMap((word, column) => (word.split("_").includes(name) ? [column] : [])),
      );
    })
    .filter((found) => found.length);
  if (!wanted.length) return null;
  const allowed = new Uint8Array(model.n_documents).fill(1);
  for (const found of wanted) {
    const has = new Uint8Array(model.n_documents);
    for (const word of found)
      for (let i = starts[word]; i < starts[word + 1]; i++) has[columns[i]] = 1;
    has.forEach((is, d) => is || (allowed[d] = 0));
  }
  return allowed;
}
