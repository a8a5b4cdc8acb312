// Columns, one for each period, which can be chosen.

import { canvas } from "./chart.js";
import { AXIS } from "./lines.js";
import { s } from "../dom.js";
import { wholeNumber } from "../format.js";

const FIGURE = 7.2; // pixels of a digit

/**
 * Draws columns that are links. Those of the value 0 are left out.
 *
 * @param {number} width
 * @param {{values: number[], names: string[], chosen: number, label: string, right: number,
 *   href: (i: number) => string}} options right: pixels to the right of the columns
 */
export function columns(width, { values, names, chosen, label, right, href }) {
  const [height, above, below] = [150, 22, 30];
  const step = (width - AXIS - right) / Math.max(1, values.length - 1);
  const top = Math.max(...values, 1);
  const bottom = height - below;
  const tall = (value) => ((bottom - above) * value) / top;
  const every = Math.max(
    1,
    Math.ceil(values.length / Math.max(2, Math.floor((width - AXIS) / 84))),
  );
  const longest = Math.max(...values.map((value) => wholeNumber.format(value).length));
  const everyFigure = Math.max(1, Math.ceil((FIGURE * longest + 8) / step));
  // whether no column beside it covers the figure above a column
  const isFree = (i) => {
    const reach = (FIGURE * wholeNumber.format(values[i]).length + Math.min(step, 60)) / 2;
    return values.every(
      (other, j) => j === i || Math.abs(j - i) * step > reach || tall(other) <= tall(values[i]) + 3,
    );
  };
  const drawn = values.map((value, i) => {
    const middle = AXIS + (values.length > 1 ? i : 0.5) * step;
    const wide = Math.min(step, 60);
    const x = middle - wide / 2;
    const name =
      i % every === 0 &&
      s("text.tick", { x: middle, y: bottom + 19, "text-anchor": "middle" }, names[i]);
    if (!value) return name;
    return [
      name,
      s(
        "a",
        {
          href: href(i),
          "aria-label": `${names[i]}: ${wholeNumber.format(value)} documents`,
          "aria-current": i === chosen ? "true" : null,
          classes: i === chosen ? "chosen" : "",
        },
        s("title", {}, `${names[i]}: ${wholeNumber.format(value)} documents`),
        s("rect.target", { x, y: above - 14, width: wide, height: bottom - above + 14 }),
        s("rect.bar", {
          x: x + Math.min(1.5, wide / 8),
          y: bottom - tall(value),
          width: Math.max(1, wide - Math.min(3, wide / 4)),
          height: tall(value),
        }),
        i % everyFigure === 0 &&
          isFree(i) &&
          s(
            "text.value",
            { x: middle, y: bottom - tall(value) - 5, "text-anchor": "middle" },
            wholeNumber.format(value),
          ),
      ),
    ];
  });
  return canvas(width, height, label, true, ...drawn.flat());
}
