// Topics over time: the share of each period's tokens, and the documents of a period.

import { address, topicAddress } from "../addresses.js";
import { canvas, chart } from "../charts/chart.js";
import { columns } from "../charts/columns.js";
import { lines, nameMargin, sparkline } from "../charts/lines.js";
import { h, s } from "../dom.js";
import { count, percent } from "../format.js";
import { corpus } from "../model/corpus.js";
import { intervalsOf } from "../model/intervals.js";
import { documentsOverTime, isWithin, topicsOverTime } from "../model/periods.js";
import { topicsOfSubset } from "../model/subset.js";
import { card, notHere } from "../pieces/card.js";
import { colorOf } from "../pieces/names.js";
import { apartCard, topicsCard, typicalOfPartCard } from "../pieces/part_cards.js";
import { remember } from "../router.js";

const FIRST_SHOWN = 5;
const MOST_DOTS = 12; // periods of a line with a dot for each

function shareRange(values) {
  const known = values.filter((value) => value !== null);
  if (!known.length) return "no documents";
  return `share from ${percent(Math.min(...known))} to ${percent(Math.max(...known))}`;
}

/** @type {import("../router.js").Render} */
export async function viewTime(_, settings, shown) {
  if (!corpus.periods)
    return notHere("The documents have no times.", "polyseme fit reads them with --time.");
  const { subset } = shown;
  const documents = documentsOverTime(subset);
  const known = documents.reduce((sum, n) => sum + n, 0);
  const without = subset.size - known;
  const [first, last] = [documents.findIndex(Boolean), documents.findLastIndex(Boolean)];
  const empty = documents.slice(Math.max(0, first), last + 1).filter((n) => n === 0).length;
  const period = corpus.periods.indexOf(settings.period);
  const bands = (await intervalsOf(shown))?.periods ?? null;
  const [share, choice] = linesCards(settings, shown, bands);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, "Topics over time"),
      h(
        "p.lead",
        {},
        known ? `${corpus.periods[first]} to ${corpus.periods[last]}, ` : "",
        `${count(known, "document")} with a date` +
          (without ? `, ${without} without` : "") +
          "." +
          (empty ? ` ${count(empty, "period")} without documents: the lines have gaps.` : ""),
      ),
    ),
    share,
    countsCard(documents, settings, period),
    ...(period >= 0 ? periodCards(period, shown) : []),
    choice,
  ];
}

function linesCards(settings, { subset, level }, bands) {
  const ofPeriods = (values, topic) =>
    bands.names.map((_, i) => {
      const value = values[i * level.size + topic];
      return Number.isFinite(value) ? value : null;
    });
  const usual = topicsOverTime(subset, level.size);
  const table = bands ? usual.map((_, topic) => ofPeriods(bands.share, topic)) : usual;
  const names = bands?.names ?? corpus.periods;
  const band = (topic) =>
    bands ? { low: ofPeriods(bands.low, topic), high: ofPeriods(bands.high, topic) } : {};
  const chosen = (settings.topics ?? "")
    .split(",")
    .map(Number)
    .filter(
      (topic, i, all) => Number.isInteger(topic) && topic in table && all.indexOf(topic) === i,
    );
  const { weights } = topicsOfSubset(subset, level.size);
  const order = subset.isWhole
    ? level.order
    : [...level.order].sort((a, b) => weights[b] - weights[a]);
  const shown = new Set(settings.topics ? chosen : order.slice(0, FIRST_SHOWN));
  const holder = chart((width) =>
    shown.size
      ? lines(width, {
          series: [...shown].map((topic) => ({
            values: table[topic],
            classes: colorOf(level.tops[topic]),
            label: level.names[topic],
            tag: level.names[topic],
            href: topicAddress(topic, level.size),
            ...band(topic),
          })),
          names,
          dots: names.length <= MOST_DOTS,
          label: `Topics over time: ${bands ? "mean share of documents" : "share of each period’s tokens"}`,
          format: percent,
          zero: true,
          height: Math.max(340, 44 * shown.size),
        })
      : canvas(
          width,
          40,
          "No topic chosen",
          false,
          s("text.tick", { x: 0, y: 24 }, "Choose topics below."),
        ),
  );
  const buttons = order.map((topic) =>
    h(
      "button.small-chart",
      {
        type: "button",
        "aria-pressed": String(shown.has(topic)),
        onclick: ({ currentTarget }) => {
          if (!shown.delete(topic)) shown.add(topic);
          currentTarget.setAttribute("aria-pressed", String(shown.has(topic)));
          remember({ topics: [...shown].join(",") });
          holder.redraw();
        },
      },
      h(
        "span.line",
        {},
        h("span.chip", { classes: colorOf(level.tops[topic]) }, String(topic)),
        h("span.name", {}, level.names[topic]),
      ),
      sparkline(table[topic], colorOf(level.tops[topic]), shareRange(table[topic])),
    ),
  );
  const documents = bands?.documents ?? documentsOverTime(subset);
  const listed = level.order.map((topic) => ({ topic, ...band(topic) }));
  return [
    card(bands ? "Mean share of each period’s documents" : "Share of each period’s words", holder, {
      note: bands
        ? "Bands are 95% intervals from fits to resampled documents, as polyseme time computes them."
        : null,
      save: {
        name: "topics over time",
        chart: true,
        rows: () => [
          [
            "period",
            "documents",
            ...listed.flatMap(({ topic, low }) => [
              `topic ${topic}`,
              ...(low ? [`topic ${topic} low`, `topic ${topic} high`] : []),
            ]),
          ],
          ...names.map((name, i) => [
            name,
            documents[i],
            ...listed.flatMap(({ topic, low, high }) => [
              table[topic][i],
              ...(low ? [low[i], high[i]] : []),
            ]),
          ]),
        ],
      },
    }),
    card("Choose topics", h("div.small-charts", {}, buttons), {
      note: "Each line has its own scale.",
    }),
  ];
}

function countsCard(documents, settings, chosen) {
  return card(
    "Documents of each period",
    chart((width) =>
      columns(width, {
        values: documents,
        names: corpus.periods,
        chosen,
        label: "Number of documents of each period",
        right: nameMargin(width),
        href: (i) => address("time", undefined, { ...settings, period: corpus.periods[i] }),
      }),
    ),
    {
      note: "Choose a period for its topics, words and typical documents.",
      save: {
        name: "documents over time",
        chart: true,
        rows: () => [
          ["period", "documents"],
          ...corpus.periods.map((name, i) => [name, documents[i]]),
        ],
      },
    },
  );
}

function periodCards(period, { subset, level }) {
  const name = corpus.periods[period];
  const part = subset.where((d) => isWithin(d, period, period));
  const range = { from: name, to: name };
  return [
    h(
      "div.title.period",
      {},
      h("h2", {}, name),
      h("p.lead", {}, `${count(part.size, "document")}, ${count(part.tokens, "token")}.`),
      h(
        "p.pager",
        {},
        h("a", { href: address("documents", undefined, range) }, "Its documents"),
        h("a", { href: address("map", undefined, range) }, "On the map"),
      ),
    ),
    h(
      "div.columns",
      {},
      apartCard(part, subset, name),
      h(
        "div.stack",
        {},
        topicsCard(part, subset, name, level),
        typicalOfPartCard(part, "the period"),
      ),
    ),
  ];
}
