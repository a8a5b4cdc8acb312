// The sections as objects to compute with: `model` (topics and words) and `corpus` (documents), and the functions with
// which the views query them.

let model = null; // from section "core"; every view has it
let corpus = null; // from sections "documents" and "counts"; await loadCorpus() first
let rules = null; // a WordRules; await loadRules() first

async function loadModel() {
  const core = await section("core");
  const K = core.n_topics;
  const starts = startsOf(fromVarints(core.topics_of_word, core.n_words));
  const values = Float64Array.from(core.word_logs, (code) => Math.exp(-code * core.log_step));
  const byWord = sparse(starts, core.word_topics, values);
  const order = Array.from(core.weights.keys())
    .sort((a, b) => (a in core.junk) - (b in core.junk) || core.weights[b] - core.weights[a] || a - b); // junk topics last
  const rank = new Uint32Array(K);
  order.forEach((topic, place) => (rank[topic] = place));
  model = { ...core, K, byWord, byTopic: transposed(byWord, K), order, rank };
  model.unigram = core.word_totals.map((total) => total / core.n_tokens);
  model.candidates = startsOf(fromVarints(core.candidates_of_topic, K));
  model.documents = core.topic_documents.reduce((sum, n) => sum + n, 0);
  return model;
}

let loadingCorpus = null;
function loadCorpus() {
  loadingCorpus ??= Promise.all([section("documents"), section("counts")]).then(([documents, counts]) => {
    corpus = corpusOf(documents, counts);
    return corpus;
  });
  return loadingCorpus;
}

let loadingRules = null;
function loadRules() {
  loadingRules ??= section("rules").then((found) => (rules = new WordRules(found, model.words)));
  return loadingRules;
}

function corpusOf(documents, counts) {
  const { n_documents: N, n_words: V, K } = model;
  const frequency = fromVarints(counts.documents_of, V);
  const starts = startsOf(frequency);
  const size = starts[V];
  const rows = fromVarints(counts.gaps, size);
  for (let word = 0; word < V; word++) {
    let before = -1;
    for (let i = starts[word]; i < starts[word + 1]; i++) before = rows[i] += before + 1;
  }
  const values = counts.amounts ?? fromVarints(counts.counts, size);
  const byWord = sparse(starts, rows, values);
  const idf = Float64Array.from(frequency, (n) => Math.log((1 + N) / (1 + n)) + 1);
  const squares = new Float64Array(N);
  const tokens = new Float64Array(N);
  for (let word = 0; word < V; word++) {
    for (let i = starts[word]; i < starts[word + 1]; i++) {
      tokens[rows[i]] += values[i];
      squares[rows[i]] += (values[i] * idf[word]) ** 2;
    }
  }
  const topicStarts = startsOf(fromVarints(documents.topics_of_document, N));
  const shares = Float32Array.from(documents.document_shares, (code) => code / model.shares);
  const topics = sparse(topicStarts, documents.document_topics, shares);
  const lengths = new Float64Array(N);
  for (let d = 0; d < N; d++) {
    let sum = 0;
    for (let i = topicStarts[d]; i < topicStarts[d + 1]; i++) sum += shares[i] ** 2;
    lengths[d] = Math.sqrt(sum);
  }
  const labeled = documents.labels && {
    names: documents.labels,
    of: sparse(startsOf(documents.labels_of_document), documents.document_labels, documents.document_labels),
  };
  const groups = Uint32Array.from({ length: N }, (_, d) => d); // the first document in the group of near-duplicates of each document
  documents.copies?.forEach((d, i) => (groups[d] = documents.firsts[i]));
  const groupSizes = new Uint32Array(N);
  for (const first of groups) groupSizes[first]++;
  return {
    ...documents, byWord, idf, tokens, topics, lengths, labeled, frequency, groups, groupSizes,
    scale: squares.map((square) => (square > 0 ? 1 / Math.sqrt(square) : 0)),
    byDocument: transposed(byWord, N), byTopic: transposed(topics, K),
    typical: startsOf(fromVarints(documents.typical_of_topic, K)),
  };
}

// Returns the counts of a document in the form of WordRules.counts.
function countsOfDocument(d) {
  const { starts, columns, values } = corpus.byDocument;
  return { words: columns.subarray(starts[d], starts[d + 1]), values: values.subarray(starts[d], starts[d + 1]) };
}

// P(z|d), K numbers.
function weightsOf(d) {
  const theta = new Float64Array(model.K);
  const { starts, columns, values } = corpus.topics;
  for (let i = starts[d]; i < starts[d + 1]; i++) theta[columns[i]] = values[i];
  return theta;
}

function textOf(d) {
  const starts = model.text_starts;
  if (!starts.length) return Promise.resolve(null);
  let number = starts.length - 1;
  while (starts[number] > d) number--;
  return section("texts" + number).then(({ texts }) => texts[d - starts[number]]);
}

// Returns the positions of the `count` largest positive values in decreasing order; of equal values, the first ones.
function largest(values, count) {
  const places = [];
  let least = 0;
  for (let i = 0; i < values.length; i++) {
    if (!(values[i] > least)) continue;
    places.push(i);
    if (places.length >= 4 * count + 64) least = cut();
  }
  cut();
  return places;

  function cut() {
    places.sort((a, b) => values[b] - values[a] || a - b);
    places.length = Math.min(places.length, count);
    return places.length < count ? 0 : values[places[count - 1]];
  }
}

// Sets the values of documents to zero, except for the best document of each group of near-duplicates; of equal values,
// the first one stays.
function oneOfEach(values, documentOf = (i) => i) {
  const best = new Map();
  for (let i = 0; corpus.copies && i < values.length; i++) {
    const group = corpus.groups[documentOf(i)];
    if (!(values[i] > 0) || corpus.groupSizes[group] < 2) continue;
    const before = best.get(group);
    if (before !== undefined && values[before] >= values[i]) values[i] = 0;
    else {
      if (before !== undefined) values[before] = 0;
      best.set(group, i);
    }
  }
  return values;
}

// P(w|z).
function probabilityOf(word, topic) {
  const { starts, columns, values } = model.byWord;
  for (let i = starts[word]; i < starts[word + 1]; i++) if (columns[i] === topic) return values[i];
  return 0;
}

// Returns the words of a topic by relevance, as metrics/words.py ranks them:
//   lambda log(n / D_z) + (1 - lambda) log((n / D_z) / (df / D)), rounded to four decimals,
// where n is the expected number of documents that use the word in this topic, D_z that of the topic, df the number of
// documents with the word, and D the number of all documents.
function relevantWords(topic, lambda, count) {
  const found = [];
  for (let i = model.candidates[topic]; i < model.candidates[topic + 1]; i++) {
    const [word, n, df] = [model.candidate_words[i], model.candidate_documents[i], model.candidate_frequency[i]];
    const exact = Math.log(n / model.topic_documents[topic]) - (1 - lambda) * Math.log(df / model.documents);
    const relevance = n > 0 ? Math.round(exact * 1e4) / 1e4 : -1e9;
    found.push({ word, p: probabilityOf(word, topic), relevance, inTopic: n, overall: df });
  }
  const rare = ({ inTopic }) => inTopic < model.least_documents;
  found.sort((a, b) => rare(a) - rare(b) || b.relevance - a.relevance || (a.inTopic > 0 ? 0 : b.p - a.p) || a.word - b.word);
  return found.slice(0, count);
}

const wordsKept = new Map();
// Returns the words shown for a topic.
function topWords(topic, count) {
  if (!wordsKept.has(topic)) wordsKept.set(topic, relevantWords(topic, model.relevance, 15).map(({ word }) => model.words[word]));
  return wordsKept.get(topic).slice(0, count);
}

// Returns the documents that a topic explains best relative to their length: see runs/documents.py.
function typicalDocuments(topic) {
  const [from, to] = [corpus.typical[topic], corpus.typical[topic + 1]];
  return Array.from(corpus.typical_documents.subarray(from, to), (d, i) => {
    const share = weightsOf(d)[topic];
    return { document: d, share, tokens: share * corpus.tokens[d], nats: corpus.typical_nats[from + i] };
  });
}

// Returns the documents with the most tokens of a topic, by their expected number n_d P(z|d).
function largestDocuments(topic, count) {
  const { starts, columns, values } = corpus.byTopic;
  const expected = values.slice(starts[topic], starts[topic + 1]);
  expected.forEach((share, i) => (expected[i] = share * corpus.tokens[columns[starts[topic] + i]]));
  return largest(oneOfEach(expected, (i) => columns[starts[topic] + i]), count).map((i) => ({
    document: columns[starts[topic] + i], share: values[starts[topic] + i], tokens: expected[i],
  }));
}

// P(z|w), largest first, as [{topic, share}].
function sensesOf(word) {
  const { starts, columns, values } = model.byWord;
  const found = [];
  let total = 0;
  for (let i = starts[word]; i < starts[word + 1]; i++) {
    const joint = values[i] * model.weights[columns[i]];
    if (joint > 0) found.push({ topic: columns[i], share: joint });
    total += joint;
  }
  found.forEach((sense) => (sense.share /= total));
  return found.sort((a, b) => b.share - a.share || a.topic - b.topic);
}

// Returns the words that distinguish a distribution p from the unigram, by p log(p / P(w)), without the word `without`
// and without hidden words.
function telling(p, count, without = -1) {
  const parts = p.map((value, w) => (value > 0 && model.unigram[w] > 0 && w !== without && !model.hidden.includes(w) ? value * Math.log(value / model.unigram[w]) : 0));
  return largest(parts, count).map((word) => ({ word, weight: parts[word] }));
}

// Returns the words that are typical of the topics of a word.
function neighborsOf(word, count) {
  const p = new Float64Array(model.n_words);
  const { starts, columns, values } = model.byTopic;
  for (const { topic, share } of sensesOf(word)) {
    for (let i = starts[topic]; i < starts[topic + 1]; i++) p[columns[i]] += share * values[i];
  }
  return telling(p, count, word);
}

// Returns the documents that use a word most in each of some senses, by its count times P(z|d,w): a list for each topic.
function documentsOfSenses(word, topics, count) {
  const { starts, columns, values } = corpus.byWord;
  const { byWord, inference, background } = model;
  const beta = inference.temperature;
  const phi = new Float64Array(model.K);
  for (let j = byWord.starts[word]; j < byWord.starts[word + 1]; j++) phi[byWord.columns[j]] = (1 - inference.background) * byWord.values[j];
  const common = background ? (inference.background * background[word]) ** beta : 0;
  const place = new Int32Array(model.K).fill(-1);
  topics.forEach((topic, i) => (place[topic] = i));
  const tokens = topics.map(() => new Float64Array(starts[word + 1] - starts[word]));
  const theta = corpus.topics;
  for (let i = starts[word]; i < starts[word + 1]; i++) {
    const d = columns[i];
    let total = common;
    for (let j = theta.starts[d]; j < theta.starts[d + 1]; j++) {
      const k = theta.columns[j];
      const joint = beta === 1 ? theta.values[j] * phi[k] : (theta.values[j] * phi[k]) ** beta;
      total += joint;
      if (place[k] >= 0) tokens[place[k]][i - starts[word]] = values[i] * joint;
    }
    if (total > 0) for (const list of tokens) list[i - starts[word]] /= total;
  }
  return tokens.map((list) => largest(oneOfEach(list, (i) => columns[starts[word] + i]), count).map((i) => ({ document: columns[starts[word] + i], tokens: list[i] })));
}
