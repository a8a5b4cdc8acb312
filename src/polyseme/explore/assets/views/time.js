// Topics over time: the share of each period's tokens.

import { canvas, chart } from "../charts/chart.js";
import { lines, sparkline } from "../charts/lines.js";
import { h, s } from "../dom.js";
import { count, percent } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { documentsOverTime, topicsOverTime } from "../model/periods.js";
import { card, notHere } from "../pieces/card.js";
import { chip } from "../pieces/links.js";
import { colorOf, topicName, topicTitle } from "../pieces/names.js";
import { remember } from "../router.js";

const FIRST_SHOWN = 5;

function shareRange(values) {
  const known = values.filter((value) => value !== null);
  return `share from ${percent(Math.min(...known))} to ${percent(Math.max(...known))}`;
}

/** @type {import("../router.js").Render} */
export function viewTime(_, settings) {
  if (!corpus.periods)
    return notHere("The documents have no times.", "polyseme fit reads them with --time.");
  const table = topicsOverTime();
  const chosen = (settings.topics ?? "")
    .split(",")
    .map(Number)
    .filter(
      (topic, i, all) => Number.isInteger(topic) && topic in table && all.indexOf(topic) === i,
    );
  const shown = new Set(settings.topics ? chosen : model.order.slice(0, FIRST_SHOWN));
  const holder = chart((width) =>
    shown.size
      ? lines(width, {
          series: [...shown].map((topic) => ({
            values: table[topic],
            classes: colorOf(topic),
            label: topicTitle(topic),
            tag: String(topic),
          })),
          names: corpus.periods,
          label: "Topics over time: share of each period’s tokens",
          format: percent,
          zero: true,
          height: 340,
        })
      : canvas(
          width,
          40,
          "No topic chosen",
          false,
          s("text.tick", { x: 0, y: 24 }, "Choose topics below."),
        ),
  );
  const documents = documentsOverTime();
  const known = documents.reduce((sum, n) => sum + n, 0);
  const empty = documents.filter((n) => n === 0).length;
  const buttons = model.order.map((topic) =>
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
      h("span.line", {}, chip(topic), h("span.name", {}, topicName(topic))),
      sparkline(table[topic], colorOf(topic), shareRange(table[topic])),
    ),
  );
  return [
    h(
      "div.title",
      {},
      h("h1", {}, "Topics over time"),
      h(
        "p.lead",
        {},
        `${corpus.periods[0]} to ${corpus.periods.at(-1)}, ` +
          `${count(known, "document")} with a date.` +
          (empty ? ` ${count(empty, "period")} without documents: the lines have gaps.` : ""),
      ),
    ),
    card("Share of each period’s tokens", holder, {
      save: {
        name: "topics over time",
        chart: true,
        rows: () => [
          ["period", "documents", ...model.order.map((topic) => `topic ${topic}`)],
          ...corpus.periods.map((name, i) => [
            name,
            documents[i],
            ...model.order.map((topic) => table[topic][i]),
          ]),
        ],
      },
    }),
    card(
      "Documents of each period",
      chart((width) =>
        lines(width, {
          series: [{ values: documents }],
          names: corpus.periods,
          label: "Number of documents of each period",
          height: 140,
          zero: true,
        }),
      ),
    ),
    card("Choose topics", h("div.small-charts", {}, buttons), {
      note: "Each line has its own scale.",
    }),
  ];
}
