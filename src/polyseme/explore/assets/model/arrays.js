// Packed and sparse arrays.

/**
 * @typedef {Uint8Array | Uint16Array | Uint32Array | Int32Array} Integers
 *
 * @typedef {Integers | Float32Array | Float64Array} TypedArray
 *
 * @typedef {TypedArray | number[]} Numbers
 *
 * @typedef {{starts: Uint32Array, columns: Integers, values: TypedArray, rows: number}} Sparse
 */

/**
 * Decodes varints.
 *
 * @param {Uint8Array} bytes
 * @param {number} size how many numbers
 * @returns {Uint32Array}
 */
export function fromVarints(bytes, size) {
  const numbers = new Uint32Array(size);
  let place = 0;
  for (let i = 0; i < size; i++) {
    let byte = bytes[place++];
    let number = byte & 0x7f;
    for (let shift = 7; byte & 0x80; shift += 7) {
      byte = bytes[place++];
      number += (byte & 0x7f) * 2 ** shift;
    }
    numbers[i] = number;
  }
  return numbers;
}

/**
 * Encodes varints.
 *
 * @param {Numbers} numbers
 * @returns {Uint8Array}
 */
export function toVarints(numbers) {
  const bytes = [];
  for (let number of numbers) {
    for (; number >= 0x80; number = Math.floor(number / 0x80)) bytes.push((number & 0x7f) | 0x80);
    bytes.push(number);
  }
  return Uint8Array.from(bytes);
}

/**
 * Returns the cumulative sums of the sizes, with a 0 before them.
 *
 * @param {Numbers} sizes
 * @returns {Uint32Array}
 */
export function startsOf(sizes) {
  const starts = new Uint32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i++) starts[i + 1] = starts[i] + sizes[i];
  return starts;
}

/**
 * Returns a matrix by rows: row i has columns[starts[i] ... starts[i + 1]] with values at the same
 * positions.
 *
 * @param {Uint32Array} starts
 * @param {Integers} columns
 * @param {TypedArray} values
 * @returns {Sparse}
 */
export function sparse(starts, columns, values) {
  return { starts, columns, values, rows: starts.length - 1 };
}

/**
 * Returns the same matrix by columns.
 *
 * @param {Sparse} matrix
 * @param {number} columns how many columns the matrix has
 * @returns {Sparse}
 */
export function transposed(matrix, columns) {
  const sizes = new Uint32Array(columns);
  for (const column of matrix.columns) sizes[column]++;
  const starts = startsOf(sizes);
  const next = starts.slice(0, columns);
  const rows = new Uint32Array(matrix.columns.length);
  const values = matrix.values.slice();
  for (let row = 0; row < matrix.rows; row++) {
    for (let i = matrix.starts[row]; i < matrix.starts[row + 1]; i++) {
      const place = next[matrix.columns[i]]++;
      rows[place] = row;
      values[place] = matrix.values[i];
    }
  }
  return sparse(starts, rows, values);
}

/**
 * Returns the positions of the `count` largest positive values in decreasing order; of equal
 * values, the first ones.
 *
 * @param {Numbers} values
 * @param {number} count
 * @returns {number[]}
 */
export function largest(values, count) {
  const places = [];
  let least = 0;
  for (let i = 0; i < values.length; i++) {
    if (!(values[i] > least)) continue;
    places.push(i);
    if (places.length >= 4 * count + 64) least = cut();
  }
  cut();
  return places;

  function cut() {
    places.sort((a, b) => values[b] - values[a] || a - b);
    places.length = Math.min(places.length, count);
    return places.length < count ? 0 : values[places[count - 1]];
  }
}
