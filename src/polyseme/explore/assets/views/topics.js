// The topics of a level: a table to sort and filter, and a map of their distances.

import { chart } from "../charts/chart.js";
import { topicMap } from "../charts/topic_map.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { wordsOfSubset } from "../model/subset.js";
import { typicalDocuments } from "../model/topics.js";
import { card, meter } from "../pieces/card.js";
import { levelTopicLink } from "../pieces/links.js";
import { topicMeasures } from "../pieces/measures.js";
import { colorOf, topicName } from "../pieces/names.js";
import { sortedTable } from "../pieces/table.js";

/** @type {import("../router.js").Render} */
export function viewTopics(_, settings, shown) {
  const { level, subset } = shown;
  const isReading = level.size === model.K;
  const measures = topicMeasures(shown);
  const junk = (topic) => (isReading ? model.junk[topic] : undefined);
  const tops = measures.map(({ values }) => Math.max(...Array.from(values, (v) => v ?? 0), 1e-12));
  const quoteOf = (topic) =>
    isReading && subset.isWhole && corpus.quotes ? typicalDocuments(topic)[0]?.quote : undefined;
  const columns = [
    {
      name: "topic",
      description: "number of the topic in the model",
      value: (topic) => topic,
      shown: (topic) => [
        levelTopicLink(level, topic),
        h("span.words", {}, level.words[topic].slice(0, 9).join(" ")),
        quoteOf(topic) && h("span.quote", {}, `“${quoteOf(topic)}”`),
        junk(topic) && h("span.words", {}, `May not describe a subject: ${junk(topic)}.`),
      ],
    },
    ...measures.map(({ name, description, values, shown: figure }, i) => ({
      name,
      description,
      value: (topic) => values[topic],
      shown: (topic) => [
        h("span", {}, figure(values[topic], topic)),
        (name === "weight" || name === "fit") &&
          meter(values[topic] / tops[i], colorOf(level.tops[topic])),
      ],
    })),
  ];
  const words = wordsOfSubset(subset).documents.reduce((n, df) => n + Number(df > 0), 0);
  const { element, order } = sortedTable({
    noun: "topic",
    items: level.order,
    columns,
    sort: "weight",
    settings,
    matches: (topic, text) =>
      [level.names[topic], ...level.words[topic]].some((word) => word.toLowerCase().includes(text)),
    isLast: (topic) => junk(topic) !== undefined,
  });
  const rows = () => [
    ["topic", "name", ...measures.map(({ name }) => name), "words"],
    ...order.map((topic) => [
      topic,
      level.names[topic],
      ...measures.map(({ values }) => values[topic]),
      level.words[topic].join(" "),
    ]),
  ];
  const table = card("Table", element, { save: { name: "topics", rows } });
  return [
    h(
      "div.title",
      {},
      h("h1", {}, count(level.order.length, "topic")),
      h(
        "p.lead",
        {},
        `${count(subset.size, "document")}, ` +
          `${count(words, "word")}, ${count(subset.tokens, "token")}, by ${model.model}.`,
      ),
    ),
    isReading && subset.isWhole ? h("div.columns.wide-right", {}, distances(), table) : table,
  ];
}

function distances() {
  return card(
    "Distances",
    chart((width) => topicMap(width)),
    {
      note:
        "Circles near each other use similar words; the larger a circle, " +
        "the more of the corpus the topic makes up. Numbers are those of the model.",
      classes: "sticky",
      save: {
        name: "map of topics",
        chart: true,
        rows: () => [
          ["topic", "name", "x", "y", "weight"],
          ...model.order.map((topic) => [
            topic,
            topicName(topic),
            model.places[2 * topic],
            model.places[2 * topic + 1],
            model.weights[topic],
          ]),
        ],
      },
    },
  );
}
