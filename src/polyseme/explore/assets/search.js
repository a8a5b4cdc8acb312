// Search, as polyseme.retrieval.SearchIndex does it by default (bm25+topics, see retrieval/postings.py):
//   score(d) = bm25(d) + c [p(d) + s (I - p(d)) cos(F, P(z|d))],    s = 1 - (1 - rest) m^4
// with i_w = q_w idf_w, I = sum of i_w, p(d) = sum of i_w over the words that d contains, m the largest p(d) / I of a
// candidate, and F the mean of P(z|d) over the first documents by bm25(d) + c p(d), weighted by these. The constants are
// in model.search.

// Returns bm25(d) + c p(d) (term) and p(d) (covered) of all documents, and I (total).
function termScores(query) {
  const { n_documents: N, search: { weight, k1, b } } = model;
  const term = new Float64Array(N);
  const covered = new Float64Array(N);
  let total = 0;
  const mean = model.n_tokens > 0 ? model.n_tokens / N : 1;
  const { starts, columns, values } = corpus.byWord;
  query.words.forEach((word, i) => {
    if (starts[word] === starts[word + 1]) return;
    const amount = query.values[i] * rarityOf(word);
    total += amount;
    for (let j = starts[word]; j < starts[word + 1]; j++) {
      const d = columns[j];
      term[d] += amount * (values[j] / (values[j] + k1 * (1 - b + (b * corpus.tokens[d]) / mean)) + weight);
      covered[d] += amount;
    }
  });
  return { term, covered, total };
}

function rarityOf(word) {
  const n = corpus.frequency[word];
  return Math.log1p((model.n_documents - n + 0.5) / (n + 0.5));
}

// Returns F: the mean topics of some documents, weighted by their scores.
function topicsOfFirst(first, term) {
  const mean = new Float64Array(model.K);
  let total = 0;
  for (const d of first) {
    const theta = weightsOf(d);
    const sum = theta.reduce((a, b) => a + b, 0);
    if (sum > 0) theta.forEach((share, k) => (mean[k] += (term[d] * share) / sum));
    total += term[d];
  }
  return mean.map((share) => share / total);
}

// Returns the documents with the largest cosine to a topic.
function typicalOf(topic, count, allowed) {
  const { starts, columns, values } = corpus.byTopic;
  const cosine = new Float64Array(model.n_documents);
  for (let i = starts[topic]; i < starts[topic + 1]; i++) {
    const d = columns[i];
    if (corpus.tokens[d] > 0 && (!allowed || allowed[d])) cosine[d] = values[i] / corpus.lengths[d];
  }
  return largest(cosine, count);
}

function cosineOf(topics, length, d) {
  const { starts, columns, values } = corpus.topics;
  if (!(corpus.tokens[d] > 0 && corpus.lengths[d] > 0 && length > 0)) return 0;
  let sum = 0;
  for (let i = starts[d]; i < starts[d + 1]; i++) sum += topics[columns[i]] * values[i];
  return Math.min(1, sum / (length * corpus.lengths[d]));
}

// Returns the best documents for counts: {order, scores, term, latent, topics}. `allowed` says for each document whether
// it may be returned (null: all may), `topics` is F if it is known, and `once` says whether to return only one document
// of each group of near-duplicates.
function rank(query, count, { allowed = null, topics = null, once = true } = {}) {
  const { weight, rest, feedback, pool, leading, typical } = model.search;
  const { term, covered, total } = termScores(query);
  if (allowed) allowed.forEach((is, d) => is || (term[d] = 0));
  const first = largest(term, pool);
  if (!first.length) return { order: [], scores: term, term, latent: term, topics: null };
  topics ??= topicsOfFirst(first.slice(0, feedback), term);
  const length = Math.hypot(...topics);
  const order = Array.from(topics.keys()).sort((a, b) => topics[b] - topics[a] || a - b).slice(0, leading);
  const candidates = new Set([...first, ...order.flatMap((topic) => typicalOf(topic, typical, allowed))]);
  const latent = new Float64Array(model.n_documents);
  const most = Math.max(...Array.from(candidates, (d) => covered[d])) / total;
  const share = weight * (1 - (1 - rest) * most ** 4);
  for (const d of candidates) latent[d] = share * (total - covered[d]) * cosineOf(topics, length, d);
  const scores = term.map((value, d) => value + latent[d]);
  return { order: largest(once ? oneOfEach(scores.slice()) : scores, count), scores, term, latent, topics };
}

// Returns some documents of a ranking with the parts of their scores: [{document, score, term, latent, reasons}].
function explained(query, { scores, term, latent, topics }, documents, reasons) {
  const explain = explainer(query, topics);
  return documents.map((d) => ({
    document: d, score: scores[d], term: term[d], latent: latent[d], reasons: explain(d, latent[d]).slice(0, reasons),
  }));
}

// Returns the best documents for counts, and the topics of the query.
function search(query, count, { reasons = 6, ...options } = {}) {
  const ranking = rank(query, count, options);
  return { hits: explained(query, ranking, ranking.order, reasons), topics: ranking.topics };
}

// Returns the best documents for a text that may have phrases in quotation marks: {query, phrases, problem, hits, others,
// topics}. `hits` contain the phrases. A page without full texts cannot check this for all documents: `others` contain all
// words of the phrases, but not the phrases in the part of the text that the page has.
async function searchText(text, count, { reasons = 6 } = {}) {
  const { words, phrases, problem } = parsedQuery(text);
  const query = rules.counts(words);
  const found = { query, phrases: phrases.map(phrasePattern), problem, hits: [], others: [], topics: null };
  if (problem) return found;
  if (!phrases.length) return { ...found, ...search(query, count, { reasons }) };
  const ranking = rank(query, model.n_documents, { allowed: withAllWords(phrases), once: false });
  const [having, unknown] = [[], []];
  const listed = new Set(); // groups of near-duplicates
  for (const d of ranking.order) {
    if (having.length === count) break;
    if (listed.has(corpus.groups[d])) continue;
    const content = plainText((await textOf(d)) ?? "");
    if (found.phrases.every((pattern) => content.search(pattern) >= 0)) {
      having.push(d);
      listed.add(corpus.groups[d]);
    } else if (model.text !== "full" && unknown.length < count) unknown.push(d);
  }
  const [hits, others] = [having, unknown].map((documents) => explained(query, ranking, documents, reasons));
  return { ...found, hits, others, topics: ranking.topics };
}

// Returns the words and phrases of a query, as in retrieval/snippets.py, and what is wrong with its quotation marks.
function parsedQuery(text) {
  const parts = text.replace(/[\u201c-\u201f\u00ab\u00bb\uff02]/g, '"').split('"');
  const phrases = parts.filter((_, i) => i % 2).map(plainText);
  let problem = "";
  if (parts.length % 2 === 0) problem = "The query has a quotation mark without a partner: close the phrase, or remove the mark.";
  else if (phrases.some((phrase) => !IN_WORD.test(phrase))) problem = "The query has a phrase without words: put words between the quotation marks.";
  return { words: parts.join(" "), phrases, problem };
}

const IN_WORD = /[\p{L}\p{N}_]/u;
const WITHOUT_SPACES = /^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u9fff\uac00-\ud7a3\uf900-\ufaff\u{20000}-\u{3ffff}]/u;

// Returns a text on one line, in composed form, with straight apostrophes.
function plainText(text) {
  return text.normalize("NFC").replace(/[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g, " ")
    .replace(/^ | $/g, "").replace(/[\u2019\u02bc\uff07]/g, "'");
}

// Returns the expression that finds a phrase in a text of plainText, but not inside a longer word.
function phrasePattern(phrase) {
  const characters = Array.from(phrase);
  const [first, last] = [characters[0], characters[characters.length - 1]];
  const bounded = (character) => IN_WORD.test(character) && !WITHOUT_SPACES.test(character);
  const before = bounded(first) ? "(?<![\\p{L}\\p{N}_])" : "";
  const after = bounded(last) ? "(?![\\p{L}\\p{N}_]|'[\\p{L}\\p{N}_])" : "";
  return new RegExp(before + phrase.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + after, "giu");
}

// Returns a mask of the documents that contain all words of some phrases, alone or joined. Words that are not in the
// vocabulary are ignored; null if none is.
function withAllWords(phrases) {
  const { starts, columns } = corpus.byWord;
  const wanted = phrases.flatMap((phrase) => {
    if (!rules.phrases.length) return Array.from(rules.counts(phrase).words, (word) => [word]);
    const names = new Set(rules.separate(phrase).filter((name) => name !== BARRIER));
    return Array.from(names, (name) => model.words.flatMap((word, column) => (word.split("_").includes(name) ? [column] : [])));
  }).filter((found) => found.length);
  if (!wanted.length) return null;
  const allowed = new Uint8Array(model.n_documents).fill(1);
  for (const found of wanted) {
    const has = new Uint8Array(model.n_documents);
    for (const word of found) for (let i = starts[word]; i < starts[word + 1]; i++) has[columns[i]] = 1;
    has.forEach((is, d) => is || (allowed[d] = 0));
  }
  return allowed;
}

// Returns a function that lists, for a document and the latent part of its score, the words of query and document with
// what each adds to the score, in decreasing order. One half of the latent part is divided among the missing words of the
// query by i_w, one half among the words of the document by their shares in its topics: see retrieval/scores.py.
function explainer(query, topics) {
  const { weight, k1, b } = model.search;
  const inQuery = new Set(query.words);
  const mean = model.n_tokens > 0 ? model.n_tokens / model.n_documents : 1;
  return (d, latent) => {
    const counts = countsOfDocument(d);
    const count = new Map(Array.from(counts.words, (word, i) => [word, counts.values[i]]));
    const parts = new Map();
    const add = (word, value) => parts.set(word, (parts.get(word) ?? 0) + value);
    const missing = [];
    query.words.forEach((word, i) => {
      if (!corpus.frequency[word]) return;
      const amount = query.values[i] * rarityOf(word);
      const x = count.get(word) ?? 0;
      if (x > 0) add(word, amount * (x / (x + k1 * (1 - b + (b * corpus.tokens[d]) / mean)) + weight));
      else missing.push([word, amount]);
    });
    const amounts = missing.reduce((sum, [, amount]) => sum + amount, 0);
    if (latent > 0 && amounts > 0) {
      missing.forEach(([word, amount]) => add(word, (0.5 * latent * amount) / amounts));
      const theta = weightsOf(d);
      const shares = evidenceOf(counts, theta);
      const common = theta.map((share, k) => share * topics[k]);
      const evidence = Array.from(counts.words, (_, i) => dot(shares, i, common));
      const sum = evidence.reduce((a, b) => a + b, 0);
      if (sum > 0) counts.words.forEach((word, i) => add(word, (0.5 * latent * evidence[i]) / sum));
    }
    return [...parts]
      .filter(([, value]) => value !== 0)
      .sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .map(([word, value]) => ({ word, weight: value, inQuery: inQuery.has(word), inDocument: count.has(word) }));
  };
}

// Returns the share of each word in the weight of each topic: columns sum to one. Rows are sparse: {starts, columns,
// values}.
function evidenceOf(counts, theta) {
  const { byWord, inference, background } = model;
  const beta = inference.temperature;
  const starts = new Uint32Array(counts.words.length + 1);
  const columns = [];
  const values = [];
  const sums = new Float64Array(model.K);
  counts.words.forEach((word, row) => {
    let total = background ? (inference.background * background[word]) ** beta : 0;
    const from = values.length;
    for (let i = byWord.starts[word]; i < byWord.starts[word + 1]; i++) {
      const k = byWord.columns[i];
      if (theta[k] === 0) continue;
      const joint = ((1 - inference.background) * theta[k] * byWord.values[i]) ** beta;
      total += joint;
      columns.push(k);
      values.push(joint);
    }
    for (let i = from; i < values.length; i++) {
      values[i] = total > 0 ? (counts.values[row] * values[i]) / total : 0;
      sums[columns[i]] += values[i];
    }
    starts[row + 1] = values.length;
  });
  for (let i = 0; i < values.length; i++) if (sums[columns[i]] > 0) values[i] /= sums[columns[i]];
  return { starts, columns, values };
}

function dot(rows, row, vector) {
  let sum = 0;
  for (let i = rows.starts[row]; i < rows.starts[row + 1]; i++) sum += rows.values[i] * vector[rows.columns[i]];
  return sum;
}

const SNIPPET = 240; // characters

// Returns the part of a text with the most words and phrases of a query: pieces [{text, marked}].
function snippetOf(text, words, phrases = []) {
  const wanted = new Set(words);
  const parts = [];
  let place = 0;
  const line = text.normalize("NFC").replace(/\s+/g, " ").trim();
  const straight = line.replace(/[\u2019\u02bc\uff07]/g, "'");
  const spans = phrases.flatMap((pattern, i) => Array.from(straight.matchAll(pattern), ({ 0: found, index }) => [index, index + found.length, `phrase ${i}`]));
  for (const { text: piece, column } of rules.marked(line)) {
    const span = spans.find(([start, end]) => start <= place && place + piece.length <= end);
    const marked = span !== undefined || (column !== undefined && wanted.has(column));
    parts.push({ text: piece, start: place, marked, column: span?.[2] ?? column });
    place += piece.length;
  }
  const marks = parts.filter(({ marked }) => marked);
  let start = 0;
  let most = 0;
  for (const mark of marks) {
    const inside = marks.filter((other) => other.start >= mark.start && other.start + other.text.length <= mark.start + SNIPPET);
    const found = 1000 * new Set(inside.map(({ column }) => column)).size + inside.length;
    if (found <= most) continue;
    const last = inside.length ? inside[inside.length - 1] : mark;
    most = found;
    start = Math.max(0, mark.start - Math.floor(Math.max(0, SNIPPET - (last.start + last.text.length - mark.start)) / 2));
  }
  if (place <= SNIPPET || start < SNIPPET / 4) start = 0;
  const end = start + SNIPPET;
  const inside = parts.filter((part) => part.start >= start && part.start + part.text.length <= end);
  if (!inside.length) return [{ text: text.slice(0, SNIPPET) + (text.length > SNIPPET ? " …" : ""), marked: false }];
  const after = inside[inside.length - 1].start + inside[inside.length - 1].text.length < place;
  return [start > 0 && { text: "… " }, ...inside, after && { text: " …" }].filter(Boolean);
}

function unitOf(theta) {
  const length = Math.hypot(...theta);
  return length > 0 ? theta.map((value) => value / length) : theta;
}
