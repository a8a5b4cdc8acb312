import assert from "node:assert/strict";
import { test } from "node:test";
import { wordsApart } from "../../../src/polyseme/explore/assets/model/apart.js";
import { corpus, model } from "../../../src/polyseme/explore/assets/model/corpus.js";
import { decoded } from "../../../src/polyseme/explore/assets/model/data.js";
import { WHOLE, filtersOf, subsetOf } from "../../../src/polyseme/explore/assets/model/filters.js";
import { labelsOfTopic, topicsByLabel } from "../../../src/polyseme/explore/assets/model/labels.js";
import {
  documentsOfLevel,
  levelOf,
  levelSizes,
  useLevel,
} from "../../../src/polyseme/explore/assets/model/levels.js";
import {
  narrowedTypical,
  narrowedWords,
} from "../../../src/polyseme/explore/assets/model/narrowed.js";
import {
  hellinger,
  orderOfTable,
  similarOrder,
} from "../../../src/polyseme/explore/assets/model/order.js";
import {
  documentsOverTime,
  topicsOverTime,
} from "../../../src/polyseme/explore/assets/model/periods.js";
import { searchText } from "../../../src/polyseme/explore/assets/model/search.js";
import { sensesOf } from "../../../src/polyseme/explore/assets/model/senses.js";
import {
  documentsOfTopic,
  topicsOfSubset,
  typicalOfSubset,
  wordsOfSubset,
} from "../../../src/polyseme/explore/assets/model/subset.js";
import { relevantWords } from "../../../src/polyseme/explore/assets/model/topics.js";
import { assertClose, open, vectors } from "./vectors.js";

const SIZE = vectors.level;
const PARTS = vectors.cases.filter(({ documents }) => documents.length);

// P(z|d) is stored in steps of 1/65535, and P(w|z) of 0.04 percent.
const SHARES = 1e-4;
const AMOUNTS = 2e-3;

for (const [name, page] of Object.entries(vectors.pages)) {
  await open(page);
  useLevel(SIZE, await decoded(page[`level${SIZE}`]));

  for (const { filters, documents, ...expected } of vectors.cases.filter(
    ({ model: of }) => of === name,
  )) {
    const what = `${name}, ${JSON.stringify(filters)}`;
    const subset = await subsetOf(filtersOf(filters));

    await test(`documents: ${what}`, () => {
      assert.deepEqual(Array.from(subset.documents), documents);
      assert.equal(subset.size, documents.length);
      assert.equal(subset.tokens, expected.tokens);
    });

    await test(`topics of both levels: ${what}`, () => {
      for (const { size, weights, fit, main } of expected.topics) {
        const found = topicsOfSubset(subset, size);
        assertClose(Array.from(found.weights), weights, SHARES);
        assertClose(Array.from(found.fit), fit, SHARES);
        assert.deepEqual(Array.from(found.documents), main);
      }
    });

    await test(`words: ${what}`, () => {
      const found = wordsOfSubset(subset);
      assert.deepEqual(Array.from(found.tokens), expected.word_tokens);
      assert.deepEqual(Array.from(found.documents), expected.word_documents);
      const apart = wordsApart(subset, WHOLE, 12);
      assertClose(
        apart.map(({ weight }) => weight),
        expected.apart,
        1e-9,
      );
    });

    await test(`words of a topic: ${what}`, () => {
      const found = narrowedWords(expected.topic, 0.5, 1e6, subset).filter(
        ({ inTopic }) => inTopic > vectors.least,
      );
      const amounts = new Map(found.map(({ word, inTopic }) => [word, inTopic]));
      for (const [word, amount] of expected.amounts)
        assert.ok(Math.abs((amounts.get(word) ?? 0) - amount) <= AMOUNTS * Math.max(1, amount));
      // words with nearly equal relevance may change places
      const scores = new Map(expected.relevance);
      const order = found.slice(0, 10).map(({ word }) => scores.get(word));
      assertClose(
        order,
        expected.relevance.slice(0, 10).map(([, score]) => score),
        2e-3,
      );
    });

    await test(`typical documents: ${what}`, () => {
      const found = narrowedTypical(expected.topic, subset);
      assertClose(
        found.map(({ nats }) => nats).filter((nats) => nats > vectors.least),
        expected.nats.slice(0, 10),
        AMOUNTS,
      );
      const near = typicalOfSubset(subset, 5).map(({ cosine }) => cosine);
      assertClose(near, expected.cosines.slice(0, 5), SHARES);
    });

    await test(`labels and time: ${what}`, () => {
      const found = topicsByLabel(subset, SIZE);
      assert.deepEqual(Array.from(found.documents), expected.label_documents);
      found.shares.forEach((row, i) => assertClose(Array.from(row), expected.labels[i], SHARES));
      assertClose(labelsOfTopic(1, subset, SIZE), expected.labels_of_topic, 2 * SHARES);
      assert.deepEqual(documentsOverTime(subset), expected.periods);
      topicsOverTime(subset, SIZE).forEach((row, topic) =>
        row.forEach((share, period) => {
          const exact = expected.time[topic][period];
          if (exact === null) assert.equal(share, null);
          else assert.ok(Math.abs(share - exact) <= SHARES);
        }),
      );
    });

    await test(`senses: ${what}`, () => {
      const found = new Map(
        sensesOf(expected.word, subset).map(({ topic, share }) => [topic, share]),
      );
      assertClose(
        expected.senses.map((_, topic) => found.get(topic) ?? 0),
        expected.senses,
        AMOUNTS,
      );
    });

    await test(`documents of a finer topic: ${what}`, () => {
      const found = documentsOfTopic(subset, 1, SIZE, 5).map(({ tokens }) => tokens);
      assertClose(found, expected.largest, 0.01);
    });

    await test(`search: ${what}`, async () => {
      const { hits } = await searchText("bank violin", 5, { among: subset });
      assertClose(
        hits.map(({ score }) => score),
        expected.scores,
        1e-3,
      );
    });
  }
}

test("there are subsets of several kinds", () => {
  assert.ok(PARTS.length >= 10);
  assert.ok(vectors.cases.some(({ documents }) => !documents.length));
});

test("without filters all documents are shown, by the numbers of Python", async () => {
  assert.equal(await subsetOf({}), WHOLE);
  assert.deepEqual(narrowedWords(0, 0.5, 20, WHOLE), relevantWords(0, 0.5, 20));
  assert.equal(WHOLE.size, model.n_documents);
  assert.equal(WHOLE.tokens, model.n_tokens);
});

test("levels have the topics of the tree", () => {
  assert.deepEqual(levelSizes(), [4, SIZE]);
  const { names, tops, weights, order } = levelOf(SIZE);
  assert.deepEqual(names, vectors.names);
  assert.deepEqual(Array.from(tops), vectors.tops);
  assert.deepEqual(Array.from(weights), vectors.weights);
  assert.equal(order.length, SIZE);
  assert.equal(levelOf(5), levelOf(4));
  assert.equal(documentsOfLevel(4).topics, corpus.topics);
});

test("similar columns are neighbors", () => {
  const places = [5, 1, 4, 0, 3, 2];
  const order = similarOrder(6, (a, b) => Math.abs(places[a] - places[b]));
  const found = order.map((i) => places[i]);
  assert.deepEqual(found[0] === 0 ? found : found.reverse(), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(
    similarOrder(0, () => 0),
    [],
  );
  assert.equal(hellinger([1, 0], [0, 1]), 1);
  const columns = [
    [0, 0, 1],
    [1, 0, 0],
    [0.5, 0.5, 0],
    [0, 0.6, 0.4],
  ];
  const { columns: across, rows } = orderOfTable(columns, 3);
  const sorted = across[0] === 1 ? across : [...across].reverse();
  assert.deepEqual(sorted, [1, 2, 3, 0]);
  assert.deepEqual(across[0] === 1 ? rows : [...rows].reverse(), [0, 1, 2]);
});
