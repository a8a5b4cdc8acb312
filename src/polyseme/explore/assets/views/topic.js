// One topic: its words by relevance, typical documents, nearest topics, labels and time.

import { address, topicAddress, wordAddress } from "../addresses.js";
import { bars } from "../charts/bars.js";
import { chart } from "../charts/chart.js";
import { lines } from "../charts/lines.js";
import { empty, h } from "../dom.js";
import { decimal, percent, wholeNumber } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { labelsOfTopic } from "../model/labels.js";
import { documentsOverTime, topicsOverTime } from "../model/periods.js";
import { largestDocuments, relevantWords, typicalDocuments } from "../model/topics.js";
import { card, notHere } from "../pieces/card.js";
import { documentList } from "../pieces/documents.js";
import { topicEditor } from "../pieces/edit_topic.js";
import { FINER_COLUMNS, finerRows, finerTopics } from "../pieces/finer.js";
import { chip, topicLink } from "../pieces/links.js";
import { topicMeasures } from "../pieces/measures.js";
import { colorOf, topicName } from "../pieces/names.js";
import { remember } from "../router.js";

/** @type {import("../router.js").Render} */
export function viewTopic(argument, settings) {
  const topic = Number(argument);
  if (!(Number.isInteger(topic) && topic >= 0 && topic < model.K))
    return notHere(`There is no topic ${argument}.`);
  const place = model.rank[topic];
  const { length } = model.order;
  const beside = (step) => model.order[(place + step + length) % length];
  const target = model.targets?.[topic] ?? topic;
  if (target !== topic)
    return notHere(`Topic ${topic} is merged.`, ["It became part of ", topicLink(target), "."]);
  const isGone = model.gone.has(topic);
  const measures = topicMeasures()
    .slice(1)
    .filter(({ values }) => values[topic] !== null);
  const words = wordsCard(topic, settings);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, chip(topic), " ", topicName(topic)),
      h(
        "p.lead",
        {},
        `${percent(model.weights[topic])} of all words` +
          (topic in model.junk || isGone ? "" : `, the ${ordinal(place + 1)} of ${length}`),
        measures.map(({ name, values, shown }) => `; ${name} ${shown(values[topic])}`),
        ".",
      ),
      model.junk[topic] && h("p.note", {}, `May not describe a subject: ${model.junk[topic]}.`),
      isGone && h("p.note", {}, "This topic is hidden: it is out of lists and the map."),
      h(
        "p.pager",
        {},
        h("a", { href: topicAddress(beside(-1)) }, "← heavier"),
        h("a", { href: topicAddress(beside(1)) }, "lighter →"),
      ),
      !isGone && topicEditor(topic),
    ),
    h(
      "div.columns",
      {},
      words,
      h(
        "div.stack",
        {},
        typicalCard(topic),
        finerCard(topic),
        nearCard(topic),
        corpus.labeled && labelCard(topic),
        corpus.periods && timeCard(topic),
      ),
    ),
  ];
}

function ordinal(n) {
  const ending =
    n % 100 >= 11 && n % 100 <= 13 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[n % 10] ?? "th");
  return n + ending;
}

function wordsCard(topic, settings) {
  const given = Number(settings.relevance);
  let lambda =
    settings.relevance !== undefined && given >= 0 && given <= 1 ? given : model.relevance;
  const shown = () => relevantWords(topic, lambda, 30);
  const holder = chart((width) =>
    bars(
      width,
      shown().map(({ word, inTopic, overall, p }) => ({
        label: model.words[word],
        href: wordAddress(word),
        value: Math.min(inTopic, overall),
        behind: overall,
        classes: colorOf(topic),
        shown: `${wholeNumber.format(inTopic)} of ${wholeNumber.format(overall)}`,
        title:
          `${model.words[word]}: about ${wholeNumber.format(inTopic)} of the ` +
          `${wholeNumber.format(overall)} documents that contain it use it in this topic; ` +
          `P(w|z) ${p.toPrecision(3)}`,
      })),
      { label: `Words of topic ${topic}`, labelWidth: Math.min(150, width * 0.3), end: 110 },
    ),
  );
  const output = h("output", { for: "relevance" }, lambda.toFixed(2));
  const slider = h("input", {
    type: "range",
    id: "relevance",
    min: 0,
    max: 1,
    step: 0.05,
    value: lambda,
    oninput: () => {
      lambda = Number(slider.value);
      output.textContent = lambda.toFixed(2);
      holder.redraw();
      remember({ relevance: lambda === model.relevance ? undefined : lambda });
    },
  });
  const content = h(
    "div",
    {},
    h(
      "div.slider",
      {},
      h("label", { for: "relevance" }, "Relevance λ"),
      h("span.quiet", {}, "rare, distinctive"),
      slider,
      h("span.quiet", {}, "frequent"),
      output,
    ),
    h(
      "p.key",
      {},
      h("span.swatch", { classes: colorOf(topic) }),
      "documents of this topic",
      h("span.swatch.behind"),
      "all documents with the word",
    ),
    holder,
  );
  return card("Words", content, {
    save: {
      name: `words of topic ${topic}`,
      chart: true,
      rows: () => [
        ["word", "relevance", "probability", "documents in topic", "documents in all"],
        ...shown().map(({ word, relevance, p, inTopic, overall }) => [
          model.words[word],
          relevance,
          p,
          inTopic,
          overall,
        ]),
      ],
    },
  });
}

function typicalCard(topic) {
  const found = typicalDocuments(topic);
  const content = found.length
    ? documentList(
        found.map(({ document: d, share, quote }) => ({
          document: d,
          shown: percent(share),
          detail: quote && h("p.snippet", {}, quote),
        })),
      )
    : empty("No document is typical of this topic.");
  return card("Typical documents", content, {
    note:
      "The documents that the topic explains best relative to their length, with the sentence " +
      "that it explains best; the figure is its share of the document.",
    save: {
      name: `documents of topic ${topic}`,
      rows: () => {
        const typical = new Set(found.map(({ document: d }) => d));
        const others = largestDocuments(topic, 200)
          .filter(({ document: d }) => !typical.has(d))
          .map((other) => ({ ...other, nats: "", quote: "" }));
        return [
          ["document", "share", "tokens of the topic", "nats per token", "quote"],
          ...[...found, ...others]
            .slice(0, 200)
            .map(({ document: d, share, tokens, nats, quote }) => [
              corpus.titles[d],
              share,
              tokens,
              nats,
              quote ?? "",
            ]),
        ];
      },
    },
  });
}

function finerCard(topic) {
  const finer = model.finer?.[topic] ?? [];
  return finer.length
    ? card("Finer topics", h("div.tree", {}, finerTopics(finer)), {
        note:
          "Topics of the next finer levels that belong to this one, " +
          "with their share of all words.",
        save: {
          name: `finer topics of topic ${topic}`,
          rows: () => [FINER_COLUMNS, ...finerRows(finer, topic)],
        },
      })
    : null;
}

function nearCard(topic) {
  const distance = (other) => model.distances[topic * model.K + other];
  const others = model.order
    .filter((other) => other !== topic)
    .sort((a, b) => distance(a) - distance(b))
    .slice(0, 5);
  if (!others.length) return null;
  return card(
    "Nearest topics",
    h(
      "ul.plain",
      {},
      others.map((other) =>
        h("li.line", {}, topicLink(other), h("span.figure", {}, decimal(distance(other), 2))),
      ),
    ),
    {
      note: "By the Hellinger distance of their words: 0 is equal, 1 is no word in common.",
    },
  );
}

function labelCard(topic) {
  const shares = labelsOfTopic(topic);
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
      classes: colorOf(topic),
    }));
  return rows.length
    ? card(
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
      )
    : null;
}

function timeCard(topic) {
  const values = topicsOverTime()[topic];
  const documents = documentsOverTime();
  return card(
    "Over time",
    chart((width) =>
      lines(width, {
        series: [{ values, classes: colorOf(topic) }],
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
