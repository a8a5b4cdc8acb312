// The words of the documents: a table to sort and filter.

import { h } from "../dom.js";
import { count, decimal, timesText, wholeNumber } from "../format.js";
import { model } from "../model/corpus.js";
import { sensesOf } from "../model/senses.js";
import { wordsOfSubset } from "../model/subset.js";
import { card } from "../pieces/card.js";
import { chip, wordLink } from "../pieces/links.js";
import { sortedTable } from "../pieces/table.js";
import { wordsApart } from "../model/apart.js";
import { WHOLE } from "../model/filters.js";

/** @type {import("../router.js").Render} */
export function viewWords(_, settings, { subset }) {
  const { tokens, documents } = wordsOfSubset(subset);
  const items = [];
  const hidden = new Set(model.hidden);
  documents.forEach((n, word) => n > 0 && !hidden.has(word) && items.push(word));
  const columns = [
    {
      name: "word",
      description: "with its most probable topic",
      value: (word) => model.words[word],
      shown: (word) => {
        const first = sensesOf(word)[0];
        return [wordLink(word), " ", first ? chip(first.topic) : null];
      },
    },
    {
      name: "tokens",
      description: "how often it occurs",
      value: (word) => tokens[word],
      shown: (word) => wholeNumber.format(tokens[word]),
    },
    {
      name: "documents",
      description: "how many documents contain it",
      value: (word) => documents[word],
      shown: (word) => wholeNumber.format(documents[word]),
    },
  ];
  if (!subset.isWhole) {
    const apart = subset.once("apart", () => wordsApart(subset, WHOLE, model.n_words));
    const scores = new Map(apart.map(({ word, weight }) => [word, weight]));
    const times = (word) =>
      tokens[word] / subset.tokens / (model.word_totals[word] / model.n_tokens);
    columns.push(
      {
        name: "times",
        description: "frequency in these documents, divided by that in all documents",
        value: times,
        shown: (word) => timesText(times(word)),
      },
      {
        name: "distinctive",
        description:
          "how much more often it occurs in these documents than in as many random ones, in " +
          "standard deviations; words of fewer than five documents have 0",
        value: (word) => scores.get(word) ?? 0,
        shown: (word) => decimal(scores.get(word) ?? 0, 1),
      },
    );
  }
  const { element, order } = sortedTable({
    noun: "word",
    items,
    columns,
    sort: subset.isWhole ? "tokens" : "distinctive",
    settings,
    matches: (word, text) => model.words[word].toLowerCase().includes(text),
  });
  return [
    h(
      "div.title",
      {},
      h("h1", {}, count(items.length, "word")),
      h(
        "p.lead",
        {},
        subset.isWhole
          ? "Each word with its most probable topic; the most frequent first."
          : "The words of these documents; those that set them apart from the others first.",
      ),
    ),
    card("Table", element, {
      save: {
        name: "words",
        rows: () => [
          columns.map(({ name }) => name),
          ...order.map((word) => columns.map(({ value }) => value(word))),
        ],
      },
    }),
  ];
}
