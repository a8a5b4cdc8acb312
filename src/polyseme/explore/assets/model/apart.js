// Words that set some documents apart.

import { largest } from "./arrays.js";
import { corpus, model } from "./corpus.js";
import { wordsOfSubset } from "./subset.js";

/** @typedef {import("./subset.js").Subset} Subset */

/** @typedef {{word: number, weight: number, times: number}} Apart */

const MIN_DOCUMENTS = 5; // of a word that is tested
const SMALL = 1e-4; // skewness for which the series of the transformation is used
const ROUNDING = 1e-12; // relative variance that is a rounding error

/**
 * Returns the words that set some documents apart from the others, as metrics.distinctive_words
 * does: by the standard normal score that they would have if the documents were chosen at random.
 * It compares documents and not tokens, because one document can repeat a word often.
 *
 * @param {Subset} part
 * @param {Subset} all contains the part
 * @param {number} most
 * @returns {Apart[]} the words with how many times as frequent they are as in all documents
 */
export function wordsApart(part, all, most) {
  const [inside, totals] = [wordsOfSubset(part).tokens, wordsOfSubset(all)];
  const [total, within] = [all.tokens, part.tokens];
  const [n, m] = [all.size, part.size];
  if (!(m > 0 && m < n && n > 2 && within > 0)) return [];
  const { second, third } = all.once("moments", () => momentsOfWords(all));
  const hidden = new Set(model.hidden);
  const scores = second.map((square, w) => {
    if (!(square > 0) || hidden.has(w) || totals.documents[w] < MIN_DOCUMENTS) return 0;
    const deviation = Math.sqrt(((m * (n - m)) / (n - 1)) * square);
    const moment = ((m * (n - m) * (n - 2 * m)) / ((n - 1) * (n - 2))) * third[w];
    const z = (inside[w] - (within * totals.tokens[w]) / total) / deviation;
    const g = moment / deviation ** 3;
    if (Math.abs(g) < SMALL) return z - (g / 6) * (z ** 2 - 1);
    return (6 / g) * (Math.cbrt(Math.max(1 + (g * z) / 2, 0)) - 1) + g / 6;
  });
  return largest(scores, most).map((word) => ({
    word,
    weight: scores[word],
    times: inside[word] / within / (totals.tokens[word] / total),
  }));
}

/**
 * Returns the means over documents of e^2 and e^3, where e is the number of times that a document
 * has a word beyond what its length and the frequency of the word let expect.
 *
 * @param {Subset} subset
 * @returns {{second: Float64Array, third: Float64Array}}
 */
function momentsOfWords(subset) {
  const sums = Array.from({ length: 5 }, () => new Float64Array(model.n_words));
  const [squares, cubes, byLength, squaresByLength, bySquaredLength] = sums;
  const { starts, columns, values } = corpus.byDocument;
  let [lengthSquares, lengthCubes] = [0, 0];
  for (const d of subset.documents) {
    const length = corpus.tokens[d];
    lengthSquares += length ** 2;
    lengthCubes += length ** 3;
    for (let i = starts[d]; i < starts[d + 1]; i++) {
      const [w, x] = [columns[i], values[i]];
      squares[w] += x ** 2;
      cubes[w] += x ** 3;
      byLength[w] += x * length;
      squaresByLength[w] += x ** 2 * length;
      bySquaredLength[w] += x * length ** 2;
    }
  }
  const { tokens } = wordsOfSubset(subset);
  const share = tokens.map((n) => n / subset.tokens);
  const second = share.map((p, w) => {
    const sum = squares[w] - 2 * p * byLength[w] + p ** 2 * lengthSquares;
    return sum > ROUNDING * squares[w] ? sum / subset.size : 0;
  });
  const third = share.map((p, w) => {
    const near = cubes[w] - 3 * p * squaresByLength[w];
    return (near + 3 * p ** 2 * bySquaredLength[w] - p ** 3 * lengthCubes) / subset.size;
  });
  return { second, third };
}
