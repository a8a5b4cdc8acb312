// Labels: topics by label, and the words that set a label apart.

import { address, topicAddress } from "../addresses.js";
import { chart } from "../charts/chart.js";
import { matrix } from "../charts/matrix.js";
import { h } from "../dom.js";
import { count, decimal, percent, timesText, wholeNumber } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { intervalsOf } from "../model/intervals.js";
import { hasLabel, topicsByLabel } from "../model/labels.js";
import { documentsOfLevel } from "../model/levels.js";
import { orderOfTable } from "../model/order.js";
import { topicsOfSubset } from "../model/subset.js";
import { card, notHere } from "../pieces/card.js";
import { apartCard, topicsCard, typicalOfPartCard } from "../pieces/part_cards.js";
import { go, remember } from "../router.js";

const MOST_COLUMNS = 40;
const WIDEST = 3; // factors of two at which the color of a ratio is full
const USUAL = 20; // documents with the usual share of a topic that are added to those of a label

/** @type {import("../router.js").Render} */
export async function viewLabels(argument, settings, shown) {
  if (!corpus.labeled)
    return notHere("The documents have no labels.", "polyseme fit reads them with --label.");
  const { names, of } = corpus.labeled;
  if (argument !== undefined) {
    const label = names.indexOf(argument);
    return label < 0 ? notHere(`There is no label “${argument}”.`) : oneLabel(label, shown);
  }
  const { subset } = shown;
  const intervals = (await intervalsOf(shown))?.labels;
  const { documents } = topicsByLabel(subset);
  const used = Array.from(names.keys()).filter((label) => documents[label] > 0);
  const links = used.map((label) =>
    h(
      "li",
      {},
      h("a", { href: address("labels", names[label]) }, names[label]),
      h("span.quiet", {}, wholeNumber.format(documents[label])),
    ),
  );
  const labeled = subset.documents.reduce(
    (sum, d) => sum + Number(of.starts[d] < of.starts[d + 1]),
    0,
  );
  return [
    h(
      "div.title",
      {},
      h("h1", {}, count(used.length, "label")),
      h(
        "p.lead",
        {},
        `${count(labeled, "document")} with a label. ` +
          "Choose a label for its topics and the words that set it apart.",
      ),
    ),
    used.length > 0 && matrixCard(used, settings, shown),
    intervals && intervalsCard(intervals, shown),
    used.length > 0 && card("All labels", h("ul.words", {}, links)),
  ];
}

function matrixCard(used, settings, { subset, level }) {
  const { names } = corpus.labeled;
  const { shares, documents } = topicsByLabel(subset, level.size);
  const all = topicsOfSubset(subset, level.size);
  const frequent = [...used]
    .sort((a, b) => documents[b] - documents[a] || a - b)
    .slice(0, MOST_COLUMNS);
  const order = orderOfTable(
    frequent.map((label) => shares[label]),
    level.size,
  );
  const labels = order.columns.map((i) => frequent[i]);
  const listed = new Set(level.order);
  const topics = order.rows.filter((topic) => listed.has(topic));
  let ratio = settings.show === "ratio";
  let figures = settings.figures === "on";
  const most = Math.max(...labels.flatMap((label) => Array.from(shares[label])), 1e-12);
  const times = (topic, label) =>
    all.weights[topic] > 0 ? shares[label][topic] / all.weights[topic] : 1;
  const cell = (i, j) => {
    const [topic, label] = [topics[i], labels[j]];
    if (!ratio)
      return {
        fill: "heat",
        strength: Math.sqrt(shares[label][topic] / most),
        text: percent(shares[label][topic]),
      };
    // documents with the usual share are added, so that few documents have pale colors
    const n = documents[label];
    const steps = Math.log2((n * times(topic, label) + USUAL) / (n + USUAL));
    return {
      fill: steps < 0 ? "under" : "over",
      strength: Math.min(1, Math.abs(steps) / WIDEST),
      text: timesText(times(topic, label)),
    };
  };
  const line = h("p.reading", { role: "status" }, "Point at a cell for its figures.");
  const choose = (i, j) => {
    const [topic, label] = [topics[i], labels[j]];
    line.replaceChildren(
      h("strong", {}, level.names[topic]),
      " in ",
      h("strong", {}, names[label]),
      `: ${percent(shares[label][topic])} of its words, ${timesText(times(topic, label))} the share ` +
        `in ${subset.isWhole ? "all documents" : "the filtered documents"} ` +
        `(${percent(all.weights[topic])}); main topic of ` +
        `${wholeNumber.format(documentsOf(topic, label, subset, level.size))} of its ` +
        `${count(documents[label], "document")}.`,
    );
  };
  const key = (topic) => (level.size === model.K ? String(topic) : `${level.size}.${topic}`);
  const open = (i, j) =>
    go(address("documents", undefined, { topic: key(topics[i]), label: names[labels[j]] }));
  const drawn = chart((width) =>
    matrix(width, {
      rows: topics.map((topic) => ({
        label: level.names[topic],
        href: topicAddress(topic, level.size),
        shown: wholeNumber.format(all.documents[topic]),
      })),
      columns: labels.map((label) => ({
        label: names[label],
        href: address("labels", names[label]),
        shown: wholeNumber.format(documents[label]),
      })),
      cell,
      figures,
      label: "Topics by label",
      choose,
      open,
    }),
  );
  const legend = h("div.scale");
  const drawLegend = () => legend.replaceChildren(...scaleOf(ratio, most));
  drawLegend();
  const toggle = (text, isOn, change) =>
    h(
      "button.save",
      {
        type: "button",
        "aria-pressed": String(isOn()),
        onclick: ({ currentTarget }) => {
          change();
          for (const button of currentTarget.parentElement.children)
            button.setAttribute("aria-pressed", String(button.isOn()));
          remember({ show: ratio ? "ratio" : "", figures: figures ? "on" : "" });
          drawLegend();
          drawn.redraw();
        },
      },
      text,
    );
  const buttons = [
    ["Share of the label’s words", () => !ratio, () => (ratio = false)],
    ["More or less than in all", () => ratio, () => (ratio = true)],
    ["Figures", () => figures, () => (figures = !figures)],
  ].map(([text, isOn, change]) => Object.assign(toggle(text, isOn, change), { isOn }));
  const saved = () => [
    ["topic", "name", "share of all", ...labels.map((label) => names[label])],
    ...topics.map((topic) => [
      topic,
      level.names[topic],
      all.weights[topic],
      ...labels.map((label) => shares[label][topic]),
    ]),
  ];
  const few = used.length > MOST_COLUMNS ? ` The ${MOST_COLUMNS} most frequent labels.` : "";
  return card(
    "Topics by label",
    h(
      "div",
      {},
      h("div.ways", { role: "group", "aria-label": "What the colors show" }, buttons),
      legend,
      line,
      h(
        "div.scroll",
        { tabindex: 0, role: "group", "aria-label": "Topics by label", onscroll: keepNames },
        drawn,
      ),
    ),
    {
      note:
        "Similar labels stand beside each other. The figures beside the names are numbers of " +
        "documents: with the label, and with the topic as their main topic. " +
        "A click on a cell shows its documents. Colors of “more or less” are those of the label’s " +
        `documents with ${USUAL} usual ones, so that they are pale if a label has few documents.${few}`,
      save: { name: "topics by label", chart: true, rows: saved },
    },
  );
}

// The shares of topics in the documents of labels, with intervals.
function intervalsCard({ names, documents, share, low, high, sign }, { level }) {
  const at = (label, topic) => label * level.size + topic;
  const figure = (value) => decimal(100 * value, 1);
  const mean = (topic) => names.reduce((sum, _, label) => sum + share[at(label, topic)], 0);
  const topics = [...level.order].sort((a, b) => mean(b) - mean(a));
  const head = h(
    "tr",
    { role: "row" },
    h("th", { scope: "col", role: "columnheader" }, "topic"),
    names.map((name, label) =>
      h(
        "th.number",
        { scope: "col", role: "columnheader" },
        h("a", { href: address("labels", name) }, name),
        h("span.interval", {}, wholeNumber.format(documents[label])),
      ),
    ),
  );
  const rows = topics.map((topic) =>
    h(
      "tr",
      { role: "row" },
      h(
        "th",
        { scope: "row", role: "rowheader" },
        h("a", { href: topicAddress(topic, level.size) }, level.names[topic]),
      ),
      names.map((name, label) => {
        const i = at(label, topic);
        return h(
          "td.number",
          { role: "cell", data: { name } },
          `${figure(share[i])}% ${sign(i)}`,
          h("span.interval", {}, `${figure(low[i])}–${figure(high[i])}`),
        );
      }),
    ),
  );
  const table = h(
    "table.topics",
    { role: "table" },
    h("thead", { role: "rowgroup" }, head),
    h("tbody", { role: "rowgroup" }, rows),
  );
  return card(
    "Mean shares of documents, with intervals",
    h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Shares with intervals" }, table),
    {
      note:
        "95% intervals from fits to resampled documents, as polyseme groups computes them. + and − " +
        "mark labels that have more or less of a topic than all other documents, at a false " +
        "discovery rate of 5%. Every document counts the same here; above, every word does.",
      save: {
        name: "intervals of shares by label",
        rows: () => [
          ["label", "documents", "topic", "name", "share", "low", "high", "mark"],
          ...names.flatMap((name, label) =>
            topics.map((topic) => {
              const i = at(label, topic);
              const ends = [share[i], low[i], high[i], sign(i)];
              return [name, documents[label], topic, level.names[topic], ...ends];
            }),
          ),
        ],
      },
    },
  );
}

// Moves the names of rows along with what is scrolled.
function keepNames({ currentTarget }) {
  currentTarget
    .querySelector(".row-names")
    ?.style.setProperty("transform", `translateX(${currentTarget.scrollLeft}px)`);
}

// Returns how many documents of a label have a topic as their main topic.
function documentsOf(topic, label, subset, size) {
  const { main } = documentsOfLevel(size);
  return subset.documents.reduce((n, d) => n + Number(main[d] === topic && hasLabel(d, label)), 0);
}

function scaleOf(ratio, most) {
  const steps = ratio
    ? [-3, -2, -1, 0, 1, 2, 3].map((step) => ({
        fill: step < 0 ? "under" : "over",
        strength: Math.abs(step) / WIDEST,
        text: step === 0 ? "as in all" : `×${step < 0 ? `1/${2 ** -step}` : 2 ** step}`,
      }))
    : [0, 1 / 16, 1 / 4, 9 / 16, 1].map((share) => ({
        fill: "heat",
        strength: Math.sqrt(share),
        text: percent(share * most),
      }));
  return steps.map(({ fill, strength, text }) =>
    h(
      "span.step",
      {},
      h("span.cell", { classes: fill, style: { "--strength": `${100 * strength}%` } }),
      h("span", {}, text),
    ),
  );
}

function oneLabel(label, { subset, level }) {
  const name = corpus.labeled.names[label];
  const { of } = corpus.labeled;
  const part = subset.where((d) => hasLabel(d, label));
  const labeled = subset.where((d) => of.starts[d] < of.starts[d + 1]);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, name),
      h("p.lead", {}, `${count(part.size, "document")}, ${count(part.tokens, "token")}.`),
      h(
        "p.pager",
        {},
        h("a", { href: address("labels") }, "All labels"),
        h("a", { href: address("documents", undefined, { label: name }) }, "Its documents"),
        h("a", { href: address("map", undefined, { label: name }) }, "On the map"),
        corpus.periods &&
          h("a", { href: address("time", undefined, { label: name }) }, "Over time"),
      ),
    ),
    h(
      "div.columns",
      {},
      apartCard(part, labeled, name),
      h(
        "div.stack",
        {},
        topicsCard(part, subset, name, level),
        typicalOfPartCard(part, "the label"),
      ),
    ),
  ];
}
