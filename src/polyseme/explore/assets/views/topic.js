// One topic: its words by relevance, typical documents, nearest topics, labels and time.

import { wordAddress } from "../addresses.js";
import { bars } from "../charts/bars.js";
import { chart } from "../charts/chart.js";
import { empty, h } from "../dom.js";
import { count, decimal, percent, wholeNumber } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { levelOf } from "../model/levels.js";
import { narrowedTypical, narrowedWords } from "../model/narrowed.js";
import { documentsOfTopic } from "../model/subset.js";
import { card, notHere } from "../pieces/card.js";
import { documentList } from "../pieces/documents.js";
import { topicEditor } from "../pieces/edit_topic.js";
import { FINER_COLUMNS, finerRows, finerTopics } from "../pieces/finer.js";
import { chip, topicLink } from "../pieces/links.js";
import { topicMeasures } from "../pieces/measures.js";
import { colorOf, topicName } from "../pieces/names.js";
import { labelCard, timeCard, topicPager, weightText } from "../pieces/topic_cards.js";
import { remember } from "../router.js";

const OTHER_MEASURES = ["documents", "fit", "coherence", "stability", "reproducibility"];

/** @type {import("../router.js").Render} */
export function viewTopic(argument, settings, { subset }) {
  const topic = Number(argument);
  if (!(Number.isInteger(topic) && topic >= 0 && topic < model.K))
    return notHere(`There is no topic ${argument}.`);
  const target = model.targets?.[topic] ?? topic;
  if (target !== topic)
    return notHere(`Topic ${topic} is merged.`, ["It became part of ", topicLink(target), "."]);
  const isGone = model.gone.has(topic);
  const level = levelOf(model.K);
  const measures = topicMeasures({ subset, level }).filter(
    ({ name, values }) => OTHER_MEASURES.includes(name) && values[topic] !== null,
  );
  const words = wordsCard(topic, settings, subset);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, chip(topic), " ", topicName(topic)),
      h(
        "p.lead",
        {},
        weightText(level, topic, subset) +
          (topic in model.junk || isGone || !subset.isWhole
            ? ""
            : `, the ${ordinal(model.rank[topic] + 1)} of ${level.order.length}`),
        measures.map(({ name, values, shown }) =>
          name === "documents"
            ? `; main topic of ${count(values[topic], "document")}`
            : `; ${name} ${shown(values[topic], topic)}`,
        ),
        ".",
      ),
      model.junk[topic] && h("p.note", {}, `May not describe a subject: ${model.junk[topic]}.`),
      isGone && h("p.note", {}, "This topic is hidden: it is out of lists and the map."),
      topicPager(level, topic, "topic", argument),
      !isGone && topicEditor(topic),
    ),
    h(
      "div.columns",
      {},
      words,
      h(
        "div.stack",
        {},
        typicalCard(topic, subset),
        finerCard(topic),
        nearCard(topic),
        corpus.labeled && labelCard(level, topic, subset),
        corpus.periods && timeCard(level, topic, subset),
      ),
    ),
  ];
}

function ordinal(n) {
  const ending =
    n % 100 >= 11 && n % 100 <= 13 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[n % 10] ?? "th");
  return n + ending;
}

function wordsCard(topic, settings, subset) {
  const given = Number(settings.relevance);
  let lambda =
    settings.relevance !== undefined && given >= 0 && given <= 1 ? given : model.relevance;
  const shown = () => narrowedWords(topic, lambda, 30, subset);
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

function typicalCard(topic, subset) {
  const found = narrowedTypical(topic, subset);
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
        const others = documentsOfTopic(subset, topic, model.K, 200)
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
