// The topics of finer levels, as a list and as a table.

import { topicAddress } from "../addresses.js";
import { h } from "../dom.js";
import { count, percent } from "../format.js";

/** @typedef {import("../model/corpus.js").FinerTopic} FinerTopic */

/**
 * Returns the topics of finer levels as a list.
 *
 * @param {FinerTopic[]} topics
 */
export function finerTopics(topics) {
  return h(
    "ul",
    {},
    topics.map(({ level, topic, name, weight, words, children }) =>
      h(
        "li",
        {},
        h(
          "div.node",
          {},
          h("a", { href: topicAddress(topic, level) }, name),
          h("span.quiet", {}, `${topic} of ${level}`),
          h("span.figure", {}, percent(weight)),
        ),
        h("p.words", {}, words.join(" ")),
        children.length > 0 &&
          h(
            "details",
            {},
            h("summary", {}, count(children.length, "finer topic")),
            finerTopics(children),
          ),
      ),
    ),
  );
}

/**
 * Returns the topics of finer levels as rows of a table.
 *
 * @param {FinerTopic[]} topics
 * @param {number} parent
 * @returns {unknown[][]}
 */
export function finerRows(topics, parent) {
  return topics.flatMap(({ level, topic, name, weight, parent_share: share, words, children }) => [
    [level, topic, name, weight, parent, share, words.join(" ")],
    ...finerRows(children, topic),
  ]);
}

export const FINER_COLUMNS = [
  "level",
  "topic",
  "name",
  "weight",
  "topic above",
  "its share",
  "words",
];
