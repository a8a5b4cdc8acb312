import assert from "node:assert/strict";
import { test } from "node:test";
import { corpus, model, weightsOf } from "../../../src/polyseme/explore/assets/model/corpus.js";
import { pathOf } from "../../../src/polyseme/explore/assets/charts/lines.js";
import { likeliest } from "../../../src/polyseme/explore/assets/model/folding.js";
import { wordsApart } from "../../../src/polyseme/explore/assets/model/apart.js";
import { WHOLE } from "../../../src/polyseme/explore/assets/model/filters.js";
import { hasLabel } from "../../../src/polyseme/explore/assets/model/labels.js";
import { Subset } from "../../../src/polyseme/explore/assets/model/subset.js";
import {
  documentsOverTime,
  topicsOverTime,
} from "../../../src/polyseme/explore/assets/model/periods.js";
import {
  documentsOfSenses,
  neighborsOf,
  sensesOf,
} from "../../../src/polyseme/explore/assets/model/senses.js";
import {
  relevantWords,
  topWords,
  typicalDocuments,
} from "../../../src/polyseme/explore/assets/model/topics.js";
import { assertClose, open, vectors } from "./vectors.js";

await open(vectors.page);

const named = (found) => found.map(({ word }) => model.words[word]);

test("words of a topic by relevance", () => {
  for (const { topic, lambda, words } of vectors.relevance) {
    assert.deepEqual(named(relevantWords(topic, lambda, 30)), words);
  }
});

test("first words of topics", () => {
  vectors.first.forEach((words, topic) => assert.deepEqual(topWords(topic, 3), words));
});

test("typical documents", () => {
  vectors.typical.forEach((expected, topic) => {
    const found = typicalDocuments(topic);
    assert.ok(expected.length > 3);
    assert.deepEqual(
      found.map(({ document }) => document),
      expected,
    );
  });
});

test("most probable topic of a word in a document", () => {
  for (const { document, topics } of vectors.likeliest) {
    const theta = weightsOf(document);
    for (const [word, topic] of topics) assert.equal(likeliest(model, theta, word).topic, topic);
  }
});

// The page rounds P(z|d) and P(w|z), so documents and words with nearly equal values may change
// places.
test("senses and neighbors of a word", () => {
  const { word, topics, shares, documents, neighbors, weights } = vectors.senses;
  const senses = sensesOf(word).filter(({ share }) => share >= 0.1);
  const column = (list, key) => list.map((item) => item[key]);
  assert.ok(topics.length > 1);
  assert.deepEqual(column(senses, "topic"), topics);
  assertClose(column(senses, "share"), shares, 1e-3);
  documentsOfSenses(word, topics, 3).forEach((found, i) => {
    assert.deepEqual(new Set(column(found, "document")), new Set(documents[i]));
  });
  const near = neighborsOf(word, 20);
  assert.deepEqual(new Set(named(near)), new Set(neighbors));
  assertClose(column(near, "weight"), weights, 1e-4);
});

test("words that set a label apart", () => {
  for (const [label, words] of Object.entries(vectors.labels)) {
    const number = corpus.labeled.names.indexOf(label);
    const part = WHOLE.where((d) => hasLabel(d, number));
    assert.deepEqual(named(wordsApart(part, WHOLE, 30)), words);
  }
});

test("a period without documents is a gap", () => {
  corpus.periods = ["2000", "2001", "2002", "2003"];
  corpus.document_periods = Int32Array.from({ length: model.n_documents }, (_, d) =>
    d === 0 ? -1 : [0, 1, 3][d % 3],
  );
  const all = new Subset(null);
  const table = topicsOverTime(all);
  for (const row of table) assert.equal(row[2], null);
  for (const period of [0, 1, 3])
    assertClose([table.reduce((sum, row) => sum + row[period], 0)], [1], 1e-3);
  const counts = documentsOverTime(all);
  assert.equal(counts[2], 0);
  assert.equal(counts[0] + counts[1] + counts[3], model.n_documents - 1);
});

test("a line has no part across a gap", () => {
  assert.equal(
    pathOf([[0, 1], [1, 2], null, null, [4, 3], [5, 1]]),
    "M0.0 1.0L1.0 2.0M4.0 3.0L5.0 1.0",
  );
});
