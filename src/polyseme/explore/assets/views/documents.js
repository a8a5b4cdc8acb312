// All documents, with a filter by title.

import { h } from "../dom.js";
import { count } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { browser } from "../pieces/browser.js";
import { documentList } from "../pieces/documents.js";

/** @type {import("../router.js").Render} */
export function viewDocuments(_, settings) {
  const find = (part, most) => {
    const items = [];
    let all = 0;
    const listed = new Set();
    for (let d = 0; d < model.n_documents; d++) {
      if (part && !corpus.titles[d].toLowerCase().includes(part)) continue;
      if (listed.has(corpus.groups[d])) continue;
      if (corpus.copies) listed.add(corpus.groups[d]);
      if (all++ < most) items.push(d);
    }
    return { items, all };
  };
  const list = (items) =>
    documentList(items.map((d) => ({ document: d, shown: count(corpus.tokens[d], "token") })));
  return [
    h(
      "div.title",
      {},
      h("h1", {}, "Documents"),
      h(
        "p.lead",
        {},
        "Each bar shows the topics of a document.",
        corpus.copies && " Near-duplicates are listed once.",
      ),
    ),
    h(
      "section.card",
      {},
      browser({
        label: "Title contains",
        settings,
        find,
        list,
        total: model.n_documents,
        noun: "document",
      }),
    ),
  ];
}
