// A matrix of shades with one scale. A pointer or the arrow keys choose a cell.

import { canvas } from "./chart.js";
import { wrapped } from "./wrap.js";
import { s } from "../dom.js";

/**
 * @typedef {{label: string, href: string, classes?: string, shown: string}} Side shown: a figure
 *   after the label
 *
 * @typedef {object} Matrix
 * @property {Side[]} rows
 * @property {Side[]} columns
 * @property {(i: number, j: number) => {fill: string, strength: number, text: string}} cell
 *   fill is a class of the style sheet; text is drawn if `figures` is true
 * @property {boolean} figures
 * @property {string} label
 * @property {(i: number, j: number) => void} choose called for the cell under the pointer
 * @property {(i: number, j: number) => void} open
 */

const LETTER = 7.3; // pixels of a letter
const LINE = 17;
const LEAST_STEP = 22;
const NARROW = 520;

/**
 * Draws a matrix of shades.
 *
 * @param {number} width
 * @param {Matrix} options
 */
export function matrix(width, { rows, columns, cell, figures, label, choose, open }) {
  const isNarrow = width < NARROW; // figures stand below the names of rows
  const longest = Math.max(
    ...rows.map((row) => row.label.length + (isNarrow ? 0 : row.shown.length + 2)),
  );
  const left = Math.min(longest * LETTER + 12, Math.max(130, Math.min(330, width * 0.36)));
  const step = Math.max(
    figures ? 46 : LEAST_STEP,
    Math.min(96, (width - left - 8) / columns.length),
  );
  const heads = columns.map((column) => wrapped(column.label, 34));
  const flat = columns.every(({ label: name }) => name.length * LETTER < step - 8);
  // upright labels end with their figures
  const deep = Math.max(
    ...columns.map(({ shown }, j) =>
      Math.max(...heads[j].map((line, i) => line.length + (i ? 0 : shown.length + 2))),
    ),
  );
  const above = flat ? 46 : deep * LETTER + 14;
  const names = rows.map((row) =>
    wrapped(row.label, Math.floor((left - (isNarrow ? 12 : 62)) / LETTER)),
  );
  const tops = [];
  let bottom = above;
  for (const lines of names) {
    tops.push(bottom);
    bottom += Math.max(24, (lines.length + Number(isNarrow)) * LINE + 6);
  }
  const wide = Math.ceil(left + step * columns.length + 8);
  const head = columns.map((column, j) => {
    const x = left + j * step + step / 2;
    const first = x + 5 - ((heads[j].length - 1) * LINE) / 2;
    const texts = heads[j].map((line, i) =>
      s(
        "text.label",
        flat
          ? { x, y: above - 26, "text-anchor": "middle" }
          : { transform: `translate(${first + i * LINE} ${above - 8}) rotate(-90)` },
        line,
        !flat && i === 0 && s("tspan.value", { dx: 7 }, column.shown),
      ),
    );
    return s(
      "a",
      { href: column.href, "aria-label": `${column.label}, ${column.shown}` },
      ...texts,
      flat && s("text.value", { x, y: above - 8, "text-anchor": "middle" }, column.shown),
    );
  });
  const middles = rows.map((_, i) => (tops[i] + (tops[i + 1] ?? bottom)) / 2);
  // stands beside the cells while they are scrolled
  const side = s(
    "g.row-names",
    {},
    s("rect.ground", { x: 0, y: above, width: left - 2, height: bottom - above }),
    ...rows.map((row, i) => {
      const lines = names[i].length + Number(isNarrow);
      const first = middles[i] + 5 - ((lines - 1) * LINE) / 2;
      const place = isNarrow
        ? { x: 0, y: first + (lines - 1) * LINE }
        : { x: left - 8, y: middles[i] + 4, "text-anchor": "end" };
      return s(
        "a",
        { href: row.href, "aria-label": `${row.label}, ${row.shown}` },
        ...names[i].map((line, at) => s("text.label", { x: 0, y: first + at * LINE }, line)),
        s("text.value", place, row.shown),
      );
    }),
  );
  const body = rows.map((_, i) => {
    const middle = middles[i];
    return [
      ...columns.map((_, j) => {
        const { fill, strength, text } = cell(i, j);
        const box = {
          x: left + j * step + 1,
          y: tops[i] + 1,
          width: step - 2,
          height: (tops[i + 1] ?? bottom) - tops[i] - 2,
        };
        return [
          s("rect.shade", {
            ...box,
            rx: 2,
            classes: fill,
            "fill-opacity": Math.min(1, strength).toFixed(3),
          }),
          figures &&
            s(
              "text.cell",
              {
                x: box.x + box.width / 2,
                y: middle + 4,
                "text-anchor": "middle",
                classes: strength > 0.6 ? "on" : "",
              },
              text,
            ),
        ];
      }),
    ];
  });
  const frame = s("rect.cursor", { visibility: "hidden", rx: 2 });
  const drawn = canvas(
    wide,
    bottom + 4,
    `${label}. Arrow keys choose a cell, Enter shows its documents.`,
    true,
    ...head,
    ...body.flat(2),
    frame,
    side,
  );
  let [row, column] = [-1, -1];
  const cells = Array.from(drawn.querySelectorAll("rect.shade")); // by rows
  const places = new Map(cells.map((rect, place) => [rect, place]));
  const move = (i, j) => {
    [row, column] = [
      Math.max(0, Math.min(rows.length - 1, i)),
      Math.max(0, Math.min(columns.length - 1, j)),
    ];
    const at = cells[row * columns.length + column];
    for (const name of ["x", "y", "width", "height"])
      frame.setAttribute(name, at.getAttribute(name));
    frame.setAttribute("visibility", "visible");
    choose(row, column);
  };
  const atCell = (act) => (event) => {
    const place = places.get(event.target);
    if (place !== undefined) act(Math.floor(place / columns.length), place % columns.length);
  };
  drawn.addEventListener("pointerover", atCell(move));
  drawn.addEventListener("click", atCell(open));
  drawn.setAttribute("tabindex", "0");
  drawn.addEventListener("keydown", (event) => {
    if (event.target !== drawn) return;
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const by = steps[event.key];
    if (by) move(row < 0 ? 0 : row + by[0], column < 0 ? 0 : column + by[1]);
    else if (event.key === "Enter" && row >= 0) open(row, column);
    else return;
    event.preventDefault();
  });
  return drawn;
}
