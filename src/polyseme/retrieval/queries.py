"""Queries and corpora as counts: checked, and cut down to the words that occur.

What a search gives back: documents with the parts of their scores and the words that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, overload

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, checked_sparse


class QueryRow(NamedTuple):
    """A document's words and counts."""

    indices: Array
    data: Array


def row_of(matrix: Any, row: int) -> QueryRow:
    """One row of a CSR array, without a copy."""
    start, end = matrix.indptr[row : row + 2]
    return QueryRow(matrix.indices[start:end], matrix.data[start:end])


def checked_counts(counts: Any, n_words: int, what: str) -> Any:
    """`counts` as a canonical CSR array of float64 with `n_words` columns, finite and not negative."""
    try:
        given = checked_sparse(counts, what) if sp.issparse(counts) else np.atleast_2d(np.asarray(counts))
        matrix = sp.csr_array(given, copy=False).astype(np.float64, copy=False)
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputError(f"{what} must be counts: a matrix of numbers with a column for each word.") from None
    if matrix.shape[1] != n_words:
        raise InputError(f"{what} must have a column for each of the {n_words} words, got {matrix.shape[1]} columns.")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0):
        raise InputError(f"{what} must be counts: every number finite and at least 0.")
    if matrix.nnz and matrix.data.min() == 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def query_counts(queries: Any, vectorizer: Any, n_words: int) -> Any:
    """Counts (queries x words) of texts, or of what are counts already."""
    if isinstance(queries, str):
        queries = [queries]
    if isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries):
        queries = vectorizer.transform(queries) if queries else sp.csr_array((0, n_words))
    return checked_counts(queries, n_words, "A query")


def own_words(queries: Any) -> tuple[Array, Any]:
    """The words that occur in the queries, and the counts with a column for each of those alone."""
    words, positions = np.unique(queries.indices, return_inverse=True)
    shape = (queries.shape[0], len(words))
    return words, sp.csr_array((queries.data, positions.astype(queries.indices.dtype), queries.indptr), shape=shape)


@dataclass(frozen=True)
class WordScore:
    """A word and what it adds to a score."""

    word: str
    weight: float
    in_query: bool
    in_document: bool
    """False for a word of the query that the document does without: its topics speak for it"""


@dataclass(frozen=True)
class Hit:
    """A document that was found."""

    rank: int
    id: str
    title: str
    score: float
    parts: dict[str, float]
    """what the score is the sum of: "term", the words in common, and "latent", the topics in common"""
    row: int
    """the document's row in the index"""
    _explain: Callable[[int], list[WordScore]] = field(repr=False, compare=False)

    @cached_property
    def words(self) -> list[WordScore]:
        """The words that matter, weightiest first; over all words of query and document weights sum to the score."""
        return self._explain(self.row)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the words themselves, since what explains them refers to the whole index."""
        return {**vars(self), "_explain": partial(_stored, self.words)}

    def to_dict(self, n_words: int = 10) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "rank": self.rank,
            "id": self.id,
            "title": self.title,
            "score": self.score,
            "parts": self.parts,
            "words": [
                {"word": r.word, "weight": r.weight, "in_query": r.in_query, "in_document": r.in_document}
                for r in self.words[:n_words]
            ],
        }


@dataclass(frozen=True)
class Results(Sequence[Hit]):
    """The hits of one query, best first."""

    method: str
    hits: tuple[Hit, ...]
    note: str = ""
    """why there are no hits, if there are none"""

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def to_dict(self, n_words: int = 10) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"method": self.method, "note": self.note, "hits": [hit.to_dict(n_words) for hit in self.hits]}


def _stored(words: list[WordScore], row: int) -> list[WordScore]:
    """The explanation of a hit that was pickled."""
    return words


def best_rows(scores: Array, k: int) -> Array:
    """The k documents with the highest scores above zero, best first, equal ones in the order of the corpus."""
    candidates = np.flatnonzero(scores > 0)
    if candidates.size > k:
        values = scores[candidates]
        least = np.partition(values, candidates.size - k)[candidates.size - k]
        candidates = candidates[values >= least]
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def merged_reasons(
    parts: Iterable[tuple[Array, Floats]], vocabulary: Sequence[str], query_words: Array, document_words: Array
) -> list[WordScore]:
    """Reasons of one document, from parts (words, weights) in which a word may come more than once."""
    pairs = list(parts)
    words, positions = np.unique(np.concatenate([words for words, _ in pairs]), return_inverse=True)
    weights = np.bincount(positions, np.concatenate([weights for _, weights in pairs]), minlength=len(words))
    in_query, in_document = np.isin(words, query_words), np.isin(words, document_words)
    return [
        WordScore(str(vocabulary[words[i]]), float(weights[i]), bool(in_query[i]), bool(in_document[i]))
        for i in np.argsort(-weights, kind="stable")
        if weights[i] != 0
    ]
