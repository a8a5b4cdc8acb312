// Cards of a topic of any level: its labels, its share over time, the topics above and beside it.

import { address, topicAddress } from "../addresses.js";
import { bars } from "../charts/bars.js";
import { chart } from "../charts/chart.js";
import { lines } from "../charts/lines.js";
import { h } from "../dom.js";
import { count, percent, timesText } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { labelsOfTopic, topicsByLabel } from "../model/labels.js";
import { documentsOverTime, topicsOverTime } from "../model/periods.js";
import { topicsOfSubset } from "../model/subset.js";
import { card } from "./card.js";
import { colorOf } from "./names.js";

/**
 * @typedef {import("../model/levels.js").Level} Level
 *
 * @typedef {import("../model/subset.js").Subset} Subset
 */

/**
 * Returns the sentence about the weight of a topic, and how it differs with filters.
 *
 * @param {Level} level
 * @param {number} topic
 * @param {Subset} subset
 * @returns {string}
 */
export function weightText({ size, weights }, topic, subset) {
  if (subset.isWhole) return `${percent(weights[topic])} of all words`;
  const { weights: within } = topicsOfSubset(subset, size);
  const times = weights[topic] > 0 ? within[topic] / weights[topic] : 0;
  return (
    `${percent(within[topic])} of the words of these ${count(subset.size, "document")}, ` +
    `${percent(weights[topic])} of all words (${timesText(times)})`
  );
}

/**
 * Returns the links to the topics before and after a topic, and to the documents of the topic.
 *
 * @param {Level} level
 * @param {number} topic
 * @param {string} view the view that shows the topic
 * @param {string} argument
 */
export function topicPager({ size, order }, topic, view, argument) {
  const place = order.indexOf(topic);
  const beside = (step) => order[(place + step + order.length) % order.length];
  const key = size === model.K ? String(topic) : `${size}.${topic}`;
  return h(
    "p.pager",
    {},
    h("a", { href: topicAddress(beside(-1), size) }, "← heavier"),
    h("a", { href: topicAddress(beside(1), size) }, "lighter →"),
    h("a", { href: address("documents", undefined, { topic: key }) }, "Its documents"),
    h("a", { href: address("map", undefined, { topic: key }) }, "On the map"),
    h("a", { href: address(view, argument, { topic: key }) }, "Keep only its documents"),
  );
}

/**
 * Returns where the tokens of a topic are, by label.
 *
 * @param {Level} level
 * @param {number} topic
 * @param {Subset} subset
 */
export function labelCard({ size, tops }, topic, subset) {
  const shares = labelsOfTopic(topic, subset, size);
  const { documents } = topicsByLabel(subset, size);
  const rows = shares
    .map((share, label) => ({ share, label }))
    .sort((a, b) => b.share - a.share)
    .filter(({ share }) => share >= 0.005)
    .slice(0, 8)
    .map(({ share, label }) => ({
      label: corpus.labeled.names[label],
      href: address("labels", corpus.labeled.names[label]),
      value: share,
      shown: percent(share),
      title:
        `${corpus.labeled.names[label]}: ${percent(share)} of the topic’s tokens; ` +
        `${count(documents[label], "document")} with the label`,
      classes: colorOf(tops[topic]),
    }));
  if (!rows.length) return null;
  return card(
    "Labels",
    chart((width) => bars(width, rows, { label: "Where the topic’s tokens are", most: 1 })),
    {
      note: "The share of the topic’s tokens in documents of each label.",
      save: {
        name: `labels of topic ${topic}`,
        chart: true,
        rows: () => [
          ["label", "share"],
          ...shares.map((share, label) => [corpus.labeled.names[label], share]),
        ],
      },
    },
  );
}

/**
 * Returns the share of a topic over time.
 *
 * @param {Level} level
 * @param {number} topic
 * @param {Subset} subset
 */
export function timeCard({ size, tops }, topic, subset) {
  const values = topicsOverTime(subset, size)[topic];
  const documents = documentsOverTime(subset);
  if (!values.some((value) => value !== null)) return null;
  return card(
    "Over time",
    chart((width) =>
      lines(width, {
        series: [{ values, classes: colorOf(tops[topic]) }],
        names: corpus.periods,
        label: `Share of topic ${topic} over time`,
        format: percent,
        height: 200,
        zero: true,
      }),
    ),
    {
      save: {
        name: `topic ${topic} over time`,
        chart: true,
        rows: () => [
          ["period", "documents", "share"],
          ...corpus.periods.map((name, i) => [name, documents[i], values[i]]),
        ],
      },
    },
  );
}
