// A list with a filter.

import { empty, h, later } from "../dom.js";
import { count, wholeNumber } from "../format.js";
import { remember } from "../router.js";

/**
 * @typedef {object} Browsed
 * @property {string} label
 * @property {Record<string, string>} settings
 * @property {(part: string, most: number) => {items: number[], all: number}} find
 * @property {(items: number[]) => Element} list
 * @property {number} total
 * @property {string} noun
 */

const AT_ONCE = 40;

/**
 * Returns a field that filters a list, and a button that shows more of the list.
 *
 * @param {Browsed} options
 */
export function browser({ label, settings, find, list, total, noun }) {
  const holder = h("div");
  const statusLine = h("p.quiet", { role: "status" });
  let shown = AT_ONCE;
  const field = h("input", {
    type: "search",
    id: "filter",
    value: settings.filter ?? "",
    autocomplete: "off",
    oninput: later(() => {
      shown = AT_ONCE;
      remember({ filter: field.value.trim() || undefined });
      refresh();
    }, 120),
  });
  function refresh() {
    const found = find(field.value.trim().toLowerCase(), shown);
    statusLine.textContent =
      found.all === total
        ? count(total, noun)
        : `${wholeNumber.format(found.all)} of ${count(total, noun)}`;
    holder.replaceChildren(
      found.items.length
        ? list(found.items)
        : empty(`No ${noun} contains “${field.value.trim()}”.`),
      found.all > found.items.length
        ? h(
            "button.more",
            {
              type: "button",
              onclick: () => {
                shown += 2 * AT_ONCE;
                refresh();
              },
            },
            "Show more",
          )
        : "",
    );
  }
  refresh();
  return h(
    "div",
    {},
    h("div.field", {}, h("label", { for: "filter" }, label), field),
    statusLine,
    holder,
  );
}
