// Addresses of views: #/view/argument?setting=value.

import { model } from "./model/corpus.js";

/**
 * Returns the address of a view.
 *
 * @param {string} view
 * @param {string | number} [argument]
 * @param {Record<string, string | number>} [settings]
 * @returns {string}
 */
export function address(view, argument, settings = {}) {
  const query = Object.entries(settings).filter(
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
 */
export const topicAddress = (topic) => address("topic", topic);

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
