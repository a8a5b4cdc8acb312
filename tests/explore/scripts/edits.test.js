import assert from "node:assert/strict";
import { test } from "node:test";
import { model, useCorpus, useModel } from "../../../src/polyseme/explore/assets/model/corpus.js";
import { corpus, weightsOf } from "../../../src/polyseme/explore/assets/model/corpus.js";
import { decoded } from "../../../src/polyseme/explore/assets/model/data.js";
import {
  NO_EDITS,
  bannedColumns,
  editedCore,
  editedDocuments,
  editedRegions,
  editsOfFile,
  fileOfEdits,
  nameProblem,
  numberOfEdits,
  withBan,
  withHidden,
  withMerge,
  withName,
  withoutTopic,
} from "../../../src/polyseme/explore/assets/model/edits.js";
import { foldIn } from "../../../src/polyseme/explore/assets/model/folding.js";
import { topWords, typicalDocuments } from "../../../src/polyseme/explore/assets/model/topics.js";
import { assertClose, vectors } from "./vectors.js";

const core = await decoded(vectors.page.core);
const documents = await decoded(vectors.page.documents);
const counts = await decoded(vectors.page.counts);

function open(edits) {
  const edited = editedCore(core, edits);
  useModel(edited);
  useCorpus(editedDocuments(documents, edits, core), counts);
}

test("merged topics are those of Python", () => {
  open(withMerge(NO_EDITS, 3, 1, "Both"));
  const { topics, topic_word: expected, weights, doc_topic: shares } = vectors.merged;
  assert.deepEqual(Array.from(model.order).sort(), topics);
  topics.forEach((topic, k) => {
    const { starts, columns, values } = model.byTopic;
    const row = new Float64Array(core.n_words);
    for (let i = starts[topic]; i < starts[topic + 1]; i++) row[columns[i]] = values[i];
    row.forEach((p, w) => assert.ok(Math.abs(p - expected[k][w]) <= 1e-3 * expected[k][w] + 1e-9));
  });
  assertClose(
    topics.map((topic) => model.weights[topic]),
    weights,
    1e-6,
  );
  shares.forEach((row, d) =>
    assertClose(
      topics.map((topic) => weightsOf(d)[topic]),
      row,
      1e-4,
    ),
  );
  assert.equal(weightsOf(0)[3], 0);
  assertClose(
    topics.map((topic) => model.distances[model.K + topic]),
    vectors.merged.distances,
    2e-3,
  );
});

test("texts are folded in with merged topics", () => {
  open(withMerge(NO_EDITS, 3, 1, "Both"));
  for (const { words, values, topics } of vectors.folded) {
    const theta = foldIn(model, { words, values });
    assertClose(
      vectors.merged.topics.map((topic) => theta[topic]),
      topics,
      2e-3,
    );
  }
});

test("typical documents of a merged topic are those of its parts, each once", () => {
  useModel(core);
  useCorpus(documents, counts);
  const parts = [1, 3].flatMap((topic) => typicalDocuments(topic));
  open(withMerge(NO_EDITS, 3, 1, "Both"));
  const found = typicalDocuments(1);
  assert.ok(found.length > 0 && found.length <= 10);
  assert.equal(new Set(found.map(({ document: d }) => d)).size, found.length);
  for (const { document: d, nats } of found)
    assert.ok(parts.some((part) => part.document === d && part.nats === nats));
  assert.deepEqual(typicalDocuments(3), []);
});

test("no edits change nothing", () => {
  const same = editedCore(core, NO_EDITS);
  assert.deepEqual({ ...same, targets: undefined }, { ...core, targets: undefined });
  assert.equal(editedDocuments(documents, NO_EDITS, core), documents);
});

test("banned words are in no list, and topics have their next words", () => {
  open(NO_EDITS);
  const before = topWords(0, 15);
  open(withBan(NO_EDITS, before[1]));
  assert.deepEqual(topWords(0, 5), [before[0], ...before.slice(2, 6)]);
  assert.equal(withBan(withBan(NO_EDITS, "a"), "a").ban.length, 1);
  const words = ["san_francisco", "francisco", "san"];
  assert.deepEqual(bannedColumns(["francisco"], words, true), [0, 1]);
  assert.deepEqual(bannedColumns(["francisco"], words, false), [1]);
  assert.deepEqual(bannedColumns(["san_francisco"], words, true), [0]);
});

test("automatic names with a banned word are left out, given ones stay", () => {
  const named = {
    ...core,
    topic_names: { 0: "hot bread, oven", 1: "breadth", 2: "Our bread", 3: "x" },
    editing: { ...core.editing, named: [2] },
  };
  const { topic_names: names } = editedCore(named, withBan(NO_EDITS, "bread"));
  assert.deepEqual(names, { 1: "breadth", 2: "Our bread", 3: "x" });
});

test("merges join, and a deleted topic takes its parts along", () => {
  const merged = withMerge(withMerge(withName(NO_EDITS, 2, "Two"), 3, 1, "a"), 2, 3, "b");
  assert.deepEqual(merged.merge, [[1, 2, 3]]);
  assert.deepEqual(merged.rename, { 1: "b" });
  const deleted = withoutTopic(withHidden(merged, 1), 1);
  assert.deepEqual(deleted, { ...NO_EDITS, delete: [1, 2, 3] });
  assert.equal(numberOfEdits(deleted), 3);
  open(merged);
  assert.deepEqual(
    model.order,
    [...model.order].filter((topic) => topic < 2),
  );
  open(deleted);
  assert.deepEqual(model.order, [0]);
});

test("regions lose the names of topics that are gone", () => {
  const names = [0, 1, 2, 3]
    .map((topic) => ({ level: 4, topic, top: topic, name: `n${topic}` }))
    .concat([{ level: 9, topic: 7, top: 3, name: "finer" }]);
  open(withHidden(withMerge(NO_EDITS, 1, 3, "Both"), 0));
  const found = editedRegions(names, model, (topic) => model.topic_names[topic] ?? `n${topic}`);
  assert.deepEqual(
    found.map(({ topic, top, name }) => [topic, top, name]),
    [
      [1, 1, "Both"],
      [2, 2, "n2"],
      [7, 1, "finer"],
    ],
  );
});

test("a file of edits is read again, and no other one", () => {
  const edits = withBan(withHidden(withMerge(NO_EDITS, 1, 3, "Both"), 0), core.words[0]);
  const text = fileOfEdits(edits, core.editing);
  assert.deepEqual(editsOfFile(text, core), edits);
  const change = (changes) => JSON.stringify({ ...JSON.parse(text), ...changes });
  for (const other of [
    "",
    "null",
    "[]",
    change({ format: "polyseme edits 2" }),
    change({ topics: "other" }),
    change({ hide: [9] }),
    change({ hide: ["0"] }),
    change({ hide: [0, 0] }),
    change({ hide: undefined }),
    change({ delete: undefined }),
    change({ delete: [1] }),
    change({ merge: [[1]] }),
    change({
      merge: [
        [0, 1],
        [1, 2],
      ],
    }),
    change({ rename: { __proto__: null, x: "a" } }),
    change({ rename: [] }),
    change({ rename: { 0: "<img src=x>" } }),
    change({ rename: { 0: 5 } }),
    change({ ban: ["no such word"] }),
  ])
    assert.equal(editsOfFile(other, core), null, other);
});

test("names are refused as in Python", () => {
  for (const [name, isValid] of vectors.names)
    assert.equal(nameProblem(name) === "", isValid, name);
});
