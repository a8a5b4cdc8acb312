// All words, with a filter by their letters.

import { h } from "../dom.js";
import { wholeNumber } from "../format.js";
import { model } from "../model/corpus.js";
import { sensesOf } from "../model/senses.js";
import { browser } from "../pieces/browser.js";
import { chip, wordLink } from "../pieces/links.js";

let wordsByTotal = null;

/** @type {import("../router.js").Render} */
export function viewWords(_, settings) {
  wordsByTotal ??= Array.from(model.word_totals.keys()).sort(
    (a, b) => model.word_totals[b] - model.word_totals[a] || a - b,
  );
  const hidden = new Set(model.hidden);
  const find = (part, most) => {
    const found = wordsByTotal.filter(
      (word) => !hidden.has(word) && model.words[word].toLowerCase().includes(part),
    );
    return { items: found.slice(0, 2 * most), all: found.length };
  };
  const list = (items) =>
    h(
      "ul.words",
      {},
      items.map((word) => {
        const first = sensesOf(word)[0];
        return h(
          "li",
          {},
          wordLink(word),
          first ? chip(first.topic) : null,
          h("span.quiet", {}, wholeNumber.format(model.word_totals[word])),
        );
      }),
    );
  return [
    h(
      "div.title",
      {},
      h("h1", {}, "Words"),
      h(
        "p.lead",
        {},
        "Each word with its most probable topic and its number of tokens; the most frequent first.",
      ),
    ),
    h(
      "section.card",
      {},
      browser({
        label: "Word contains",
        settings,
        find,
        list,
        total: model.n_words - hidden.size,
        noun: "word",
      }),
    ),
  ];
}
