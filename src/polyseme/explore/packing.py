"""Compact encoding of arrays for the page: sparse, quantized and compressed."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.kernels import Array, Floats

Bytes = npt.NDArray[np.uint8]

LOG_STEP = 4e-4
"""Step of quantized logarithms; the relative error of a probability is at most 0.02 percent."""
MIN_RELATIVE_PROBABILITY = 1e-6
"""P(w|z) is left out if it is smaller than this times the largest P(w|z) of the word.

At the optimal weights of a document with n tokens every word has q_w >= max_z P(w|z) / n, because the derivatives of
the log-likelihood are at most n. Leaving these values out changes q_w by a relative error of at most n 1e-6."""
SHARE_STEPS = 65535
"""Number of steps in which P(z|d) is stored."""
_MIN_CODE = 2
"""Smaller codes are stored as zero."""
_TYPES = {
    "uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array", "int32": "Int32Array",
    "float32": "Float32Array", "float64": "Float64Array",
}  # fmt: skip
"""Typed arrays of JavaScript by the NumPy type."""


def encode_varints(values: Array) -> Bytes:
    """Encode non-negative integers, seven bits per byte, low bits first; the high bit says that more bytes follow."""
    numbers = np.ascontiguousarray(values, dtype=np.uint64)
    lengths = np.ones(numbers.size, dtype=np.int64)
    for bits in range(7, 64, 7):
        lengths += numbers >= np.uint64(1) << np.uint64(bits)
    ends = np.cumsum(lengths)
    packed = np.zeros(int(ends[-1]) if ends.size else 0, dtype=np.uint8)
    starts = ends - lengths
    for place in range(int(lengths.max()) if lengths.size else 0):
        here = lengths > place
        byte = (numbers[here] >> np.uint64(7 * place)) & np.uint64(0x7F)
        more = (lengths[here] > place + 1).astype(np.uint64) << np.uint64(7)
        packed[starts[here] + place] = (byte | more).astype(np.uint8)
    return packed


def pack_counts(counts: Any) -> dict[str, Array]:
    """Encode counts (documents x words, CSR) by word: number of documents, gaps between their rows, and counts."""
    by_word = counts.tocsc()
    by_word.sort_indices()
    gaps = np.diff(by_word.indices.astype(np.int64), prepend=-1)
    starts = by_word.indptr[:-1][np.diff(by_word.indptr) > 0]
    gaps[starts] = by_word.indices[starts] + 1
    arrays = {"documents_of": encode_varints(np.diff(by_word.indptr)), "gaps": encode_varints(gaps - 1)}
    whole = by_word.data.size == 0 or bool((by_word.data == np.floor(by_word.data)).all())
    if whole:
        return arrays | {"counts": encode_varints(by_word.data)}
    return arrays | {"amounts": by_word.data.astype(np.float32)}


def pack_topics(topic_word: Floats) -> dict[str, Array]:
    """Encode P(w|z) by word: number of topics, the topics, and -log P(w|z) in steps of LOG_STEP."""
    by_word = np.ascontiguousarray(topic_word.T)
    stored = (by_word > 0) & (by_word >= MIN_RELATIVE_PROBABILITY * by_word.max(axis=1, keepdims=True))
    codes = np.round(-np.log(np.maximum(by_word[stored], 1e-300)) / LOG_STEP)
    return {
        "topics_of_word": encode_varints(stored.sum(axis=1)),
        "word_topics": np.nonzero(stored)[1].astype(_topic_type(topic_word.shape[0])),
        "word_logs": np.minimum(codes, 65535).astype(np.uint16),
    }


def pack_weights(doc_topic: Array) -> dict[str, Array]:
    """Encode P(z|d) by document: number of topics, the topics, and P(z|d) in steps of 1 / SHARE_STEPS."""
    codes = np.round(np.asarray(doc_topic, dtype=np.float64) * SHARE_STEPS).astype(np.uint16)
    stored = codes >= _MIN_CODE
    return {
        "topics_of_document": encode_varints(stored.sum(axis=1)),
        "document_topics": np.nonzero(stored)[1].astype(_topic_type(doc_topic.shape[1])),
        "document_shares": codes[stored],
    }


def pack_section(values: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Encode a section of the page with gzip: the length of a JSON header, the header, and the arrays it lists."""
    table, offset = {}, 0
    for name, array in arrays.items():
        table[name] = [_TYPES[array.dtype.name], offset, int(array.size)]
        offset += -(-array.nbytes // 8) * 8
    header = json.dumps({"values": values, "arrays": table}, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"  # a lone surrogate becomes a question mark
    )  # fmt: skip
    header += b" " * (-(len(header) + 4) % 8)
    pieces = [len(header).to_bytes(4, "little"), header]
    for array in arrays.values():
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        pieces += [content, bytes(-len(content) % 8)]
    return gzip.compress(b"".join(pieces), 6, mtime=0)


def _topic_type(n_topics: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if n_topics <= 256 else np.uint16
