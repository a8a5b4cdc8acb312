// Topics over time.

import { corpus, model } from "./corpus.js";

let timeTable = null;
let timeTableOf = null; // the corpus; edits replace it

/**
 * Returns the number of documents of each period.
 *
 * @returns {number[]}
 */
export function documentsOverTime() {
  const counts = new Array(corpus.periods.length).fill(0);
  for (const period of corpus.document_periods) if (period >= 0) counts[period]++;
  return counts;
}

/**
 * Returns the share of each topic in the tokens of each period, topics x periods; null for a
 * period without tokens.
 *
 * @returns {(number | null)[][]}
 */
export function topicsOverTime() {
  if (timeTableOf === corpus) return timeTable;
  const size = corpus.periods.length;
  const table = Array.from({ length: model.K }, () => new Array(size).fill(0));
  const totals = new Float64Array(size);
  const { starts, columns, values } = corpus.topics;
  for (let d = 0; d < model.n_documents; d++) {
    const period = corpus.document_periods[d];
    if (period < 0) continue;
    totals[period] += corpus.tokens[d];
    for (let j = starts[d]; j < starts[d + 1]; j++)
      table[columns[j]][period] += corpus.tokens[d] * values[j];
  }
  timeTableOf = corpus;
  timeTable = table.map((row) =>
    row.map((n, period) => (totals[period] > 0 ? n / totals[period] : null)),
  );
  return timeTable;
}
