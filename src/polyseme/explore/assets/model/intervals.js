// Shares of labels and periods with intervals, as `Run.compare_groups` and `Run.over_time` compute
// them from fits to resampled documents. They are of all documents, at the reading level.

import { model } from "./corpus.js";
import { section } from "./data.js";

/**
 * @typedef {object} Shares
 * @property {string[]} names of the labels or periods
 * @property {number[]} documents
 * @property {Float32Array} share mean P(z|d), names x topics; NaN without documents
 * @property {Float32Array} low
 * @property {Float32Array} high
 *
 * @typedef {object} Intervals
 * @property {Shares & {sign: (i: number) => string} | null} labels sign: "+" or "−" where a label
 *   has more or less of a topic than all other documents, else ""
 * @property {Shares | null} periods
 */

/**
 * Returns the intervals; null if the page has none for these documents and topics.
 *
 * @param {{subset: import("./subset.js").Subset, level: import("./levels.js").Level}} shown
 * @returns {Promise<Intervals | null>}
 */
export async function intervalsOf({ subset, level }) {
  const isEdited = model.targets?.some((target, topic) => target !== topic);
  if (!model.intervals || !subset.isWhole || level.size !== model.K || isEdited) return null;
  const found = await section("intervals");
  const sharesOf = (kind) => ({
    names: found[`${kind}s`],
    documents: found[`${kind}_documents`],
    share: found[`${kind}_shares`],
    low: found[`${kind}_low`],
    high: found[`${kind}_high`],
  });
  const sign = (i) =>
    found.q_values[i] < found.significant ? (found.differences[i] > 0 ? "+" : "−") : "";
  return {
    labels: found.labels ? { ...sharesOf("label"), sign } : null,
    periods: found.periods ? sharesOf("period") : null,
  };
}
