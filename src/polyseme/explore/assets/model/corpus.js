// The sections as objects to compute with: `model` (topics and words), `corpus` (documents) and
// `rules` (how texts are counted).

import { fromVarints, sparse, startsOf, transposed } from "./arrays.js";
import { section } from "./data.js";
import { NO_EDITS, editedCore, editedDocuments } from "./edits.js";
import { WordRules } from "./words.js";

/**
 * @typedef {import("./arrays.js").Sparse} Sparse
 *
 * @typedef {object} FinerTopic
 * @property {number} level
 * @property {number} topic
 * @property {string} name
 * @property {number} weight
 * @property {number} parent_share
 * @property {string[]} words
 * @property {FinerTopic[]} children
 * @property {number[]} [documents] typical documents
 *
 * @typedef {object} TreeNode
 * @property {string} name
 * @property {number} parent
 * @property {number | null} topic
 * @property {number} weight
 * @property {number[]} words
 *
 * @typedef {object} Explained how much of the deviance the topics explain
 * @property {number | null} total
 * @property {number | null} dispersion
 * @property {number} least_tokens
 * @property {[number, number][]} documents those explained worst, with their shares
 *
 * @typedef {object} Derived
 * @property {number} K number of topics
 * @property {Sparse} byWord P(w|z), words x topics
 * @property {Sparse} byTopic P(w|z), topics x words
 * @property {Set<number>} gone topics that no list has: hidden, deleted, or a part of another one
 * @property {number[]} order the other topics by weight
 * @property {Uint32Array} rank place of each topic in this order
 * @property {Uint32Array} repeats number of larger topics with the same color
 * @property {Float64Array} unigram P(w)
 * @property {Uint32Array} candidates where the candidates of each topic start
 * @property {number} documents sum of the topics' numbers of documents
 *
 * @typedef {object} Core
 * @property {string} title
 * @property {string} model
 * @property {number} n_documents
 * @property {number} n_words
 * @property {number} n_topics
 * @property {number} n_tokens
 * @property {number} shares steps of P(z|d)
 * @property {number} level_shares steps of P(z|d) of finer levels
 * @property {string[]} words
 * @property {number} relevance
 * @property {Record<string, number>} search
 * @property {number} least_documents
 * @property {{prior: number, length: number}} typical constants of typical documents
 * @property {Record<number, string>} topic_names
 * @property {number[]} hidden
 * @property {Record<string, (number | null)[]>} measures
 * @property {"excerpt" | "full" | "none"} text
 * @property {string} text_note why the page has excerpts, or ""
 * @property {number[]} text_starts
 * @property {Record<string, (number | null)[]>} history
 * @property {Record<string, unknown>} facts
 * @property {Explained} explained
 * @property {Record<string, number>[]} selection
 * @property {string} selection_reason
 * @property {number | null} chosen
 * @property {TreeNode[]} tree
 * @property {FinerTopic[][]} finer
 * @property {{kind: string, temperature: number, background: number, note: string}} inference
 * @property {Record<number, string>} junk
 * @property {number[]} colors color of each topic in the style sheet
 * @property {number[]} hidden_topics
 * @property {boolean} intervals whether the page has a section "intervals"
 * @property {import("./edits.js").Editing | null} editing how edits can be exported
 * @property {Uint32Array} [targets] the topic that each one became a part of, after edits
 * @property {Float64Array} weights
 * @property {Float64Array} fit
 * @property {Float32Array} places
 * @property {Float32Array} distances
 * @property {Float64Array} word_totals
 * @property {Float64Array} topic_documents
 * @property {Uint32Array} candidate_words
 * @property {Float32Array} candidate_documents
 * @property {Float32Array} candidate_frequency
 * @property {Uint32Array} [inactive]
 * @property {Float64Array} [background]
 * @property {Float64Array} [alpha]
 * @property {Float64Array} [totals]
 * @property {Float64Array} [mean]
 * @property {Float64Array} [precision]
 * @property {Float64Array} [topic_shares]
 *
 * @typedef {Core & Derived} Model
 *
 * @typedef {object} Corpus
 * @property {string[]} titles
 * @property {string[]} [ids]
 * @property {string[]} [periods]
 * @property {(string | null)[]} [times]
 * @property {Int32Array} [document_periods]
 * @property {Uint32Array} typical_documents
 * @property {Float32Array} typical_nats
 * @property {string[]} [quotes] a sentence of each typical document
 * @property {Uint32Array} [copies]
 * @property {Sparse} byWord counts, words x documents
 * @property {Sparse} byDocument counts, documents x words
 * @property {Sparse} topics P(z|d), documents x topics
 * @property {Sparse} byTopic P(z|d), topics x documents
 * @property {import("./arrays.js").Integers} main_topics topic with the largest P(z|d) of each
 *   document; the number of topics if it has no words
 * @property {Float64Array} tokens number of each document
 * @property {Float64Array} lengths norm of P(z|d)
 * @property {Uint32Array} frequency number of documents of each word
 * @property {{names: string[], of: Sparse}} [labeled]
 * @property {Uint32Array} groups first near-duplicate of each document
 * @property {Uint32Array} groupSizes
 * @property {Uint32Array} typical where the typical documents of each topic start
 */

/**
 * Every view has it.
 *
 * @type {Model}
 */
export let model = null;

/**
 * Await loadCorpus() first.
 *
 * @type {Corpus}
 */
export let corpus = null;

/**
 * Await loadRules() first.
 *
 * @type {WordRules}
 */
export let rules = null;

/**
 * Sets `model`.
 *
 * @param {any} core section "core"
 */
export function useModel(core) {
  const K = core.n_topics;
  const starts = startsOf(fromVarints(core.topics_of_word, core.n_words));
  const values = Float64Array.from(core.word_logs, (code) => Math.exp(-code * core.log_step));
  const byWord = sparse(starts, core.word_topics, values);
  const isJunk = (topic) => Number(topic in core.junk);
  const gone = new Set(core.hidden_topics);
  const order = Array.from(core.weights.keys())
    .filter((topic) => !gone.has(topic))
    .sort((a, b) => isJunk(a) - isJunk(b) || core.weights[b] - core.weights[a] || a - b); // junk last
  const rank = new Uint32Array(K);
  order.forEach((topic, place) => (rank[topic] = place));
  const repeats = new Uint32Array(K);
  const used = new Map();
  for (const topic of order) {
    const color = core.colors[topic];
    repeats[topic] = used.get(color) ?? 0;
    used.set(color, repeats[topic] + 1);
  }
  model = {
    ...core,
    K,
    byWord,
    byTopic: transposed(byWord, K),
    gone,
    order,
    rank,
    repeats,
    unigram: core.word_totals.map((total) => total / core.n_tokens),
    candidates: startsOf(fromVarints(core.candidates_of_topic, K)),
    documents: core.topic_documents.reduce((sum, n) => sum + n, 0),
  };
}

/**
 * Returns P(z|d), documents x topics, of a section.
 *
 * @param {any} found section "documents" or that of a finer level
 * @returns {Sparse}
 */
export function topicsOf(found) {
  const { document_topics: topics, level_shares: ofLevel } = found;
  const codes = ofLevel ? fromVarints(ofLevel, topics.length) : found.document_shares;
  const steps = ofLevel ? model.level_shares : model.shares;
  return sparse(
    startsOf(fromVarints(found.topics_of_document, model.n_documents)),
    topics,
    Float32Array.from(codes, (code) => code / steps),
  );
}

/**
 * Sets `corpus`; `model` comes first.
 *
 * @param {any} documents section "documents"
 * @param {any} counts section "counts"
 */
export function useCorpus(documents, counts) {
  const { n_documents: N, K } = model;
  const topics = topicsOf(documents);
  const lengths = new Float64Array(N);
  for (let d = 0; d < N; d++) {
    let sum = 0;
    for (let i = topics.starts[d]; i < topics.starts[d + 1]; i++) sum += topics.values[i] ** 2;
    lengths[d] = Math.sqrt(sum);
  }
  const labeled = documents.labels && {
    names: documents.labels,
    of: sparse(
      startsOf(documents.labels_of_document),
      documents.document_labels,
      documents.document_labels,
    ),
  };
  // the first document in the group of near-duplicates of each document
  const groups = Uint32Array.from({ length: N }, (_, d) => d);
  documents.copies?.forEach((d, i) => (groups[d] = documents.firsts[i]));
  const groupSizes = new Uint32Array(N);
  for (const first of groups) groupSizes[first]++;
  corpus = {
    ...documents,
    ...countsOf(counts),
    topics,
    lengths,
    labeled,
    groups,
    groupSizes,
    byTopic: transposed(topics, K),
    typical: startsOf(fromVarints(documents.typical_of_topic, K)),
  };
}

let unpacked = null; // the counts, which no edit changes, and their section

function countsOf(counts) {
  if (unpacked?.section === counts) return unpacked.found;
  const { n_documents: N, n_words: V } = model;
  const frequency = fromVarints(counts.documents_of, V);
  const starts = startsOf(frequency);
  const size = starts[V];
  const rows = fromVarints(counts.gaps, size);
  for (let word = 0; word < V; word++) {
    let before = -1;
    for (let i = starts[word]; i < starts[word + 1]; i++) before = rows[i] += before + 1;
  }
  const values = counts.amounts ?? fromVarints(counts.counts, size);
  const byWord = sparse(starts, rows, values);
  const tokens = new Float64Array(N);
  for (let i = 0; i < size; i++) tokens[rows[i]] += values[i];
  const found = { byWord, byDocument: transposed(byWord, N), tokens, frequency };
  unpacked = { section: counts, found };
  return found;
}

/**
 * Sets `rules`; `model` comes first.
 *
 * @param {import("./words.js").Rules} found section "rules"
 */
export function useRules(found) {
  rules = new WordRules(found, model.words);
}

/** @type {import("./edits.js").Edits} */
let edits = NO_EDITS;

/** Reads `model`. */
export async function loadModel() {
  useModel(await section("core"));
}

let loadingCorpus = null;

/**
 * Sets `model`, and `corpus` if it is there, as they are after edits.
 *
 * @param {import("./edits.js").Edits} made
 */
export async function useEdits(made) {
  const isMergedAnew = made.merge !== edits.merge;
  edits = made;
  useModel(editedCore(await section("core"), edits));
  if (!loadingCorpus || !isMergedAnew) return;
  loadingCorpus = null;
  await loadCorpus();
}

/** Returns the section "documents" after edits. */
export async function currentDocuments() {
  return editedDocuments(await section("documents"), edits, await section("core"));
}

/**
 * Reads `corpus` on first use.
 *
 * @returns {Promise<unknown>}
 */
export function loadCorpus() {
  loadingCorpus ??= Promise.all([currentDocuments(), section("counts")]).then(
    ([documents, counts]) => useCorpus(documents, counts),
  );
  return loadingCorpus;
}

let loadingRules = null;

/**
 * Reads `rules` on first use.
 *
 * @returns {Promise<unknown>}
 */
export function loadRules() {
  loadingRules ??= section("rules").then(useRules);
  return loadingRules;
}

/**
 * Returns the counts of a document.
 *
 * @param {number} d
 * @returns {import("./words.js").Counts}
 */
export function countsOfDocument(d) {
  const { starts, columns, values } = corpus.byDocument;
  return {
    words: columns.subarray(starts[d], starts[d + 1]),
    values: values.subarray(starts[d], starts[d + 1]),
  };
}

/**
 * Returns P(z|d), K numbers.
 *
 * @param {number} d
 * @returns {Float64Array}
 */
export function weightsOf(d) {
  const theta = new Float64Array(model.K);
  const { starts, columns, values } = corpus.topics;
  for (let i = starts[d]; i < starts[d + 1]; i++) theta[columns[i]] = values[i];
  return theta;
}

/**
 * Resolves to the text of a document, or null if the page has none.
 *
 * @param {number} d
 * @returns {Promise<string | null>}
 */
export function textOf(d) {
  const starts = model.text_starts;
  if (!starts.length) return Promise.resolve(null);
  let number = starts.length - 1;
  while (starts[number] > d) number--;
  return section("texts" + number).then(({ texts }) => texts[d - starts[number]]);
}

/**
 * Sets the values of documents to zero, except for the best document of each group of
 * near-duplicates; of equal values, the first one stays.
 *
 * @template {import("./arrays.js").TypedArray} T
 * @param {T} values
 * @param {(i: number) => number} [documentOf]
 * @returns {T}
 */
export function oneOfEach(values, documentOf = (i) => i) {
  const best = new Map();
  for (let i = 0; corpus.copies && i < values.length; i++) {
    const group = corpus.groups[documentOf(i)];
    if (!(values[i] > 0) || corpus.groupSizes[group] < 2) continue;
    const before = best.get(group);
    if (before !== undefined && values[before] >= values[i]) values[i] = 0;
    else {
      if (before !== undefined) values[before] = 0;
      best.set(group, i);
    }
  }
  return values;
}
