// Cards about some of the documents: a label, or a period.

import { topicAddress, wordAddress } from "../addresses.js";
import { bars } from "../charts/bars.js";
import { chart } from "../charts/chart.js";
import { empty, h } from "../dom.js";
import { decimal, percent, timesText } from "../format.js";
import { wordsApart } from "../model/apart.js";
import { model } from "../model/corpus.js";
import { topicsOfSubset, typicalOfSubset } from "../model/subset.js";
import { card } from "./card.js";
import { documentList } from "./documents.js";
import { colorOf } from "./names.js";

/**
 * @typedef {import("../model/subset.js").Subset} Subset
 *
 * @typedef {import("../model/levels.js").Level} Level
 */

const PART_TOPICS = 12;
const APART_WORDS = 30;

/**
 * Returns the words that set some documents apart from others.
 *
 * @param {Subset} part
 * @param {Subset} all
 * @param {string} name
 */
export function apartCard(part, all, name) {
  const words = wordsApart(part, all, APART_WORDS);
  const rows = words.map(({ word, weight, times }) => ({
    label: model.words[word],
    href: wordAddress(word),
    value: weight,
    shown: timesText(times),
    title:
      `${model.words[word]}: ${timesText(times)} the frequency in all documents; ` +
      `score ${weight.toFixed(1)}`,
  }));
  const drawn = rows.length
    ? chart((width) => bars(width, rows, { label: `Words of ${name}` }))
    : empty("No words set it apart.");
  return card("Words that set its documents apart", drawn, {
    note:
      "By how much more often they occur here than in as many random documents, in standard " +
      "deviations; the figure says how many times as frequent they are as in all documents.",
    save: {
      name: `words of ${name}`,
      chart: rows.length > 0,
      rows: () => [
        ["word", "score", "times as frequent"],
        ...words.map(({ word, weight, times }) => [model.words[word], weight, times]),
      ],
    },
  });
}

/**
 * Returns the topics of some documents, beside their shares in all that are shown.
 *
 * @param {Subset} part
 * @param {Subset} all
 * @param {string} name
 * @param {Level} level
 */
export function topicsCard(part, all, name, { size, names, tops, order: listed }) {
  const [{ weights, documents }, { weights: usual }] = [part, all].map((subset) =>
    topicsOfSubset(subset, size),
  );
  const order = [...listed].sort((a, b) => weights[b] - weights[a] || a - b);
  const rows = order
    .slice(0, PART_TOPICS)
    .filter((topic) => weights[topic] >= 0.005)
    .map((topic) => {
      const times = usual[topic] > 0 ? weights[topic] / usual[topic] : 0;
      return {
        label: names[topic],
        href: topicAddress(topic, size),
        value: weights[topic],
        behind: usual[topic],
        shown: `${percent(weights[topic])}, ${timesText(times)}`,
        title:
          `${names[topic]}: ${percent(weights[topic])} of the words here, ` +
          `${percent(usual[topic])} of all; main topic of ${documents[topic]} documents here`,
        classes: colorOf(tops[topic]),
      };
    });
  const drawn = rows.length
    ? chart((width) =>
        bars(width, rows, {
          label: `Topics of ${name}`,
          labelWidth: Math.min(260, width * 0.45),
          end: 100,
        }),
      )
    : empty("No topic has any share here.");
  const content = h(
    "div",
    {},
    h(
      "p.key",
      {},
      h("span.swatch.here"),
      "share here",
      h("span.swatch.behind"),
      all.isWhole ? "share of all documents" : "share of the filtered documents",
    ),
    drawn,
  );
  return card("Topics", content, {
    save: {
      name: `topics of ${name}`,
      chart: rows.length > 0,
      rows: () => [
        ["topic", "name", "share", "share of all", "times", "documents"],
        ...order.map((topic) => [
          topic,
          names[topic],
          weights[topic],
          usual[topic],
          usual[topic] > 0 ? weights[topic] / usual[topic] : "",
          documents[topic],
        ]),
      ],
    },
  });
}

/**
 * Returns the typical documents of some documents.
 *
 * @param {Subset} part
 * @param {string} what
 */
export function typicalOfPartCard(part, what) {
  const found = typicalOfSubset(part, 10);
  const content = found.length
    ? documentList(found.map(({ document, cosine }) => ({ document, shown: decimal(cosine, 2) })))
    : empty("No document has words.");
  return card("Typical documents", content, {
    note: `The documents whose topics are most similar to those of ${what} as a whole.`,
  });
}
