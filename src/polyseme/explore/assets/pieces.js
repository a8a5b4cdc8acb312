// Pieces that several views share: addresses, chips of topics, lists of documents, cards.

const COLORS = 10;

function address(view, argument, settings = {}) {
  const query = Object.entries(settings).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#/${view}` + (argument === undefined ? "" : "/" + encodeURIComponent(argument)) +
    (query.length ? "?" + query.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&") : "");
}
const topicAddress = (topic) => address("topic", topic);
const documentAddress = (d) => address("document", d);
const wordAddress = (word) => address("word", model.words[word]);

// Colors are given by the rank of a topic's weight; topics of the same color differ in the line below their words.
function colorOf(topic) {
  if (topic < 0) return "none";
  const rank = model.rank[topic];
  return `c${rank % COLORS} u${Math.floor(rank / COLORS) % 4}`;
}

// Returns the name of a topic, or its first three words if it has no name.
function topicName(topic) {
  return model.topic_names[topic] ?? topWords(topic, 3).join(", ");
}
const topicTitle = (topic) => `Topic ${topic}: ${topicName(topic)}`;

// The number of a topic on the color of the topic.
function chip(topic) {
  return h("span.chip", { classes: colorOf(topic) }, String(topic));
}

function topicLink(topic) {
  return h("a.topic", { href: topicAddress(topic), "aria-label": topicTitle(topic) }, chip(topic), h("span", {}, topicName(topic)));
}

function wordLink(word) {
  return h("a.word", { href: wordAddress(word) }, model.words[word]);
}

function documentLink(d) {
  return h("a", { href: documentAddress(d) }, corpus.titles[d] || `Document ${d}`);
}

// The number of near-duplicates that a listed document represents.
function copiesOf(d) {
  const copies = corpus.groupSizes[corpus.groups[d]] - 1;
  return copies > 0 && h("span.quiet", {}, `and ${count(copies, "near-duplicate")}`);
}

// A bar with a width between 0 and 1, beside a figure.
function meter(share, classes = "") {
  const width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(2)}%`;
  return h("span.meter", { "aria-hidden": "true" }, h("span.filled", { classes, style: { width } }));
}

// A card with a heading, and buttons to save what it shows.
function card(title, content, { note, save, classes = "" } = {}) {
  const chartIn = save?.chart && content instanceof Node ? content : null;
  return h("section.card", { classes },
    h("div.head", {}, h("h2", {}, title), save && saveButtons(save.name ?? title, save.rows, chartIn)),
    note && h("p.note", {}, note), content);
}

// The shares of topics as bars, without the smallest ones.
function topicShares(shares, label, { most = 8, least = 0.005 } = {}) {
  const found = Array.from(shares, (share, topic) => ({ topic, share })).filter(({ share }) => share >= least)
    .sort((a, b) => b.share - a.share).slice(0, most);
  if (!found.length) return empty("No topic has any share here.");
  const rows = found.map(({ topic, share }) => ({
    label: `${topic}  ${topicName(topic)}`, href: topicAddress(topic), value: share, shown: percent(share), classes: colorOf(topic),
    title: topicTitle(topic),
  }));
  return chart((width) => bars(width, rows, { label, labelWidth: Math.min(260, width * 0.55) }));
}

function topicRows(shares) {
  return [["topic", "name", "share"], ...Array.from(shares, (share, topic) => [topic, topicName(topic), share])
    .filter(([, , share]) => share > 0).sort((a, b) => b[2] - a[2])];
}

// The main topics of a document as one narrow bar.
function mixture(d) {
  const { starts, columns, values } = corpus.topics;
  const parts = [];
  for (let i = starts[d]; i < starts[d + 1]; i++) parts.push([columns[i], values[i]]);
  parts.sort((a, b) => b[1] - a[1]);
  const summary = parts.slice(0, 3).map(([topic, share]) => `topic ${topic} ${percent(share)}`).join(", ");
  return h("span.mixture", { role: "img", "aria-label": summary || "no topics", title: summary },
    parts.slice(0, 12).map(([topic, share]) => h("span", { classes: colorOf(topic), style: { "flex-grow": share } })));
}

function labelLinks(d) {
  if (!corpus.labeled) return [];
  const { names, of } = corpus.labeled;
  return Array.from(of.columns.subarray(of.starts[d], of.starts[d + 1]), (label) =>
    h("a.tag", { href: address("labels", names[label]) }, names[label]));
}

// A list of documents: [{document, shown (a figure), detail (nodes)}].
function documentList(items) {
  return h("ol.documents", {}, items.map(({ document: d, shown, detail }) =>
    h("li", {},
      h("div.line", {}, documentLink(d), shown && h("span.figure", {}, shown)),
      h("div.line.small", {}, mixture(d), labelLinks(d), corpus.times?.[d] && h("span.quiet", {}, corpus.times[d]), copiesOf(d)),
      detail)));
}

// Hits of a search: title and score, a snippet with the words of the query, reasons, main topic. Resolves to a list.
// Without words, as in a search with a document, marks the words that both contain and that add most to the score.
async function hitList(hits, words = null, phrases = []) {
  const texts = await Promise.all(hits.map(({ document: d }) => textOf(d)));
  return h("ol.documents", {}, hits.map(({ document: d, score, term, latent, reasons }, i) => {
    const theta = weightsOf(d);
    const main = theta.indexOf(Math.max(...theta));
    return h("li", {},
      h("div.line", {}, documentLink(d), h("span.figure", { title: `words ${decimal(term)} + topics ${decimal(latent)}`, data: { score } }, decimal(score, 2))),
      texts[i] && h("p.snippet", {}, snippetOf(texts[i], words ?? reasons.filter(({ inQuery, inDocument }) => inQuery && inDocument).map(({ word }) => word), phrases).map(({ text, marked }) => (marked ? h("mark", {}, text) : text))),
      h("div.reasons", {}, reasons.map(({ word, weight, inQuery, inDocument }) =>
        h("a.reason", {
          href: wordAddress(word), classes: inQuery && inDocument ? "both" : inQuery ? "asked" : "found",
          title: `${inQuery && inDocument ? "in query and document" : inQuery ? "in the query, not in the document" : "in the document, not in the query"}: adds ${decimal(weight)}`,
        }, model.words[word]))),
      h("div.line.small", {}, corpus.tokens[d] > 0 && [topicLink(main), h("span.quiet", {}, percent(theta[main]))], labelLinks(d),
        corpus.times?.[d] && h("span.quiet", {}, corpus.times[d]), copiesOf(d)));
  }));
}

function hitRows(hits) {
  return [["rank", "document", "title", "score", "words", "topics", "because of"], ...hits.map((hit, i) => [
    i + 1, corpus.ids?.[hit.document] ?? corpus.titles[hit.document], corpus.titles[hit.document], hit.score, hit.term, hit.latent,
    hit.reasons.map(({ word }) => model.words[word]).join(" "),
  ])];
}

// A text with each word on the color of its most probable topic, and buttons that highlight one topic.
function coloredText(text, theta) {
  const tokens = new Map();
  const chosen = new Map();
  const spans = rules.marked(text).map(({ text: piece, column }) => {
    if (column === undefined) return piece;
    if (!chosen.has(column)) chosen.set(column, likeliest(model, theta, column));
    const { topic, share } = chosen.get(column);
    if (topic >= 0) tokens.set(topic, (tokens.get(topic) ?? 0) + 1);
    const hint = topic < 0 ? "common language" : `topic ${topic}, ${percent(share)}`;
    return h("span.w", { classes: colorOf(topic), title: hint, data: { topic, word: column } }, piece);
  });
  const body = h("div.text", { onclick: ({ target }) => target.dataset.word && go(wordAddress(Number(target.dataset.word))) }, spans);
  const buttons = [...tokens].sort((a, b) => b[1] - a[1]).slice(0, 10).map(([topic, n]) =>
    h("button.pick", {
      type: "button", "aria-pressed": "false", title: topicTitle(topic),
      onclick: ({ currentTarget }) => {
        const on = currentTarget.getAttribute("aria-pressed") !== "true";
        buttons.forEach((button) => button.setAttribute("aria-pressed", String(on && button === currentTarget)));
        body.classList.toggle("picked", on);
        for (const span of spans) if (span.dataset) span.classList.toggle("out", on && span.dataset.topic !== String(topic));
      },
    }, chip(topic), h("span", {}, topicName(topic)), h("span.quiet", {}, String(n))));
  return h("div", {},
    buttons.length ? h("div.legend", { role: "group", "aria-label": "Show the words of one topic" }, buttons) : null, body);
}
