// The tree of a hierarchical model: every node below its parent, with its share of all words and
// its words. The tree of the levels of a run: below each topic, the topics of the next finer level
// that belong to it.

import { address, topicAddress } from "../addresses.js";
import { chart } from "../charts/chart.js";
import { icicle } from "../charts/icicle.js";
import { h } from "../dom.js";
import { count, percent } from "../format.js";
import { model } from "../model/corpus.js";
import { topWords } from "../model/topics.js";
import { card, meter, notHere } from "../pieces/card.js";
import { FINER_COLUMNS, finerRows, finerTopics } from "../pieces/finer.js";
import { topicLink, wordLink } from "../pieces/links.js";
import { colorOf, topicName, topicTitle } from "../pieces/names.js";

/** @type {import("../router.js").Render} */
export function viewTree(_, settings) {
  if (model.finer?.length) return viewLevels(settings);
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
    icicleCard(
      childrenOf(nodes, below, root),
      settings,
      "A node is as tall as its share of all words, with the nodes below it.",
    ),
    card("Nodes", h("ul.tree", {}, branch(root)), {
      note:
        "A word of a topic comes from its leaf or from a node above it: " +
        "words that topics share are near the root.",
      save: { name: "tree of topics", rows },
    }),
  ];
}

// Returns the nodes below a node of a tree.
function childrenOf(nodes, below, node) {
  return below[node].map((child) => {
    const { name, topic, words } = nodes[child];
    const isLeaf = topic !== null;
    const children = childrenOf(nodes, below, child);
    const shown = isLeaf ? topicName(topic) : `Node ${name}`;
    return {
      key: String(child),
      name: shown,
      weight: nodes[child].weight + children.reduce((sum, { weight }) => sum + weight, 0),
      classes: isLeaf ? colorOf(topic) : "none",
      href: isLeaf ? topicAddress(topic) : null,
      title: `${shown}: ${words.map((word) => model.words[word]).join(" ")}`,
      children,
    };
  });
}

// Returns the topics of a level with those below them.
function levelNodes() {
  const finer = (top) => (node) => ({
    key: `${node.level}.${node.topic}`,
    name: node.name,
    weight: node.weight,
    classes: colorOf(top),
    href: topicAddress(node.topic, node.level),
    title: `${node.name}: ${node.words.join(" ")}`,
    children: node.children.map(finer(top)),
  });
  return model.order.map((topic) => ({
    key: String(topic),
    name: topicName(topic),
    weight: model.weights[topic],
    classes: colorOf(topic),
    href: topicAddress(topic),
    title: `${topicTitle(topic)}\n${topWords(topic, 10).join(" ")}`,
    children: model.finer[topic].map(finer(topic)),
  }));
}

// Returns a node and those above it, or null.
function pathTo(nodes, key) {
  for (const node of nodes) {
    if (node.key === key) return [node];
    const path = pathTo(node.children, key);
    if (path) return [node, ...path];
  }
  return null;
}

function icicleCard(roots, settings, note) {
  const path = pathTo(roots, settings.at) ?? [];
  const shown = path.length ? [path.at(-1)] : roots;
  const leaves = (nodes) =>
    nodes.reduce((sum, node) => sum + (node.children.length ? leaves(node.children) : 1), 0);
  const height = Math.max(260, Math.min(1300, 22 * leaves(shown)));
  const zoom = (node) => address("tree", undefined, { at: node?.key ?? "" });
  const trail = h(
    "p.path",
    {},
    path.length
      ? h("a", { href: zoom(null) }, "All topics")
      : "⤢ shows a topic and those below it.",
    path.map((node, i) => [
      " › ",
      i + 1 < path.length ? h("a", { href: zoom(node) }, node.name) : h("strong", {}, node.name),
    ]),
  );
  const drawn = chart((width) => icicle(width, shown, { height, label: "Tree of topics", zoom }));
  return card("Overview", h("div", {}, trail, drawn), {
    note,
    save: { name: "picture of the tree", chart: true },
  });
}

function viewLevels(settings) {
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
    icicleCard(
      levelNodes(),
      settings,
      "From left to right the levels; a topic is as tall as its share of the topic beside it. " +
        "A name leads to the topic.",
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
