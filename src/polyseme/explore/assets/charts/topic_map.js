// The map of topics.

import { topicAddress } from "../addresses.js";
import { canvas } from "./chart.js";
import { s } from "../dom.js";
import { percent } from "../format.js";
import { model } from "../model/corpus.js";
import { topWords } from "../model/topics.js";
import { colorOf, topicTitle } from "../pieces/names.js";

const NUMBERED = 9; // radius of a circle that has room for a number
const MOST_COVERED = 0.4; // share of the area that circles may cover

/**
 * Draws a circle for each topic. Its area is the weight of the topic, its position follows from the
 * distances.
 *
 * @param {number} width
 * @param {number} [chosen]
 */
export function topicMap(width, chosen = -1) {
  const height = Math.round(Math.min(width * 0.86, model.K < 12 ? 380 : 540));
  const largestWeight = Math.max(...model.weights);
  const biggest = Math.max(15, Math.min(width, height) * 0.085);
  const usual = (topic) =>
    Math.max(NUMBERED, biggest * Math.sqrt(model.weights[topic] / largestWeight));
  const area = model.order.reduce((sum, topic) => sum + Math.PI * usual(topic) ** 2, 0);
  const crowd = Math.min(1, Math.sqrt((MOST_COVERED * width * height) / area));
  const radius = (topic) => crowd * usual(topic);
  const margin = biggest + 6;
  const places = separate(placesWithin(width, height, margin), radius, width, height);
  const links = model.order.map((topic) => {
    const [[x, y], r] = [places[topic], radius(topic)];
    return s(
      "a",
      {
        href: topicAddress(topic),
        "aria-label": topicTitle(topic),
        classes: topic === chosen ? "chosen" : "",
      },
      s(
        "title",
        {},
        [
          topicTitle(topic),
          topWords(topic, 6).join(", "),
          `${percent(model.weights[topic])} of all words`,
        ].join("\n"),
      ),
      s("circle", { cx: x, cy: y, r, classes: colorOf(topic) }),
      r >= NUMBERED && s("text", { x, y: y + 4.5, "text-anchor": "middle" }, String(topic)),
    );
  });
  return canvas(
    width,
    height,
    "Map of topics: circles near each other have similar words, larger circles have more weight",
    true,
    ...links,
  );
}

// Returns the positions of the topics in a frame, with one scale for both directions. Junk topics,
// which are far from all others, do not count for the scale; they stand at the edge.
function placesWithin(width, height, margin) {
  const axes = [0, 1].map((i) =>
    Array.from({ length: model.K }, (_, topic) => model.places[2 * topic + i]),
  );
  const subjects = model.order.filter((topic) => !(topic in model.junk));
  const framed = subjects.length ? subjects : model.order;
  const spans = axes.map((values) => {
    const shown = framed.map((topic) => values[topic]);
    return [Math.min(...shown), Math.max(...shown)];
  });
  const sizes = [width - 2 * margin, height - 2 * margin];
  const scale = Math.min(
    ...spans.map(([low, high], i) => (high > low ? sizes[i] / (high - low) : Infinity)),
  );
  return Array.from({ length: model.K }, (_, topic) =>
    spans.map(
      ([low, high], i) =>
        margin +
        sizes[i] / 2 +
        (Number.isFinite(scale) ? (axes[i][topic] - (low + high) / 2) * scale : 0),
    ),
  );
}

// Moves overlapping circles away from each other in small steps, within the frame.
function separate(places, radius, width, height) {
  for (let round = 0; round < 60; round++) {
    let moved = false;
    for (const [i, a] of model.order.entries()) {
      for (const b of model.order.slice(0, i)) {
        const [dx, dy] = [places[a][0] - places[b][0], places[a][1] - places[b][1]];
        const far = Math.hypot(dx, dy);
        const lack = 0.9 * (radius(a) + radius(b)) - far;
        if (lack <= 0.5) continue;
        const [ux, uy] = far > 1e-6 ? [dx / far, dy / far] : [Math.cos(a), Math.sin(a)];
        places[a] = [places[a][0] + (ux * lack) / 3, places[a][1] + (uy * lack) / 3];
        places[b] = [places[b][0] - (ux * lack) / 3, places[b][1] - (uy * lack) / 3];
        moved = true;
      }
    }
    places.forEach(([x, y], topic) => {
      const r = radius(topic) + 1;
      places[topic] = [Math.min(width - r, Math.max(r, x)), Math.min(height - r, Math.max(r, y))];
    });
    if (!moved) break;
  }
  return places;
}
