import assert from "node:assert/strict";
import { test } from "node:test";
import { fromVarints } from "../../../src/polyseme/explore/assets/model/arrays.js";
import { corpus, model } from "../../../src/polyseme/explore/assets/model/corpus.js";
import { decoded } from "../../../src/polyseme/explore/assets/model/data.js";
import { assertClose, open, vectors } from "./vectors.js";

test("a section", async () => {
  const { section, values, arrays } = vectors.section;
  const found = await decoded(section);
  assert.deepEqual(Object.keys(found), [...Object.keys(values), ...Object.keys(arrays)]);
  for (const [name, value] of Object.entries(values)) assert.deepEqual(found[name], value);
  for (const [name, [type, numbers]] of Object.entries(arrays)) {
    assert.equal(found[name].constructor.name, type);
    assert.deepEqual(Array.from(found[name]), numbers);
  }
});

test("varints", () => {
  const { bytes, numbers } = vectors.varints;
  assert.deepEqual(Array.from(fromVarints(Uint8Array.from(bytes), numbers.length)), numbers);
});

function dense({ starts, columns, values, rows }, width) {
  return Array.from({ length: rows }, (_, row) => {
    const numbers = new Array(width).fill(0);
    for (let i = starts[row]; i < starts[row + 1]; i++) numbers[columns[i]] = values[i];
    return numbers;
  });
}

const transpose = (rows) => rows[0].map((_, column) => rows.map((row) => row[column]));

for (const [name, page] of Object.entries(vectors.pages)) {
  test(name, async () => {
    await open(page);
    const { K, n_words: V, n_documents: N } = model;
    const { counts, doc_topic: docTopic, topic_word: topicWord } = page.expected;
    assert.deepEqual(dense(corpus.byDocument, V), counts);
    assert.deepEqual(dense(corpus.byWord, N), transpose(counts));
    const sums = counts.map((row) => row.reduce((sum, n) => sum + n, 0));
    assertClose(corpus.tokens, sums, 1e-12);
    assertClose(dense(corpus.topics, K).flat(), docTopic.flat(), 2 / 65535);
    assertClose(dense(corpus.byTopic, N).flat(), transpose(docTopic).flat(), 2 / 65535);
    assertClose(dense(model.byTopic, V).flat(), topicWord.flat(), 2.1e-4); // steps of logarithms
    assertClose(dense(model.byWord, K).flat(), transpose(topicWord).flat(), 2.1e-4);
  });
}
