// Labels: topics by label, and the words that set a label apart.

import { address, topicAddress, wordAddress } from "../addresses.js";
import { bars } from "../charts/bars.js";
import { chart } from "../charts/chart.js";
import { matrix } from "../charts/matrix.js";
import { empty, h } from "../dom.js";
import { count, decimal, percent, wholeNumber } from "../format.js";
import { largest } from "../model/arrays.js";
import { corpus, model, oneOfEach } from "../model/corpus.js";
import { topicsByLabel, wordsOfLabel } from "../model/labels.js";
import { card, notHere } from "../pieces/card.js";
import { documentList } from "../pieces/documents.js";
import { colorOf, topicName } from "../pieces/names.js";
import { topicRows, topicShares } from "../pieces/shares.js";

const MOST_COLUMNS = 40;

/** @type {import("../router.js").Render} */
export function viewLabels(argument) {
  if (!corpus.labeled)
    return notHere("The documents have no labels.", "polyseme fit reads them with --label.");
  const { names } = corpus.labeled;
  if (argument !== undefined) {
    const label = names.indexOf(argument);
    return label < 0 ? notHere(`There is no label “${argument}”.`) : oneLabel(label);
  }
  const { documents } = topicsByLabel();
  const links = names.map((name, label) =>
    h(
      "li",
      {},
      h("a", { href: address("labels", name) }, name),
      h("span.quiet", {}, wholeNumber.format(documents[label])),
    ),
  );
  return [
    h(
      "div.title",
      {},
      h("h1", {}, count(names.length, "label")),
      h("p.lead", {}, "Choose a label for its topics and the words that set it apart."),
    ),
    matrixCard(),
    card("All labels", h("ul.words", {}, links)),
  ];
}

function matrixCard() {
  const { names } = corpus.labeled;
  const { shares, documents } = topicsByLabel();
  const shown = Array.from(names.keys())
    .sort((a, b) => documents[b] - documents[a] || a - b)
    .slice(0, MOST_COLUMNS)
    .sort((a, b) => a - b);
  const rows = model.order.map((topic) => ({
    label: `${topic}  ${topicName(topic)}`,
    href: topicAddress(topic),
    classes: colorOf(topic),
  }));
  const columns = shown.map((label) => ({
    label: names[label],
    href: address("labels", names[label]),
  }));
  const values = model.order.map((topic) => shown.map((label) => shares[label][topic]));
  const describe = (i, j, value) =>
    `topic ${model.order[i]} in ${columns[j].label}: ${percent(value)}`;
  const drawn = chart((width) =>
    matrix(width, { rows, columns, values, label: "Topics by label", describe }),
  );
  const few = names.length > MOST_COLUMNS ? ` The ${MOST_COLUMNS} most frequent labels.` : "";
  const saved = () => [
    ["topic", "name", ...names],
    ...model.order.map((topic) => [
      topic,
      topicName(topic),
      ...names.map((_, label) => shares[label][topic]),
    ]),
  ];
  return card(
    "Topics by label",
    h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Topics by label" }, drawn),
    {
      note: `The darker, the larger the topic’s share of the label’s tokens.${few}`,
      save: { name: "topics by label", chart: true, rows: saved },
    },
  );
}

function oneLabel(label) {
  const name = corpus.labeled.names[label];
  const { shares, documents, tokens } = topicsByLabel();
  const typical = typicalOfLabel(label, shares[label], 10);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, name),
      h(
        "p.lead",
        {},
        `${count(documents[label], "document")}, ${count(tokens[label], "token")}. `,
        h("a", { href: address("labels") }, "All labels"),
      ),
    ),
    h(
      "div.columns",
      {},
      apartCard(label, name),
      h(
        "div.stack",
        {},
        card("Topics", topicShares(shares[label], `Topics of ${name}`, { most: 10 }), {
          save: { name: `topics of ${name}`, chart: true, rows: () => topicRows(shares[label]) },
        }),
        card("Typical documents", documentList(typical), {
          note: "The documents whose topics are most similar to those of the label as a whole.",
        }),
      ),
    ),
  ];
}

function apartCard(label, name) {
  const words = wordsOfLabel(label, 30);
  const rows = words.map(({ word, weight, times }) => ({
    label: model.words[word],
    href: wordAddress(word),
    value: weight,
    shown: `×${times.toPrecision(2)}`,
    title:
      `${model.words[word]}: ${times.toPrecision(3)} times as frequent as in all documents; ` +
      `score ${weight.toFixed(1)}`,
  }));
  const drawn = rows.length
    ? chart((width) => bars(width, rows, { label: `Words of ${name}` }))
    : empty("No words set it apart.");
  return card("Words that set it apart", drawn, {
    note:
      "By the log of the ratio of their odds here and elsewhere, divided by its standard error; " +
      "the figure says how many times as frequent they are as in all documents.",
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

// Returns the documents of a label by the cosine of their topics with those of the label.
function typicalOfLabel(label, shares, most) {
  const { of } = corpus.labeled;
  const vector = unitOf(shares);
  const { starts, columns, values } = corpus.topics;
  const near = new Float64Array(model.n_documents);
  for (let d = 0; d < near.length; d++) {
    if (
      !of.columns.subarray(of.starts[d], of.starts[d + 1]).includes(label) ||
      !(corpus.tokens[d] > 0)
    )
      continue;
    for (let i = starts[d]; i < starts[d + 1]; i++)
      near[d] += (values[i] * vector[columns[i]]) / corpus.lengths[d];
  }
  return largest(oneOfEach(near), most).map((d) => ({ document: d, shown: decimal(near[d], 2) }));
}

function unitOf(theta) {
  const length = Math.hypot(...theta);
  return length > 0 ? theta.map((value) => value / length) : theta;
}
