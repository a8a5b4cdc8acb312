// All topics: the map, and a table to sort.

import { address } from "../addresses.js";
import { chart } from "../charts/chart.js";
import { topicMap } from "../charts/topic_map.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { model } from "../model/corpus.js";
import { topWords } from "../model/topics.js";
import { card, meter } from "../pieces/card.js";
import { topicLink } from "../pieces/links.js";
import { topicMeasures } from "../pieces/measures.js";
import { colorOf, topicName } from "../pieces/names.js";

/** @type {import("../router.js").Render} */
export function viewTopics(_, settings) {
  const measures = topicMeasures();
  const sort =
    settings.sort === "topic" || measures.some(({ name }) => name === settings.sort)
      ? settings.sort
      : "weight";
  const upwards = settings.order === "up";
  const keys =
    sort === "topic"
      ? Array.from(model.weights.keys())
      : measures.find(({ name }) => name === sort).values;
  const topics = [...model.order].sort(
    (a, b) =>
      Number(a in model.junk) - Number(b in model.junk) ||
      (upwards ? 1 : -1) * ((keys[a] ?? -Infinity) - (keys[b] ?? -Infinity)) ||
      model.rank[a] - model.rank[b],
  );
  const head = (name, description) => {
    const now = sort === name;
    const order = now ? (upwards ? "" : "up") : name === "topic" ? "up" : "";
    return h(
      "th",
      {
        scope: "col",
        role: "columnheader",
        "aria-sort": now ? (upwards ? "ascending" : "descending") : null,
        classes: name === "topic" ? "" : "number",
      },
      h(
        "a",
        {
          href: address("topics", undefined, { sort: name, order }),
          title: description,
          data: { keep: "scroll" },
        },
        name,
        now ? (upwards ? " ↑" : " ↓") : "",
      ),
    );
  };
  const tops = measures.map(({ values }) => Math.max(...values.filter((v) => v !== null)));
  const table = h(
    "table.topics",
    { role: "table" },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        head("topic", "number of the topic in the model"),
        measures.map(({ name, description }) => head(name, description)),
      ),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      topics.map((topic) =>
        h(
          "tr",
          { role: "row" },
          h(
            "th",
            { scope: "row", role: "rowheader" },
            topicLink(topic),
            h("span.words", {}, topWords(topic, 9).join(" ")),
            model.junk[topic] &&
              h("span.words", {}, `May not describe a subject: ${model.junk[topic]}.`),
          ),
          measures.map(({ values, shown, name }, i) =>
            h(
              "td.number",
              { role: "cell", data: { name } },
              h("span", {}, values[topic] === null ? "–" : shown(values[topic])),
              i < 2 && meter(values[topic] / tops[i], colorOf(topic)),
            ),
          ),
        ),
      ),
    ),
  );
  const rows = () => [
    ["topic", "name", ...measures.map(({ name }) => name), "words"],
    ...topics.map((topic) => [
      topic,
      topicName(topic),
      ...measures.map(({ values }) => values[topic]),
      topWords(topic, 15).join(" "),
    ]),
  ];
  return [
    h(
      "div.title",
      {},
      h("h1", {}, count(model.K, "topic")),
      h(
        "p.lead",
        {},
        `${count(model.n_documents, "document")}, ${count(model.n_words, "word")}, ` +
          `${count(model.n_tokens, "token")}, by ${model.model}.`,
      ),
    ),
    h(
      "div.columns.wide-right",
      {},
      card(
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
      ),
      card(
        "Table",
        h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Table of topics" }, table),
        { save: { name: "topics", rows } },
      ),
    ),
  ];
}
