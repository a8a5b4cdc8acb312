import assert from "node:assert/strict";
import { test } from "node:test";
import { nameLines, placeNames } from "../../../src/polyseme/explore/assets/charts/region_names.js";
import {
  PointGrid,
  documentMap,
  topicColors,
} from "../../../src/polyseme/explore/assets/model/map.js";
import { documentsWith } from "../../../src/polyseme/explore/assets/model/search.js";
import { decoded } from "../../../src/polyseme/explore/assets/model/data.js";
import { assertClose, open, vectors } from "./vectors.js";

await open(vectors.page);
const map = documentMap(await decoded(vectors.page.map), await decoded(vectors.page.documents));
const grid = new PointGrid(map.places);

test("places and names are those of Python", () => {
  assertClose(Array.from(map.places), vectors.places.flat(), 1e-6);
  assert.deepEqual(map.names, vectors.names);
});

test("colors mix by the squares of the shares", () => {
  const found = topicColors(map, vectors.palette, [9, 9, 9]);
  assertClose(Array.from(found), vectors.colors.flat(), 1.1);
});

test("the nearest document, and documents in a polygon", () => {
  for (const { x, y, far, nearest } of vectors.nearest)
    assert.equal(grid.nearest(x, y, far), nearest);
  for (const { corners, inside } of vectors.polygons)
    assert.deepEqual(
      grid.inside(corners).sort((a, b) => a - b),
      inside,
    );
});

test("the nearest document that is allowed", () => {
  const { x, y } = vectors.nearest[0];
  const first = grid.nearest(x, y, 1);
  assert.notEqual(
    grid.nearest(x, y, 1, (point) => point !== first),
    first,
  );
  assert.equal(
    grid.nearest(x, y, 1, () => false),
    -1,
  );
});

test("documents with words of a query", () => {
  for (const { text, documents } of vectors.lit)
    assert.deepEqual(
      documentsWith(text).documents.sort((a, b) => a - b),
      documents,
    );
});

test("names do not overlap, stay in the frame and off obstacles", () => {
  const names = Array.from({ length: 60 }, (_, i) => ({
    level: i < 10 ? 10 : i < 30 ? 20 : 40,
    topic: i,
    top: i % 10,
    name: `topic number ${i}, some words`,
    x: ((i * 37) % 61) / 61,
    y: ((i * 17) % 59) / 59,
    radius: 0.025,
  }));
  const frame = { width: 800, height: 600, obstacles: [[500, 0, 800, 300]] };
  for (const scale of [600, 1200]) {
    const placed = placeNames(
      names,
      ({ x, y, radius }) => ({ x: x * scale, y: y * scale, radius: radius * scale }),
      (text, size) => 0.55 * size * text.length,
      frame,
    );
    const boxes = [
      ...placed.map(({ x, y, width, height }) => [
        x - width / 2,
        y - height / 2,
        x + width / 2,
        y + height / 2,
      ]),
      ...frame.obstacles,
    ];
    boxes.forEach((a, i) =>
      boxes.forEach((b, j) =>
        assert.ok(i === j || a[0] >= b[2] || b[0] >= a[2] || a[1] >= b[3] || b[1] >= a[3]),
      ),
    );
    for (const [left, top, right, bottom] of boxes)
      assert.ok(left >= 0 && top >= 0 && right <= 800 && bottom <= 600);
    assert.ok(placed.length > 3);
    assert.equal(
      placed.every(({ rank }) => rank === 0),
      scale === 600,
    );
  }
});

test("the names that are shown, and where, are those of Python", () => {
  for (const { names, side, shown } of vectors.placed) {
    const placed = placeNames(
      names,
      ({ x, y, radius }) => ({ x: x * side, y: y * side, radius: radius * side }),
      (text, size) => 0.55 * text.length * size,
      { width: side, height: side, obstacles: [] },
    );
    assert.deepEqual(
      placed.map(({ name, lines, rank }) => [name.level, name.topic, lines.join("\n"), rank]),
      shown.map((one) => one.slice(0, 4)),
    );
    assertClose(
      placed.flatMap(({ x, y, size }) => [x, y, size]),
      shown.flatMap((one) => one.slice(4)),
      1e-6,
    );
  }
});

test("a name beside the edge of the window is moved into it", () => {
  const names = [0.01, 0.5, 0.99].map((x, topic) => ({
    level: 3,
    topic,
    top: topic,
    name: topic === 1 ? "w".repeat(60) : "ships and sails",
    x,
    y: x,
    radius: 0.1,
  }));
  names[2].name = "salt and cargo";
  const placed = placeNames(
    names,
    ({ x, y, radius }) => ({ x: 400 * x, y: 400 * y, radius: 400 * radius }),
    (text, size) => 0.55 * size * text.length,
    { width: 400, height: 400, obstacles: [] },
  );
  assert.deepEqual(
    placed.map(({ name }) => name.topic),
    [0, 2],
  );
  for (const { x, y, width, height } of placed)
    for (const [at, size] of [
      [x, width],
      [y, height],
    ])
      assert.ok(at - size / 2 >= 0 && at + size / 2 <= 400);
});

test("a finer topic with the name of its parent is not named again", () => {
  const names = [
    { level: 2, topic: 0, top: 0, name: "ships", x: 0.3, y: 0.3, radius: 0.2 },
    { level: 4, topic: 3, top: 0, name: "ships", x: 0.7, y: 0.7, radius: 0.2 },
    { level: 4, topic: 1, top: 0, name: "sails", x: 0.7, y: 0.3, radius: 0.2 },
  ];
  const placed = placeNames(
    names,
    ({ x, y, radius }) => ({ x: 600 * x, y: 600 * y, radius: 600 * radius }),
    (text, size) => 0.55 * size * text.length,
    { width: 600, height: 600, obstacles: [] },
  );
  assert.deepEqual(
    placed.map(({ name }) => name.topic),
    [0, 1],
  );
});

test("of many names, those that are wider than their regions are cut at a comma", () => {
  const names = Array.from({ length: 80 }, (_, topic) => ({
    level: 80,
    topic,
    top: topic,
    name: `ship ${topic}, harbor, cargo of salt`,
    x: ((topic % 8) + 0.5) / 8,
    y: (Math.floor(topic / 8) + 0.5) / 10,
    radius: topic === 0 ? 0.2 : 0.02,
  }));
  const placed = placeNames(
    names,
    ({ x, y, radius }) => ({ x: 1000 * x, y: 1000 * y, radius: 1000 * radius }),
    (text, size) => 0.55 * size * text.length,
    { width: 1000, height: 1000, obstacles: [] },
  );
  assert.equal(placed.length, 80);
  for (const { name, lines } of placed)
    assert.deepEqual(lines, name.topic ? [`ship ${name.topic}`] : nameLines(name.name));
});

test("names break at a comma where it is near the middle", () => {
  assert.deepEqual(nameLines("NASA, space"), ["NASA, space"]);
  assert.deepEqual(nameLines("Clipper chip, key, encryption"), [
    "Clipper chip,",
    "key, encryption",
  ]);
  assert.deepEqual(nameLines("Donaudampfschifffahrt"), ["Donaudampfschifffahrt"]);
});
