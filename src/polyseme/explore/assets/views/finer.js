// A topic of a finer level: the topics above it, its words, typical documents and the topics below.

import { topicAddress } from "../addresses.js";
import { h } from "../dom.js";
import { count, percent } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { documentsOfLevel, levelOf, loadLevel } from "../model/levels.js";
import { documentsOfTopic, topicsOfSubset } from "../model/subset.js";
import { card, notHere } from "../pieces/card.js";
import { documentList } from "../pieces/documents.js";
import { FINER_COLUMNS, finerRows, finerTopics } from "../pieces/finer.js";
import { levelTopicLink, topicLink, wordLink } from "../pieces/links.js";
import { apartCard } from "../pieces/part_cards.js";
import { labelCard, timeCard, topicPager, weightText } from "../pieces/topic_cards.js";

const DOCUMENTS = 10;

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
export async function viewFiner(argument = "", _, { subset }) {
  const [size, topic] = argument.split(".").map(Number);
  const hit = found(size, topic);
  if (!hit) return notHere(`There is no topic ${argument} of a finer level.`);
  const { node, above, top } = hit;
  await loadLevel(size);
  const level = levelOf(size);
  const { documents, fit } = topicsOfSubset(subset, size);
  const { main } = documentsOfLevel(size);
  const columns = new Map(model.words.map((word, column) => [word, column]));
  const words = node.words.flatMap((word) => (columns.has(word) ? [columns.get(word)] : []));
  const siblings = (above.at(-1)?.children ?? model.finer[top]).filter((other) => other !== node);
  const link = (other) => h("a", { href: topicAddress(other.topic, other.level) }, other.name);
  return [
    h(
      "div.title",
      {},
      h("h1", {}, node.name),
      h(
        "p.lead",
        {},
        `${weightText(level, topic, subset)}; main topic of ${count(documents[topic], "document")}; ` +
          `fit ${percent(fit[topic])}; topic ${topic} of the level with ${count(size, "topic")}.`,
      ),
      h(
        "p.path",
        {},
        "Part of ",
        topicLink(top),
        above.map((other) => [" › ", link(other)]),
        h("span.quiet", {}, `, which has ${percent(node.parent_share)} of its tokens`),
      ),
      topicPager(level, topic, "finer", argument),
    ),
    h(
      "div.columns",
      {},
      h(
        "div.stack",
        {},
        card(
          subset.isWhole ? "Words" : "Words in all documents",
          h(
            "p.words",
            {},
            words.flatMap((word) => [wordLink(word), " "]),
          ),
        ),
        node.children.length > 0 &&
          card("Finer topics", h("div.tree", {}, finerTopics(node.children)), {
            save: {
              name: `finer topics of ${size}-${topic}`,
              rows: () => [FINER_COLUMNS, ...finerRows(node.children, topic)],
            },
          }),
        apartCard(
          subset.where((d) => main[d] === topic),
          subset,
          node.name,
        ),
        siblings.length > 0 &&
          card(
            "Topics beside it",
            h(
              "ul.plain",
              {},
              siblings.map((other) =>
                h(
                  "li.line",
                  {},
                  levelTopicLink(level, other.topic),
                  h("span.figure", {}, percent(other.weight)),
                ),
              ),
            ),
          ),
      ),
      h(
        "div.stack",
        {},
        documentsCard(node, level, subset),
        corpus.labeled && labelCard(level, topic, subset),
        corpus.periods && timeCard(level, topic, subset),
      ),
    ),
  ];
}

function documentsCard(node, { size }, subset) {
  const typical = subset.isWhole && node.documents?.length;
  const shown = typical
    ? node.documents.map((d) => ({ document: d }))
    : documentsOfTopic(subset, node.topic, size, DOCUMENTS).map(({ document: d, share }) => ({
        document: d,
        shown: percent(share),
      }));
  if (!shown.length) return null;
  return card(typical ? "Typical documents" : "Documents", documentList(shown), {
    note: typical ? null : "Those with the most tokens of the topic; the figure is its share.",
  });
}
