// From a text to its words, by the rules of the run's vectorizer (section "rules"):
// the text is prepared (one Unicode form, lower case, no accents, as the rules say), then split by
// the kinds of its characters; stop words are left out, forms become the word that they are counted
// as, adjacent words are joined into phrases, and sequences of words are counted if the vectorizer
// did so.

/**
 * @typedef {object} Counts
 * @property {Integers} words columns, sorted
 * @property {TypedArray} values
 *
 * @typedef {object} Rules
 * @property {string} reason why the page cannot count as the vectorizer does; "" if it can
 * @property {boolean} lowercase
 * @property {string} accents "", "unicode" or "ascii"
 * @property {string[]} marks combining characters
 * @property {boolean} normal
 * @property {boolean} dotless
 * @property {boolean} apostrophes
 * @property {boolean} binary
 * @property {[number, number]} runs least and most words of a counted sequence
 * @property {string[]} stops
 * @property {[string, string][][]} phrases
 * @property {string[]} forms
 * @property {string[]} names the word that each form is counted as
 * @property {number} shortest
 * @property {Uint32Array} kind_starts
 * @property {Uint8Array} kinds
 *
 * @typedef {{form: string | null, start?: number, end?: number}} Token
 *
 * @typedef {{text: string, column?: number, name?: string}} Part
 *
 * @typedef {import("./arrays.js").Integers} Integers
 *
 * @typedef {import("./arrays.js").TypedArray} TypedArray
 */

const KIND = { separator: 0, space: 1, word: 2, spoiler: 3, gram: 4, joiner: 5, ignored: 6 };

/** The words before and after it do not form a phrase. */
export const BARRIER = null;

/** The rules by which texts are split into words and counted. */
export class WordRules {
  /**
   * @param {Rules} rules
   * @param {string[]} words the vocabulary
   */
  constructor(rules, words) {
    this.rules = rules;
    this.kinds = new Uint8Array(0x110000);
    rules.kind_starts.forEach((start, i) => {
      const end = i + 1 < rules.kind_starts.length ? rules.kind_starts[i + 1] : this.kinds.length;
      this.kinds.fill(rules.kinds[i], start, end);
    });
    this.stops = new Set(rules.stops);
    this.marks = new Set(rules.marks);
    this.names = new Map(rules.forms.map((form, i) => [form, rules.names[i]]));
    this.columns = new Map(words.map((word, column) => [word, column]));
    this.phrases = rules.phrases.map((pairs) => new Set(pairs.map(([a, b]) => a + "\u0000" + b)));
  }

  /**
   * Returns a text in the form in which it is split.
   *
   * @param {string} text
   * @returns {string}
   */
  prepared(text) {
    const { rules } = this;
    if (rules.dotless && rules.lowercase) text = text.replaceAll("I", "ı").replaceAll("İ", "i");
    if (rules.normal) text = text.normalize("NFKC");
    if (rules.apostrophes) text = text.replace(/[\u2019\u02bc\uff07]/g, "'");
    if (rules.lowercase) text = text.toLowerCase();
    if (rules.accents === "unicode")
      text = Array.from(text.normalize("NFKD"), (c) => (this.marks.has(c) ? "" : c)).join("");
    if (rules.accents === "ascii") text = text.normalize("NFKD").replace(/[^\u0000-\u007f]/g, "");
    return text;
  }

  /**
   * Returns the words of a prepared text with their positions, and barriers.
   *
   * @param {string} text
   * @returns {Token[]}
   */
  split(text) {
    const found = [];
    const { kinds } = this;
    const at = (i) => (i < text.length ? kinds[text.codePointAt(i)] : KIND.separator);
    const wide = (i) => (text.codePointAt(i) > 0xffff ? 2 : 1);
    let i = 0;
    while (i < text.length) {
      const start = i;
      let form = "";
      let length = 0;
      let spoiled = false;
      let kind = KIND.separator;
      for (; i < text.length; i += wide(i)) {
        kind = at(i);
        if (kind === KIND.word) {
          form += text.slice(i, i + wide(i));
          length++;
        } else if (kind === KIND.spoiler) spoiled = true;
        else if (kind === KIND.joiner && length > 0 && at(i + 1) === KIND.word) form += text[i];
        else if (kind !== KIND.ignored) break;
      }
      if (length >= this.rules.shortest && !spoiled) found.push({ form, start, end: i });
      else if (length > 0 || spoiled) found.push({ form: BARRIER });
      if (i >= text.length) break;
      if (kind === KIND.gram) i = this.splitPairs(text, i, found);
      else {
        if (kind !== KIND.space) found.push({ form: BARRIER });
        i += wide(i);
      }
    }
    return found;
  }

  // Splits a run of characters that are counted in overlapping pairs; a single character is counted
  // by itself.
  splitPairs(text, i, found) {
    let before = null;
    let length = 0;
    while (i < text.length) {
      const character = String.fromCodePoint(text.codePointAt(i));
      const kind = this.kinds[character.codePointAt(0)];
      if (kind !== KIND.ignored) {
        if (kind !== KIND.gram) break;
        if (length > 0)
          found.push({
            form: before.form + character,
            start: before.start,
            end: i + character.length,
          });
        before = { form: character, start: i, end: i + character.length };
        length++;
      }
      i += character.length;
    }
    if (length === 1) found.push(before);
    found.push({ form: BARRIER });
    return i;
  }

  /**
   * Returns the word that a form is counted as; BARRIER for a stop word.
   *
   * @param {string | null} form
   * @returns {string | null}
   */
  named(form) {
    if (form === BARRIER || this.stops.has(form)) return BARRIER;
    return this.names.get(form) ?? form;
  }

  /**
   * Returns the words of a text in order, with BARRIER where words do not form a phrase.
   *
   * @param {string} text
   * @returns {(string | null)[]}
   */
  separate(text) {
    return this.split(this.prepared(text)).map(({ form }) => this.named(form));
  }

  /**
   * Returns the words of a text in order, with phrases joined.
   *
   * @param {string} text
   * @returns {string[]}
   */
  sequence(text) {
    let names = this.separate(text);
    for (const pairs of this.phrases) {
      const joined = [];
      for (let i = 0; i < names.length; i++) {
        const [a, b] = [names[i], names[i + 1]];
        const together =
          a !== BARRIER && b !== BARRIER && b !== undefined && pairs.has(a + "\u0000" + b);
        joined.push(together ? a + "_" + b : a);
        if (together) i++;
      }
      names = joined;
    }
    return names.filter((name) => name !== BARRIER);
  }

  /**
   * Returns the counts of a text, the number of its known tokens, and the forms without a column.
   *
   * @param {string} text
   * @returns {Counts & {known: number, unknown: string[]}}
   */
  counts(text) {
    const names = this.sequence(text);
    const [least, most] = this.rules.runs;
    const tally = new Map();
    const unknown = new Set();
    let known = 0;
    for (let n = least; n <= most; n++) {
      for (let i = 0; i + n <= names.length; i++) {
        const name = n === 1 ? names[i] : names.slice(i, i + n).join(" ");
        const column = this.columns.get(name);
        if (column === undefined) {
          if (n === 1) unknown.add(name);
          continue;
        }
        known++;
        tally.set(column, this.rules.binary ? 1 : (tally.get(column) ?? 0) + 1);
      }
    }
    const words = Uint32Array.from([...tally.keys()].sort((a, b) => a - b));
    return {
      words,
      values: Float64Array.from(words, (word) => tally.get(word)),
      known,
      unknown: [...unknown],
    };
  }

  /**
   * Returns the parts of the original text; those between words and unknown words have no column.
   * If preparing changes the length of a piece, for example by ligatures, the piece is one part.
   *
   * @param {string} text
   * @returns {Part[]}
   */
  marked(text) {
    /** @type {Part[]} */
    const parts = [];
    for (const piece of text.split(/(\s+)/)) {
      const prepared = this.prepared(piece);
      const found = this.split(prepared).filter(({ form }) => form !== BARRIER);
      const columns = found.map(({ form }) => this.columns.get(this.named(form)));
      if (prepared.length !== piece.length) {
        parts.push({ text: piece, column: columns.find((column) => column !== undefined) });
        continue;
      }
      let place = 0;
      found.forEach(({ start, end }, i) => {
        const from = Math.max(start, place);
        if (from > place) parts.push({ text: piece.slice(place, from) });
        if (end > from) parts.push({ text: piece.slice(from, end), column: columns[i] });
        place = Math.max(place, end);
      });
      if (place < piece.length) parts.push({ text: piece.slice(place) });
    }
    return this.phrases.length ? this.withPhrases(parts) : parts;
  }

  // Gives parts whose words belong to a phrase the column of the phrase.
  withPhrases(parts) {
    const words = parts.filter(({ text }) => /\S/.test(text));
    for (const pairs of this.phrases) {
      words.forEach((part, i) => {
        const next = words[i + 1];
        if (!next) return;
        const [a, b] = [part, next].map((p) => p.name ?? this.named(this.prepared(p.text)));
        const column = this.columns.get(a + "_" + b);
        if (!pairs.has(a + "\u0000" + b) || column === undefined) return;
        part.column = next.column = column;
        part.name = next.name = a + "_" + b;
      });
    }
    return parts;
  }
}
