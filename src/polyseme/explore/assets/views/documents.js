// The documents: with words of a query the best first, otherwise a list to sort and filter.

import { address } from "../addresses.js";
import { empty, h, say } from "../dom.js";
import { count } from "../format.js";
import { corpus, model, rules } from "../model/corpus.js";
import { filtersOf, subsetOf, topicOf } from "../model/filters.js";
import { documentsOfLevel } from "../model/levels.js";
import { searchText } from "../model/search.js";
import { card } from "../pieces/card.js";
import { documentList } from "../pieces/documents.js";
import { hitList, hitRows, unknownWords } from "../pieces/hits.js";
import { sortedList } from "../pieces/list.js";
import { topicRows, topicShares } from "../pieces/shares.js";

const HITS = 20;

// Why it is not known whether documents with all words of a phrase contain the phrase, by the texts
// that the page has.
const UNCHECKED = {
  excerpt:
    "The page has the beginnings of the texts, and the phrase is not there. It may occur later.",
  none: "The page was written without texts, so the phrase itself cannot be looked up.",
};

/** @type {import("../router.js").Render} */
export async function viewDocuments(_, settings, { subset }) {
  if (settings.q?.trim()) return results(settings, subset);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, count(subset.size, "document")),
      h(
        "p.lead",
        {},
        "Each bar shows the topics of a document.",
        corpus.copies && " Near-duplicates are listed once.",
      ),
    ),
    h("section.card", {}, listOf(settings, subset)),
  ];
}

function listOf(settings, subset) {
  const found = topicOf(settings.topic ?? "");
  const orders = [
    { name: "order", text: "their order", value: (d) => d },
    { name: "title", text: "title", value: (d) => corpus.titles[d].toLowerCase() },
    { name: "length", text: "length, longest first", value: (d) => -corpus.tokens[d] },
  ];
  if (found) {
    const { topics } = documentsOfLevel(found.size);
    const share = (d) => {
      for (let i = topics.starts[d]; i < topics.starts[d + 1]; i++)
        if (topics.columns[i] === found.topic) return topics.values[i];
      return 0;
    };
    orders.push({ name: "share", text: "share of the topic", value: (d) => -share(d) });
  }
  if (corpus.periods) {
    const time = (d) => corpus.document_periods[d];
    orders.push({ name: "time", text: "time, latest first", value: (d) => -time(d) });
  }
  const listed = new Set();
  const items = Array.from(subset.documents).filter((d) => {
    if (!corpus.copies) return true;
    const isNew = !listed.has(corpus.groups[d]);
    listed.add(corpus.groups[d]);
    return isNew;
  });
  return sortedList({
    noun: "document",
    total: subset.size,
    items,
    orders,
    settings,
    matches: (d, text) => corpus.titles[d].toLowerCase().includes(text),
    label: "Title contains",
    list: (shown) =>
      documentList(shown.map((d) => ({ document: d, shown: count(corpus.tokens[d], "token") }))),
  });
}

async function results(settings, subset) {
  const { q, ...others } = filtersOf(settings);
  const text = q.trim();
  const among = await subsetOf(others);
  const title = h(
    "div.title",
    {},
    h("h1", {}, `Search: ${text}`),
    h(
      "p.lead",
      {},
      `${count(subset.size, "document")} with these words`,
      among.isWhole ? "" : `, of ${count(among.size, "document")} that pass the other filters`,
      ". ",
      subset.size > 0 &&
        h("a", { href: address("map", undefined, { q: text }) }, "Show them on the map"),
    ),
    rules.rules.reason &&
      h("p.note", {}, `${rules.rules.reason} Here the words of a query are looked up as they are.`),
  );
  return [title, ...(await resultCards(text, among))];
}

async function resultCards(text, among) {
  const found = await searchText(text, HITS, { among });
  const { query, phrases, problem, hits, others, topics } = found;
  if (problem) return [empty(problem)];
  if (!query.words.length)
    return [empty("None of these words is in the vocabulary.", unknownWords(query, text))];
  say(count(hits.length + others.length, "document") + " found");
  if (!hits.length && !others.length)
    return [
      empty(
        phrases.length
          ? "No document contains the phrase and matches the query."
          : "No document matches the query.",
        unknownWords(query, text),
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
    ". Documents on the same topics are found without the words. ",
    unknownWords(query, text),
  );
  const rows = (part) => async () => hitRows((await searchText(text, 200, { among }))[part]);
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
              { note: shared, save: { name: `search ${text}`, rows: rows("hits") } },
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
                save: { name: `search ${text}, words`, rows: rows("others") },
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
