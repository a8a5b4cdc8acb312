// The levels of topics: the reading level, whose topics are the model's, and the finer ones.

import { transposed } from "./arrays.js";
import { corpus, model, topicsOf } from "./corpus.js";
import { section } from "./data.js";
import { nameOfTopic, topWords } from "./topics.js";

/**
 * @typedef {import("./arrays.js").Sparse} Sparse
 *
 * @typedef {object} Level
 * @property {number} size number of topics
 * @property {string[]} names
 * @property {string[][]} words first words of each topic
 * @property {Float64Array} weights P(z)
 * @property {number[]} order topics by weight, without hidden ones
 * @property {Uint32Array} tops the topic of the reading level above each topic
 *
 * @typedef {object} LevelDocuments
 * @property {Sparse} topics P(z|d), documents x topics
 * @property {Sparse} byTopic P(z|d), topics x documents
 * @property {import("./arrays.js").Integers} main main topic of each document
 */

const LEVEL_WORDS = 15;

/** @type {Map<number, Level>} */
let described = new Map();
let describedModel = null;

function describe() {
  if (describedModel === model) return;
  describedModel = model;
  const topics = Array.from({ length: model.K }, (_, topic) => topic);
  const reading = {
    size: model.K,
    names: topics.map(nameOfTopic),
    words: topics.map((topic) => topWords(topic, LEVEL_WORDS)),
    weights: model.weights,
    order: model.order,
    tops: Uint32Array.from(topics),
  };
  described = new Map([[model.K, reading]]);
  const add = (node, top) => {
    const size = node.level;
    if (!described.has(size))
      described.set(size, {
        size,
        names: [],
        words: [],
        weights: new Float64Array(size),
        order: [],
        tops: new Uint32Array(size),
      });
    const level = described.get(size);
    level.names[node.topic] = node.name;
    level.words[node.topic] = node.words;
    level.weights[node.topic] = node.weight;
    if (!model.gone.has(top)) level.order.push(node.topic);
    level.tops[node.topic] = top;
    for (const child of node.children) add(child, top);
  };
  model.finer.forEach((nodes, top) =>
    nodes.forEach((node) => add(node, model.targets?.[top] ?? top)),
  );
  for (const level of described.values())
    if (level !== reading) level.order.sort((a, b) => level.weights[b] - level.weights[a] || a - b);
}

/**
 * Returns the numbers of topics of all levels, the reading level first.
 *
 * @returns {number[]}
 */
export function levelSizes() {
  describe();
  return [...described.keys()].sort((a, b) => a - b);
}

/**
 * Returns a level; the reading level if there is none of this size.
 *
 * @param {number} size
 * @returns {Level}
 */
export function levelOf(size) {
  describe();
  return described.get(size) ?? described.get(model.K);
}

/** @type {Map<number, LevelDocuments>} */
const documentsOfLevels = new Map();

/**
 * Sets the documents of a finer level.
 *
 * @param {number} size
 * @param {any} found section of the level
 */
export function useLevel(size, found) {
  const topics = topicsOf(found);
  documentsOfLevels.set(size, {
    topics,
    byTopic: transposed(topics, size),
    main: found.main_topics,
  });
}

/**
 * Reads the documents of a level on first use.
 *
 * @param {number} size
 */
export async function loadLevel(size) {
  if (size !== model.K && levelSizes().includes(size) && !documentsOfLevels.has(size))
    useLevel(size, await section(`level${size}`));
}

/**
 * Returns the documents of a level. Await loadCorpus() and loadLevel(size) first.
 *
 * @param {number} size
 * @returns {LevelDocuments}
 */
export function documentsOfLevel(size) {
  if (size === model.K)
    return { topics: corpus.topics, byTopic: corpus.byTopic, main: corpus.main_topics };
  return documentsOfLevels.get(size);
}
