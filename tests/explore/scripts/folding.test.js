import { test } from "node:test";
import { model } from "../../../src/polyseme/explore/assets/model/corpus.js";
import { foldIn } from "../../../src/polyseme/explore/assets/model/folding.js";
import { assertClose, open, vectors } from "./vectors.js";

for (const [name, page] of Object.entries(vectors)) {
  test(`topics of new texts: ${name}`, async () => {
    await open(page);
    for (const { words, values, topics } of page.texts) {
      const counts = { words: Uint32Array.from(words), values: Float64Array.from(values) };
      assertClose(foldIn(model, counts), topics, 1e-3);
    }
  });
}
