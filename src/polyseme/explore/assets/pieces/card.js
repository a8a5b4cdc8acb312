// Cards, meters, and the view of an address that leads nowhere.

import { address } from "../addresses.js";
import { h } from "../dom.js";
import { saveButtons } from "../export.js";

/**
 * @typedef {import("../dom.js").Child} Child
 *
 * @typedef {{name?: string, chart?: boolean, rows?: import("../export.js").Rows}} Save
 */

/**
 * Returns a card with a heading, and buttons to save what it shows.
 *
 * @param {string} title
 * @param {Child} content
 * @param {{note?: Child, save?: Save, classes?: string}} [options]
 */
export function card(title, content, { note, save, classes = "" } = {}) {
  const chartIn = save?.chart && content instanceof Element ? content : null;
  return h(
    "section.card",
    { classes },
    h(
      "div.head",
      {},
      h("h2", {}, title),
      save && saveButtons(save.name ?? title, save.rows, chartIn),
    ),
    note && h("p.note", {}, note),
    content,
  );
}

/**
 * Returns a bar with a width between 0 and 1, beside a figure.
 *
 * @param {number} share
 * @param {string} [classes]
 */
export function meter(share, classes = "") {
  const width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(2)}%`;
  return h(
    "span.meter",
    { "aria-hidden": "true" },
    h("span.filled", { classes, style: { width } }),
  );
}

/**
 * Returns the view of an address that leads nowhere.
 *
 * @param {string} what
 * @param {Child} [more]
 */
export function notHere(what, more) {
  return [
    h(
      "div.title",
      {},
      h("h1", {}, what),
      h("p.lead", {}, more ?? "", " ", h("a", { href: address("topics") }, "All topics")),
    ),
  ];
}
