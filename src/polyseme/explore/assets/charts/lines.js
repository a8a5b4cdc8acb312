// Lines over time or iterations, and small lines.

import { canvas } from "./chart.js";
import { wrapped } from "./wrap.js";
import { s } from "../dom.js";
import { wholeNumber } from "../format.js";

/**
 * @typedef {object} Series
 * @property {(number | null)[]} values
 * @property {string} [classes]
 * @property {string} [label]
 * @property {string} [tag] name at the end of the line
 * @property {string} [href] where the name leads
 * @property {(number | null)[]} [low] lower end of a band
 * @property {(number | null)[]} [high]
 *
 * @typedef {object} Lines
 * @property {Series[]} series
 * @property {number[]} [xs]
 * @property {string[]} [names]
 * @property {string} label
 * @property {(value: number) => string} [format]
 * @property {number} [height]
 * @property {boolean} [zero]
 * @property {boolean} [dots]
 * @property {number[]} [errors]
 * @property {number | null} [mark]
 * @property {string} [xLabel]
 */

/** Pixels to the left of a chart with an axis. */
export const AXIS = 64;
/**
 * Returns the pixels to the right of lines that have names.
 *
 * @param {number} width
 */
export const nameMargin = (width) => Math.max(90, Math.min(240, width * 0.3));

const TAG_LETTER = 7.1;
const TAG_LINE = 15;

// Returns about `many` round numbers between two values.
function ticks(low, high, many = 4) {
  if (!(high > low)) return [low];
  const raw = (high - low) / many;
  const power = 10 ** Math.floor(Math.log10(raw));
  const far = (size) => Math.abs(Math.log(size / raw));
  const step = [1, 2, 5, 10].map((m) => m * power).sort((a, b) => far(a) - far(b))[0];
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step)
    found.push(value);
  return found;
}

// Returns a function that formats ticks with as many decimals as they need.
function tickText(values) {
  const step = values.length > 1 ? values[1] - values[0] : 1;
  const decimals = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
  const format = new Intl.NumberFormat("en", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
  return (value) => format.format(value);
}

// Returns the parts of a line between gaps, which are nulls among its points.
function parts(points) {
  const found = [[]];
  for (const point of points) {
    if (point) found.at(-1).push(point);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter((part) => part.length);
}

// Returns the path of a line with gaps.
export function pathOf(points) {
  return parts(points)
    .flatMap((part) => part.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`))
    .join("");
}

// Returns the points of a line that have a gap on both sides, so that no path shows them.
function alone(points) {
  return parts(points)
    .filter((part) => part.length === 1)
    .flat();
}

// Moves names apart so that none covers another, and back into the frame.
function spread(ends, top, bottom) {
  const tall = ({ lines: texts }) => texts.length * TAG_LINE + 3;
  let floor = top;
  for (const end of ends) {
    end.y = Math.max(end.y, floor + tall(end) / 2);
    floor = end.y + tall(end) / 2;
  }
  let ceiling = bottom;
  for (const end of [...ends].reverse()) {
    end.y = Math.min(end.y, ceiling - tall(end) / 2);
    ceiling = end.y - tall(end) / 2;
  }
}

/**
 * Draws lines, all as long as xs (numbers) or names (texts below). A value of null is a gap.
 *
 * @param {number} width
 * @param {Lines} options
 */
export function lines(
  width,
  {
    series,
    xs,
    names,
    label,
    format,
    height = 280,
    zero = false,
    dots = false,
    errors,
    mark,
    xLabel,
  },
) {
  const [left, right, above, below] = [
    AXIS,
    series.some(({ tag }) => tag) ? nameMargin(width) : 18,
    14,
    xLabel ? 46 : 32,
  ];
  const size = series[0].values.length;
  const along = xs ?? Array.from({ length: size }, (_, i) => i);
  const all = series.flatMap(({ values }) =>
    values.flatMap((v, i) => (v === null ? [] : [v - (errors?.[i] ?? 0), v + (errors?.[i] ?? 0)])),
  );
  const low = zero ? 0 : Math.min(...all);
  const ends = series.flatMap((one) => (one.high ?? []).filter((value) => value !== null));
  const high = Math.max(...all, ...ends, low + 1e-9);
  const [first, last] = [along[0], along[size - 1]];
  const x = (value) =>
    left +
    (last > first
      ? ((value - first) / (last - first)) * (width - left - right)
      : (width - left - right) / 2);
  const y = (value) => height - below - ((value - low) / (high - low)) * (height - above - below);
  const levels = ticks(low, high);
  const formatTick = format ?? tickText(levels);
  const marks = levels.map((value) => [
    s("line.grid", { x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    s("text.tick", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, formatTick(value)),
  ]);
  const every = Math.max(1, Math.ceil(size / Math.max(2, Math.floor((width - left) / 84))));
  const xMarks = names
    ? names.map((name, i) => (i % every === 0 ? [i, name] : null)).filter(Boolean)
    : ticks(first, last, Math.max(2, Math.floor(width / 140))).map((value) => [
        value,
        wholeNumber.format(value),
      ]);
  const below_ = xMarks.map(([value, name]) =>
    s("text.tick", { x: x(value), y: height - below + 20, "text-anchor": "middle" }, name),
  );
  const bands = series
    .filter((one) => one.low)
    .map((one) => {
      const edge = (values) =>
        values.map((value, i) => (value === null ? null : [x(along[i]), y(Math.max(low, value))]));
      const lower = parts(edge(one.low));
      const d = parts(edge(one.high))
        .map((upper, i) => `${pathOf([...upper, ...lower[i].reverse()])}Z`)
        .join("");
      return s("path.band", { d, classes: one.classes });
    });
  const drawn = series.map(({ values, classes = "", label: name }) => {
    const points = values.map((value, i) => (value === null ? null : [x(along[i]), y(value)]));
    const circles = dots ? points.filter(Boolean) : alone(points);
    return s(
      "g",
      { classes },
      s("title", {}, name ?? label),
      s("path.line", { d: pathOf(points), classes }),
      circles.map(([cx, cy]) => s("circle.dot", { cx, cy, r: 3.5, classes })),
    );
  });
  const tagged = series
    .filter(({ tag }) => tag)
    .map(({ values, tag, classes, href }) => ({
      lines: wrapped(tag, Math.floor((right - 12) / TAG_LETTER)),
      classes,
      href,
      name: tag,
      y: y(values.findLast((v) => v !== null) ?? low),
    }))
    .sort((a, b) => a.y - b.y);
  spread(tagged, above, height - below + 6);
  const tags = tagged.map(({ lines: texts, classes, href, name, y: middle }) => {
    const parts = texts.map((text, i) =>
      s(
        "text.tag-end",
        {
          x: width - right + 9,
          y: middle + 4 + (i - (texts.length - 1) / 2) * TAG_LINE,
          classes,
        },
        text,
      ),
    );
    return href ? s("a", { href, "aria-label": name }, ...parts) : s("g", {}, ...parts);
  });
  const spans = (errors ?? []).map((error, i) =>
    s("line.error", {
      x1: x(along[i]),
      x2: x(along[i]),
      y1: y(series[0].values[i] - error),
      y2: y(series[0].values[i] + error),
    }),
  );
  const chosen =
    mark === undefined || mark === null
      ? null
      : s("line.mark", { x1: x(mark), x2: x(mark), y1: above, y2: height - below });
  const under =
    xLabel &&
    s(
      "text.tick",
      { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" },
      xLabel,
    );
  return canvas(
    width,
    height,
    label,
    tagged.some(({ href }) => href),
    ...marks.flat(),
    ...below_,
    under,
    chosen,
    ...spans,
    ...bands,
    ...drawn,
    ...tags,
  );
}

/**
 * Draws a small line without axes. A value of null is a gap.
 *
 * @param {(number | null)[]} values
 * @param {string} classes
 * @param {string} label
 */
export function sparkline(values, classes, label) {
  const [width, height] = [120, 30];
  const top = Math.max(...values, 1e-12);
  const points = values.map((value, i) =>
    value === null
      ? null
      : [
          values.length > 1 ? 2 + (i / (values.length - 1)) * (width - 4) : width / 2,
          height - 3 - (value / top) * (height - 6),
        ],
  );
  return s(
    "svg.spark",
    { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    s("path.line", { d: pathOf(points), classes }),
    alone(points).map(([cx, cy]) => s("circle.dot", { cx, cy, r: 3, classes })),
  );
}
