// Labels: topics by label, and the words that set a label apart.

// Returns the share of each label's tokens in each topic, labels x topics, and the tokens and documents of each label.
let labelTable = null;
function topicsByLabel() {
  if (labelTable) return labelTable;
  const { names, of } = corpus.labeled;
  const table = names.map(() => new Float64Array(model.K));
  const tokens = new Float64Array(names.length);
  const documents = new Uint32Array(names.length);
  const { starts, columns, values } = corpus.topics;
  for (let d = 0; d < model.n_documents; d++) {
    for (let i = of.starts[d]; i < of.starts[d + 1]; i++) {
      const label = of.columns[i];
      tokens[label] += corpus.tokens[d];
      documents[label]++;
      for (let j = starts[d]; j < starts[d + 1]; j++) table[label][columns[j]] += corpus.tokens[d] * values[j];
    }
  }
  labelTable = { shares: table.map((row, label) => row.map((n) => (tokens[label] > 0 ? n / tokens[label] : 0))), tokens, documents };
  return labelTable;
}

// Returns the share of a topic's tokens in the documents of each label.
function labelsOfTopic(topic) {
  const { shares, tokens } = topicsByLabel();
  const all = model.weights[topic] * model.n_tokens;
  return shares.map((row, label) => (all > 0 ? Math.min(1, (row[topic] * tokens[label]) / all) : 0));
}

// Returns the words that set a label apart, as in metrics.distinctive_words: by the log of the ratio of their odds inside
// and outside, divided by its standard error (Monroe, Colaresi and Quinn 2008), with a prior of 0.01 counts per word on
// average.
function wordsOfLabel(label, most) {
  const V = model.n_words;
  const [inside, totals] = [new Float64Array(V), new Float64Array(V)];
  const { of } = corpus.labeled;
  for (let d = 0; d < model.n_documents; d++) {
    if (of.starts[d] === of.starts[d + 1]) continue;
    const has = of.columns.subarray(of.starts[d], of.starts[d + 1]).includes(label);
    const { words, values } = countsOfDocument(d);
    for (let i = 0; i < words.length; i++) {
      totals[words[i]] += values[i];
      if (has) inside[words[i]] += values[i];
    }
  }
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  const [all, within] = [sum(totals), sum(inside)];
  const pseudo = 0.01 * totals.reduce((seen, n) => seen + (n > 0), 0);
  if (!(within > 0 && within < all)) return [];
  const scores = totals.map((total, w) => {
    if (!(total > 0)) return 0;
    const prior = (pseudo * total) / all;
    const logOdds = (y, n) => Math.log((y + prior) / (n + pseudo - y - prior));
    const [y, rest] = [inside[w], total - inside[w]];
    return (logOdds(y, within) - logOdds(rest, all - within)) / Math.sqrt(1 / (y + prior) + 1 / (rest + prior));
  });
  return largest(scores, most).map((word) => ({ word, weight: scores[word], times: inside[word] / within / (totals[word] / all) }));
}

function viewLabels(argument) {
  if (!corpus.labeled) return notHere("The documents have no labels.", "polyseme fit reads them with --label.");
  const { names } = corpus.labeled;
  if (argument !== undefined) {
    const label = names.indexOf(argument);
    return label < 0 ? notHere(`There is no label “${argument}”.`) : oneLabel(label);
  }
  const { documents } = topicsByLabel();
  const links = names.map((name, label) =>
    h("li", {}, h("a", { href: address("labels", name) }, name), h("span.quiet", {}, wholeNumber.format(documents[label]))));
  return [
    h("div.title", {},
      h("h1", {}, count(names.length, "label")),
      h("p.lead", {}, "Choose a label for its topics and the words that set it apart.")),
    matrixCard(),
    card("All labels", h("ul.words", {}, links)),
  ];
}
viewLabels.needs = loadCorpus;

const MOST_COLUMNS = 40;

function matrixCard() {
  const { names } = corpus.labeled;
  const { shares, documents } = topicsByLabel();
  const shown = Array.from(names.keys()).sort((a, b) => documents[b] - documents[a] || a - b)
    .slice(0, MOST_COLUMNS).sort((a, b) => a - b);
  const rows = model.order.map((topic) => ({
    label: `${topic}  ${topicName(topic)}`, href: topicAddress(topic), classes: colorOf(topic),
  }));
  const columns = shown.map((label) => ({ label: names[label], href: address("labels", names[label]) }));
  const values = model.order.map((topic) => shown.map((label) => shares[label][topic]));
  const describe = (i, j, value) => `topic ${model.order[i]} in ${columns[j].label}: ${percent(value)}`;
  const drawn = chart((width) => matrix(width, { rows, columns, values, label: "Topics by label", describe }));
  const few = names.length > MOST_COLUMNS ? ` The ${MOST_COLUMNS} most frequent labels.` : "";
  const saved = () => [
    ["topic", "name", ...names],
    ...model.order.map((topic) => [topic, topicName(topic), ...names.map((_, label) => shares[label][topic])]),
  ];
  return card("Topics by label", h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Topics by label" }, drawn), {
    note: `The darker, the larger the topic’s share of the label’s tokens.${few}`,
    save: { name: "topics by label", chart: true, rows: saved },
  });
}

function oneLabel(label) {
  const name = corpus.labeled.names[label];
  const { shares, documents, tokens } = topicsByLabel();
  const typical = typicalOfLabel(label, shares[label], 10);
  return [
    h("div.title", {},
      h("h1", {}, name),
      h("p.lead", {}, `${count(documents[label], "document")}, ${count(tokens[label], "token")}. `,
        h("a", { href: address("labels") }, "All labels"))),
    h("div.columns", {},
      apartCard(label, name),
      h("div.stack", {},
        card("Topics", topicShares(shares[label], `Topics of ${name}`, { most: 10 }), {
          save: { name: `topics of ${name}`, chart: true, rows: () => topicRows(shares[label]) },
        }),
        card("Typical documents", documentList(typical), {
          note: "The documents whose topics are most similar to those of the label as a whole.",
        }))),
  ];
}

function apartCard(label, name) {
  const words = wordsOfLabel(label, 30);
  const rows = words.map(({ word, weight, times }) => ({
    label: model.words[word], href: wordAddress(word), value: weight, shown: `×${times.toPrecision(2)}`,
    title: `${model.words[word]}: ${times.toPrecision(3)} times as frequent as in all documents; score ${weight.toFixed(1)}`,
  }));
  const drawn = rows.length ? chart((width) => bars(width, rows, { label: `Words of ${name}` })) : empty("No words set it apart.");
  return card("Words that set it apart", drawn, {
    note: "By the log of the ratio of their odds here and elsewhere, divided by its standard error; the figure says how " +
      "many times as frequent they are as in all documents.",
    save: {
      name: `words of ${name}`, chart: rows.length > 0,
      rows: () => [["word", "score", "times as frequent"], ...words.map(({ word, weight, times }) => [model.words[word], weight, times])],
    },
  });
}

// Returns the documents of a label by the cosine of their topics with those of the label.
function typicalOfLabel(label, shares, most) {
  const { of } = corpus.labeled;
  const vector = unitOf(shares);
  const { starts, columns, values } = corpus.topics;
  const near = new Float64Array(model.n_documents);
  for (let d = 0; d < near.length; d++) {
    if (!of.columns.subarray(of.starts[d], of.starts[d + 1]).includes(label) || !(corpus.tokens[d] > 0)) continue;
    for (let i = starts[d]; i < starts[d + 1]; i++) near[d] += (values[i] * vector[columns[i]]) / corpus.lengths[d];
  }
  return largest(oneOfEach(near), most).map((d) => ({ document: d, shown: decimal(near[d], 2) }));
}
