// A matrix of shades.

import { canvas, cutText } from "./chart.js";
import { s } from "../dom.js";

/**
 * @typedef {object} Matrix
 * @property {{label: string, href: string, classes?: string}[]} rows
 * @property {{label: string, href: string}[]} columns
 * @property {number[][]} values
 * @property {string} label
 * @property {(i: number, j: number, value: number) => string} describe
 */

/**
 * Draws a matrix of shades: values[row][column] from 0 to 1.
 *
 * @param {number} width
 * @param {Matrix} options
 */
export function matrix(width, { rows, columns, values, label, describe }) {
  const most = Math.max(...values.flat(), 1e-12);
  const left = Math.min(220, width * 0.34);
  const longest = Math.max(...columns.map((column) => Math.min(column.label.length, 24)));
  const step = Math.max(14, Math.min(110, (width - left - 8) / columns.length));
  const upright = step < 9 * Math.min(longest, 8);
  const above = upright ? Math.min(170, 16 + longest * 7.2) : 30;
  const line = 22;
  const wide = Math.ceil(left + step * columns.length + 8);
  const heads = columns.map((column, j) => {
    const x = left + j * step + step / 2;
    const text = s(
      "text.label",
      upright
        ? { transform: `translate(${x + 4} ${above - 8}) rotate(-90)` }
        : { x, y: above - 10, "text-anchor": "middle" },
      cutText(column.label, upright ? above : step + 4),
    );
    return s(
      "a",
      { href: column.href, "aria-label": column.label },
      s("title", {}, column.label),
      text,
    );
  });
  const body = rows.map((row, i) => [
    s(
      "a",
      { href: row.href, "aria-label": row.label },
      s(
        "text.label",
        { x: left - 10, y: above + i * line + 15, "text-anchor": "end" },
        cutText(row.label, left - 12),
      ),
    ),
    ...values[i].map((value, j) =>
      s("rect.shade", {
        x: left + j * step + 1,
        y: above + i * line + 1,
        width: step - 2,
        height: line - 2,
        rx: 2,
        classes: row.classes ?? "",
        "fill-opacity": (0.03 + 0.97 * Math.sqrt(value / most)).toFixed(3),
        data: { i, j },
      }),
    ),
  ]);
  const tell = ({ target }) => {
    const { i, j } = target.dataset;
    if (i !== undefined && !target.firstChild)
      target.append(s("title", {}, describe(i, j, values[i][j])));
  };
  const drawn = canvas(wide, above + rows.length * line + 4, label, true, ...heads, ...body.flat());
  drawn.addEventListener("pointerover", tell); // creating thousands of titles at once would be slow
  return drawn;
}
