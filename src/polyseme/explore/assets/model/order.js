// An order in which similar rows are neighbors.

/**
 * Returns an order of items in which neighbors are near: a path that is built by inserting each
 * item where it is cheapest, then shortened by turning parts of it around.
 *
 * @param {number} size
 * @param {(a: number, b: number) => number} distance
 * @returns {number[]}
 */
export function similarOrder(size, distance) {
  const path = [];
  const far = (a, b) => (a === undefined || b === undefined ? 0 : distance(a, b));
  for (let item = 0; item < size; item++) {
    let [best, place] = [Infinity, 0];
    for (let i = 0; i <= path.length; i++) {
      const [before, after] = [path[i - 1], path[i]];
      const cost = far(before, item) + far(item, after) - far(before, after);
      if (cost < best) [best, place] = [cost, i];
    }
    path.splice(place, 0, item);
  }
  for (let round = 0, better = true; better && round < 50; round++) {
    better = false;
    for (let i = 0; i < size - 1; i++) {
      for (let j = i + 1; j < size; j++) {
        const [a, b, c, d] = [path[i - 1], path[i], path[j], path[j + 1]];
        if (far(a, c) + far(b, d) >= far(a, b) + far(c, d) - 1e-12) continue;
        path.splice(i, j - i + 1, ...path.slice(i, j + 1).reverse());
        better = true;
      }
    }
  }
  return path;
}

/**
 * Returns the Hellinger distance of two lists of shares.
 *
 * @param {ArrayLike<number>} p
 * @param {ArrayLike<number>} q
 * @returns {number}
 */
export function hellinger(p, q) {
  let sum = 0;
  for (let i = 0; i < p.length; i++) sum += (Math.sqrt(p[i]) - Math.sqrt(q[i])) ** 2;
  return Math.sqrt(sum / 2);
}

/**
 * Returns the orders of the rows and columns of a table in which large values are near the
 * diagonal: similar columns are neighbors, and rows stand by the mean place of their values.
 *
 * @param {ArrayLike<number>[]} columns the values of each column
 * @param {number} rows
 * @returns {{columns: number[], rows: number[]}}
 */
export function orderOfTable(columns, rows) {
  const order = similarOrder(columns.length, (a, b) => hellinger(columns[a], columns[b]));
  const place = Float64Array.from({ length: rows }, (_, row) => {
    let [sum, total] = [0, 0];
    order.forEach((column, i) => {
      const weight = columns[column][row] ** 2;
      sum += weight * i;
      total += weight;
    });
    return total > 0 ? sum / total : columns.length;
  });
  const ordered = Array.from(place.keys()).sort((a, b) => place[a] - place[b] || a - b);
  return { columns: order, rows: ordered };
}
