// A table that can be sorted and filtered. The address keeps the order and the filter.

import { address } from "../addresses.js";
import { PAUSE, empty, h, later } from "../dom.js";
import { count, wholeNumber } from "../format.js";
import { here, remember } from "../router.js";

/**
 * @typedef {import("../dom.js").Child} Child
 *
 * @typedef {object} Column
 * @property {string} name
 * @property {string} description
 * @property {(item: number) => number | string | null} value by which items are sorted
 * @property {(item: number) => Child} [shown] the content of a cell
 *
 * @typedef {object} Table
 * @property {string} noun what a row is
 * @property {number[]} items in the order of equal values
 * @property {Column[]} columns the first has the names of the rows
 * @property {string} sort column by which the table is sorted at first
 * @property {Record<string, string>} settings of the address
 * @property {(item: number, text: string) => boolean} matches whether a row is shown with a filter
 * @property {(item: number) => boolean} [isLast] whether a row stands below all others
 */

const ROWS_AT_ONCE = 60;

/**
 * Returns a table, and the items in its order.
 *
 * @param {Table} options
 */
export function sortedTable({ noun, items, columns, sort: usual, settings, matches, isLast }) {
  const sorted =
    columns.find(({ name }) => name === settings.sort) ??
    columns.find(({ name }) => name === usual);
  const isText = (column) => column === columns[0];
  const upwards = settings.order ? settings.order === "up" : isText(sorted);
  const sign = upwards ? 1 : -1;
  const order = items
    .map((item, place) => ({
      item,
      place,
      key: sorted.value(item),
      last: Number(isLast?.(item) ?? 0),
    }))
    .sort((a, b) => a.last - b.last || sign * compare(a.key, b.key) || a.place - b.place)
    .map(({ item }) => item);
  const heads = columns.map((column) => {
    const now = column === sorted;
    const next = now ? (upwards ? "down" : "up") : "";
    const { view, argument, settings: all } = here();
    return h(
      "th",
      {
        scope: "col",
        role: "columnheader",
        "aria-sort": now ? (upwards ? "ascending" : "descending") : null,
        classes: isText(column) ? "" : "number",
      },
      h(
        "a",
        {
          href: address(view, argument, { ...all, sort: column.name, order: next }),
          title: column.description,
        },
        column.name,
        now ? (upwards ? " ↑" : " ↓") : "",
      ),
    );
  });
  const body = h("tbody", { role: "rowgroup" });
  const more = h("button.more", { type: "button", onclick: () => grow() }, "Show more");
  const status = h("p.quiet", { role: "status" });
  const nothing = h("div");
  let shown = ROWS_AT_ONCE;
  const field = h("input", {
    type: "text",
    id: "filter",
    value: settings.filter ?? "",
    autocomplete: "off",
    oninput: later(() => {
      remember({ filter: field.value.trim() || undefined });
      shown = ROWS_AT_ONCE;
      refresh();
    }, PAUSE),
  });
  function grow() {
    shown += 2 * ROWS_AT_ONCE;
    refresh();
  }
  function refresh() {
    const text = field.value.trim().toLowerCase();
    const found = text ? order.filter((item) => matches(item, text)) : order;
    status.textContent =
      found.length === order.length
        ? count(order.length, noun)
        : `${wholeNumber.format(found.length)} of ${count(order.length, noun)}`;
    body.replaceChildren(...found.slice(0, shown).map(rowOf));
    more.hidden = found.length <= shown;
    nothing.replaceChildren(
      ...(found.length ? [] : [empty(text ? `No ${noun} contains “${text}”.` : `No ${noun}.`)]),
    );
  }
  const rowOf = (item) =>
    h(
      "tr",
      { role: "row" },
      columns.map((column) => {
        const value = column.value(item);
        const content = value === null ? "–" : (column.shown?.(item) ?? String(value));
        return isText(column)
          ? h("th", { scope: "row", role: "rowheader" }, content)
          : h("td.number", { role: "cell", data: { name: column.name } }, content);
      }),
    );
  refresh();
  const table = h(
    "table.topics",
    { role: "table" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)),
    body,
  );
  const element = h(
    "div",
    {},
    h("div.field", {}, h("label", { for: "filter" }, `Only ${noun}s with`), field),
    status,
    h("div.scroll", { tabindex: 0, role: "group", "aria-label": `Table of ${noun}s` }, table),
    nothing,
    more,
  );
  return { element, order };
}

function compare(a, b) {
  if (typeof a === "string") return a < b ? -1 : Number(a > b);
  return (a ?? -Infinity) - (b ?? -Infinity) || 0;
}
