// Labels: topics by label, and the words that set a label apart.

// The share of each label's tokens in each topic, labels x topics, and the tokens of each label.
let labelTable = null;
function topicsByLabel() {
  if (labelTable) return labelTable;
  const { names, of } = corpus.labelled;
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

// Where a topic's tokens are: the share of each label.
function labelsOfTopic(topic) {
  const { shares, tokens } = topicsByLabel();
  const all = model.weights[topic] * model.n_tokens;
  return shares.map((row, label) => (all > 0 ? Math.min(1, (row[topic] * tokens[label]) / all) : 0));
}

// The words that set a label apart, as metrics.words_apart: the log of the ratio of their odds inside and outside, over
// its standard error (Monroe, Colaresi and Quinn 2008), with a prior of 0.01 counts a word on the average.
function wordsOfLabel(label, most) {
  const V = model.n_words;
  const [inside, totals] = [new Float64Array(V), new Float64Array(V)];
  const { of } = corpus.labelled;
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
  const [all, own] = [sum(totals), sum(inside)];
  const pseudo = 0.01 * totals.reduce((seen, n) => seen + (n > 0), 0);
  if (!(own > 0 && own < all)) return [];
  const scores = totals.map((total, w) => {
    if (!(total > 0)) return 0;
    const prior = (pseudo * total) / all;
    const logOdds = (y, n) => Math.log((y + prior) / (n + pseudo - y - prior));
    const [y, rest] = [inside[w], total - inside[w]];
    return (logOdds(y, own) - logOdds(rest, all - own)) / Math.sqrt(1 / (y + prior) + 1 / (rest + prior));
  });
  return largest(scores, most).map((word) => ({ word, weight: scores[word], times: inside[word] / own / (totals[word] / all) }));
}

function viewLabels(argument) {
  if (!corpus.labelled) return notHere("The documents have no labels.", "Give some when fitting, with --label.");
  const { names } = corpus.labelled;
  if (argument !== undefined) {
    const label = names.indexOf(argument);
    return label < 0 ? notHere(`There is no label “${argument}”.`) : oneLabel(label);
  }
  const { shares, documents } = topicsByLabel();
  const order = Array.from(names.keys()).sort((a, b) => documents[b] - documents[a] || a - b).slice(0, 40).sort((a, b) => a - b);
  const rows = model.order.map((topic) => ({ label: `${topic}  ${topicName(topic)}`, href: topicAddress(topic), classes: colourOf(topic) }));
  const columns = order.map((label) => ({ label: names[label], href: address("labels", names[label]) }));
  const values = model.order.map((topic) => order.map((label) => shares[label][topic]));
  const describe = (i, j, value) => `topic ${model.order[i]} in ${columns[j].label}: ${percent(value)}`;
  const drawn = chart((width) => matrix(width, { rows, columns, values, label: "Topics by label", describe }));
  return [
    h("div.title", {}, h("h1", {}, count(names.length, "label")), h("p.lead", {}, "Choose a label for its topics and the words that set it apart.")),
    card("Topics by label", h("div.scroll", { tabindex: 0, role: "group", "aria-label": "Topics by label" }, drawn), {
      note: `The darker, the larger the topic’s share of the label’s tokens.${names.length > 40 ? " The 40 most frequent labels." : ""}`,
      save: { name: "topics by label", chart: true, rows: () => [["topic", "name", ...names], ...model.order.map((topic) => [topic, topicName(topic), ...names.map((_, label) => shares[label][topic])])] } }),
    card("All labels", h("ul.words", {}, names.map((name, label) => h("li", {}, h("a", { href: address("labels", name) }, name), h("span.quiet", {}, wholeNumber.format(documents[label])))))),
  ];
}
viewLabels.needs = loadCorpus;

function oneLabel(label) {
  const { names, of } = corpus.labelled;
  const { shares, documents, tokens } = topicsByLabel();
  const words = wordsOfLabel(label, 30);
  const weights = new Float64Array(model.n_documents);
  for (let d = 0; d < model.n_documents; d++) {
    for (let i = of.starts[d]; i < of.starts[d + 1]; i++) if (of.columns[i] === label) weights[d] = corpus.tokens[d];
  }
  const vector = unitOf(shares[label]);
  for (let d = 0; d < weights.length; d++) {
    if (weights[d] > 0) weights[d] = corpus.lengths[d] > 0 ? weightsOf(d).reduce((sum, w, k) => sum + w * vector[k], 0) / corpus.lengths[d] : 0;
  }
  const typical = largest(weights, 10);
  return [
    h("div.title", {}, h("h1", {}, names[label]), h("p.lead", {}, `${count(documents[label], "document")}, ${count(tokens[label], "token")}. `, h("a", { href: address("labels") }, "All labels"))),
    h("div.columns", {},
      card("Words that set it apart", words.length ? chart((width) => bars(width, words.map(({ word, weight, times }) => ({
        label: model.words[word], href: wordAddress(word), value: weight, shown: `×${times.toPrecision(2)}`,
        title: `${model.words[word]}: ${times.toPrecision(3)} times as frequent as in all documents; score ${weight.toFixed(1)}`,
      })), { label: `Words of ${names[label]}` })) : empty("No words set it apart."), {
        note: "By the log of the ratio of their odds here and elsewhere, over its standard error; the figure is how many times as frequent they are as in all documents.",
        save: { name: `words of ${names[label]}`, chart: words.length > 0, rows: () => [["word", "score", "times as frequent"], ...words.map(({ word, weight, times }) => [model.words[word], weight, times])] } }),
      h("div.stack", {},
        card("Topics", topicShares(shares[label], `Topics of ${names[label]}`, { most: 10 }), { save: { name: `topics of ${names[label]}`, chart: true, rows: () => topicRows(shares[label]) } }),
        card("Typical documents", documentList(typical.map((d) => ({ document: d, shown: decimal(weights[d], 2) }))), { note: "Those whose topics are nearest to the label’s as a whole." }))),
  ];
}
