// Words that a query probably means, as in retrieval/nearest.py.

import { corpus, model } from "./corpus.js";

const NEAREST = 3;
const MOST_EDITS = 2;
const LETTERS_PER_EDIT = 3;

/**
 * Returns the nearest words of the vocabulary: the smallest distance first, then those in the most
 * documents.
 *
 * @param {string} word
 * @returns {string[]}
 */
export function nearestWords(word) {
  const letters = Array.from(word);
  const most = Math.min(MOST_EDITS, Math.floor(letters.length / LETTERS_PER_EDIT));
  const found = [];
  // each edit adds at most one letter that the word does not have
  const asked = new Set(letters);
  const isLike = (part) => {
    let others = 0;
    for (const letter of part) if (!asked.has(letter) && ++others > most) return false;
    return true;
  };
  const distance = (part) =>
    isLike(part) ? editDistance(letters, Array.from(part), most) : Infinity;
  model.words.forEach((name, column) => {
    const edits = name.includes("_")
      ? Math.min(...[name, ...name.split("_")].map(distance))
      : distance(name);
    if (edits <= most) found.push({ name, edits, column });
  });
  const frequency = ({ column }) => corpus.frequency[column];
  found.sort((a, b) => a.edits - b.edits || frequency(b) - frequency(a) || a.column - b.column);
  return found.slice(0, NEAREST).map(({ name }) => name);
}

// Returns the number of letters that are inserted, deleted, replaced or exchanged with their
// neighbor; Infinity if the lengths differ by more than `most`.
function editDistance(first, second, most) {
  if (Math.abs(first.length - second.length) > most) return Infinity;
  let [last, before, row] = [[], [], Array.from({ length: second.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= first.length; i++) {
    [last, before, row] = [before, row, [i]];
    for (let j = 1; j <= second.length; j++) {
      const replaced = first[i - 1] === second[j - 1] ? 0 : 1;
      row[j] = Math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + replaced);
      if (i > 1 && j > 1 && first[i - 1] === second[j - 2] && first[i - 2] === second[j - 1])
        row[j] = Math.min(row[j], last[j - 2] + 1);
    }
  }
  return row[second.length];
}
