// The data of the page.
//
// Each section is a script element of type application/octet-stream whose id is its name and whose
// text is base64 of gzip of: a uint32 (little-endian) with the length of a JSON header, the header,
// and the bytes of typed arrays, each at a multiple of 8 after the header. The header is
// {values: {...}, arrays: {name: [type, offset, length]}}.
// Arrays of integers that are mostly small are varints: seven bits per byte, lowest first; the high
// bit says that more bytes follow.
//
//   core       values: title, model, n_documents, n_words, n_topics, n_tokens, words, topic_names,
//              hidden, measures, history, tree, finer (topics of finer levels below each topic),
//              facts, selection, inference, text_starts, relevance (lambda), least_documents,
//              search (constants of the scores) ...
//              arrays: weights P(z), fit, places (topics x 2), distances (topics x topics),
//              word_totals, and P(w|z) word by word: topics_of_word (varints), word_topics,
//              word_logs (-log P(w|z) in steps of log_step); topic_documents (D_z), and topic by
//              topic the words that may be shown: candidates_of_topic (varints), candidate_words,
//              candidate_documents (n_zw), candidate_frequency (df_w); numbers of topics that are
//              off (inactive); and what folding.js needs: background, alpha and totals, mean and
//              precision, topic_shares
//   documents  values: titles, and ids, labels, periods, times if there are any; quotes (of the
//              typical documents) if the page has texts
//              arrays: P(z|d) document by document: topics_of_document (varints),
//              document_topics, document_shares (in steps of 1/shares); main_topics; topic by topic
//              typical_of_topic (varints), typical_documents, typical_nats; labels_of_document,
//              document_labels; document_periods
//   level40 ... P(z|d) and main_topics of a finer level, as in documents, but level_shares (varints,
//              in steps of 1/level_shares) instead of document_shares
//   intervals  if they were computed: values labels, label_documents, periods, period_documents,
//              significant (false discovery rate); arrays label_shares, label_low, label_high,
//              differences and q_values (labels x topics), period_shares, period_low, period_high
//   map        values: names of regions; arrays: places (documents x 2), documents (their numbers, if
//              not all are on the map)
//   counts     word by word: documents_of (varints), gaps between the documents' numbers less one
//              (varints), and counts (varints) or amounts
//   rules      how a text is split into words: see words.js
//   texts0 ... values: texts of some documents; core.text_starts has the number of the first
//              document of each section
//
// None of this is ever treated as markup or code: it enters the page only as textContent.

const sections = new Map();

// Returns the bytes of base64.
function fromBase64(text) {
  // @ts-expect-error: newer than the types of the browser
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

const ARRAY_TYPES = {
  Uint8Array,
  Uint16Array,
  Uint32Array,
  Int32Array,
  Float32Array,
  Float64Array,
};

/**
 * Returns the values and arrays of a section.
 *
 * @param {string} text the section in base64
 * @returns {Promise<any>}
 */
export async function decoded(text) {
  const buffer = await unzipped(fromBase64(text));
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  for (const [key, [type, offset, size]] of Object.entries(header.arrays)) {
    arrays[key] = new ARRAY_TYPES[type](buffer, 4 + length + offset, size);
  }
  return { ...header.values, ...arrays };
}

// All sections except core come after the script, so that the first view does not wait for them.
// The last element of the document may still be incomplete while the browser loads the page.
async function present(name) {
  if (document.getElementById(name)?.nextElementSibling || document.readyState !== "loading")
    return;
  await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
}

async function read(name) {
  await present(name);
  return decoded(document.getElementById(name).textContent);
}

/**
 * Returns a section of the page; it is decoded on first use.
 *
 * @param {string} name
 * @returns {Promise<any>}
 */
export function section(name) {
  if (!sections.has(name)) sections.set(name, read(name));
  return sections.get(name);
}
