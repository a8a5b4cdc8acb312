import assert from "node:assert/strict";
import { test } from "node:test";
import {
  parsedQuery,
  phrasePattern,
  plainText,
} from "../../../src/polyseme/explore/assets/model/query.js";
import { vectors } from "./vectors.js";

for (const { query, words, phrases, prefixes, excluded, problem, texts } of vectors) {
  test(`parts of ${query}`, () => {
    const found = parsedQuery(query);
    assert.equal(found.problem !== "", problem);
    if (problem) return;
    assert.equal(found.words, words);
    assert.deepEqual(found.prefixes, prefixes);
    assert.deepEqual(found.excluded, excluded);
    assert.equal(found.phrases.length, phrases.length);
    const patterns = found.phrases.map(phrasePattern);
    for (const [text, expected] of texts) {
      const plain = plainText(text);
      assert.equal(
        patterns.every((pattern) => plain.search(pattern) >= 0),
        expected,
        text,
      );
    }
  });
}
