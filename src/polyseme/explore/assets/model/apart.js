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
  const [second, third] = [new Float64Array(model.n_words), new Float64Array(model.n_words)];
  const { starts, columns, values } = corpus.byWord;
  const { tokens: lengths } = corpus;
  const { mask, size } = subset;
  let [lengthSquares, lengthCubes] = [0, 0];
  for (const d of subset.documents) {
    lengthSquares += lengths[d] ** 2;
    lengthCubes += lengths[d] ** 3;
  }
  const { tokens } = wordsOfSubset(subset);
  for (let w = 0; w < model.n_words; w++) {
    let [squares, cubes, byLength, squaresByLength, bySquaredLength] = [0, 0, 0, 0, 0];
    for (let i = starts[w]; i < starts[w + 1]; i++) {
      const d = columns[i];
      if (mask !== null && mask[d] === 0) continue;
      const [x, length] = [values[i], lengths[d]];
      squares += x * x;
      cubes += x * x * x;
      byLength += x * length;
      squaresByLength += x * x * length;
      bySquaredLength += x * length * length;
    }
    const p = tokens[w] / subset.tokens;
    const sum = squares - 2 * p * byLength + p ** 2 * lengthSquares;
    const near = cubes - 3 * p * squaresByLength;
    second[w] = sum > ROUNDING * squares ? sum / size : 0;
    third[w] = (near + 3 * p ** 2 * bySquaredLength - p ** 3 * lengthCubes) / size;
  }
  return { second, third };
}
