// Measures of the topics of a level.

import { decimal, percent, timesText, wholeNumber } from "../format.js";
import { model } from "../model/corpus.js";
import { topicsOfSubset } from "../model/subset.js";

/**
 * @typedef {object} Measure
 * @property {string} name
 * @property {ArrayLike<number | null>} values
 * @property {string} description
 * @property {(value: number, topic: number) => string} shown
 */

const DESCRIPTIONS = {
  coherence: "NPMI of its ten top words in whole documents: 0 as by chance, 1 always together",
  stability: "how similar the topic is in fits to other samples of the documents: 1 is equal",
  reproducibility: "share of fits to other samples of the documents that have it (95% interval)",
};
const ENDS = ["reproducibility_least", "reproducibility_most"];

/**
 * Returns the weight, the fit and the other measures of the topics of a level. Of some documents
 * only, those that can be computed from them, and how the weight differs from that of all.
 *
 * @param {import("../router.js").Shown} shown
 * @returns {Measure[]}
 */
export function topicMeasures({ subset, level }) {
  const { weights, fit, documents } = topicsOfSubset(subset, level.size);
  const isReading = level.size === model.K;
  const weight = subset.isWhole ? level.weights : weights;
  const found = [
    {
      name: "weight",
      values: weight,
      description: subset.isWhole ? "share of all words" : "share of the words of these documents",
      shown: percent,
    },
  ];
  if (!subset.isWhole)
    found.push(
      {
        name: "in all",
        values: level.weights,
        description: "share of the words of all documents",
        shown: percent,
      },
      {
        name: "times",
        values: weight.map((share, topic) =>
          level.weights[topic] > 0 ? share / level.weights[topic] : 0,
        ),
        description: "weight in these documents, divided by the weight in all documents",
        shown: timesText,
      },
    );
  found.push(
    {
      name: "documents",
      values: Float64Array.from(documents),
      description: "documents whose main topic it is",
      shown: (value) => wholeNumber.format(value),
    },
    {
      name: "fit",
      values: subset.isWhole && isReading ? model.fit : fit,
      description: "mean share of the topic in its own documents",
      shown: (value) => percent(value),
    },
  );
  if (!subset.isWhole || !isReading) return found;
  const others = Object.entries(model.measures)
    .filter(([name]) => !ENDS.includes(name))
    .map(([name, values]) => ({
      name,
      values,
      description: DESCRIPTIONS[name] ?? name,
      shown: name === "reproducibility" ? withInterval : (value) => decimal(value, 2),
    }));
  return [...found, ...others];
}

function withInterval(share, topic) {
  const [least, most] = ENDS.map((name) => percent(model.measures[name][topic]));
  return `${percent(share)} (${least} to ${most})`;
}
