"""Posting lists: for each word the documents that contain it, with its counts and its impacts.

The impact of word w in document d is the part of BM25 that does not depend on the query,

    t_dw = x_dw / (x_dw + k1 (1 - b + b n_d / mean n)),        bm25(d) = sum_w q_w idf_w t_dw

and is stored as float32. The compiled functions add up the lists of a query for a range of documents at a time and keep
the best documents in a heap (`_native/retrieval/ranking.hpp`). Scores are float32. Ties are in the order of the corpus.

The mean length changes with every document that is added, so all impacts do as well. Lists of more documents are
therefore written as a whole, in one pass over the counts (`Postings.of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import InputError, ModelFileError
from polyseme.io.arrays import checked_rows
from polyseme.kernels import Array, Floats
from polyseme.retrieval import _postings
from polyseme.retrieval.queries import Allocate, in_memory

K1, B = 1.2, 0.75
"""Constants of BM25 (the defaults of Lucene)."""
MAX_DOCUMENTS = 2**31 - 1
_ENTRIES_AT_ONCE = 1 << 22
_CODE_STEP = 16
"""Codes of a vector are padded to a multiple of this (kCodeStep in vectors.hpp)."""


class QueryWords(NamedTuple):
    """The words of a query. Those that no document contains are ignored."""

    rarity: Floats
    """idf_w of all words."""
    words: Array
    """Numbers of the words (int32)."""
    values: Floats
    """q_w."""


@dataclass(frozen=True)
class Postings:
    """Lists of all words, one after the other, in memory or in a file."""

    indptr: Any
    """Start of each list and the end of the last one (int64)."""
    documents: Any
    """Documents of the lists, which increase within a list (int32)."""
    counts: Any
    """x_dw (float32, or uint8 if all are whole numbers up to 255)."""
    impacts: Any
    """t_dw (float32)."""
    n_docs: int
    path: str = ""
    """Name of the file, if the arrays are in a file. Then each list is checked when it is used."""
    _used: Array = field(init=False, repr=False, compare=False)
    """Which lists of a file were checked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_used", np.full(len(self.indptr) - 1, not self.path))

    @classmethod
    def of(cls, parts: Iterable[Any], n_words: int, allocate: Allocate = in_memory) -> tuple[Postings, Floats]:
        """Return the lists of counts (documents x words, CSR), given in parts that can be iterated over twice.

        Also return the lengths n_d of the documents. Columns of a row can be in any order and occur several times.
        """
        sizes = np.zeros(n_words, dtype=np.int64)
        lengths = []
        for part in parts:
            _postings.count_entries(part.indptr, part.indices, part.data, sizes)
            lengths.append(np.asarray(part.sum(axis=1), dtype=np.float64).ravel())
        totals = np.concatenate([*lengths, np.empty(0)])
        if len(totals) > MAX_DOCUMENTS:
            raise InputError(f"An index can have {MAX_DOCUMENTS:,} documents, got {len(totals):,}.")
        starts = np.zeros(n_words + 1, dtype=np.int64)
        np.cumsum(sizes, out=starts[1:])
        documents, counts = (allocate(name, dtype, int(starts[-1])) for name, dtype in _ARRAYS)
        ends, first = starts[:-1].copy(), 0
        for part in parts:
            _postings.append_entries(part.indptr, part.indices, part.data, first, starts, ends, documents, counts)
            first += part.shape[0]
        n = _postings.close_gaps(starts, ends, documents, counts)
        documents, counts = documents[:n], counts[:n]
        impacts = allocate("impacts", np.float32, n)
        _postings.compute_impacts(documents, counts, penalties(totals), impacts)
        return cls(starts, documents, counts, impacts, len(totals)), totals

    def frequencies(self) -> Array:
        """Return df_w."""
        starts = self.indptr[:]
        sizes = np.diff(starts)
        if self.path and not (starts[0] == 0 and starts[-1] == len(self.documents) and (sizes >= 0).all()):
            raise self._damage("the lists do not have their places")
        return sizes

    def parts(self) -> Iterator[tuple[int, Array, Array, Floats]]:
        """Yield all entries in parts: the first word of a part, and words (from there), documents and counts."""
        starts = self.indptr[:]
        first, n_words = 0, len(starts) - 1
        while first < n_words:
            last = int(np.searchsorted(starts, starts[first] + _ENTRIES_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), n_words)
            part = slice(int(starts[first]), int(starts[last]))
            words = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            documents = self.documents[part]
            if self.path and documents.size and not (documents.min() >= 0 and documents.max() < self.n_docs):
                raise self._damage("a document does not exist")
            yield first, words, documents, np.asarray(self.counts[part], dtype=np.float64)
            first = last

    def by_document(self) -> Any:
        """Return the counts (documents x words, CSR, float64), in memory."""
        import scipy.sparse as sp

        shape = (len(self.indptr) - 1, self.n_docs)
        values = np.asarray(self.counts[:], dtype=np.float64)
        return sp.csr_array((values, self.documents[:], self.indptr[:]), shape=shape).T.tocsr()

    def row(self, word: int) -> tuple[Array, Floats]:
        """Return the documents of a word, and its counts."""
        start, end = self._bounds(word)
        return self._documents(start, end), np.asarray(self.counts[start:end], dtype=np.float64)

    def best(self, query: QueryWords, bonus: float, k: int, allowed: Any = None) -> tuple[Array, Array]:
        """Return the k documents with the largest positive sums of i_w (t_dw + bonus) over words, and the sums."""
        mask = None if allowed is None else allowed.view(np.uint8)
        try:
            return _postings.rank(*self._arrays(query.words), *query, bonus, self.n_docs, k, mask)
        except ValueError as error:
            raise self._damage(str(error)) from None

    def combine(
        self,
        query: QueryWords,
        shares: tuple[float, float],
        candidates: Array,
        others: Array,
        units: Any,
        topics: Array,
        k: int,
    ) -> tuple[Array, Floats, Floats]:
        """Return the k best of some documents with the term and the latent parts of their scores.

        The formula is in `polyseme.retrieval.combined`, and `shares` are its WEIGHT and REST. The latent parts of
        `others` are zero.
        """
        known = checked_rows(units, candidates)
        try:
            return _postings.combine(*self._arrays(query.words), *query, *shares, candidates, others, known, topics, k)
        except ValueError as error:
            raise self._damage(str(error)) from None

    def _arrays(self, words: Array) -> tuple[Array, Array, Array]:
        """Return all arrays, of which the lists of these words are checked."""
        if not self.path:
            return self.indptr, self.documents, self.impacts
        used = self._used
        for word in words[~used[words]].tolist():
            start, end = self._bounds(word)
            _ = self._documents(start, end), self.impacts[start:end]
            used[word] = True
        nothing = slice(0, 0)
        return self.indptr[:], checked_rows(self.documents, nothing), checked_rows(self.impacts, nothing)

    def _documents(self, start: int, end: int) -> Array:
        documents: Array = self.documents[start:end]
        if self.path and not _increase(documents, self.n_docs):
            raise self._damage("the documents of a list do not increase")
        return documents

    def _bounds(self, word: int) -> tuple[int, int]:
        start, end = self.indptr[word : word + 2].tolist()
        if not 0 <= start <= end <= len(self.documents):
            raise self._damage("a list is outside of its array")
        return start, end

    def _damage(self, problem: str) -> Exception:
        if not self.path:
            return InputError(f"The posting lists are wrong: {problem}.")
        return ModelFileError(f"{self.path} is damaged ({problem}): restore it, or remove it.")


_ARRAYS = (("documents", np.int32), ("counts", np.float32))


def penalties(lengths: Floats) -> Floats:
    """Return the summand of each document in the denominator of BM25, from the lengths n_d."""
    mean = lengths.mean() if lengths.sum() > 0 else 1.0
    return np.asarray(K1 * (1 - B + B * lengths / mean))


def best_scores(scores: Array, k: int, allowed: Any = None) -> tuple[Array, Array]:
    """Return the k documents with the largest positive scores (float32), and these."""
    return _postings.best_rows(scores, k, None if allowed is None else allowed.view(np.uint8))


@dataclass(frozen=True)
class VectorCodes:
    """Vectors in eight bits, by which the nearest ones to a query are found (vectors.hpp)."""

    codes: Array
    scales: Array
    errors: Array

    @classmethod
    def of(cls, units: Array) -> VectorCodes:
        """Encode vectors of length one or zero, the columns of `units` (float32)."""
        size, n = units.shape
        width = -(-size // _CODE_STEP) * _CODE_STEP
        codes = cls(np.empty((n, width), dtype=np.int8), *np.empty((2, n), dtype=np.float32))
        _postings.encode_vectors(units, codes.codes, codes.scales, codes.errors)
        return codes

    def nearest(self, units: Array, query: Array, k: int, allowed: Any = None) -> tuple[Array, Array]:
        """Return the k columns of `units` with the largest positive products with a query of length one, and these.

        Products are exact, up to the rounding to float32.
        """
        mask = None if allowed is None else allowed.view(np.uint8)
        return _postings.nearest_vectors(self.codes, self.scales, self.errors, units, query, k, mask)


def _increase(documents: Array, n_docs: int) -> bool:
    return not documents.size or bool(
        documents[0] >= 0 and documents[-1] < n_docs and (documents[1:] > documents[:-1]).all()
    )
