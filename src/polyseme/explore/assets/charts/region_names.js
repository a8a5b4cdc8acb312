// Where the names of regions stand on the map, so that none covers another.

/**
 * @typedef {import("../model/map.js").RegionName} RegionName
 *
 * @typedef {{x: number, y: number, scale: number}} Frame scale and middle of what is shown
 *
 * @typedef {{name: RegionName, lines: string[], rank: number, x: number, y: number,
 *   width: number, height: number, size: number}} PlacedName x and y are the middle, in pixels
 */

const NAME_SIZES = [
  { size: 21, wide: Infinity },
  { size: 14.5, wide: 2.7 },
  { size: 12, wide: 3.4 },
];
const LINE_HEIGHT = 1.14;
const NAME_SHIFTS = [
  [0, 0],
  [0, -0.6],
  [0, 0.6],
  [0, -1.2],
  [0, 1.2],
  [-0.3, 0],
  [0.3, 0],
  [-0.3, -0.7],
  [0.3, -0.7],
  [-0.3, 0.7],
  [0.3, 0.7],
];
const NAME_GAP = 3;
const EDGE = 2;
const CROWD = 60; // names of the first level above which they are short where regions are small
const CROWD_GAP = 9;
const CROWD_SIZE = 0.62;

/**
 * Breaks a name into lines of similar width.
 *
 * @param {string} name
 * @returns {string[]}
 */
export function nameLines(name) {
  const words = name.split(" ");
  if (name.length < 14 || words.length < 2) return [name];
  let best = [name];
  let least = Infinity;
  for (let i = 1; i < words.length; i++) {
    const lines = [words.slice(0, i).join(" "), words.slice(i).join(" ")];
    const longest = Math.max(...lines.map((line) => line.length));
    // a line that ends with a comma does not cut a phrase
    const cost = longest + (lines[0].endsWith(",") ? 0 : 4);
    if (cost < least) [best, least] = [lines, cost];
  }
  return best;
}

/**
 * Returns the names that fit: coarse levels first, then large regions. A finer name is shown only
 * where its region is wide enough for it, and not if a coarser topic has the same name. Of many
 * names at the first level, those that are wider than their regions are cut at the first comma.
 *
 * @param {RegionName[]} names by level, large regions first
 * @param {(name: RegionName) => {x: number, y: number, radius: number}} onScreen
 * @param {(text: string, size: number) => number} widthOf
 * @param {{width: number, height: number, obstacles: number[][]}} frame obstacles are boxes
 * @returns {PlacedName[]}
 */
export function placeNames(names, onScreen, widthOf, { width, height, obstacles }) {
  const levels = [...new Set(names.map(({ level }) => level))].sort((a, b) => a - b);
  const taken = obstacles.map((box) => [...box]);
  const placed = [];
  const isCrowd = names.filter(({ level }) => level === levels[0]).length > CROWD;
  const gap = isCrowd ? CROWD_GAP : NAME_GAP;
  const small = isCrowd ? CROWD_SIZE : Math.min(1, Math.max(0.72, width / 900));
  for (const name of names) {
    const rank = Math.min(levels.indexOf(name.level), NAME_SIZES.length - 1);
    const { x, y, radius } = onScreen(name);
    if (x < 0 || y < 0 || x > width || y > height) continue;
    if (placed.some((other) => other.name.name === name.name)) continue;
    const size = NAME_SIZES[rank].size * (rank === 0 ? small : Math.max(0.85, small));
    const widest = (some) => Math.max(...some.map((line) => widthOf(line, size)));
    let lines = nameLines(name.name);
    if (isCrowd && rank === 0 && widest(lines) > NAME_SIZES[1].wide * radius) {
      lines = [name.name.split(",")[0]];
      if (placed.some((other) => other.lines[0] === lines[0])) continue;
    }
    const wide = widest(lines);
    if (wide > NAME_SIZES[rank].wide * radius) continue;
    const tall = lines.length * size * LINE_HEIGHT;
    for (const [dx, dy] of NAME_SHIFTS) {
      const at = [inside(x + dx * wide, wide, width), inside(y + dy * tall, tall, height)];
      const box = [at[0] - wide / 2, at[1] - tall / 2, at[0] + wide / 2, at[1] + tall / 2];
      if (box[2] > width || taken.some((other) => overlaps(box, other, gap))) continue;
      taken.push(box);
      placed.push({ name, lines, rank, x: at[0], y: at[1], width: wide, height: tall, size });
      break;
    }
  }
  return placed;
}

// Returns the middle of a name of this size that is nearest to `at` and in the window.
function inside(at, size, length) {
  return Math.max(size / 2 + EDGE, Math.min(length - size / 2 - EDGE, at));
}

function overlaps(a, b, gap) {
  return a[0] < b[2] + gap && b[0] < a[2] + gap && a[1] < b[3] + gap && b[1] < a[3] + gap;
}
