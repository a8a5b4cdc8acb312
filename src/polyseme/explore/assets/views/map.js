// The map of documents, the first view.

import { address, documentAddress, topicAddress } from "../addresses.js";
import { MapChart } from "../charts/document_map.js";
import { h, later, say } from "../dom.js";
import { saveButtons } from "../export.js";
import { count, percent, wholeNumber } from "../format.js";
import { largest } from "../model/arrays.js";
import { corpus, loadCorpus, model, textOf } from "../model/corpus.js";
import { wordsApart } from "../model/apart.js";
import { WHOLE, documentsWithQuery, filtersOf } from "../model/filters.js";
import { loadLevel } from "../model/levels.js";
import { loadMap, topicColors } from "../model/map.js";
import { documentsWith } from "../model/search.js";
import { topicsOfSubset } from "../model/subset.js";
import { meter } from "../pieces/card.js";
import { unknownWords } from "../pieces/hits.js";
import { chip, levelTopicLink, wordLink } from "../pieces/links.js";
import { colorOf, topicName } from "../pieces/names.js";
import { go, remember } from "../router.js";

const TOPICS_LISTED = 8;
const WORDS_LISTED = 24;
const LABELS_LISTED = 8;
const TITLES_LISTED = 60;
const LABEL_COLORS = 24; // the second dozen is darker
const QUOTE_LENGTH = 190;
const OTHER = "other";
/** @type {[number, number, number]} */
const PRINTED_MAP = [1000, 760, 2];

// Returns the value of a color of the style sheet as red, green and blue.
function rgb(name) {
  const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const digits = value.slice(1);
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

// Returns a color of dots; the second dozen is halfway to the color of text.
function dotColor(number) {
  const color = rgb(`--d${number % 12}`);
  const ink = rgb("--ink");
  return number < 12 ? color : color.map((value, c) => (value + ink[c]) / 2);
}

// Colors of the points, and what they mean: [{name, color, share}].
function byTopic(map) {
  const palette = Array.from({ length: model.K }, (_, topic) =>
    topic in model.junk || model.gone.has(topic) ? rgb("--d-none") : dotColor(model.colors[topic]),
  );
  return { colors: topicColors(map, palette, rgb("--d-none")), key: null };
}

function byLabel(map) {
  const { labels, labels_of_document: sizes, document_labels: of } = map.section;
  const first = new Int32Array(model.n_documents).fill(-1);
  for (let d = 0, at = 0; d < sizes.length; at += sizes[d++]) if (sizes[d]) first[d] = of[at];
  const totals = new Uint32Array(labels.length);
  for (const d of map.documents) if (first[d] >= 0) totals[first[d]]++;
  const shown = largest(totals, LABEL_COLORS);
  const numbers = new Map(shown.map((label, i) => [label, i]));
  const palette = shown.map((_, i) => dotColor(i));
  const colors = pointColors(map, (d) => numbers.get(first[d]) ?? -1, palette);
  const key = shown.map((label, i) => ({
    name: labels[label],
    color: i,
    documents: totals[label],
  }));
  const others = map.size - key.reduce((sum, { documents }) => sum + documents, 0);
  if (others) key.push({ name: OTHER, color: -1, documents: others });
  return { colors, key };
}

function byTime(map) {
  const { periods, document_periods: of } = map.section;
  const [early, late] = [rgb("--d-early"), rgb("--d-late")];
  const last = Math.max(1, periods.length - 1);
  const palette = periods.map((_, period) =>
    early.map((value, c) => value + ((late[c] - value) * period) / last),
  );
  const colors = pointColors(map, (d) => of[d], palette);
  return { colors, key: null, ends: [periods[0], periods[periods.length - 1]] };
}

function pointColors(map, numberOf, palette) {
  const colors = new Uint8Array(3 * map.size);
  const none = rgb("--d-none");
  for (let point = 0; point < map.size; point++) {
    const color = palette[numberOf(map.documents[point])] ?? none;
    for (let c = 0; c < 3; c++) colors[3 * point + c] = color[c];
  }
  return colors;
}

/**
 * One for the whole visit, because browsers limit the number of WebGL contexts.
 *
 * @type {MapChart}
 */
let onlyChart = null;

let lastColored = null; // what the chart has: the colors of the points, and what they mean

addEventListener("beforeprint", () => {
  if (onlyChart?.element.isConnected && onlyChart.scale)
    document.querySelector(".map-panel").before(onlyChart.picture(...PRINTED_MAP));
});
addEventListener("afterprint", () => document.querySelector(".map-picture")?.remove());

/** @type {import("../router.js").Render} */
export async function viewMap(_, settings, { subset, level }) {
  const map = await loadMap();
  const ways = { topic: byTopic };
  if (map.section.labels?.length) ways.label = byLabel;
  if (map.section.periods) ways.time = byTime;
  let way = settings.color in ways ? settings.color : "topic";
  let selection = null;
  let colored = null; // colors of the points, and what they mean
  const panel = h("aside.map-panel.on-map", { "aria-label": "About the map" });
  const hint = h("div.map-card", { hidden: true });
  const chart = (onlyChart ??= new MapChart(map));
  chart.use(
    map,
    map.names.filter((name) => name.level >= level.size),
  );
  chart.clear();
  chart.events = {
    hover: showCard,
    open: (point) => go(documentAddress(map.documents[point])),
    select,
    moved: (frame) => remember({ at: frame?.map((value) => value.toFixed(7)).join(",") ?? "" }),
    link: ({ level: size, topic, top }) => ({
      href: topicAddress(topic, size),
      classes: top in model.junk ? "none" : colorOf(top),
    }),
  };
  const frame = settings.at?.split(",").map(Number) ?? [];
  chart.wanted = frame.length === 3 && frame.every(Number.isFinite) ? frame : null;
  recolor();
  matchMedia("(prefers-color-scheme: dark)").onchange = recolor;
  const isFiltered = Object.keys(filtersOf(settings)).length > 0;
  const lit = isFiltered ? await weightsOfPoints() : null;
  chart.light(lit);
  if (isFiltered) narrowed();
  else overview();

  function recolor() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    if (lastColored?.map !== map || lastColored.way !== way || lastColored.dark !== dark) {
      lastColored = { map, way, dark, found: ways[way](map) };
      chart.color(lastColored.found.colors);
    }
    colored = lastColored.found;
    chart.element.classList.toggle("plain-names", way !== "topic");
  }

  // Returns how bright each point is: those with the words of a query best are the brightest.
  async function weightsOfPoints() {
    const query = settings.q?.trim();
    const { scores, documents } = query ? documentsWith(query) : { scores: null, documents: [] };
    const best = documents.length ? scores[documents[0]] : 1;
    return Float32Array.from(map.documents, (d) => {
      if (!subset.has(d)) return 0;
      return query ? 0.25 + (0.75 * scores[d]) / best : 1;
    });
  }

  // The documents that pass the filters.
  async function narrowed() {
    const query = settings.q?.trim();
    const documents = query
      ? (await documentsWithQuery(query)).filter((d) => subset.has(d))
      : Array.from(subset.documents);
    const found = query ? documentsWith(query) : null;
    say(count(documents.length, "document") + " lit up");
    panel.replaceChildren(
      ...[
        wayButtons(),
        h("div.head", {}, h("h2", {}, count(documents.length, "document"))),
        !documents.length && h("p.quiet", {}, "No document passes all filters."),
        found?.problem && h("p.note", {}, found.problem),
        found && !found.problem && h("p.note", {}, unknownWords(found.query, query)),
        query &&
          h(
            "p.quiet",
            {},
            `with words of “${query}”, the best first. `,
            h("a", { href: address("documents", undefined, { q: query }) }, "Results with texts"),
          ),
        ...described(subset),
        titles(documents, "filtered documents on the map"),
      ].filter(Boolean),
    );
  }

  function head(text, close) {
    return h(
      "div.head",
      {},
      h("h2", {}, text),
      h("button.save", { type: "button", onclick: close }, "Clear ✕"),
    );
  }

  async function select(found) {
    if (!found) {
      if (!selection) return;
      selection = null;
      chart.clear();
      chart.light(lit);
      return isFiltered ? narrowed() : overview();
    }
    const points = found.filter((point) => !lit || lit[point] > 0);
    selection = points;
    const weights = new Float32Array(map.size);
    for (const point of points) weights[point] = 1;
    chart.light(points.length ? weights : lit);
    panel.replaceChildren(
      head(count(points.length, "document"), () => select(null)),
      h("p.quiet", {}, "Adding up …"),
    );
    await Promise.all([loadCorpus(), loadLevel(level.size)]);
    if (selection === points) summary(points);
  }

  function summary(points) {
    const documents = points.map((point) => map.documents[point]);
    const chosen = new Set(documents);
    say(`${count(points.length, "document")} selected`);
    panel.replaceChildren(
      head(count(points.length, "document"), () => select(null)),
      ...described(WHOLE.where((d) => chosen.has(d))),
      points.length > 0 ? h("h3", {}, "Documents, from the middle outward") : "",
      titles(documents, "selection on the map"),
    );
  }

  // Topics, words and labels of some documents.
  function described(part) {
    if (!part.size) return [];
    const { weights } = topicsOfSubset(part, level.size);
    const listed = new Set(level.order);
    const shares = weights.map((share, topic) => (listed.has(topic) ? share : 0));
    const words = wordsApart(part, WHOLE, WORDS_LISTED);
    return [
      h("h3", {}, "Topics, by their share of the words"),
      shareList(largest(shares, TOPICS_LISTED).map((topic) => topicRow(topic, shares[topic]))),
      words.length > 0 && h("h3", {}, "Distinctive words"),
      h(
        "p.words",
        {},
        words.flatMap(({ word }) => [wordLink(word), " "]),
      ),
      ...labelShares(part.documents),
    ].filter(Boolean);
  }

  function topicRow(topic, share) {
    return [levelTopicLink(level, topic), share, level.tops[topic]];
  }

  function labelShares(documents) {
    if (!corpus.labeled) return [];
    const { names, of } = corpus.labeled;
    const totals = new Float64Array(names.length);
    for (const d of documents)
      for (let i = of.starts[d]; i < of.starts[d + 1]; i++)
        totals[of.columns[i]] += 1 / documents.length;
    const rows = largest(totals, LABELS_LISTED).map((label) => [
      h("a", { href: address("labels", names[label]) }, names[label]),
      totals[label],
      -1,
    ]);
    return rows.length ? [h("h3", {}, "Labels"), shareList(rows)] : [];
  }

  function shareList(rows) {
    const most = Math.max(...rows.map(([, share]) => Number(share)), 1e-9);
    return h(
      "ul.shares",
      {},
      rows.map(([name, share, topic]) =>
        h(
          "li",
          {},
          h("div.line", {}, name, h("span.figure", {}, percent(share))),
          meter(share / most, topic < 0 ? "" : colorOf(topic)),
        ),
      ),
    );
  }

  function titles(documents, name) {
    const rows = () => [
      ["document", "id", "title", "topic", "name"],
      ...documents.map((d) => {
        const topic = mainTopic(d);
        const { ids, titles: all } = map.section;
        return [d, ids?.[d] ?? all[d], all[d], topic, topic < 0 ? "" : topicName(topic)];
      }),
    ];
    return h(
      "div",
      {},
      h(
        "ol.titles",
        {},
        documents
          .slice(0, TITLES_LISTED)
          .map((d) =>
            h(
              "li",
              {},
              h("span.dot", { classes: colorOf(mainTopic(d)) }),
              h("a", { href: documentAddress(d) }, map.section.titles[d] || `Document ${d}`),
            ),
          ),
      ),
      documents.length > TITLES_LISTED &&
        h("p.quiet", {}, `and ${count(documents.length - TITLES_LISTED, "other")}`),
      documents.length > 0 && saveButtons(name, rows, null),
    );
  }

  function mainTopic(d) {
    let [best, most] = [-1, 0];
    for (let i = map.starts[d]; i < map.starts[d + 1]; i++)
      if (map.shares[i] > most) [best, most] = [map.topics[i], map.shares[i]];
    return best;
  }

  function wayButtons() {
    const names = { topic: "Topics", label: "Labels", time: "Time" };
    return Object.keys(ways).length > 1
      ? h(
          "div.ways",
          { role: "group", "aria-label": "Color of documents" },
          Object.keys(ways).map((name) =>
            h(
              "button.save",
              {
                type: "button",
                "aria-pressed": String(name === way),
                onclick: () => {
                  way = name;
                  remember({ color: name === "topic" ? "" : name });
                  recolor();
                  if (isFiltered) narrowed();
                  else overview();
                },
              },
              names[name],
            ),
          ),
        )
      : null;
  }

  function overview() {
    const { key, ends } = colored;
    panel.replaceChildren(
      ...[
        wayButtons(),
        way === "topic" && h("h2", {}, Object.keys(ways).length > 1 ? "" : "Topics"),
        way === "topic" &&
          shareList(level.order.map((topic) => topicRow(topic, level.weights[topic]))),
        key &&
          h(
            "ul.shares",
            {},
            key.map(({ name, color, documents }) =>
              h(
                "li",
                {},
                h(
                  "div.line",
                  {},
                  h(
                    "span",
                    {},
                    h("span.dot", {
                      classes: color < 0 ? "none" : `d${color % 12} ${color < 12 ? "" : "darker"}`,
                    }),
                    name === OTHER ? OTHER : h("a", { href: address("labels", name) }, name),
                  ),
                  h("span.figure", {}, count(documents, "document")),
                ),
              ),
            ),
          ),
        ends && h("div.ramp", {}, h("span", {}, ends[0]), h("span", {}, ends[1])),
      ].filter((part) => part),
    );
  }

  function showCard(point, px, py) {
    if (point < 0) {
      hint.hidden = true;
      return;
    }
    const d = map.documents[point];
    const parts = [];
    for (let i = map.starts[d]; i < map.starts[d + 1]; i++)
      parts.push([map.topics[i], map.shares[i]]);
    parts.sort((a, b) => b[1] - a[1]);
    const { titles: all, times } = map.section;
    const quote = h("p.quote");
    hint.replaceChildren(
      h("a", { href: documentAddress(d) }, all[d] || `Document ${d}`),
      times?.[d] ? h("span.quiet", {}, times[d]) : "",
      quote,
      h(
        "ul.plain",
        {},
        parts
          .filter(([topic, share]) => share >= 0.1 && !model.gone.has(topic))
          .slice(0, 3)
          .map(([topic, share]) =>
            h("li", {}, chip(topic), ` ${topicName(topic)} `, h("span.figure", {}, percent(share))),
          ),
      ),
    );
    hint.hidden = false;
    hint.dataset.document = String(d);
    const [width, height] = [chart.width, chart.height];
    const [left, top] = [px + 18 + 300 > width ? px - 318 : px + 18, Math.min(py, height - 190)];
    hint.style.setProperty("transform", `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`);
    showQuote(d, quote);
  }

  const showQuote = later(async (/** @type {number} */ d, /** @type {Element} */ quote) => {
    const text = await textOf(d);
    if (!text || hint.dataset.document !== String(d)) return;
    const plain = text.replace(/\s+/g, " ").trim();
    const cut = plain.slice(0, QUOTE_LENGTH);
    quote.textContent =
      plain.length > QUOTE_LENGTH ? cut.slice(0, cut.lastIndexOf(" ") + 1) + "…" : plain;
  }, 80);

  const button = (label, sign, act, pressed) =>
    h(
      "button",
      { type: "button", title: label, "aria-label": label, "aria-pressed": pressed, onclick: act },
      sign,
    );
  const toolButtons = ["lasso", "box"].map((tool) =>
    button(`Select an area: ${tool}`, tool === "lasso" ? "◌" : "▢", () => use(tool), "false"),
  );
  function use(tool) {
    chart.tool = chart.tool === tool ? "move" : tool;
    chart.element.classList.toggle("selecting", chart.tool !== "move");
    toolButtons.forEach((made, i) =>
      made.setAttribute("aria-pressed", String(chart.tool === ["lasso", "box"][i])),
    );
  }
  const finest = Math.max(...map.names.map(({ level }) => level), model.K);
  return h(
    "div.map-view",
    {},
    chart.element,
    hint,
    h(
      "div.map-title.on-map",
      {},
      h(
        "h1",
        {},
        subset.isWhole
          ? count(model.n_documents, "document")
          : `${wholeNumber.format(subset.size)} of ${count(model.n_documents, "document")}`,
      ),
      h(
        "p.lead",
        {},
        count(level.size, "topic") +
          (finest > level.size ? `, ${finest} at the finest level` : "") +
          (map.size < model.n_documents ? `; the map shows ${count(map.size, "document")}` : ""),
      ),
    ),
    h(
      "div.map-tools.on-map",
      { role: "group", "aria-label": "Map" },
      button("Enlarge", "+", () => chart.zoom(1.5)),
      button("Reduce", "−", () => chart.zoom(1 / 1.5)),
      button("Show all", "⤢", () => chart.fit()),
      toolButtons,
    ),
    panel,
    h(
      "p.map-help.on-map",
      {},
      "Drag to move, wheel to zoom, Shift + drag to select an area. " +
        (finest > level.size ? "Names of finer topics appear as you zoom in." : ""),
    ),
  );
}
