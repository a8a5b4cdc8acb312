import assert from "node:assert/strict";
import { test } from "node:test";
import { model } from "../../../src/polyseme/explore/assets/model/corpus.js";
import { searchText } from "../../../src/polyseme/explore/assets/model/search.js";
import { assertClose, open, vectors } from "./vectors.js";

const CLOSE = 1e-3;

// The page rounds P(z|d), so documents with nearly equal scores may change places.
for (const [name, page] of Object.entries(vectors)) {
  test(`ranking and reasons are those of the index: ${name}`, async () => {
    await open(page);
    for (const { query, scores, hits, unknown } of page.queries) {
      const { hits: found, query: asked } = await searchText(query, 10, { reasons: 1000 });
      assert.deepEqual(asked.unknown, unknown);
      const column = (list, key) => list.map((hit) => hit[key]);
      assertClose(column(found, "score"), column(hits, "score"), CLOSE);
      for (const { document, score, term, latent } of found) {
        assertClose([score, term + latent], [scores[document], score], CLOSE);
      }
      const rounded = new Set(hits.map(({ score }) => score.toFixed(2)));
      if (rounded.size === hits.length) {
        assert.deepEqual(column(found, "document"), column(hits, "row"));
      }
      const rowOf = new Map(hits.map((hit) => [hit.row, hit]));
      const same = found.filter(({ document }) => rowOf.has(document));
      assert.ok(same.length >= hits.length - 2);
      for (const { document, reasons } of same) {
        const weights = new Map(reasons.map(({ word, weight }) => [model.words[word], weight]));
        for (const [word, weight] of rowOf.get(document).words) {
          assertClose([weights.get(word) ?? 0], [weight], CLOSE);
        }
      }
    }
  });
}
