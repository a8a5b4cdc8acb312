// What tests/explore/test_scripts.py has computed with Python, and the scripts of the page with it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import {
  useCorpus,
  useModel,
  useRules,
} from "../../../src/polyseme/explore/assets/model/corpus.js";
import { decoded } from "../../../src/polyseme/explore/assets/model/data.js";

export const vectors = JSON.parse(readFileSync(process.env.POLYSEME_VECTORS, "utf8"));

// Opens the sections of a page that are given.
export async function open({ core, documents, counts, rules }) {
  useModel(await decoded(core));
  if (documents) useCorpus(await decoded(documents), await decoded(counts));
  if (rules) useRules(await decoded(rules));
}

export function assertClose(found, expected, tolerance) {
  assert.equal(found.length, expected.length);
  expected.forEach((value, i) => {
    assert.ok(Math.abs(found[i] - value) <= tolerance, `${i}: ${found[i]} instead of ${value}`);
  });
}
