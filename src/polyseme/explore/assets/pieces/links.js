// Links to topics, words and documents.

import { documentAddress, topicAddress, wordAddress } from "../addresses.js";
import { h } from "../dom.js";
import { corpus, model } from "../model/corpus.js";
import { colorOf, topicName, topicTitle } from "./names.js";

/**
 * Returns the number of a topic on the color of the topic.
 *
 * @param {number} topic
 */
export function chip(topic) {
  return h("span.chip", { classes: colorOf(topic) }, String(topic));
}

/**
 * Returns a link to a topic.
 *
 * @param {number} topic
 */
export function topicLink(topic) {
  return h(
    "a.topic",
    { href: topicAddress(topic), "aria-label": topicTitle(topic) },
    chip(topic),
    h("span", {}, topicName(topic)),
  );
}

/**
 * Returns a link to a topic of a level.
 *
 * @param {import("../model/levels.js").Level} level
 * @param {number} topic
 */
export function levelTopicLink({ size, names, tops }, topic) {
  if (size === model.K) return topicLink(topic);
  return h(
    "a.topic",
    { href: topicAddress(topic, size), "aria-label": `Topic ${topic} of ${size}: ${names[topic]}` },
    h("span.chip", { classes: colorOf(tops[topic]) }, String(topic)),
    h("span", {}, names[topic]),
  );
}

/**
 * Returns a link to a word.
 *
 * @param {number} word
 */
export function wordLink(word) {
  return h("a.word", { href: wordAddress(word) }, model.words[word]);
}

/**
 * Returns a link to a document.
 *
 * @param {number} d
 */
export function documentLink(d) {
  return h("a", { href: documentAddress(d) }, corpus.titles[d] || `Document ${d}`);
}
