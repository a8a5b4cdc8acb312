// A list that can be sorted and filtered. The address keeps the order and the filter.

import { PAUSE, empty, h, later } from "../dom.js";
import { count, wholeNumber } from "../format.js";
import { remember } from "../router.js";

/**
 * @typedef {object} SortedList
 * @property {string} noun
 * @property {number} total how many there are, if more than are listed
 * @property {number[]} items
 * @property {{name: string, text: string, value: (item: number) => number | string}[]} orders the
 *   first one is used without a choice
 * @property {string} label of the field that filters the list
 * @property {(item: number, text: string) => boolean} matches
 * @property {Record<string, string>} settings of the address
 * @property {(items: number[]) => Element} list
 */

const AT_ONCE = 40;

/**
 * Returns a field that filters a list, a choice of its order, and a button that shows more of it.
 *
 * @param {SortedList} options
 */
export function sortedList({ noun, total, items, orders, label, matches, settings, list }) {
  const holder = h("div");
  const status = h("p.quiet", { role: "status" });
  let shown = AT_ONCE;
  let chosen = orders.find(({ name }) => name === settings.sort) ?? orders[0];
  let sorted = sortedItems();
  const field = h("input", {
    type: "text",
    id: "filter",
    value: settings.filter ?? "",
    autocomplete: "off",
    oninput: later(() => {
      shown = AT_ONCE;
      remember({ filter: field.value.trim() || undefined });
      refresh();
    }, PAUSE),
  });
  const choice = h(
    "select",
    {
      id: "sort",
      onchange: () => {
        chosen = orders[choice.selectedIndex];
        remember({ sort: choice.selectedIndex ? chosen.name : undefined });
        sorted = sortedItems();
        refresh();
      },
    },
    orders.map((order) => h("option", { selected: order === chosen }, order.text)),
  );
  const more = h(
    "button.more",
    {
      type: "button",
      onclick: () => {
        shown += 2 * AT_ONCE;
        refresh();
      },
    },
    "Show more",
  );
  function sortedItems() {
    return items
      .map((item) => ({ item, key: chosen.value(item) }))
      .sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key) || a.item - b.item))
      .map(({ item }) => item);
  }
  function refresh() {
    const text = field.value.trim().toLowerCase();
    const found = text ? sorted.filter((item) => matches(item, text)) : sorted;
    status.textContent =
      found.length === total
        ? count(total, noun)
        : `${wholeNumber.format(found.length)} of ${count(total, noun)}`;
    holder.replaceChildren(
      found.length
        ? list(found.slice(0, shown))
        : empty(text ? `No ${noun} contains “${text}”.` : `No ${noun} passes the filters.`),
    );
    more.hidden = found.length <= shown;
  }
  refresh();
  return h(
    "div",
    {},
    h(
      "div.field",
      {},
      h("label", { for: "filter" }, label),
      field,
      h("label", { for: "sort" }, "Sort by"),
      choice,
    ),
    status,
    holder,
    more,
  );
}
