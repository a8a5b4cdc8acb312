// The tree of a hierarchical model: every node below its parent, with its share of all words and
// its words. The tree of the levels of a run: below each topic, the topics of the next finer level
// that belong to it.

import { h } from "../dom.js";
import { count, percent } from "../format.js";
import { model } from "../model/corpus.js";
import { card, meter, notHere } from "../pieces/card.js";
import { FINER_COLUMNS, finerRows, finerTopics } from "../pieces/finer.js";
import { topicLink, wordLink } from "../pieces/links.js";
import { colorOf } from "../pieces/names.js";

/** @type {import("../router.js").Render} */
export function viewTree() {
  if (model.finer?.length) return viewLevels();
  const nodes = model.tree ?? [];
  if (!nodes.length)
    return notHere("There is no tree.", "The topics of this model do not form a tree.");
  const below = nodes.map(() => []);
  nodes.forEach(({ parent }, node) => parent >= 0 && below[parent].push(node));
  const heaviest = Math.max(...nodes.map(({ weight }) => weight));
  const root = nodes.findIndex(({ parent }) => parent < 0);
  const depth = (node) => (nodes[node].parent < 0 ? 0 : 1 + depth(nodes[node].parent));
  const branch = (node) => {
    const { name, topic, weight, words } = nodes[node];
    const leaf = topic !== null;
    return h(
      "li",
      { data: { node } },
      h(
        "div.node",
        {},
        leaf ? topicLink(topic) : h("strong", {}, `Node ${name}`),
        leaf && name !== String(node) && h("span.quiet", {}, name),
        h("span.figure", { title: "share of all words that come from this node" }, percent(weight)),
        meter(weight / heaviest, leaf ? colorOf(topic) : ""),
      ),
      h(
        "p.words",
        {},
        words.length
          ? words.flatMap((word, i) => [i ? " " : "", wordLink(word)])
          : "no words come from this node",
      ),
      below[node].length > 0 && h("ul", {}, below[node].map(branch)),
    );
  };
  const rows = () => [
    ["node", "name", "parent", "topic", "weight", "words"],
    ...nodes.map(({ name, parent, topic, weight, words }, node) => [
      node,
      name,
      parent,
      topic ?? "",
      weight,
      words.map((word) => model.words[word]).join(" "),
    ]),
  ];
  const deepest = Math.max(...nodes.map((_, node) => depth(node)));
  return [
    h(
      "div.title",
      {},
      h("h1", {}, "Tree of topics"),
      h(
        "p.lead",
        {},
        `${count(nodes.length, "node")}, of which ${count(model.K, "leaf", "leaves")} are the ` +
          `topics of documents; ${count(deepest, "level")} below the root.`,
      ),
    ),
    card("Nodes", h("ul.tree", {}, branch(root)), {
      note:
        "A word of a topic comes from its leaf or from a node above it: " +
        "words that topics share are near the root.",
      save: { name: "tree of topics", rows },
    }),
  ];
}

function viewLevels() {
  const rows = () => [
    FINER_COLUMNS,
    ...model.order.flatMap((topic) => finerRows(model.finer[topic], topic)),
  ];
  return [
    h(
      "div.title",
      {},
      h("h1", {}, "Tree of topics"),
      h(
        "p.lead",
        {},
        "Below each topic are the topics of the next finer level that belong to it: " +
          "it has most of their words.",
      ),
    ),
    card(
      "Levels",
      h(
        "ul.tree",
        {},
        model.order.map((topic) =>
          h(
            "li",
            {},
            h(
              "div.node",
              {},
              topicLink(topic),
              h("span.figure", {}, percent(model.weights[topic])),
              meter(model.weights[topic] / model.weights[model.order[0]], colorOf(topic)),
            ),
            finerTopics(model.finer[topic]),
          ),
        ),
      ),
      {
        note:
          "“3 of 20” is topic 3 of the level with 20 topics; " +
          "polyseme explore --level 20 writes a page of it.",
        save: { name: "levels of topics", rows },
      },
    ),
  ];
}
