// Search with counts, or with a text that may have phrases, beginnings of words and excluded words.

import { corpus, model, rules, textOf } from "./corpus.js";
import { nearestWords } from "./nearest.js";
import { parsedQuery, phrasePattern, plainText } from "./query.js";
import { rank } from "./ranking.js";
import { explainer } from "./reasons.js";
import { BARRIER } from "./words.js";

// Number of unknown words for which the nearest words are searched.
const MOST_NEAREST = 12;

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
 * @property {Counts & {unknown: {word: string, nearest: string[]}[]}} query
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
 * Returns the best documents for the text of a query. `hits` contain its phrases. A page without full texts cannot check this for all documents: `others` contain all
 * words of the phrases, but not the phrases in the part of the text that the page has.
 *
 * @param {string} text
 * @param {number} count
 * @param {{reasons?: number, among?: import("./subset.js").Subset}} [options] among: the documents
 *   that may be found
 * @returns {Promise<Found>}
 */
export async function searchText(text, count, { reasons = 6, among } = {}) {
  const { words, phrases, prefixes, excluded, problem: fault } = parsedQuery(text);
  const query = queryCounts(words, prefixes);
  const uncounted = excluded.find((word) => !columnsWith(word).length);
  const problem =
    fault || uncounted === undefined
      ? fault
      : `-${uncounted}: the run does not count this word: it is unknown, rare or a stop word` +
        `${nearestTo(uncounted)}.`;
  const found = {
    query,
    phrases: phrases.map(phrasePattern),
    problem,
    hits: [],
    others: [],
    topics: null,
  };
  if (problem) return found;
  const allowed = both(allowedDocuments(phrases, excluded), among?.mask ?? null);
  if (!phrases.length) return { ...found, ...search(query, count, { reasons, allowed }) };
  const ranking = rank(query, model.n_documents, { allowed, once: false });
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

/**
 * Returns all documents with a word of a query, the best first, and their scores; phrases are
 * taken as words.
 *
 * @param {string} text
 * @returns {{problem: string, query: Found["query"], phrases: string[], documents: number[],
 *   scores: Float64Array}}
 */
export function documentsWith(text) {
  if (lastFound?.text !== text || lastFound.corpus !== corpus)
    lastFound = { text, corpus, found: findDocuments(text) };
  return lastFound.found;
}

let lastFound = null; // several views ask for the same documents

function findDocuments(text) {
  const { words, phrases, prefixes, excluded, problem } = parsedQuery(text);
  const query = queryCounts(words, prefixes);
  const allowed = allowedDocuments(phrases, excluded);
  const { order, term, scores } = rank(query, model.n_documents, { allowed, once: false });
  return { problem, query, phrases, documents: order.filter((d) => term[d] > 0), scores };
}

// Returns the counts of the words and of the words that begin with the prefixes, and the unknown
// ones.
function queryCounts(words, prefixes) {
  const counts = rules.counts(words);
  const tally = new Map(prefixes.flatMap(columnsOfPrefix).map((column) => [column, 1]));
  counts.words.forEach((word, i) => tally.set(word, counts.values[i]));
  const columns = Uint32Array.from([...tally.keys()].sort((a, b) => a - b));
  const unknown = [
    ...counts.unknown,
    ...new Set(prefixes.filter((prefix) => !columnsOfPrefix(prefix).length)),
  ];
  return {
    words: columns,
    values: Float64Array.from(columns, (column) => tally.get(column)),
    unknown: unknown.map((word, i) => ({
      word,
      nearest: i < MOST_NEAREST ? nearestWords(word.replace(/\*+$/, "")) : [],
    })),
  };
}

// Returns the columns of the words that begin with a text that ends with *, and of the text as a
// word. A joined phrase begins with the text if one of its words does.
function columnsOfPrefix(prefix) {
  const text = prefix.replace(/\*+$/, "");
  const start = rules.prepared(text);
  const columns = new Set(rules.counts(text).words);
  model.words.forEach((name, column) => {
    if (name.startsWith(start) || name.includes("_" + start)) columns.add(column);
  });
  return [...columns];
}

// Returns for each known word of a text the columns of the word and of the joined phrases that
// contain it. A text that ends with * is the beginning of words.
function columnsWith(text) {
  if (text.endsWith("*")) return [columnsOfPrefix(text)].filter((found) => found.length);
  if (!rules.phrases.length) return Array.from(rules.counts(text).words, (word) => [word]);
  const names = new Set(rules.separate(text).filter((name) => name !== BARRIER));
  return Array.from(names, (name) =>
    model.words.flatMap((word, column) => (word.split("_").includes(name) ? [column] : [])),
  ).filter((found) => found.length);
}

// Returns a mask of the documents that contain all words of some phrases, alone or joined, and none
// of the excluded words. Words that are not in the vocabulary are ignored; null if none is.
function allowedDocuments(phrases, excluded) {
  const { starts, columns } = corpus.byWord;
  const wanted = phrases.flatMap(columnsWith);
  const unwanted = excluded.flatMap(columnsWith);
  if (!wanted.length && !unwanted.length) return null;
  const allowed = new Uint8Array(model.n_documents).fill(1);
  const keep = (found, inside) => {
    const has = new Uint8Array(model.n_documents);
    for (const word of found)
      for (let i = starts[word]; i < starts[word + 1]; i++) has[columns[i]] = 1;
    has.forEach((is, d) => is === inside || (allowed[d] = 0));
  };
  wanted.forEach((found) => keep(found, 1));
  unwanted.forEach((found) => keep(found, 0));
  return allowed;
}

function both(first, second) {
  return first && second ? first.map((is, d) => is & second[d]) : (first ?? second);
}

// Returns the nearest words in parentheses, or "".
function nearestTo(word) {
  const { unknown } = queryCounts(word.replace(/\*+$/, ""), []);
  const nearest = unknown.flatMap((found) => found.nearest);
  return nearest.length ? ` (nearest: ${nearest.join(", ")})` : "";
}
