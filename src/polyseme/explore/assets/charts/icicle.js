// A tree as columns of boxes: each box is beside the box of its parent, and as tall as its share of
// it. Names stand in boxes that are tall enough.

import { canvas } from "./chart.js";
import { wrapped } from "./wrap.js";
import { s } from "../dom.js";
import { percent } from "../format.js";

/**
 * @typedef {object} Node
 * @property {string} key
 * @property {string} name
 * @property {number} weight
 * @property {string} classes
 * @property {string | null} href its page
 * @property {string} title
 * @property {Node[]} children
 */

const NODE_LETTER = 7.4;
const NODE_LINE = 16;
const LEAST_COLUMN = 165;

/**
 * Draws the nodes below a node, which is all of the tree at first.
 *
 * @param {number} width
 * @param {Node[]} roots what stands in the first column
 * @param {{height: number, label: string, zoom: (node: Node) => string}} options zoom returns the
 *   address that shows a node in the first column
 */
export function icicle(width, roots, { height, label, zoom }) {
  // columns whose boxes are tall enough for names on average
  let [readable, column] = [0, roots];
  while (column.length && column.length * NODE_LINE <= height) {
    readable++;
    column = column.flatMap(({ children }) => children);
  }
  const shown = Math.max(1, Math.min(readable, Math.floor(width / LEAST_COLUMN)));
  const wide = width / shown;
  const drawn = [];
  const draw = (nodes, column, top, tall) => {
    if (column >= shown) return;
    const total = nodes.reduce((sum, { weight }) => sum + weight, 0);
    let y = top;
    for (const node of nodes) {
      const high = total > 0 ? (tall * node.weight) / total : tall / nodes.length;
      if (high >= 1) drawn.push(box(node, column * wide, y, high, column === shown - 1));
      draw(node.children, column + 1, y, high);
      y += high;
    }
  };
  const box = (node, x, y, high, isLast) => {
    const fill = s("rect.node", {
      x: x + 1,
      y: y + 0.5,
      width: wide - 2,
      height: Math.max(0.5, high - 1),
      rx: Math.min(4, high / 3),
      classes: node.classes,
    });
    const more = node.children.length > 0;
    const room = Math.floor((wide - (more ? 34 : 18)) / NODE_LETTER);
    const lines =
      high >= NODE_LINE ? wrapped(node.name, room).slice(0, Math.floor(high / NODE_LINE)) : [];
    const cut = lines.length > 0 && lines.join("").length < node.name.replace(/\s/g, "").length;
    if (cut) lines[lines.length - 1] = lines.at(-1).slice(0, Math.max(1, room - 1)) + "…";
    const first = y + high / 2 + 5 - ((lines.length - 1) * NODE_LINE) / 2;
    const texts = lines.map((line, i) =>
      s("text.name", { x: x + 9, y: first + i * NODE_LINE }, line),
    );
    const title = s("title", {}, `${node.title}\n${percent(node.weight)}`);
    const isCut = lines.length ? "" : "small";
    const page = node.href
      ? s("a", { href: node.href, "aria-label": node.name, classes: isCut }, title, fill, ...texts)
      : s("g", {}, title, fill, ...texts);
    const step =
      more &&
      high >= NODE_LINE &&
      s(
        "a.zoom",
        { href: zoom(node), "aria-label": `Enlarge ${node.name}` },
        s("rect.target", { x: x + wide - 27, y: y + high / 2 - 12, width: 24, height: 24 }),
        s(
          "text.value",
          { x: x + wide - 15, y: y + high / 2 + 5, "text-anchor": "middle" },
          isLast ? "›" : "⤢",
        ),
      );
    return [page, step];
  };
  draw(roots, 0, 0, height);
  return canvas(width, height, label, true, ...drawn.flat());
}
