"""Arrays as a page carries them: sparse, quantized, small."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.kernels import Array, Floats

Bytes = npt.NDArray[np.uint8]

LOG_STEP = 4e-4
"""step of quantized logarithms: a probability is off by at most 0.02 percent"""
LEAST_OF_A_WORD = 1e-6
"""P(w|z) below this share of the word's largest is left out.

At the best weights of n tokens every word has q_w >= max_z P(w|z) / n (the slopes are at most n), so what is left out
changes q by a share of at most n 1e-6."""
SHARES = 65535
"""P(z|d) is carried in as many steps"""
_LEAST_CODE = 2


def varints(values: Array) -> Bytes:
    """Whole numbers, seven bits a byte, the lowest first; a byte with the high bit has more behind it."""
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


def packed_counts(counts: Any) -> dict[str, Array]:
    """Counts (documents x words, CSR) word by word: how many documents, gaps between their numbers, counts."""
    by_word = counts.tocsc()
    by_word.sort_indices()
    gaps = np.diff(by_word.indices.astype(np.int64), prepend=-1)
    starts = by_word.indptr[:-1][np.diff(by_word.indptr) > 0]
    gaps[starts] = by_word.indices[starts] + 1
    arrays = {"documents_of": varints(np.diff(by_word.indptr)), "gaps": varints(gaps - 1)}
    whole = by_word.data.size == 0 or bool((by_word.data == np.floor(by_word.data)).all())
    if whole:
        return arrays | {"counts": varints(by_word.data)}
    return arrays | {"amounts": by_word.data.astype(np.float32)}


def packed_topics(topic_word: Floats) -> dict[str, Array]:
    """P(w|z) word by word: how many topics, which, and -log P(w|z) in steps of LOG_STEP."""
    by_word = np.ascontiguousarray(topic_word.T)
    kept = (by_word > 0) & (by_word >= LEAST_OF_A_WORD * by_word.max(axis=1, keepdims=True))
    codes = np.round(-np.log(np.maximum(by_word[kept], 1e-300)) / LOG_STEP)
    return {
        "topics_of_word": varints(kept.sum(axis=1)),
        "word_topics": np.nonzero(kept)[1].astype(_topic_type(topic_word.shape[0])),
        "word_logs": np.minimum(codes, 65535).astype(np.uint16),
    }


def packed_weights(doc_topic: Array) -> dict[str, Array]:
    """P(z|d) document by document: how many topics, which, and P(z|d) in steps of 1 / SHARES."""
    codes = np.round(np.asarray(doc_topic, dtype=np.float64) * SHARES).astype(np.uint16)
    kept = codes >= _LEAST_CODE
    return {
        "topics_of_document": varints(kept.sum(axis=1)),
        "document_topics": np.nonzero(kept)[1].astype(_topic_type(doc_topic.shape[1])),
        "document_shares": codes[kept],
    }


def packed_section(values: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """One block of the page: the length of a JSON header, the header, the arrays at offsets that it names; gzipped."""
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


_TYPES = {
    "uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array", "int32": "Int32Array",
    "float32": "Float32Array", "float64": "Float64Array",
}  # fmt: skip


def _topic_type(n_topics: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if n_topics <= 256 else np.uint16
