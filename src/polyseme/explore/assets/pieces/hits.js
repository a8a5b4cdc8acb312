// Hits of a search, as a list and as a table.

import { address, wordAddress } from "../addresses.js";
import { h } from "../dom.js";
import { decimal, percent } from "../format.js";
import { corpus, model, textOf, weightsOf } from "../model/corpus.js";
import { snippetOf } from "../model/snippets.js";
import { copiesOf, labelLinks } from "./documents.js";
import { documentLink, topicLink } from "./links.js";
import { here } from "../router.js";

/** @typedef {import("../model/search.js").Hit} Hit */

const MOST_UNKNOWN = 12;

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
 * Returns a sentence about the words that the vocabulary does not have. The nearest words are links
 * that search for them instead.
 *
 * @param {{unknown: {word: string, nearest: string[]}[]}} query
 * @param {string} [text] the query; without it there are no links
 * @returns {import("../dom.js").Child[]}
 */
export function unknownWords({ unknown }, text) {
  if (!unknown.length) return [];
  const { view } = here();
  const link = (word, near) =>
    text === undefined
      ? near
      : h("a", { href: address(view, undefined, { q: replaced(text, word, near) }) }, near);
  const said = unknown
    .slice(0, MOST_UNKNOWN)
    .map(({ word, nearest }, i) => [
      i ? ", " : "",
      word,
      nearest.length > 0 && [
        "; did you mean ",
        nearest.map((near, j) => [
          j === 0 ? "" : j === nearest.length - 1 ? " or " : ", ",
          link(word, near),
        ]),
        "?",
      ],
    ]);
  const more = unknown.length - MOST_UNKNOWN;
  const last = unknown[Math.min(unknown.length, MOST_UNKNOWN) - 1];
  const end = more > 0 ? ` and ${more} more.` : last.nearest.length ? "" : ".";
  return [" Not in the vocabulary: ", said, end];
}

// Returns a query with another word in place of one, which may be in another form of its letters.
function replaced(text, word, near) {
  const stem = word.replace(/\*+$/, "");
  const at = text.toLowerCase().indexOf(stem.toLowerCase());
  const asked = near.replaceAll("_", " ");
  return at < 0 ? asked : text.slice(0, at) + asked + text.slice(at + stem.length);
}
