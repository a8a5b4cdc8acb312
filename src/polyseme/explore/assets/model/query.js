// The words and phrases of a query, as in retrieval/snippets.py.

const IN_WORD = /[\p{L}\p{N}_]/u;

const WITHOUT_SPACES = new RegExp(
  "^[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u9fff\\uac00-\\ud7a3" +
    "\\uf900-\\ufaff\\u{20000}-\\u{3ffff}]",
  "u",
);

const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/**
 * @typedef {object} ParsedQuery
 * @property {string} words the words, including those of the phrases
 * @property {string[]} phrases the parts in quotation marks
 * @property {string[]} prefixes beginnings of words, each with a * at its end
 * @property {string[]} excluded words that a document must not contain, or beginnings of them
 * @property {string} problem what is wrong with the query, or ""
 */

/**
 * Returns the parts of a query.
 *
 * @param {string} text
 * @returns {ParsedQuery}
 */
export function parsedQuery(text) {
  const parts = text.replace(/[\u201c-\u201f\u00ab\u00bb\uff02]/g, '"').split('"');
  const phrases = parts.filter((_, i) => i % 2).map(plainText);
  const [words, prefixes, excluded] = [[], [], []];
  let problem = "";
  parts.forEach((part, i) => {
    const tokens = part.split(SPACES).filter((token) => token);
    if (i % 2) {
      words.push(tokens.join(" "));
      return;
    }
    const last = tokens[tokens.length - 1];
    let negate = false;
    for (const token of tokens) {
      if (token === "NOT") {
        negate = true;
        continue;
      }
      const begins = token.match(/^(.*?)([\p{L}\p{M}\p{N}_]+\*)$/u);
      if (negate || /^-\p{L}/u.test(token)) excluded.push(token.replace(/^-+/, ""));
      else if (begins) {
        words.push(begins[1]);
        prefixes.push(begins[2]);
      } else words.push(token);
      negate = false;
    }
    if (i + 1 < parts.length && (last === "NOT" || (last === "-" && part.endsWith("-"))))
      problem = "The query excludes a phrase: exclude single words, such as -word.";
    else if (negate) problem = "The query ends with NOT: write the word to exclude after it.";
  });
  if (parts.length % 2 === 0)
    problem =
      "The query has a quotation mark without a partner: close the phrase, or remove the mark.";
  else if (phrases.some((phrase) => !IN_WORD.test(phrase)))
    problem = "The query has a phrase without words: put words between the quotation marks.";
  else if (!problem && excluded.length && !prefixes.length && !words.some((word) => word))
    problem = "The query only excludes words: add a word to search for.";
  return { words: words.filter((word) => word).join(" "), phrases, prefixes, excluded, problem };
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
    .split(SPACES)
    .join(" ")
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
