// Rows of bars.

import { canvas } from "./chart.js";
import { wrapped } from "./wrap.js";
import { s } from "../dom.js";

/**
 * @typedef {object} Bar
 * @property {string} label
 * @property {string} [href]
 * @property {number} value
 * @property {string} shown
 * @property {number} [behind] the value of a paler bar behind it
 * @property {string} [classes]
 * @property {string} [title]
 */

const LABEL_LETTER = 7.6; // pixels
const LABEL_LINE = 16;

/**
 * Draws rows of bars.
 *
 * @param {number} width
 * @param {Bar[]} rows
 * @param {{label?: string, labelWidth?: number, end?: number, most?: number}} [options]
 */
export function bars(
  width,
  rows,
  { label, labelWidth = Math.min(190, width * 0.36), end = 62, most } = {},
) {
  const [line, gap] = [26, 7];
  const barWidth = Math.max(20, width - labelWidth - end);
  const top =
    most ?? Math.max(...rows.map(({ value, behind }) => Math.max(value, behind ?? 0)), 1e-12);
  let height = 0;
  const drawn = rows.map((row) => {
    const names = wrapped(row.label, Math.max(6, Math.floor((labelWidth - 10) / LABEL_LETTER)));
    const tall = line + (names.length - 1) * LABEL_LINE;
    const y = height + (tall - line) / 2;
    height += tall;
    const size = (value) => Math.max(value > 0 ? 1.5 : 0, (barWidth * value) / top);
    const x = labelWidth - 10;
    const first = y + 17 - ((names.length - 1) * LABEL_LINE) / 2;
    const name = s(
      "text.label",
      { x, y: first, "text-anchor": "end" },
      names.length === 1
        ? names
        : names.map((text, i) => s("tspan", { x, dy: i ? LABEL_LINE : 0 }, text)),
    );
    const inside = [
      s("title", {}, row.title ?? `${row.label}: ${row.shown}`),
      name,
      row.behind !== undefined &&
        s("rect.behind", {
          x: labelWidth,
          y: y + gap / 2,
          width: size(row.behind),
          height: line - gap,
          rx: 2,
        }),
      s("rect.bar", {
        x: labelWidth,
        y: y + gap / 2,
        width: size(row.value),
        height: line - gap,
        rx: 2,
        classes: row.classes ?? "",
      }),
      s(
        "text.value",
        { x: labelWidth + size(Math.max(row.value, row.behind ?? 0)) + 6, y: y + 17 },
        row.shown,
      ),
    ];
    return row.href
      ? s("a", { href: row.href, "aria-label": `${row.label}, ${row.shown}` }, ...inside)
      : s("g", {}, ...inside);
  });
  return canvas(
    width,
    height,
    label,
    rows.some(({ href }) => href),
    ...drawn,
  );
}
