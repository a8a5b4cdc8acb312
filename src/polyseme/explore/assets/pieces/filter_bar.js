// The row above all views: the level of topics, the filters that are set, and a form that sets them.

import { address } from "../addresses.js";
import { h } from "../dom.js";
import { count, wholeNumber } from "../format.js";
import { corpus, model } from "../model/corpus.js";
import { FILTERS, filtersOf, topicOf } from "../model/filters.js";
import { levelOf, levelSizes } from "../model/levels.js";
import { go, here, isLeveled } from "../router.js";

/** @typedef {import("../router.js").Shown} Shown */

// Returns the address of the view that is shown with other settings.
function withSettings(changes) {
  const { view, argument, settings } = here();
  return address(view, argument, { ...settings, ...changes });
}

/**
 * Shows the row above a view. What had the focus in it keeps it.
 *
 * @param {string} view
 * @param {Record<string, string>} settings
 * @param {Shown} shown
 */
export function showFilterBar(view, settings, shown) {
  const bar = document.getElementById("bar");
  const focused = bar.contains(document.activeElement) ? document.activeElement : null;
  bar.replaceChildren(...partsOf(view, settings, shown));
  if (!focused) return;
  /** @type {HTMLElement | null} */
  const named = bar.querySelector(`[name="${focused.getAttribute("name")}"]`);
  (named ?? bar.querySelector("summary")).focus();
}

function partsOf(view, settings, shown) {
  const filters = filtersOf(settings);
  const chips = [
    filters.topic !== undefined && chipOf(topicText(filters.topic), { topic: "" }),
    filters.label !== undefined && chipOf(labelText(filters.label), { label: "" }),
    (filters.from ?? filters.to) !== undefined && chipOf(timeText(filters), { from: "", to: "" }),
    filters.q !== undefined && chipOf(`Words: ${filters.q}`, { q: "" }),
  ].filter(Boolean);
  return [
    levelSizes().length > 1 && isLeveled(view) && levelSelect(shown.level.size),
    settingsForm(filters, shown),
    h("span.chips", { role: "list", "aria-label": "Filters that are set" }, chips),
    chips.length > 0 &&
      h(
        "span.quiet.part",
        {},
        `${wholeNumber.format(shown.subset.size)} of ${count(model.n_documents, "document")}`,
      ),
    chips.length > 1 &&
      h(
        "a.clear",
        { href: withSettings(Object.fromEntries(FILTERS.map((name) => [name, ""]))) },
        "Clear all",
      ),
  ].filter(Boolean);
}

function chipOf(text, changes) {
  return h(
    "span",
    { role: "listitem" },
    h(
      "a.filter",
      { href: withSettings(changes), "aria-label": `Remove the filter ${text}` },
      h("span", {}, text),
      h("span", { "aria-hidden": "true" }, " ✕"),
    ),
  );
}

const NONE = " (there is none)";

function labelText(name) {
  return `Label: ${name}${corpus?.labeled?.names.includes(name) ? "" : NONE}`;
}

function topicText(text) {
  const found = topicOf(text);
  return found
    ? `Main topic: ${levelOf(found.size).names[found.topic]}`
    : `Main topic: ${text}${NONE}`;
}

/** @param {import("../model/filters.js").Filters} filters */
function timeText({ from, to }) {
  const text =
    from === undefined
      ? `until ${to}`
      : to === undefined
        ? `${from} and later`
        : from === to
          ? from
          : `${from} to ${to}`;
  const known = [from, to].every((name) => !name || corpus?.periods?.includes(name));
  return `Time: ${text}${known ? "" : NONE}`;
}

const TYPING = 350; // milliseconds between letters that choose an option

// Returns a list of options. What keys choose is applied after a pause.
function choice(label, name, options, value, change) {
  let [pressed, timer] = [-Infinity, 0];
  return h(
    "label.choice",
    {},
    h("span", {}, label),
    h(
      "select",
      {
        name,
        onkeydown: ({ timeStamp }) => (pressed = timeStamp),
        onchange: ({ target, timeStamp }) => {
          clearTimeout(timer);
          const wait = timeStamp - pressed < TYPING ? TYPING : 0;
          timer = setTimeout(() => change(target.value), wait);
        },
      },
      options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
    ),
  );
}

function levelSelect(size) {
  const options = levelSizes().map((n) => [String(n), String(n)]);
  const change = (value) => go(withSettings({ level: Number(value) === model.K ? "" : value }));
  return choice("Topics", "level", options, String(size), change);
}

let isOpen = false;

// The form is made when it is opened: a corpus may have many topics and labels.
function settingsForm(filters, shown) {
  const form = h("div.filter-form");
  const fill = () => form.replaceChildren(...(isOpen ? choices(filters, shown) : []));
  const details = h(
    "details.filter-details",
    {
      open: isOpen,
      ontoggle: () => {
        if (details.open === isOpen || !details.isConnected) return;
        isOpen = details.open;
        fill();
      },
      onkeydown: (event) => {
        if (event.key !== "Escape" || !details.open) return;
        details.open = false;
        details.querySelector("summary").focus();
      },
    },
    h("summary", {}, "Filter"),
    form,
  );
  fill();
  return details;
}

function choices(filters, { level }) {
  const set = (name) => (value) => go(withSettings({ [name]: value }));
  const size = topicOf(filters.topic ?? "")?.size ?? level.size;
  const { names, order } = levelOf(size);
  const key = (topic) => (size === model.K ? String(topic) : `${size}.${topic}`);
  const topics = order.map((topic) => [key(topic), names[topic]]);
  const found = [
    choice("Main topic", "topic", [["", "all"], ...topics], filters.topic ?? "", set("topic")),
  ];
  if (corpus?.labeled) {
    const labels = corpus.labeled.names.map((name) => [name, name]);
    found.push(
      choice("Label", "label", [["", "all"], ...labels], filters.label ?? "", set("label")),
    );
  }
  if (corpus?.periods) {
    const names = corpus.periods;
    const [first, last] = [filters.from ?? names[0], filters.to ?? names.at(-1)].map((name) =>
      names.indexOf(name),
    );
    const early = names.slice(0, last + 1).map((name) => [name, name]);
    const late = names.slice(Math.max(0, first)).map((name) => [name, name]);
    found.push(
      choice("From", "from", [["", names[0]], ...early.slice(1)], filters.from ?? "", set("from")),
    );
    found.push(
      choice(
        "To",
        "to",
        [["", names.at(-1)], ...late.slice(0, -1).reverse()],
        filters.to ?? "",
        set("to"),
      ),
    );
  }
  return found;
}
