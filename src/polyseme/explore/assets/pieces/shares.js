// The shares of topics, as a chart and as a table.

import { topicAddress } from "../addresses.js";
import { bars } from "../charts/bars.js";
import { chart } from "../charts/chart.js";
import { empty } from "../dom.js";
import { percent } from "../format.js";
import { model } from "../model/corpus.js";
import { colorOf, topicName, topicTitle } from "./names.js";

/**
 * Returns the shares of topics as bars, without the smallest ones.
 *
 * @param {Iterable<number>} shares
 * @param {string} label
 * @param {{most?: number, least?: number}} [options]
 */
export function topicShares(shares, label, { most = 8, least = 0.005 } = {}) {
  const found = Array.from(shares, (share, topic) => ({ topic, share }))
    .filter(({ topic, share }) => share >= least && !model.gone.has(topic))
    .sort((a, b) => b.share - a.share)
    .slice(0, most);
  if (!found.length) return empty("No topic has any share here.");
  const rows = found.map(({ topic, share }) => ({
    label: `${topic}  ${topicName(topic)}`,
    href: topicAddress(topic),
    value: share,
    shown: percent(share),
    classes: colorOf(topic),
    title: topicTitle(topic),
  }));
  return chart((width) => bars(width, rows, { label, labelWidth: Math.min(260, width * 0.55) }));
}

/**
 * Returns the shares of topics as rows of a table.
 *
 * @param {Iterable<number>} shares
 */
export function topicRows(shares) {
  return [
    ["topic", "name", "share"],
    ...Array.from(shares, (share, topic) => ({ topic, share }))
      .filter(({ share }) => share > 0)
      .sort((a, b) => b.share - a.share)
      .map(({ topic, share }) => [topic, topicName(topic), share]),
  ];
}
