import assert from "node:assert/strict";
import { test } from "node:test";
import { decoded } from "../../../src/polyseme/explore/assets/model/data.js";
import { WordRules } from "../../../src/polyseme/explore/assets/model/words.js";
import { vectors } from "./vectors.js";

for (const [name, { rules, words, texts }] of Object.entries(vectors)) {
  test(`words are those of the vectorizer: ${name}`, async () => {
    const found = new WordRules(await decoded(rules), words);
    for (const [text, expected] of texts) {
      const { words: columns, values } = found.counts(text);
      const counts = Array.from(columns, (column, i) => [words[column], values[i]]);
      assert.deepEqual(Object.fromEntries(counts), expected, text);
      const parts = found.marked(text).map((part) => part.text);
      assert.equal(parts.join(""), text);
    }
  });
}
