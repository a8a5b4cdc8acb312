// Measures of topics.

import { decimal, percent } from "../format.js";
import { model } from "../model/corpus.js";

/**
 * @typedef {object} Measure
 * @property {string} name
 * @property {Float64Array | (number | null)[]} values
 * @property {string} description
 * @property {(value: number) => string} shown
 */

const DESCRIPTIONS = {
  coherence: "NPMI of its ten top words in whole documents: 0 as by chance, 1 always together",
  stability: "how similar the topic is in fits to other samples of the documents: 1 is equal",
};

/**
 * Returns the weight, the fit and the other measures of all topics.
 *
 * @returns {Measure[]}
 */
export function topicMeasures() {
  return [
    { name: "weight", values: model.weights, description: "share of all words", shown: percent },
    {
      name: "fit",
      values: model.fit,
      description: "mean share of the topic in its own documents",
      shown: (v) => percent(v),
    },
    ...Object.entries(model.measures).map(([name, values]) => ({
      name,
      values,
      description: DESCRIPTIONS[name] ?? name,
      shown: (v) => decimal(v, 2),
    })),
  ];
}
