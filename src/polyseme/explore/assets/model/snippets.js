// The part of a text that answers a query.

import { rules } from "./corpus.js";

const SNIPPET = 240; // characters

/**
 * Returns the part of a text with the most words and phrases of a query.
 *
 * @param {string} text
 * @param {Iterable<number>} words
 * @param {RegExp[]} [phrases]
 * @returns {{text: string, marked?: boolean}[]}
 */
export function snippetOf(text, words, phrases = []) {
  const wanted = new Set(words);
  const parts = [];
  let place = 0;
  const line = text.normalize("NFC").replace(/\s+/g, " ").trim();
  const straight = line.replace(/[\u2019\u02bc\uff07]/g, "'");
  const spans = phrases.flatMap((pattern, i) =>
    Array.from(straight.matchAll(pattern), ({ 0: found, index }) => ({
      from: index,
      to: index + found.length,
      mark: `phrase ${i}`,
    })),
  );
  for (const { text: piece, column } of rules.marked(line)) {
    const span = spans.find(({ from, to }) => from <= place && place + piece.length <= to);
    const marked = span !== undefined || (column !== undefined && wanted.has(column));
    parts.push({ text: piece, start: place, marked, column: span?.mark ?? column });
    place += piece.length;
  }
  const marks = parts.filter(({ marked }) => marked);
  let start = 0;
  let most = 0;
  for (const mark of marks) {
    const inside = marks.filter(
      (other) =>
        other.start >= mark.start && other.start + other.text.length <= mark.start + SNIPPET,
    );
    const found = 1000 * new Set(inside.map(({ column }) => column)).size + inside.length;
    if (found <= most) continue;
    const last = inside.length ? inside[inside.length - 1] : mark;
    most = found;
    start = Math.max(
      0,
      mark.start -
        Math.floor(Math.max(0, SNIPPET - (last.start + last.text.length - mark.start)) / 2),
    );
  }
  if (place <= SNIPPET || start < SNIPPET / 4) start = 0;
  const end = start + SNIPPET;
  const inside = parts.filter(
    (part) => part.start >= start && part.start + part.text.length <= end,
  );
  if (!inside.length)
    return [{ text: text.slice(0, SNIPPET) + (text.length > SNIPPET ? " …" : ""), marked: false }];
  const after = inside[inside.length - 1].start + inside[inside.length - 1].text.length < place;
  return [start > 0 && { text: "… " }, ...inside, after && { text: " …" }].filter(Boolean);
}
