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
const DISTANCE_STEPS = 2 ** 30; // distances are at most the square root of two
const LARGEST_MAP = 2 ** 22; // more than the points of a map

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
    const { places, points, starts, side } = this;
    let best = -1;
    let least = far * far;
    const [left, right] = [this.cell(x - far), this.cell(x + far) + 1];
    for (let row = this.cell(y - far); row <= this.cell(y + far); row++) {
      const end = starts[right + side * row];
      for (let i = starts[left + side * row]; i < end; i++) {
        const point = points[i];
        const [dx, dy] = [places[2 * point] - x, places[2 * point + 1] - y];
        const distance = dx * dx + dy * dy;
        if (distance <= least && allowed(point)) [best, least] = [point, distance];
      }
    }
    return best;
  }

  /**
   * Returns the points inside a polygon, those nearest to its middle first.
   *
   * @param {number[][]} corners
   * @returns {number[]}
   */
  inside(corners) {
    const [xs, ys] = [0, 1].map((i) => Float64Array.from(corners, (corner) => corner[i]));
    const { places, points, starts, side } = this;
    const crossed = this.cellsOfEdges(xs, ys);
    const found = [];
    const [left, right] = [this.cell(Math.min(...xs)), this.cell(Math.max(...xs))];
    for (let row = this.cell(Math.min(...ys)); row <= this.cell(Math.max(...ys)); row++)
      for (let column = left; column <= right; column++) {
        const cell = column + side * row;
        // a cell that no edge meets is inside or outside as a whole
        const isWhole = !crossed[cell];
        if (isWhole && !isInside((column + 0.5) / side, (row + 0.5) / side, xs, ys)) continue;
        for (let i = starts[cell]; i < starts[cell + 1]; i++) {
          const point = points[i];
          if (isWhole || isInside(places[2 * point], places[2 * point + 1], xs, ys))
            found.push(point);
        }
      }
    return this.outward(found);
  }

  // Marks the cells that the edges of a polygon meet, and some beside them.
  cellsOfEdges(xs, ys) {
    const marked = new Uint8Array(this.side ** 2);
    for (let i = 0, j = xs.length - 1; i < xs.length; j = i++) {
      const [dx, dy] = [xs[i] - xs[j], ys[i] - ys[j]];
      const steps = Math.ceil(Math.max(Math.abs(dx), Math.abs(dy)) * this.side) + 1;
      for (let step = 0; step < steps; step++) {
        const [x, y] = [xs[j] + (dx * step) / steps, ys[j] + (dy * step) / steps];
        const ends = [x, x + dx / steps].map(this.cell);
        const rows = [y, y + dy / steps].map(this.cell);
        for (let row = Math.min(...rows); row <= Math.max(...rows); row++)
          for (let column = Math.min(...ends); column <= Math.max(...ends); column++)
            marked[column + this.side * row] = 1;
      }
    }
    return marked;
  }

  // Returns points in the order of their distance from their middle.
  outward(found) {
    const { places } = this;
    const middle = [0, 0];
    for (const point of found) {
      middle[0] += places[2 * point] / found.length;
      middle[1] += places[2 * point + 1] / found.length;
    }
    // Distances and places in the list as one number each, because numbers sort fast.
    const keys = Float64Array.from(found, (point, i) => {
      const [dx, dy] = [places[2 * point] - middle[0], places[2 * point + 1] - middle[1]];
      return Math.floor(Math.sqrt(dx * dx + dy * dy) * DISTANCE_STEPS) * LARGEST_MAP + i;
    });
    return Array.from(keys.sort(), (key) => found[key % LARGEST_MAP]);
  }
}

// Counts the edges to the right of a point: inside, their number is odd.
function isInside(x, y, xs, ys) {
  let inside = false;
  for (let i = 0, j = xs.length - 1; i < xs.length; j = i++)
    if (ys[i] > y !== ys[j] > y && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i])
      inside = !inside;
  return inside;
}
