// Lists of documents.

import { address } from "../addresses.js";
import { h } from "../dom.js";
import { count, percent } from "../format.js";
import { corpus } from "../model/corpus.js";
import { documentLink } from "./links.js";
import { colorOf } from "./names.js";

/**
 * Returns the number of near-duplicates that a listed document represents.
 *
 * @param {number} d
 */
export function copiesOf(d) {
  const copies = corpus.groupSizes[corpus.groups[d]] - 1;
  return copies > 0 && h("span.quiet", {}, `and ${count(copies, "near-duplicate")}`);
}

// The main topics of a document as one narrow bar.
function mixture(d) {
  const { starts, columns, values } = corpus.topics;
  const parts = [];
  for (let i = starts[d]; i < starts[d + 1]; i++) parts.push([columns[i], values[i]]);
  parts.sort((a, b) => b[1] - a[1]);
  const summary = parts
    .slice(0, 3)
    .map(([topic, share]) => `topic ${topic} ${percent(share)}`)
    .join(", ");
  return h(
    "span.mixture",
    { role: "img", "aria-label": summary || "no topics", title: summary },
    parts
      .slice(0, 12)
      .map(([topic, share]) =>
        h("span", { classes: colorOf(topic), style: { "flex-grow": share } }),
      ),
  );
}

/**
 * Returns links to the labels of a document.
 *
 * @param {number} d
 */
export function labelLinks(d) {
  if (!corpus.labeled) return [];
  const { names, of } = corpus.labeled;
  return Array.from(of.columns.subarray(of.starts[d], of.starts[d + 1]), (label) =>
    h("a.tag", { href: address("labels", names[label]) }, names[label]),
  );
}

/**
 * Returns a list of documents.
 *
 * @param {{document: number, shown?: string, detail?: import("../dom.js").Child}[]} items
 */
export function documentList(items) {
  return h(
    "ol.documents",
    {},
    items.map(({ document: d, shown, detail }) =>
      h(
        "li",
        {},
        h("div.line", {}, documentLink(d), shown && h("span.figure", {}, shown)),
        h(
          "div.line.small",
          {},
          mixture(d),
          labelLinks(d),
          corpus.times?.[d] && h("span.quiet", {}, corpus.times[d]),
          copiesOf(d),
        ),
        detail,
      ),
    ),
  );
}
