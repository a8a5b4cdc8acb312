// The fragment of the address determines the view: #/view/argument?setting=value.

import { address, keepSettings } from "./addresses.js";
import { h, say } from "./dom.js";
import { corpus, loadCorpus, loadRules, model, rules } from "./model/corpus.js";
import { filtersOf, subsetOf } from "./model/filters.js";
import { levelOf, loadLevel } from "./model/levels.js";
import { notHere } from "./pieces/card.js";

/**
 * @typedef {import("./dom.js").Child} Child
 *
 * @typedef {object} Shown what all views show
 * @property {import("./model/subset.js").Subset} subset the documents that pass the filters
 * @property {import("./model/levels.js").Level} level
 *
 * @typedef {(argument: string | undefined, settings: Settings, shown: Shown) =>
 *   Child | Promise<Child>} Render
 *
 * @typedef {Record<string, string>} Settings
 *
 * @typedef {object} View
 * @property {Render} render
 * @property {string} [label] name in the navigation
 * @property {string} [under] the view that the navigation marks instead
 * @property {() => unknown} [only] whether the navigation has the view
 * @property {() => Promise<unknown>} [needs] loads what the view shows
 * @property {boolean} [leveled] whether the level of topics changes the view
 */

/** @type {Record<string, View>} */
let views = {};

/** @type {(view: string, settings: Settings, shown: Shown) => void} */
let showBar = null;

let shown = ""; // the address that is shown; a frame may have no history of its own

function parsed(fragment) {
  const [path, query = ""] = fragment.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/");
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const settings = Object.fromEntries(
    query
      .split("&")
      .filter(Boolean)
      .map((pair) => {
        const [key, value = ""] = pair.split("=");
        return [key, decoded(value)];
      }),
  );
  return {
    view: Object.hasOwn(views, view) ? view : "map",
    argument: rest.length ? decoded(rest.join("/")) : undefined,
    settings,
  };
}

/** Returns the view that is shown, its argument and its settings. */
export const here = () => parsed(shown);

/**
 * Goes to an address; the browser's history follows where there is one.
 *
 * @param {string} to
 */
export function go(to) {
  if (location.hash === to) return show(to);
  try {
    location.hash = to;
  } catch {
    // a frame without an address
  }
  if (location.hash !== to) show(to);
}

/**
 * Changes settings of the address without drawing the view again.
 *
 * @param {Record<string, string | number>} changes
 */
export function remember(changes) {
  if (location.hash && location.hash !== shown) return; // another view is about to be shown
  const { view, argument, settings } = parsed(shown);
  shown = address(view, argument, { ...settings, ...changes });
  try {
    history.replaceState(null, "", shown);
  } catch {
    // a frame without an address
  }
}

/**
 * Returns the field above all views.
 *
 * @returns {HTMLInputElement}
 */
export function searchField() {
  return document.querySelector("#find-words");
}

/** Shows links to the views that the page has. */
export function navigation() {
  const { view } = parsed(shown);
  const current = views[view].under ?? view;
  const links = Object.entries(views)
    .filter(([, { label, only }]) => label && (!only || only()))
    .map(([name, { label }]) =>
      h("a", { href: address(name), "aria-current": name === current ? "page" : null }, label),
    );
  const bar = document.getElementById("views");
  bar.replaceChildren(...links);
  const marked = links.find((link) => link.getAttribute("aria-current"));
  if (marked) bar.scrollLeft = marked.offsetLeft - bar.offsetLeft - NAVIGATION_EDGE;
}

const NAVIGATION_EDGE = 60; // pixels of the links before the current one on a narrow screen

let turn = 0;

async function show(fragment) {
  const mine = ++turn;
  const before = parsed(shown);
  const { view, argument, settings } = parsed(fragment);
  const sameView = shown && before.view === view && before.argument === argument;
  shown = fragment;
  const { render, needs, leveled } = views[view];
  const main = document.getElementById("main");
  try {
    const filters = filtersOf(settings);
    const level = levelOf(Number(settings.level));
    const isFiltered = Object.keys(filters).length > 0;
    if (needs || isFiltered) {
      if (!corpus || !rules) say("Loading …");
      await Promise.all([needs?.(), isFiltered && loadCorpus(), filters.q && loadRules()]);
    }
    if (leveled) await loadLevel(level.size);
    const subset = await subsetOf(filters);
    if (mine !== turn) return;
    keepSettings({ ...filters, level: level.size === model.K ? "" : level.size });
    const drawn = await render(argument, settings, { subset, level });
    if (mine !== turn) return;
    const parts = /** @type {any[]} */ ([drawn]);
    navigation();
    searchField().value = settings.q ?? "";
    showBar(view, settings, { subset, level });
    main.replaceChildren(...parts.flat(Infinity).filter(Boolean));
    const heading = main.querySelector("h1");
    document.title = `${heading?.textContent ?? ""} – ${model.title}`;
    say("");
    main.dataset.view = view;
    if (!sameView && turn > 1) {
      scrollTo(0, 0);
      heading?.setAttribute("tabindex", "-1");
      heading?.focus({ preventScroll: true });
    }
  } catch (error) {
    if (mine === turn) main.replaceChildren(...notHere("This view failed.", String(error)));
    throw error;
  }
}

/** Shows the view again, after what it shows has changed. */
export async function showAgain() {
  const focused = document.activeElement?.id;
  await show(shown);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/**
 * Returns whether the level of topics changes a view.
 *
 * @param {string} view
 */
export const isLeveled = (view) => Boolean(views[view].leveled);

/**
 * Shows the view of the address, now and whenever it changes.
 *
 * @param {Record<string, View>} table
 * @param {typeof showBar} bar shows what stands between the navigation and the view
 */
export async function follow(table, bar) {
  views = table;
  showBar = bar;
  addEventListener("hashchange", () => show(location.hash));
  await show(location.hash);
}
