// Search: documents are ranked by the words that they share with the query; topics complement them.

import { empty, h, say } from "../dom.js";
import { count } from "../format.js";
import { model, rules } from "../model/corpus.js";
import { searchText } from "../model/search.js";
import { card } from "../pieces/card.js";
import { hitList, hitRows, unknownWords } from "../pieces/hits.js";
import { topicRows, topicShares } from "../pieces/shares.js";
import { searchField } from "../router.js";

const HITS = 20;

// Why it is not known whether documents with all words of a phrase contain the phrase, by the texts
// that the page has.
const UNCHECKED = {
  excerpt:
    "The page has the beginnings of the texts, and the phrase is not there. It may occur later.",
  none: "The page was written without texts, so the phrase itself cannot be looked up.",
};

/** @type {import("../router.js").Render} */
export async function viewSearch(argument = "") {
  const field = searchField();
  field.value = argument;
  const title = h(
    "div.title",
    {},
    h("h1", {}, argument.trim() ? `Search: ${argument.trim()}` : "Search"),
    rules.rules.reason &&
      h("p.note", {}, `${rules.rules.reason} Here the words of a query are looked up as they are.`),
  );
  if (!argument.trim()) {
    field.focus();
    return [
      title,
      empty(
        "Write a few words in the field above to find documents that contain them, " +
          "and others on the same topics.",
      ),
    ];
  }
  return [title, ...(await resultCards(argument))];
}

async function resultCards(text) {
  const { query, phrases, problem, hits, others, topics } = await searchText(text, HITS);
  if (problem) return [empty(problem)];
  if (!query.words.length)
    return [empty("None of these words is in the vocabulary.", unknownWords(query))];
  say(count(hits.length + others.length, "document") + " found");
  if (!hits.length && !others.length)
    return [
      empty(
        phrases.length
          ? "No document contains the phrase and matches the query."
          : "No document matches the query.",
        unknownWords(query),
      ),
    ];
  const shared = h(
    "span",
    {},
    "The number is the score. Below each text are the words that explain the score: in ",
    h("span.reason.both", {}, "both"),
    ", ",
    h("span.reason.asked", {}, "only the query"),
    " or ",
    h("span.reason.found", {}, "only the document"),
    ". ",
    unknownWords(query),
  );
  return [
    h(
      "div.columns.wide-left",
      {},
      h(
        "div.stack",
        {},
        hits.length
          ? card(
              phrases.length ? "Documents with the phrase" : "Documents",
              await hitList(hits, query.words, phrases),
              {
                note: shared,
                save: {
                  name: `search ${text}`,
                  rows: async () => hitRows((await searchText(text, 200)).hits),
                },
              },
            )
          : null,
        others.length
          ? card(
              "Documents with the words of the phrase",
              await hitList(others, query.words, phrases),
              {
                note: h(
                  "span",
                  {},
                  UNCHECKED[model.text],
                  " polyseme search looks for phrases in full texts. ",
                  hits.length ? null : shared,
                ),
                save: {
                  name: `search ${text}, words`,
                  rows: async () => hitRows((await searchText(text, 200)).others),
                },
              },
            )
          : null,
      ),
      h(
        "div.stack",
        {},
        card("Topics of the query", topicShares(topics, "Topics of the query"), {
          note: "The topics of the documents that share most words with it.",
          save: { name: "topics of the query", chart: true, rows: () => topicRows(topics) },
        }),
      ),
    ),
  ];
}
