// Edits of topics that a reader makes in the page, as polyseme edit makes them: names, merged, hidden
// and deleted topics, and banned words. Topics are given by their numbers in the run.

import { fromVarints, startsOf, toVarints } from "./arrays.js";

/**
 * @typedef {object} Edits
 * @property {Record<number, string>} rename
 * @property {number[][]} merge groups, which become the topic with the smallest number
 * @property {number[]} hide
 * @property {number[]} delete
 * @property {string[]} ban
 *
 * @typedef {object} Editing what the run allows, and how a file of edits finds it
 * @property {string} topics digest of the topics
 * @property {number | null} level
 * @property {boolean} merges whether topics can be merged and deleted
 * @property {boolean} hides whether topics and words can be hidden
 * @property {boolean} phrases whether a banned word hides the phrases that contain it
 * @property {number[]} named topics whose names users have given
 */

/** @type {Edits} */
export const NO_EDITS = { rename: {}, merge: [], hide: [], delete: [], ban: [] };

const FORMAT = "polyseme edits 1";
const LONGEST_NAME = 80;

/**
 * Returns why a name cannot be given to a topic, or "" (runs/names.py).
 *
 * @param {string} name
 * @returns {string}
 */
export function nameProblem(name) {
  if (!name.trim()) return "Write a name.";
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(name)) return "A name has one line of plain characters.";
  if ([...name.trim()].length > LONGEST_NAME)
    return `A name has at most ${LONGEST_NAME} characters.`;
  if (/<\s*[a-zA-Z/!?]|\x60{3}/.test(name)) return "A name has no markup.";
  return "";
}

/**
 * Returns how many edits there are.
 *
 * @param {Edits} edits
 */
export function numberOfEdits({ rename, merge, hide, delete: deleted, ban }) {
  return Object.keys(rename).length + merge.length + hide.length + deleted.length + ban.length;
}

/**
 * @param {Edits} edits
 * @param {number} topic
 * @param {string} name
 * @returns {Edits}
 */
export function withName(edits, topic, name) {
  return { ...edits, rename: { ...edits.rename, [topic]: name.trim() } };
}

/**
 * Merges two topics, each of which may be merged already, and names the result.
 *
 * @param {Edits} edits
 * @param {number} a
 * @param {number} b
 * @param {string} name
 * @returns {Edits}
 */
export function withMerge(edits, a, b, name) {
  const group = [a, b].flatMap((topic) => groupOf(edits, topic)).sort((x, y) => x - y);
  const rename = { ...edits.rename };
  for (const topic of group) delete rename[topic];
  rename[group[0]] = name;
  const merge = edits.merge.filter((other) => !other.some((topic) => group.includes(topic)));
  return { ...edits, rename, merge: [...merge, group] };
}

/**
 * Returns the topics that are merged with a topic, and the topic.
 *
 * @param {Edits} edits
 * @param {number} topic
 * @returns {number[]}
 */
export function groupOf(edits, topic) {
  return edits.merge.find((group) => group.includes(topic)) ?? [topic];
}

/**
 * @param {Edits} edits
 * @param {number} topic
 * @returns {Edits}
 */
export function withHidden(edits, topic) {
  return { ...edits, hide: [...edits.hide, topic] };
}

/**
 * Deletes a topic, and the topics that are merged with it.
 *
 * @param {Edits} edits
 * @param {number} topic
 * @returns {Edits}
 */
export function withoutTopic(edits, topic) {
  const gone = groupOf(edits, topic);
  const rename = { ...edits.rename };
  for (const one of gone) delete rename[one];
  return {
    ...edits,
    rename,
    merge: edits.merge.filter((group) => !group.includes(topic)),
    hide: edits.hide.filter((one) => !gone.includes(one)),
    delete: [...edits.delete, ...gone],
  };
}

/**
 * @param {Edits} edits
 * @param {string} word
 * @returns {Edits}
 */
export function withBan(edits, word) {
  return edits.ban.includes(word) ? edits : { ...edits, ban: [...edits.ban, word] };
}

/**
 * Returns the topic that each topic becomes a part of.
 *
 * @param {Edits} edits
 * @param {number} K
 * @returns {Uint32Array}
 */
export function targetsOf({ merge }, K) {
  const targets = Uint32Array.from({ length: K }, (_, topic) => topic);
  for (const group of merge) for (const topic of group) targets[topic] = Math.min(...group);
  return targets;
}

/**
 * Returns the content of the file that polyseme edit --from reads.
 *
 * @param {Edits} edits
 * @param {Editing} editing
 * @returns {string}
 */
export function fileOfEdits(edits, { topics, level }) {
  const content = { format: FORMAT, topics, ...(level === null ? {} : { level }), ...edits };
  return JSON.stringify(content, null, 1) + "\n";
}

/**
 * Returns the edits in such a file, or null if they are not edits of these topics.
 *
 * @param {string} text
 * @param {{editing: Editing, n_topics: number, words: string[]}} core
 * @returns {Edits | null}
 */
export function editsOfFile(text, { editing, n_topics: K, words }) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (found?.format !== FORMAT || found.topics !== editing.topics) return null;
  const { rename, merge, hide, delete: deleted, ban } = found;
  const areTopics = (list) =>
    Array.isArray(list) &&
    list.every((topic) => Number.isInteger(topic) && topic >= 0 && topic < K) &&
    new Set(list).size === list.length;
  const isObject = rename && typeof rename === "object" && !Array.isArray(rename);
  if (!isObject || !Array.isArray(merge) || !Array.isArray(ban)) return null;
  const known = new Set(words);
  const isValid =
    Object.keys(rename).every((topic) => String(Number(topic)) === topic && areTopics([+topic])) &&
    Object.values(rename).every((name) => typeof name === "string" && !nameProblem(name)) &&
    merge.every((group) => areTopics(group) && group.length > 1) &&
    areTopics([...merge.flat(), ...(deleted ?? [NaN])]) &&
    areTopics(hide) &&
    areTopics([...hide, ...deleted]) &&
    ban.every((word) => known.has(word));
  return isValid ? { rename, merge, hide, delete: deleted, ban } : null;
}

/**
 * Returns the columns of banned words, and of the phrases that contain them.
 *
 * @param {string[]} ban
 * @param {string[]} words
 * @param {boolean} phrases
 * @returns {number[]}
 */
export function bannedColumns(ban, words, phrases) {
  const banned = new Set(ban);
  const inPhrases = new Set(ban.map((word) => word.toLowerCase()));
  return words.flatMap((word, column) =>
    banned.has(word) || (phrases && word.split("_").some((part) => inPhrases.has(part)))
      ? [column]
      : [],
  );
}

/**
 * Returns the section "core" after edits. A merged topic has the sum of the weights of its parts
 * and the mean of their P(w|z); topics that become a part of another one, and deleted ones, stay
 * with weight zero or out of lists, so that numbers do not change.
 *
 * @param {any} core
 * @param {Edits} edits
 * @returns {any}
 */
export function editedCore(core, edits) {
  const K = core.n_topics;
  const targets = targetsOf(edits, K);
  const banned = edits.ban.length ? bannedColumns(edits.ban, core.words, core.editing.phrases) : [];
  const found = {
    ...core,
    targets,
    hidden: [...new Set([...core.hidden, ...banned])],
    topic_names: namesAfter(core, edits, banned),
    hidden_topics: [
      ...core.hidden_topics,
      ...edits.hide,
      ...edits.delete,
      ...Array.from(targets.keys()).filter((topic) => targets[topic] !== topic),
    ],
    ...candidatesAfter(core, targets, new Set(banned)),
  };
  return edits.merge.length ? { ...found, ...mergedTopics(core, targets) } : found;
}

// Names that users have given stay; automatic names with a banned word are left out.
function namesAfter(core, edits, banned) {
  const names = { ...core.topic_names };
  const parts = banned.map((column) => core.words[column].toLowerCase().replaceAll("_", " "));
  for (const [topic, name] of Object.entries(names)) {
    const inName = ` ${name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ")} `;
    if (core.editing.named.includes(Number(topic))) continue;
    if (parts.some((part) => inName.includes(` ${part} `))) delete names[topic];
  }
  return { ...names, ...edits.rename };
}

// The candidates of a merged topic are those of its parts. The number of documents in a part that
// does not have the word as a candidate is estimated by P(z|w).
function candidatesAfter(core, targets, banned) {
  const K = core.n_topics;
  const sizes = fromVarints(core.candidates_of_topic, K);
  const starts = startsOf(sizes);
  const lists = Array.from({ length: K }, () => new Map());
  for (let topic = 0; topic < K; topic++)
    for (let i = starts[topic]; i < starts[topic + 1]; i++) {
      const word = core.candidate_words[i];
      if (banned.has(word)) continue;
      const list = lists[targets[topic]];
      const before = list.get(word);
      const n = core.candidate_documents[i];
      if (before) {
        before.n += n;
        before.parts.push(topic);
      } else list.set(word, { n, frequency: core.candidate_frequency[i], parts: [topic] });
    }
  const documents = new Float64Array(K);
  core.topic_documents.forEach((n, topic) => (documents[targets[topic]] += n));
  const isMerged = new Set(targets.filter((target, topic) => target !== topic)); // targets of others
  if (isMerged.size) addMissing(core, lists, targets, isMerged);
  const all = lists.flatMap((list) => [...list]);
  return {
    topic_documents: documents,
    candidates_of_topic: toVarints(lists.map((list) => list.size)),
    candidate_words: Uint32Array.from(all, ([word]) => word),
    candidate_documents: Float32Array.from(all, ([, { n }]) => n),
    candidate_frequency: Float32Array.from(all, ([, { frequency }]) => frequency),
  };
}

function addMissing(core, lists, targets, isMerged) {
  const starts = startsOf(fromVarints(core.topics_of_word, core.n_words));
  for (const target of isMerged)
    for (const [word, found] of lists[target]) {
      let all = 0;
      let missing = 0;
      for (let i = starts[word]; i < starts[word + 1]; i++) {
        const topic = core.word_topics[i];
        const joint = core.weights[topic] * Math.exp(-core.word_logs[i] * core.log_step);
        all += joint;
        if (targets[topic] === target && !found.parts.includes(topic)) missing += joint;
      }
      if (all > 0) found.n = Math.min(found.frequency, found.n + (found.frequency * missing) / all);
    }
}

// Weights, P(w|z), measures and what folding in needs, of merged topics.
function mergedTopics(core, targets) {
  const { n_topics: K, n_words: V, weights: before } = core;
  const sum = (values) => {
    const sums = new Float64Array(K);
    values.forEach((value, topic) => (sums[targets[topic] ?? topic] += value));
    return sums;
  };
  const weights = sum(before);
  const sizes = fromVarints(core.topics_of_word, V);
  const [counts, columns, logs] = [new Uint32Array(V), [], []];
  for (let word = 0, at = 0; word < V; at += sizes[word++]) {
    const row = new Map();
    for (let i = at; i < at + sizes[word]; i++) {
      const topic = core.word_topics[i];
      const target = targets[topic];
      const share = weights[target] > 0 ? before[topic] / weights[target] : 0;
      const p = Math.exp(-core.word_logs[i] * core.log_step);
      row.set(target, (row.get(target) ?? 0) + share * p);
    }
    for (const [topic, p] of [...row].sort((a, b) => a[0] - b[0])) {
      if (!(p > 0)) continue;
      counts[word]++;
      columns.push(topic);
      logs.push(Math.min(65535, Math.round(-Math.log(p) / core.log_step)));
    }
  }
  const isMerged = new Uint8Array(K);
  targets.forEach((target, topic) => {
    if (target !== topic) isMerged[target] = isMerged[topic] = 1;
  });
  const unknown = (values) =>
    Array.from(values, (value, topic) => (isMerged[topic] ? null : value));
  const finer = core.finer.length
    ? Array.from({ length: K }, (_, topic) =>
        core.finer.flatMap((nodes, other) => (targets[other] === topic ? nodes : [])),
      )
    : core.finer;
  const found = {
    weights,
    finer,
    fit: unknown(core.fit),
    measures: Object.fromEntries(
      Object.entries(core.measures).map(([name, values]) => [name, unknown(values)]),
    ),
    junk: Object.fromEntries(Object.entries(core.junk).filter(([topic]) => !isMerged[topic])),
    topics_of_word: toVarints(counts),
    word_topics: core.word_topics.constructor.from(columns),
    word_logs: Uint16Array.from(logs),
  };
  for (const name of ["alpha", "totals", "topic_shares"])
    if (core[name]) found[name] = sum(core[name]).slice(0, core[name].length);
  return { ...found, distances: distancesAfter({ ...core, ...found }, isMerged) };
}

// Hellinger distances, computed again for merged topics.
function distancesAfter(core, isMerged) {
  const { n_topics: K, n_words: V } = core;
  const found = core.distances.slice();
  const sizes = fromVarints(core.topics_of_word, V);
  const roots = Float64Array.from(core.word_logs, (code) => Math.exp((-code * core.log_step) / 2));
  for (let topic = 0; topic < K; topic++) {
    if (!isMerged[topic]) continue;
    const dots = new Float64Array(K);
    for (let word = 0, at = 0; word < V; at += sizes[word++]) {
      const end = at + sizes[word];
      const own = core.word_topics.subarray(at, end).indexOf(topic);
      if (own < 0) continue;
      for (let i = at; i < end; i++) dots[core.word_topics[i]] += roots[i] * roots[at + own];
    }
    dots.forEach((dot, other) => {
      const distance = other === topic ? 0 : Math.sqrt(Math.max(0, 1 - dot));
      found[topic * K + other] = found[other * K + topic] = distance;
    });
  }
  return found;
}

/**
 * Returns the section "documents" after edits: a merged topic has the sum of the shares of its
 * parts, and their typical documents.
 *
 * @param {any} documents
 * @param {Edits} edits
 * @param {{n_topics: number, n_documents: number, shares: number}} core
 * @returns {any}
 */
export function editedDocuments(documents, edits, { n_topics: K, n_documents: N, shares }) {
  if (!edits.merge.length) return documents;
  const targets = targetsOf(edits, K);
  const sizes = fromVarints(documents.topics_of_document, N);
  const size = documents.document_topics.length;
  const columns = new documents.document_topics.constructor(size);
  const codes = new Uint16Array(size);
  const counts = new Uint32Array(N);
  const main = documents.main_topics?.slice();
  const sums = new Float64Array(K);
  let end = 0;
  for (let d = 0, at = 0; d < N; at += sizes[d++]) {
    const found = [];
    for (let i = at; i < at + sizes[d]; i++) {
      const topic = targets[documents.document_topics[i]];
      if (!sums[topic]) found.push(topic);
      sums[topic] += documents.document_shares[i];
    }
    found.sort((a, b) => a - b);
    let best = K;
    for (const topic of found) {
      if (best === K || sums[topic] > sums[best]) best = topic;
      columns[end] = topic;
      codes[end++] = Math.min(shares, sums[topic]);
    }
    if (main && main[d] < K) main[d] = best;
    for (const topic of found) sums[topic] = 0;
    counts[d] = found.length;
  }
  return {
    ...documents,
    ...(main ? { main_topics: main } : {}),
    topics_of_document: toVarints(counts),
    document_topics: columns.slice(0, end),
    document_shares: codes.slice(0, end),
    ...typicalAfter(documents, targets, K),
  };
}

function typicalAfter(documents, targets, K) {
  const starts = startsOf(fromVarints(documents.typical_of_topic, K));
  const lists = Array.from({ length: K }, () => []);
  for (let topic = 0; topic < K; topic++)
    for (let i = starts[topic]; i < starts[topic + 1]; i++) lists[targets[topic]].push(i);
  const { typical_documents: rows, typical_nats: nats, quotes } = documents;
  for (const [topic, list] of lists.entries()) {
    if (list.length <= starts[topic + 1] - starts[topic]) continue;
    list.sort((a, b) => nats[b] - nats[a] || a - b);
    const listed = new Set();
    lists[topic] = list.filter((i) => !listed.has(rows[i]) && listed.add(rows[i])).slice(0, 10);
  }
  const order = lists.flat();
  return {
    typical_of_topic: toVarints(lists.map((list) => list.length)),
    typical_documents: Uint32Array.from(order, (i) => rows[i]),
    typical_nats: Float32Array.from(order, (i) => nats[i]),
    ...(quotes ? { quotes: order.map((i) => quotes[i]) } : {}),
  };
}

/**
 * Returns the names of regions after edits: without topics that are gone, and with the names and
 * the colors of the topics that others became a part of.
 *
 * @param {import("./map.js").RegionName[]} names
 * @param {{K: number, gone: Set<number>, targets?: Uint32Array}} model
 * @param {(topic: number) => string} nameOf
 * @returns {import("./map.js").RegionName[]}
 */
export function editedRegions(names, { K, gone, targets }, nameOf) {
  if (!targets) return names;
  return names.flatMap((name) => {
    const top = targets[name.top];
    if (name.level !== K) return gone.has(top) ? [] : [{ ...name, top }];
    return gone.has(name.topic) ? [] : [{ ...name, name: nameOf(name.topic) }];
  });
}
