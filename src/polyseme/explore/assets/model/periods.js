// Topics over time.

import { corpus, model } from "./corpus.js";
import { documentsOfLevel } from "./levels.js";

/** @typedef {import("./subset.js").Subset} Subset */

/**
 * Returns whether a document is of a range of periods, both included.
 *
 * @param {number} d
 * @param {number} first
 * @param {number} last
 */
export function isWithin(d, first, last) {
  const period = corpus.document_periods[d];
  return period >= 0 && period >= first && period <= last;
}

/**
 * Returns the number of documents of each period.
 *
 * @param {Subset} subset
 * @returns {number[]}
 */
export function documentsOverTime(subset) {
  return subset.once("documents over time", () => {
    const counts = new Array(corpus.periods.length).fill(0);
    for (const d of subset.documents) {
      const period = corpus.document_periods[d];
      if (period >= 0) counts[period]++;
    }
    return counts;
  });
}

/**
 * Returns the share of each topic of a level in the tokens of each period, topics x periods; null
 * for a period without tokens.
 *
 * @param {Subset} subset
 * @param {number} [topics] number of topics of the level
 * @returns {(number | null)[][]}
 */
export function topicsOverTime(subset, topics = model.K) {
  return subset.once(`topics over time ${topics}`, () => {
    const size = corpus.periods.length;
    const table = Array.from({ length: topics }, () => new Array(size).fill(0));
    const totals = new Float64Array(size);
    const { starts, columns, values } = documentsOfLevel(topics).topics;
    for (const d of subset.documents) {
      const period = corpus.document_periods[d];
      if (period < 0) continue;
      totals[period] += corpus.tokens[d];
      for (let j = starts[d]; j < starts[d + 1]; j++)
        table[columns[j]][period] += corpus.tokens[d] * values[j];
    }
    return table.map((row) =>
      row.map((n, period) => (totals[period] > 0 ? n / totals[period] : null)),
    );
  });
}
