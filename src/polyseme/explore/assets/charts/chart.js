// Charts in SVG. They are drawn again when their width changes.

import { h, s } from "../dom.js";

/**
 * Returns an element that holds draw(width).
 *
 * @param {(width: number) => Element} draw
 */
export function chart(draw) {
  const holder = h("div.holder");
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(holder.clientWidth);
    if (width < 40 || width === drawn) return;
    drawn = width;
    holder.replaceChildren(draw(width));
  };
  new ResizeObserver(redraw).observe(holder);
  return Object.assign(holder, {
    redraw() {
      drawn = 0;
      redraw();
    },
  });
}

/**
 * Returns an SVG element with a label for screen readers: an image or, if it is interactive, a
 * group of links.
 *
 * @param {number} width
 * @param {number} height
 * @param {string} label
 * @param {boolean} interactive
 * @param {...import("../dom.js").Child} children
 */
export function canvas(width, height, label, interactive, ...children) {
  return s(
    "svg.chart",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: interactive ? "group" : "img",
      "aria-label": label,
    },
    ...children,
  );
}
