// The map of documents: places, colors, the document under a pointer, and selections.

import { section } from "./data.js";
import { fromVarints, startsOf } from "./arrays.js";
import { currentDocuments, model } from "./corpus.js";
import { editedRegions } from "./edits.js";
import { nameOfTopic } from "./topics.js";

/**
 * @typedef {object} RegionName
 * @property {number} level number of topics of its level
 * @property {number} topic
 * @property {number} top the topic of the reading level above it, or itself
 * @property {string} name
 * @property {number} x between 0 and 1, as all places
 * @property {number} y
 * @property {number} radius of the region
 *
 * @typedef {object} DocumentMap
 * @property {number} size number of points
 * @property {Uint32Array} documents document of each point
 * @property {Float32Array} places x and y of each point
 * @property {RegionName[]} names by level, the largest regions first
 * @property {Uint32Array} starts topics of each document: where they start
 * @property {import("./arrays.js").Integers} topics
 * @property {Float32Array} shares P(z|d)
 * @property {any} section section "documents"
 */

const PLACE_STEPS = 65535;

/** @type {WeakMap<import("./corpus.js").Model, Promise<DocumentMap>>} */
const loadedMaps = new WeakMap();

/**
 * Reads the map on first use, and after edits.
 *
 * @returns {Promise<DocumentMap>}
 */
export function loadMap() {
  if (!loadedMaps.has(model))
    loadedMaps.set(
      model,
      Promise.all([section("map"), currentDocuments()]).then(([found, documents]) =>
        documentMap(found, documents),
      ),
    );
  return loadedMaps.get(model);
}

/**
 * Returns the map of its sections.
 *
 * @param {any} found section "map"
 * @param {any} documents section "documents"
 * @returns {DocumentMap}
 */
export function documentMap(found, documents) {
  const size = found.places.length / 2;
  return {
    size,
    documents: found.documents ?? Uint32Array.from({ length: size }, (_, point) => point),
    places: Float32Array.from(found.places, (code) => code / PLACE_STEPS),
    names: editedRegions(found.names, model, nameOfTopic),
    starts: startsOf(fromVarints(documents.topics_of_document, model.n_documents)),
    topics: documents.document_topics,
    shares: Float32Array.from(documents.document_shares, (code) => code / model.shares),
    section: documents,
  };
}

/**
 * Returns the colors of the points by topic, red, green and blue between 0 and 255. A document
 * mixes the colors of its topics by the squares of their shares.
 *
 * @param {DocumentMap} map
 * @param {number[][]} palette color of each topic
 * @param {number[]} unknown color of a document without topics
 * @returns {Uint8Array}
 */
export function topicColors({ size, documents, starts, topics, shares }, palette, unknown) {
  const colors = new Uint8Array(3 * size);
  for (let point = 0; point < size; point++) {
    const d = documents[point];
    const mixed = [0, 0, 0];
    let sum = 0;
    for (let i = starts[d]; i < starts[d + 1]; i++) {
      const weight = shares[i] ** 2;
      sum += weight;
      for (let c = 0; c < 3; c++) mixed[c] += weight * palette[topics[i]][c];
    }
    for (let c = 0; c < 3; c++) colors[3 * point + c] = sum > 0 ? mixed[c] / sum : unknown[c];
  }
  return colors;
}

/** Points by the cells of a square grid. */
export class PointGrid {
  /** @param {Float32Array} places */
  constructor(places) {
    const size = places.length / 2;
    this.places = places;
    this.side = Math.max(1, Math.ceil(Math.sqrt(size / 4)));
    const cell = (value) => Math.min(this.side - 1, Math.max(0, Math.floor(value * this.side)));
    const cells = Uint32Array.from(
      { length: size },
      (_, point) => cell(places[2 * point]) + this.side * cell(places[2 * point + 1]),
    );
    const counts = new Uint32Array(this.side ** 2);
    for (const of of cells) counts[of]++;
    this.starts = startsOf(counts);
    const next = this.starts.slice();
    this.points = new Uint32Array(size);
    cells.forEach((of, point) => (this.points[next[of]++] = point));
    this.cell = cell;
  }

  /**
   * Returns the nearest point within a distance for which `allowed` holds, or -1.
   *
   * @param {number} x
   * @param {number} y
   * @param {number} far
   * @param {(point: number) => boolean} [allowed]
   */
  nearest(x, y, far, allowed = () => true) {
    let best = -1;
    let least = far * far;
    for (const point of this.within(x - far, y - far, x + far, y + far)) {
      const distance = (this.places[2 * point] - x) ** 2 + (this.places[2 * point + 1] - y) ** 2;
      if (distance <= least && allowed(point)) [best, least] = [point, distance];
    }
    return best;
  }

  /**
   * Returns the points of the cells that a box meets.
   *
   * @param {number} left
   * @param {number} top
   * @param {number} right
   * @param {number} bottom
   * @returns {number[]}
   */
  within(left, top, right, bottom) {
    const found = [];
    for (let row = this.cell(top); row <= this.cell(bottom); row++) {
      const first = this.starts[this.cell(left) + this.side * row];
      const end = this.starts[this.cell(right) + this.side * row + 1];
      for (let i = first; i < end; i++) found.push(this.points[i]);
    }
    return found;
  }

  /**
   * Returns the points inside a polygon, those nearest to its middle first.
   *
   * @param {number[][]} corners
   * @returns {number[]}
   */
  inside(corners) {
    const [xs, ys] = [corners.map(([x]) => x), corners.map(([, y]) => y)];
    const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    /** @type {(point: number) => [number, number]} */
    const at = (point) => [this.places[2 * point], this.places[2 * point + 1]];
    const found = this.within(box[0], box[1], box[2], box[3]).filter((point) =>
      isInside(at(point), corners),
    );
    if (!found.length) return found;
    const middle = [0, 1].map((i) => found.reduce((sum, p) => sum + at(p)[i], 0) / found.length);
    const distance = new Map(
      found.map((p) => [p, Math.hypot(at(p)[0] - middle[0], at(p)[1] - middle[1])]),
    );
    return found.sort((a, b) => distance.get(a) - distance.get(b) || a - b);
  }
}

// Counts the edges to the right of a point: inside, their number is odd.
function isInside([x, y], corners) {
  let inside = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [[ax, ay], [bx, by]] = [corners[i], corners[j]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}
