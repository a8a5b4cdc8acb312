// Folding in: the topic weights of counts, with the topics fixed. Steps and stopping rules are the
// same as in Python (_native/foldin.hpp, coordinate.hpp; core/dirichlet.py;
// core/logistic_normal.py, core/mixture.py).

import { foldDirichlet, foldPosterior } from "./dirichlet.js";
import { foldByLikelihood } from "./likelihood.js";
import { foldLogisticNormal } from "./logistic_normal.js";
import { foldMixture } from "./mixture.js";

/**
 * @typedef {import("./corpus.js").Model} Model
 *
 * @typedef {import("./words.js").Counts} Counts
 */

// Functions that compute the weights of a text, by the kind of inference of the model.
const INFERENCES = {
  likelihood: foldByLikelihood,
  posterior: foldPosterior,
  dirichlet: foldDirichlet,
  "logistic-normal": foldLogisticNormal,
  mixture: foldMixture,
};

/**
 * Returns the weights of counts: K numbers with sum one, or zeros if no topic has any of the words.
 *
 * @param {Model} model
 * @param {Counts} counts
 * @returns {Float64Array}
 */
export function foldIn(model, counts) {
  return INFERENCES[model.inference.kind](model, counts);
}

/**
 * Returns the most probable topic of a word in a document with weights theta, and its P(z|d,w).
 * Topic -1 is the background.
 *
 * @param {Model} model
 * @param {Float64Array} theta
 * @param {number} word
 * @returns {{topic: number, share: number}}
 */
export function likeliest(model, theta, word) {
  const { byWord, inference, background } = model;
  const beta = inference.temperature;
  let best = -1;
  let most = background ? (inference.background * background[word]) ** beta : 0;
  let total = most;
  for (let i = byWord.starts[word]; i < byWord.starts[word + 1]; i++) {
    const joint =
      ((1 - inference.background) * theta[byWord.columns[i]] * byWord.values[i]) ** beta;
    total += joint;
    if (joint > most) {
      most = joint;
      best = byWord.columns[i];
    }
  }
  return { topic: best, share: total > 0 ? most / total : 0 };
}
