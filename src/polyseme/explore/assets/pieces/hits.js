// Hits of a search, as a list and as a table.

import { wordAddress } from "../addresses.js";
import { h } from "../dom.js";
import { decimal, percent } from "../format.js";
import { corpus, model, textOf, weightsOf } from "../model/corpus.js";
import { snippetOf } from "../model/snippets.js";
import { copiesOf, labelLinks } from "./documents.js";
import { documentLink, topicLink } from "./links.js";

/** @typedef {import("../model/search.js").Hit} Hit */

/**
 * Returns hits of a search: title and score, a snippet with the words of the query, reasons, main
 * topic. Without words, as in a search with a document, marks the words that both contain and that
 * add most to the score.
 *
 * @param {Hit[]} hits
 * @param {Iterable<number>} [words]
 * @param {RegExp[]} [phrases]
 */
export async function hitList(hits, words = null, phrases = []) {
  const texts = await Promise.all(hits.map(({ document: d }) => textOf(d)));
  return h(
    "ol.documents",
    {},
    hits.map(({ document: d, score, term, latent, reasons }, i) => {
      const theta = weightsOf(d);
      const main = theta.indexOf(Math.max(...theta));
      return h(
        "li",
        {},
        h(
          "div.line",
          {},
          documentLink(d),
          h(
            "span.figure",
            { title: `words ${decimal(term)} + topics ${decimal(latent)}`, data: { score } },
            decimal(score, 2),
          ),
        ),
        texts[i] &&
          h(
            "p.snippet",
            {},
            snippetOf(
              texts[i],
              words ??
                reasons
                  .filter(({ inQuery, inDocument }) => inQuery && inDocument)
                  .map(({ word }) => word),
              phrases,
            ).map(({ text, marked }) => (marked ? h("mark", {}, text) : text)),
          ),
        h("div.reasons", {}, reasons.map(reasonLink)),
        h(
          "div.line.small",
          {},
          corpus.tokens[d] > 0 && [topicLink(main), h("span.quiet", {}, percent(theta[main]))],
          labelLinks(d),
          corpus.times?.[d] && h("span.quiet", {}, corpus.times[d]),
          copiesOf(d),
        ),
      );
    }),
  );
}

// Classes of the links to reasons, with what they mean.
const WHERE = {
  both: "in query and document",
  asked: "in the query, not in the document",
  found: "in the document, not in the query",
};

function reasonLink({ word, weight, inQuery, inDocument }) {
  const classes = inQuery && inDocument ? "both" : inQuery ? "asked" : "found";
  const title = `${WHERE[classes]}: adds ${decimal(weight)}`;
  return h("a.reason", { href: wordAddress(word), classes, title }, model.words[word]);
}

/**
 * Returns hits as rows of a table.
 *
 * @param {Hit[]} hits
 */
export function hitRows(hits) {
  return [
    ["rank", "document", "title", "score", "words", "topics", "because of"],
    ...hits.map((hit, i) => [
      i + 1,
      corpus.ids?.[hit.document] ?? corpus.titles[hit.document],
      corpus.titles[hit.document],
      hit.score,
      hit.term,
      hit.latent,
      hit.reasons.map(({ word }) => model.words[word]).join(" "),
    ]),
  ];
}

/**
 * Returns a sentence about the words that the vocabulary does not have, with the nearest ones.
 *
 * @param {{unknown: {word: string, nearest: string[]}[]}} query
 * @returns {string}
 */
export function unknownWords({ unknown }) {
  if (!unknown.length) return "";
  const more = unknown.length > 12 ? ` and ${unknown.length - 12} more` : "";
  const words = unknown
    .slice(0, 12)
    .map(({ word, nearest }) =>
      nearest.length ? `${word} (nearest: ${nearest.join(", ")})` : word,
    );
  return ` Not in the vocabulary: ${words.join(", ")}${more}.`;
}
