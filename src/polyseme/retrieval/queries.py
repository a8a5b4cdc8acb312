"""Queries as counts, and the results of a search: documents with their scores and the words that explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, overload

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, check_sparse


@dataclass(frozen=True)
class WordScore:
    """A word and its contribution to a score.

    Attributes
    ----------
    word : str
        The word.
    weight : float
        Its contribution.
    in_query : bool
        Whether the query contains the word.
    in_document : bool
        Whether the document contains the word. Words of the query contribute through topics even if it does not.
    """

    word: str
    weight: float
    in_query: bool
    in_document: bool


@dataclass(frozen=True)
class Hit:
    """A document that a search found.

    Attributes
    ----------
    rank : int
        Rank, from 1.
    id : str
        Id of the document.
    title : str
        Title of the document.
    score : float
        The score.
    parts : dict
        Summands of the score: "term" for common words, "latent" for common topics.
    row : int
        Row of the document in the index.
    """

    rank: int
    id: str
    title: str
    score: float
    parts: dict[str, float]
    row: int
    _explain: Callable[[int], list[WordScore]] = field(repr=False, compare=False)

    @cached_property
    def words(self) -> list[WordScore]:
        """Words of the query and the document with their contributions, largest first; they add up to the score."""
        return self._explain(self.row)

    def __getstate__(self) -> dict[str, Any]:
        """Compute the words before pickling, because `_explain` refers to the whole index."""
        return {**vars(self), "_explain": partial(_stored_words, self.words)}

    def to_dict(self, n_words: int = 10) -> dict[str, Any]:
        """Return the hit as plain values for JSON.

        Parameters
        ----------
        n_words : int, default=10
            Number of words.

        Returns
        -------
        dict
            All attributes and the words with the largest contributions.
        """
        return {
            "rank": self.rank,
            "id": self.id,
            "title": self.title,
            "score": self.score,
            "parts": self.parts,
            "words": [
                {
                    "word": found.word,
                    "weight": found.weight,
                    "in_query": found.in_query,
                    "in_document": found.in_document,
                }
                for found in self.words[:n_words]
            ],
        }


@dataclass(frozen=True)
class Results(Sequence[Hit]):
    """The hits of one query as a sequence, best first.

    Attributes
    ----------
    method : str
        Method of the search.
    hits : tuple of Hit
        The hits.
    note : str
        Reason why there are no hits, or an empty string.
    """

    method: str
    hits: tuple[Hit, ...]
    note: str = ""

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def to_dict(self, n_words: int = 10) -> dict[str, Any]:
        """Return the results as plain values for JSON.

        Parameters
        ----------
        n_words : int, default=10
            Number of words for each hit.

        Returns
        -------
        dict
            Method, note and hits.
        """
        return {"method": self.method, "note": self.note, "hits": [hit.to_dict(n_words) for hit in self.hits]}


class SparseRow(NamedTuple):
    """Column indices and values of one row of a CSR array."""

    indices: Array
    data: Array


def sparse_row(matrix: Any, row: int) -> SparseRow:
    """Return one row of a CSR array without a copy."""
    start, end = matrix.indptr[row : row + 2]
    return SparseRow(matrix.indices[start:end], matrix.data[start:end])


def checked_counts(counts: Any, n_words: int, what: str) -> Any:
    """Return `counts` as a canonical CSR array of float64 with `n_words` columns, finite and not negative."""
    try:
        given = check_sparse(counts, what) if sp.issparse(counts) else np.atleast_2d(np.asarray(counts))
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
    """Return counts (queries x words) of one text, of several texts, or of counts."""
    if isinstance(queries, str):
        queries = [queries]
    if isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries):
        queries = vectorizer.transform(queries) if queries else sp.csr_array((0, n_words))
    return checked_counts(queries, n_words, "A query")


def used_columns(queries: Any) -> tuple[Array, Any]:
    """Return the words that occur in the queries, and the counts with columns for these words only."""
    words, positions = np.unique(queries.indices, return_inverse=True)
    shape = (queries.shape[0], len(words))
    return words, sp.csr_array((queries.data, positions.astype(queries.indices.dtype), queries.indptr), shape=shape)


def best_rows(scores: Array, k: int) -> Array:
    """Return the k documents with the highest positive scores, best first, ties in the order of the corpus."""
    candidates = np.flatnonzero(scores > 0)
    if candidates.size > k:
        values = scores[candidates]
        least = np.partition(values, candidates.size - k)[candidates.size - k]
        candidates = candidates[values >= least]
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def merge_word_scores(
    parts: Iterable[tuple[Array, Floats]], vocabulary: Sequence[str], query_words: Array, document_words: Array
) -> list[WordScore]:
    """Add up pairs (words, weights), in which a word may occur several times, and sort by weight."""
    pairs = list(parts)
    words, positions = np.unique(np.concatenate([words for words, _ in pairs]), return_inverse=True)
    weights = np.bincount(positions, np.concatenate([weights for _, weights in pairs]), minlength=len(words))
    in_query, in_document = np.isin(words, query_words), np.isin(words, document_words)
    return [
        WordScore(str(vocabulary[words[i]]), float(weights[i]), bool(in_query[i]), bool(in_document[i]))
        for i in np.argsort(-weights, kind="stable")
        if weights[i] != 0
    ]


def _stored_words(words: list[WordScore], row: int) -> list[WordScore]:
    """Return the words of a hit that was pickled."""
    return words
