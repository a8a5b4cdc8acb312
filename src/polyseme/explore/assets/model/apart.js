// Words that set some documents apart.

import { largest } from "./arrays.js";
import { model } from "./corpus.js";
import { wordsOfSubset } from "./subset.js";

/** @typedef {import("./subset.js").Subset} Subset */

/** @typedef {{word: number, weight: number, times: number}} Apart */

/**
 * Returns the words that set some documents apart from the others, as metrics.distinctive_words
 * does: by the log of the ratio of their odds inside and outside, divided by its standard error
 * (Monroe, Colaresi and Quinn 2008), with a prior of 0.01 counts per word on average.
 *
 * @param {Subset} part
 * @param {Subset} all contains the part
 * @param {number} most
 * @returns {Apart[]} the words with how many times as frequent they are as in all documents
 */
export function wordsApart(part, all, most) {
  const [inside, totals] = [wordsOfSubset(part).tokens, wordsOfSubset(all).tokens];
  const sum = (values) => values.reduce((before, value) => before + value, 0);
  const [total, within] = [sum(totals), sum(inside)];
  if (!(within > 0 && within < total)) return [];
  const pseudo = 0.01 * totals.reduce((seen, n) => seen + Number(n > 0), 0);
  const hidden = new Set(model.hidden);
  const scores = totals.map((n, w) => {
    if (!(n > 0) || hidden.has(w)) return 0;
    const prior = (pseudo * n) / total;
    const logOdds = (y, of) => Math.log((y + prior) / (of + pseudo - y - prior));
    const [y, rest] = [inside[w], n - inside[w]];
    return (
      (logOdds(y, within) - logOdds(rest, total - within)) /
      Math.sqrt(1 / (y + prior) + 1 / (rest + prior))
    );
  });
  return largest(scores, most).map((word) => ({
    word,
    weight: scores[word],
    times: inside[word] / within / (totals[word] / total),
  }));
}
