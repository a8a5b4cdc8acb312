// How to read this page.

import { address } from "../addresses.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { corpus, model } from "../model/corpus.js";

const link = (view, text) => h("a", { href: address(view) }, text);

/** @type {import("../router.js").Render} */
export function viewHelp() {
  const { junk, finer, measures, text, editing } = model;
  const entries = [
    [
      "Topic",
      "Words that occur together in the same documents. The model found the topics from the counts " +
        "of words alone; nobody told it what they mean. Its name is made of its words, or was given.",
    ],
    [
      "Share, weight",
      "How many of the counted words come from the topic: in all documents (weight) or in one of " +
        "them. The shares of a document add up to 100%; most documents have a few topics.",
    ],
    [
      "Words",
      "Words are ranked by relevance: frequent in the topic, and more frequent there than " +
        "elsewhere. The colored part of a bar is the number of documents that use the word in this " +
        "topic, the gray part all documents with the word.",
    ],
    [
      "Fit",
      "The mean share of a topic in the documents that it occurs in. Near 100% the topic has its " +
        "documents for itself; a low fit is that of a topic that is mixed into many documents.",
    ],
    measures.coherence && [
      "Coherence",
      "Whether the first words of the topic occur in the same documents more often than by chance " +
        "(0). It is low for short texts, and does not say whether a topic is useful.",
    ],
    measures.stability && [
      "Stability",
      "How similar the topic is when the model is fitted to other samples of the documents.",
    ],
    measures.reproducibility && [
      "Reproducibility",
      "How many of the fits to other samples of the documents have the topic, with a 95% interval. " +
        "A topic that most fits have would be found again with similar documents.",
    ],
    [
      link("map", "Map"),
      "Every dot is a document, close to documents with similar topics and words. Its color mixes " +
        "those of its topics. Neighbors mean something; directions, the axes, the size of gaps and " +
        "distances between far regions do not.",
    ],
    finer?.length && [
      link("tree", "Levels"),
      "The topics at first are those for reading. Finer topics divide them further; each belongs " +
        "to the topic that has most of its words. “Topics” below the menu sets the level of tables, " +
        "charts and map.",
    ],
    [
      "Filters",
      "A main topic, a label, a range of time and words narrow all views; the row below the menu " +
        "shows what is set. Figures are then those of the documents that pass, with the same topics. " +
        "“Times” compares a share with that in all documents: few documents make it vary by chance.",
    ],
    [
      link("documents", "Documents"),
      "Words have the color of their most probable topic in this document. Typical documents are " +
        "those that a topic explains best, with the sentence that it explains best.",
    ],
    corpus?.labeled && [
      link("labels", "Labels"),
      "Labels come with the documents; the model has not seen them. If topics and labels agree, " +
        "they were found independently. Similar labels stand beside each other.",
    ],
    corpus?.periods && [
      link("time", "Time"),
      "The share of a topic in the words of each period. Periods with few documents vary by " +
        "chance; lines have gaps where there are no documents.",
    ],
    Object.keys(junk).length && [
      "May not describe a subject",
      "Topics of headers, signatures, repeated or encoded texts. They are gray and listed last.",
    ],
    [
      "What it does not mean",
      "A topic is not a category: a document is not “in” it, and its words were not checked by " +
        "anybody. Other settings or other documents give other topics. Small differences between " +
        "shares mean little; read the documents before you draw a conclusion.",
    ],
    editing && [
      link("edits", "Edits"),
      "“Edit this topic” changes names and topics in this page only, until the edits are exported " +
        "and applied to the run.",
    ],
  ].filter(Boolean);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, "How to read this page"),
      h(
        "p.lead",
        {},
        `${count(model.K, "topic")} of ${count(model.n_documents, "document")}, by ${model.model}. ` +
          "Everything is in this file: nothing is sent, and it works offline.",
      ),
    ),
    h(
      "section.card.help",
      {},
      h(
        "dl",
        {},
        entries.map(([term, meaning]) => [h("dt", {}, term), h("dd", {}, meaning)]),
      ),
      h(
        "p.note",
        {},
        text === "full" ? "The page has the whole texts. " : (model.text_note ?? "") + " ",
        "Every table and chart can be saved by the buttons in its corner; printing a view gives a report of it.",
      ),
    ),
  ];
}
