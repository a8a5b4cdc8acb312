// Names and colors of topics.

import { model } from "../model/corpus.js";
import { nameOfTopic } from "../model/topics.js";

/**
 * Returns the classes of a topic's color; topics without a subject are gray. Topics of the same color differ in the line below their
 * words.
 *
 * @param {number} topic
 * @returns {string}
 */
export function colorOf(topic) {
  if (topic < 0 || topic in model.junk || model.gone.has(topic)) return "none";
  return `c${model.colors[topic]} u${model.repeats[topic] % 4}`;
}

/**
 * Returns the name of a topic.
 *
 * @param {number} topic
 * @returns {string}
 */
export const topicName = (topic) => nameOfTopic(topic);

/**
 * Returns the number and the name of a topic.
 *
 * @param {number} topic
 */
export const topicTitle = (topic) => `Topic ${topic}: ${topicName(topic)}`;
