// One word: its topics, the words that occur with it, and the documents that use it.

import { address, wordAddress } from "../addresses.js";
import { bars } from "../charts/bars.js";
import { chart } from "../charts/chart.js";
import { empty, h } from "../dom.js";
import { count, percent } from "../format.js";
import { corpus, model, rules } from "../model/corpus.js";
import { documentsOfSenses, neighborsOf, sensesOf } from "../model/senses.js";
import { wordsOfSubset } from "../model/subset.js";
import { relevantWords } from "../model/topics.js";
import { card, notHere } from "../pieces/card.js";
import { banButton } from "../pieces/edit_topic.js";
import { documentLink, topicLink, wordLink } from "../pieces/links.js";
import { topicRows, topicShares } from "../pieces/shares.js";

const LEAST_SENSE = 0.1;

/** @type {import("../router.js").Render} */
export function viewWord(argument, _, { subset }) {
  const word = columnOf(argument);
  if (word === undefined) {
    return notHere(
      `The vocabulary has no word “${argument}”.`,
      h(
        "a",
        { href: address("words", undefined, { filter: argument.slice(0, 4) }) },
        "Look for similar words",
      ),
    );
  }
  const senses = sensesOf(word, subset);
  const { tokens, documents: having } = wordsOfSubset(subset);
  const main = senses.filter(({ share }) => share >= LEAST_SENSE);
  const documents = documentsOfSenses(
    word,
    main.map(({ topic }) => topic),
    3,
    subset,
  );
  const neighbors = neighborsOf(word, 20);
  const forms = rules.rules.names.reduce(
    (found, name, i) => (name === model.words[word] ? [...found, rules.rules.forms[i]] : found),
    [],
  );
  return [
    h(
      "div.title",
      {},
      h("h1", {}, model.words[word]),
      h(
        "p.lead",
        {},
        `${count(tokens[word], "token")} in ${count(having[word], "document")}` +
          (subset.isWhole
            ? "."
            : `; in all documents, ${count(model.word_totals[word], "token")} in ` +
              `${count(corpus.frequency[word], "document")}.`),
        forms.length
          ? ` Also counts ${forms.slice(0, 8).join(", ")}${forms.length > 8 ? " …" : ""}.`
          : "",
      ),
      model.hidden.includes(word)
        ? h("p.note", {}, "This word is banned: lists and names do not show it.")
        : model.editing?.hides && h("p.pager", {}, banButton(model.words[word], "Ban this word")),
    ),
    h(
      "div.columns.wide-left",
      {},
      h(
        "div.stack",
        {},
        card(
          "Senses",
          main.length
            ? h(
                "div",
                {},
                main.map((sense, i) => senseOf(word, sense, documents[i])),
              )
            : empty(subset.isWhole ? "No topic has this word." : "No document with it passes."),
          {
            note:
              "The topics of the word, by P(z|w), with their other words, " +
              "and the documents that use the word in this sense" +
              (subset.isWhole ? "." : ", of the documents that pass the filters."),
          },
        ),
      ),
      h(
        "div.stack",
        {},
        card(
          "Topics",
          topicShares(sharesOf(senses), `Topics of ${model.words[word]}`, { least: 0.001 }),
          {
            save: {
              name: `topics of ${model.words[word]}`,
              chart: senses.length > 0,
              rows: () => topicRows(sharesOf(senses)),
            },
          },
        ),
        card(
          "Neighbors",
          neighbors.length
            ? chart((width) =>
                bars(
                  width,
                  neighbors.map(({ word: other, weight }) => ({
                    label: model.words[other],
                    href: wordAddress(other),
                    value: weight,
                    shown: weight.toPrecision(2),
                  })),
                  { label: `Words near ${model.words[word]}` },
                ),
              )
            : empty("It has no neighbors."),
          {
            note:
              "Words that are more probable in the topics of this word " +
              "than in the corpus as a whole (in nats).",
            save: {
              name: `neighbors of ${model.words[word]}`,
              chart: neighbors.length > 0,
              rows: () => [
                ["word", "weight"],
                ...neighbors.map(({ word: other, weight }) => [model.words[other], weight]),
              ],
            },
          },
        ),
      ),
    ),
  ];
}

// Returns the column of a word, or of the word that a form is counted as.
function columnOf(text) {
  const { columns } = rules;
  return columns.get(text) ?? columns.get(rules.named(rules.prepared(text)));
}

function sharesOf(senses) {
  const shares = new Float64Array(model.K);
  for (const { topic, share } of senses) shares[topic] = share;
  return shares;
}

function senseOf(word, { topic, share }, documents) {
  const others = relevantWords(topic, model.relevance, 11)
    .filter(({ word: other }) => other !== word)
    .slice(0, 10);
  return h(
    "div.sense",
    {},
    h("h3", {}, topicLink(topic), h("span.figure", {}, percent(share))),
    h(
      "p.beside",
      {},
      others.map(({ word: other }) => [wordLink(other), " "]),
    ),
    h(
      "ul.plain",
      {},
      documents.map(({ document: d }) => h("li", {}, documentLink(d))),
    ),
  );
}
