// The filters: a topic, a label, a range of time and the words of a query. A document must pass all
// that are set, as in Run.search.

import { corpus, model, textOf } from "./corpus.js";
import { hasLabel } from "./labels.js";
import { documentsOfLevel, levelSizes, loadLevel } from "./levels.js";
import { isWithin } from "./periods.js";
import { phrasePattern, plainText } from "./query.js";
import { documentsWith } from "./search.js";
import { Subset } from "./subset.js";

/**
 * @typedef {object} Filters settings of an address
 * @property {string} [topic] main topic of the documents: its number, or "40.3" at a finer level
 * @property {string} [label]
 * @property {string} [from] first period
 * @property {string} [to] last period
 * @property {string} [q] words
 */

/** Names of the filters in an address. */
export const FILTERS = ["topic", "label", "from", "to", "q"];

export const WHOLE = new Subset(null);

/**
 * Returns the filters among the settings of an address.
 *
 * @param {Record<string, string>} settings
 * @returns {Filters}
 */
export function filtersOf(settings) {
  return Object.fromEntries(
    FILTERS.filter((name) => settings[name]?.trim()).map((name) => [name, settings[name]]),
  );
}

/**
 * Returns the level and the number of a topic, or null if there is no such topic.
 *
 * @param {string} text "3", or "40.3" for a finer level
 * @returns {{size: number, topic: number} | null}
 */
export function topicOf(text) {
  const numbers = text.split(".").map(Number);
  const [size, topic] = numbers.length === 1 ? [model.K, numbers[0]] : numbers;
  const known = levelSizes().includes(size) && Number.isInteger(topic);
  return known && topic >= 0 && topic < size ? { size, topic } : null;
}

/**
 * Subsets of the last filters.
 *
 * @type {Map<string, Subset>}
 */
const lastSubsets = new Map();
let lastSubsetsOf = null; // the corpus; edits replace it
const MOST_KEPT = 8;

/**
 * Returns the documents that pass the filters. Await loadCorpus() first, and loadRules() for words.
 *
 * @param {Filters} filters
 * @returns {Promise<Subset>}
 */
export async function subsetOf(filters) {
  if (!Object.keys(filters).length) return WHOLE;
  if (lastSubsetsOf !== corpus) lastSubsets.clear();
  lastSubsetsOf = corpus;
  const key = JSON.stringify(FILTERS.map((name) => filters[name] ?? ""));
  const subset = lastSubsets.get(key) ?? (await filtered(filters));
  lastSubsets.delete(key);
  lastSubsets.set(key, subset);
  if (lastSubsets.size > MOST_KEPT) lastSubsets.delete(lastSubsets.keys().next().value);
  return subset;
}

/** @param {Filters} filters */
async function filtered({ topic, label, from, to, q }) {
  const tests = [];
  if (topic !== undefined) {
    const found = topicOf(topic);
    if (found) await loadLevel(found.size);
    const main = found && documentsOfLevel(found.size).main;
    tests.push((d) => main !== null && main[d] === found.topic);
  }
  if (label !== undefined) {
    const number = corpus.labeled?.names.indexOf(label) ?? -1;
    tests.push((d) => number >= 0 && hasLabel(d, number));
  }
  if (from !== undefined || to !== undefined) {
    const names = corpus.periods ?? [];
    const [first, last] = [from ?? names[0], to ?? names.at(-1)].map((name) => names.indexOf(name));
    tests.push((d) => first >= 0 && last >= 0 && isWithin(d, first, last));
  }
  const having = q === undefined ? null : new Set(await documentsWithQuery(q));
  if (having) tests.push((d) => having.has(d));
  return WHOLE.where((d) => tests.every((test) => test(d)));
}

/**
 * Returns the documents with a word of a query, the best first. Phrases are looked up in the texts
 * if the page has them in full; otherwise documents must have all words of the phrases.
 *
 * @param {string} text
 * @returns {Promise<number[]>}
 */
export async function documentsWithQuery(text) {
  const { problem, documents, phrases } = documentsWith(text);
  if (problem) return [];
  if (!phrases.length || model.text !== "full") return documents;
  const patterns = phrases.map(phrasePattern);
  const texts = await Promise.all(documents.map(textOf));
  return documents.filter((_, i) => {
    const content = plainText(texts[i] ?? "");
    return patterns.every((pattern) => content.search(pattern) >= 0);
  });
}
