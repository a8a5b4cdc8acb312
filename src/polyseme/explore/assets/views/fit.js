// How the fit went: figures, the course of the likelihood, the choice of the number of topics.

import { chart } from "../charts/chart.js";
import { lines } from "../charts/lines.js";
import { empty, h } from "../dom.js";
import { decimal, figureOf } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { card } from "../pieces/card.js";
import { documentList } from "../pieces/documents.js";

const COURSES = [
  {
    name: "log_likelihood",
    title: "Log-likelihood",
    note: "Mean log P(w|d) of a training token, in nats; higher is better.",
  },
  {
    name: "bound",
    title: "Bound",
    note: "Lower bound of the log evidence, in nats; higher is better.",
  },
  {
    name: "remaining",
    title: "Remaining gain",
    transform: (value) => (value > 0 ? Math.log10(value) : null),
    note:
      "Estimate of what further iterations could gain, in nats per token " +
      "(log scale, base 10).",
  },
];

/** @type {import("../router.js").Render} */
export function viewFit() {
  const { K, n_documents, n_words, n_tokens } = model;
  const sizes = {
    model: model.model,
    topics: K,
    documents: n_documents,
    words: n_words,
    tokens: n_tokens,
  };
  const facts = Object.entries({ ...sizes, ...model.facts });
  const list = h(
    "dl.facts",
    {},
    facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, figureOf(value))]),
  );
  const curves = COURSES.map(courseCard).filter(Boolean);
  return [
    h("div.title", {}, h("h1", {}, "How the fit went")),
    h(
      "div.columns",
      {},
      h(
        "div.stack",
        {},
        card("Figures", list, {
          save: { name: "figures", rows: () => [["figure", "value"], ...facts] },
        }),
        explainedCard(),
      ),
      h(
        "div.stack",
        {},
        curves.length
          ? curves
          : card("Course", empty("This model has no record of its iterations.")),
        choiceCard(),
      ),
    ),
  ];
}

// A curve over the iterations; null if there is none.
function courseCard({ name, title, note, transform = (value) => value }) {
  const { history } = model;
  const points = (history[name] ?? [])
    .map((value, i) => [history.iteration?.[i] ?? i, value === null ? null : transform(value)])
    .filter(([, value]) => value !== null && Number.isFinite(value));
  if (points.length < 2) return null;
  const [xs, values] = [points.map(([x]) => x), points.map(([, value]) => value)];
  const drawn = chart((width) =>
    lines(width, { series: [{ values }], xs, label: title, xLabel: "iteration" }),
  );
  return card(title, drawn, {
    note,
    save: { name: title, chart: true, rows: () => [["iteration", name], ...points] },
  });
}

// How much of the documents the topics explain, and links to those explained worst.
function explainedCard() {
  const { total, dispersion, least_tokens, documents } = model.explained;
  if (total === null) return null;
  const shown = (share) => `${(100 * share).toFixed(1)}%`;
  const figures = { explained: shown(total), dispersion: decimal(dispersion ?? NaN, 2) };
  return card(
    "Explained",
    [
      h(
        "dl.facts",
        {},
        Object.entries(figures).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
      ),
      documents.length > 0 && [
        h("p", {}, `Documents explained worst, of those with at least ${least_tokens} tokens:`),
        documentList(documents.map(([d, share]) => ({ document: d, shown: shown(share) }))),
      ],
    ],
    {
      note:
        "Share of the deviance of a model without topics that the topics remove; of short documents " +
        "most deviance is chance. Dispersion: variance of a word's counts around the topics' " +
        "expectation, over Poisson's; median.",
      save: {
        name: "explained",
        rows: () => [
          ["document", "explained"],
          ["all", total],
          ...documents.map(([d, share]) => [corpus.titles[d] || `Document ${d}`, share]),
        ],
      },
    },
  );
}

function choiceCard() {
  const rows = model.selection;
  if (rows.length < 2) {
    const given = `The number of topics, ${model.K}, was given; polyseme select compares several.`;
    return card("Number of topics", empty(model.selection_reason || given));
  }
  const [name, meaning] =
    "agreement" in rows[0]
      ? ["agreement", "Agreement of fits about the topics of documents (1: equal, 0: chance)"]
      : ["perplexity", "Held-out perplexity, lower is better"];
  const drawn = chart((width) =>
    lines(width, {
      series: [{ values: rows.map((row) => row[name]) }],
      xs: rows.map(({ k }) => k),
      xLabel: "topics",
      errors: rows.map(({ error }) => error ?? 0),
      dots: true,
      mark: model.chosen,
      label: `${meaning}, by number of topics`,
    }),
  );
  const chosen = `${model.chosen ?? model.K} topics were chosen.`;
  return card("Number of topics", drawn, {
    note: `${meaning}; ${chosen} ${model.selection_reason}`,
    save: {
      name: "number of topics",
      chart: true,
      rows: () => [["k", name, "error"], ...rows.map((row) => [row.k, row[name], row.error])],
    },
  });
}
