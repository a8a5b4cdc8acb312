// Addresses of views: #/view/argument?setting=value.

import { model } from "./model/corpus.js";

/** @type {Record<string, string | number>} */
let kept = {};

/**
 * Sets the settings that all addresses have: filters, and the level of topics.
 *
 * @param {Record<string, string | number>} settings
 */
export function keepSettings(settings) {
  kept = settings;
}

/**
 * Returns the address of a view, with the settings that all addresses have; "" removes one.
 *
 * @param {string} view
 * @param {string | number} [argument]
 * @param {Record<string, string | number>} [settings]
 * @returns {string}
 */
export function address(view, argument, settings = {}) {
  const query = Object.entries({ ...kept, ...settings }).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  return (
    `#/${view}` +
    (argument === undefined ? "" : "/" + encodeURIComponent(argument)) +
    (query.length
      ? "?" + query.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")
      : "")
  );
}

/**
 * Returns the address of a topic.
 *
 * @param {number} topic
 * @param {number} [size] number of topics of its level; the reading level without it
 */
export const topicAddress = (topic, size = model.K) =>
  size === model.K ? address("topic", topic) : address("finer", `${size}.${topic}`);

/**
 * Returns the address of a document.
 *
 * @param {number} d
 */
export const documentAddress = (d) => address("document", d);

/**
 * Returns the address of a word.
 *
 * @param {number} word
 */
export const wordAddress = (word) => address("word", model.words[word]);
