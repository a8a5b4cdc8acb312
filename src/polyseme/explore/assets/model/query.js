// The words and phrases of a query, as in retrieval/snippets.py.

const IN_WORD = /[\p{L}\p{N}_]/u;

const WITHOUT_SPACES = new RegExp(
  "^[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u9fff\\uac00-\\ud7a3" +
    "\\uf900-\\ufaff\\u{20000}-\\u{3ffff}]",
  "u",
);

/**
 * Returns the words and phrases of a query, and what is wrong with its quotation marks.
 *
 * @param {string} text
 * @returns {{words: string, phrases: string[], problem: string}}
 */
export function parsedQuery(text) {
  const parts = text.replace(/[\u201c-\u201f\u00ab\u00bb\uff02]/g, '"').split('"');
  const phrases = parts.filter((_, i) => i % 2).map(plainText);
  let problem = "";
  if (parts.length % 2 === 0)
    problem =
      "The query has a quotation mark without a partner: close the phrase, or remove the mark.";
  else if (phrases.some((phrase) => !IN_WORD.test(phrase)))
    problem = "The query has a phrase without words: put words between the quotation marks.";
  return { words: parts.join(" "), phrases, problem };
}

/**
 * Returns a text on one line, in composed form, with straight apostrophes.
 *
 * @param {string} text
 * @returns {string}
 */
export function plainText(text) {
  return text
    .normalize("NFC")
    .replace(/[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g, " ")
    .replace(/^ | $/g, "")
    .replace(/[\u2019\u02bc\uff07]/g, "'");
}

/**
 * Returns the expression that finds a phrase in a text of plainText, but not inside a longer word.
 *
 * @param {string} phrase
 * @returns {RegExp}
 */
export function phrasePattern(phrase) {
  const characters = Array.from(phrase);
  const [first, last] = [characters[0], characters[characters.length - 1]];
  const bounded = (character) => IN_WORD.test(character) && !WITHOUT_SPACES.test(character);
  const before = bounded(first) ? "(?<![\\p{L}\\p{N}_])" : "";
  const after = bounded(last) ? "(?![\\p{L}\\p{N}_]|'[\\p{L}\\p{N}_])" : "";
  return new RegExp(before + phrase.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + after, "giu");
}
