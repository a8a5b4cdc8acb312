// One document: its topics, its text with colored words, similar documents.

import { documentAddress, wordAddress } from "../addresses.js";
import { empty, h } from "../dom.js";
import { count, percent } from "../format.js";
import { corpus, countsOfDocument, model, textOf, weightsOf } from "../model/corpus.js";
import { likeliest } from "../model/folding.js";
import { search } from "../model/search.js";
import { card, notHere } from "../pieces/card.js";
import { coloredText } from "../pieces/colored_text.js";
import { labelLinks } from "../pieces/documents.js";
import { hitList, hitRows } from "../pieces/hits.js";
import { documentLink } from "../pieces/links.js";
import { colorOf } from "../pieces/names.js";
import { topicRows, topicShares } from "../pieces/shares.js";

/** @type {import("../router.js").Render} */
export async function viewDocument(argument, _, { subset }) {
  const d = Number(argument);
  if (!(Number.isInteger(d) && d >= 0 && d < model.n_documents))
    return notHere(`There is no document ${argument}.`);
  const theta = weightsOf(d);
  const text = await textOf(d);
  const { hits } = search(countsOfDocument(d), 10, {
    allowed: Uint8Array.from({ length: model.n_documents }, (_, e) =>
      Number(e !== d && subset.has(e)),
    ),
    topics: theta,
  });
  const others =
    corpus.groupSizes[corpus.groups[d]] > 1
      ? Array.from(corpus.groups.keys()).filter(
          (e) => e !== d && corpus.groups[e] === corpus.groups[d],
        )
      : [];
  const about = [corpus.ids?.[d], corpus.times?.[d], count(corpus.tokens[d], "counted token")]
    .filter(Boolean)
    .join(" · ");
  const beside = [
    subset.documents.findLast((other) => other < d),
    subset.documents.find((other) => other > d),
  ];
  return [
    h(
      "div.title",
      {},
      h("h1", {}, corpus.titles[d] || `Document ${d}`),
      h("p.lead", {}, about, " ", labelLinks(d)),
      h(
        "p.pager",
        {},
        beside[0] !== undefined && h("a", { href: documentAddress(beside[0]) }, "← previous"),
        beside[1] !== undefined && h("a", { href: documentAddress(beside[1]) }, "next →"),
      ),
      others.length > 0 &&
        h(
          "p.note",
          {},
          "Near-duplicates: ",
          others.slice(0, 8).map((e) => [documentLink(e), " "]),
          others.length > 8 && `and ${others.length - 8} more`,
        ),
    ),
    h(
      "div.columns.wide-left",
      {},
      h(
        "div.stack",
        {},
        textCard(d, text, theta),
        card(
          "Topics",
          corpus.tokens[d] > 0
            ? topicShares(theta, "Topics of this document")
            : empty("The document has no word that the model knows."),
          {
            save: {
              name: `topics of document ${d}`,
              chart: corpus.tokens[d] > 0,
              rows: () => topicRows(theta),
            },
          },
        ),
      ),
      h(
        "div.stack",
        {},
        card(
          "Similar documents",
          hits.length ? await hitList(hits) : empty("No other document is similar to this one."),
          {
            note:
              "By words and topics in common, as in a search with this document" +
              (subset.isWhole ? "." : ", among those that pass the filters."),
            save: { name: `documents like ${d}`, rows: () => hitRows(hits) },
          },
        ),
      ),
    ),
  ];
}

function textCard(d, text, theta) {
  const colors =
    "Each word has the color of its most probable topic in this document, P(z|d,w); " +
    "choose a word to see all its senses.";
  if (text) {
    const part =
      model.text === "excerpt"
        ? ` ${model.text_note || "The page contains only the beginning of each text."}`
        : "";
    return card("Text", coloredText(text, theta), { note: colors + part });
  }
  const { words, values } = countsOfDocument(d);
  if (!words.length)
    return card(
      "Text",
      empty(
        model.text_starts.length ? "The document is empty." : "The page was written without texts.",
      ),
    );
  const order = Array.from(words.keys())
    .sort((a, b) => values[b] - values[a] || words[a] - words[b])
    .slice(0, 120);
  const list = h(
    "p.text",
    {},
    order.map((i) => {
      const { topic, share } = likeliest(model, theta, words[i]);
      return [
        h(
          "a.w",
          {
            href: wordAddress(words[i]),
            classes: colorOf(topic),
            title: topic < 0 ? "common language" : `topic ${topic}, ${percent(share)}`,
          },
          model.words[words[i]],
        ),
        values[i] > 1 ? h("sub", {}, String(values[i])) : null,
        " ",
      ];
    }),
  );
  return card("Words", list, {
    note:
      "The page was written without texts; these are the document’s words with their counts. " +
      colors,
  });
}
