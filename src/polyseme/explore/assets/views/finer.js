// A topic of a finer level: the topics above it, its words, typical documents and the topics below.

import { h } from "../dom.js";
import { count, percent } from "../format.js";
import { model } from "../model/corpus.js";
import { card, notHere } from "../pieces/card.js";
import { documentList } from "../pieces/documents.js";
import { FINER_COLUMNS, finerAddress, finerRows, finerTopics } from "../pieces/finer.js";
import { topicLink, wordLink } from "../pieces/links.js";

// Returns a topic of a finer level and the topics between it and the reading level, or null.
function found(level, topic) {
  const within = (nodes, above) => {
    for (const node of nodes) {
      if (node.level === level && node.topic === topic) return { node, above };
      const below = within(node.children, [...above, node]);
      if (below) return below;
    }
    return null;
  };
  for (const top of model.order) {
    const hit = within(model.finer[top] ?? [], []);
    if (hit) return { top, ...hit };
  }
  return null;
}

/** @type {import("../router.js").Render} */
export function viewFiner(argument = "") {
  const [level, topic] = argument.split(".").map(Number);
  const hit = found(level, topic);
  if (!hit) return notHere(`There is no topic ${argument} of a finer level.`);
  const { node, above, top } = hit;
  const columns = new Map(model.words.map((word, column) => [word, column]));
  const words = node.words.flatMap((word) => (columns.has(word) ? [columns.get(word)] : []));
  const siblings = (above.at(-1)?.children ?? model.finer[top]).filter((other) => other !== node);
  const link = (other) => h("a", { href: finerAddress(other.level, other.topic) }, other.name);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, node.name),
      h(
        "p.lead",
        {},
        `${percent(node.weight)} of all words; topic ${topic} of the level with ` +
          `${count(level, "topic")}.`,
      ),
      h(
        "p.pager",
        {},
        "Part of ",
        topicLink(top),
        above.map((other) => [" › ", link(other)]),
      ),
    ),
    h(
      "div.columns",
      {},
      h(
        "div.stack",
        {},
        card(
          "Words",
          h(
            "p.words",
            {},
            words.flatMap((word) => [wordLink(word), " "]),
          ),
        ),
        node.children.length > 0 &&
          card("Finer topics", h("div.tree", {}, finerTopics(node.children)), {
            save: {
              name: `finer topics of ${level}-${topic}`,
              rows: () => [FINER_COLUMNS, ...finerRows(node.children, topic)],
            },
          }),
        siblings.length > 0 &&
          card(
            "Topics beside it",
            h(
              "ul.plain",
              {},
              siblings.map((other) => h("li", {}, link(other))),
            ),
          ),
      ),
      node.documents?.length > 0 &&
        card("Typical documents", documentList(node.documents.map((d) => ({ document: d })))),
    ),
  ];
}
