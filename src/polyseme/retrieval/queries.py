"""Queries as counts, and the results of a search: documents with their scores and the words that explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, overload

import numpy as np

from polyseme.errors import ModelFileError
from polyseme.kernels import Array, Floats, SparseCounts, find_counts_error
from polyseme.printing import Printed, Table
from polyseme.progress import pluralize, visible
from polyseme.retrieval.snippets import Snippet
from polyseme.utils import check_columns, checked_counts

_ENTRIES_AT_ONCE = 1 << 22
"""Number of entries of a sparse matrix that are read at a time."""


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
        Summands of the score: "term" for shared words, "latent" for shared topics.
    row : int
        Row of the document in the index.
    excerpt : str
        Beginning of the document, or an empty string.
    snippet : Snippet
        The part of the document with the most words of the query, and the positions of these words. Without the texts
        of the documents it is a part of the excerpt.
    n_duplicates : int
        Number of other documents that are near-duplicates of this one and are not listed themselves.
    """

    rank: int
    id: str
    title: str
    score: float
    parts: dict[str, float]
    row: int
    excerpt: str
    _explain: Callable[[int], list[WordScore]] = field(repr=False, compare=False)
    _find: Callable[[int], Snippet] = field(repr=False, compare=False)
    n_duplicates: int = 0

    @cached_property
    def words(self) -> list[WordScore]:
        """Words of the query and the document with their contributions, largest first; they add up to the score."""
        return self._explain(self.row)

    @cached_property
    def snippet(self) -> Snippet:
        """The part of the document with the most words of the query, and the positions of these words."""
        return self._find(self.row)

    def __getstate__(self) -> dict[str, Any]:
        """Compute words and snippet before pickling, because the functions refer to the whole index."""
        computed = {"_explain": partial(_stored, self.words), "_find": partial(_stored, self.snippet)}
        return {**vars(self), **computed}

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
            "excerpt": self.excerpt,
            "n_duplicates": self.n_duplicates,
            "snippet": {"text": self.snippet.text, "marks": [list(mark) for mark in self.snippet.marks]},
            "words": [
                {
                    "word": score.word,
                    "weight": score.weight,
                    "in_query": score.in_query,
                    "in_document": score.in_document,
                }
                for score in self.words[:n_words]
            ],
        }


class UnknownWord(NamedTuple):
    """A word of a query that the index does not know.

    Attributes
    ----------
    word : str
        The word.
    nearest : tuple of str
        Words of the index that differ from it by one or two letters, nearest first.
    """

    word: str
    nearest: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Results(Printed, Sequence[Hit]):
    """The hits of one query as a sequence, best first.

    Attributes
    ----------
    method : str
        Method of the search.
    hits : tuple of Hit
        The hits.
    note : str
        Reason why there are no hits, or an empty string.
    unknown : tuple of UnknownWord
        Words of the query that a search in a run did not know, with the nearest known ones.
    """

    method: str
    hits: tuple[Hit, ...]
    note: str = ""
    unknown: tuple[UnknownWord, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def _printed_table(self) -> Table:
        unknown = "".join(f"\nunknown: {found.word}" for found in self.unknown)
        heading = f"{pluralize(len(self), 'hit')} of {self.method}{unknown}"
        rows = [(str(hit.rank), f"{hit.score:.2f}", visible(hit.title or hit.id, one_line=True)) for hit in self.hits]
        return Table("\n".join(filter(None, (heading, self.note))), ("rank", "score", "title"), rows)

    def to_dict(self, n_words: int = 10) -> dict[str, Any]:
        """Return the results as plain values for JSON.

        Parameters
        ----------
        n_words : int, default=10
            Number of words for each hit.

        Returns
        -------
        dict
            Method, note, unknown words and hits.
        """
        return {
            "method": self.method,
            "note": self.note,
            "unknown": [{"word": found.word, "nearest": list(found.nearest)} for found in self.unknown],
            "hits": [hit.to_dict(n_words) for hit in self.hits],
        }


class SparseRow(NamedTuple):
    """Column indices and values of one row of a sparse matrix."""

    indices: Array
    data: Floats


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix as the arrays of scipy's CSR format, in memory or in a file, for use without scipy.

    The functions of this package that take counts accept a CSR array of scipy as well.
    """

    indptr: Any
    indices: Any
    data: Any
    shape: tuple[int, int]
    path: str = ""
    """Name of the file, if the arrays are in a file. In this case each row is checked when it is used."""

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """Return the arrays of a canonical CSR array."""
        return cls(matrix.indptr, matrix.indices, matrix.data, matrix.shape)

    def row(self, i: int) -> SparseRow:
        """Return row i, with values in float64."""
        start, end = self.indptr[i : i + 2].tolist()
        if self.path and not 0 <= start <= end <= len(self.indices):
            raise self._damage("a row is outside the arrays")
        indices = self.indices[start:end]
        if self.path and not are_columns(indices, self.shape[1]):
            raise self._damage("the columns of a row do not increase")
        return SparseRow(indices, np.asarray(self.data[start:end], dtype=np.float64))

    def in_memory(self) -> SparseRows:
        """Return all rows with values in float64, checked if they come from a file."""
        indptr, indices, data = (np.asarray(array[:]) for array in (self.indptr, self.indices, self.data))
        if self.path:
            fault = find_counts_error(indptr, indices, data, self.shape)
            if fault is not None:
                raise self._damage(fault)
        return SparseRows(indptr, indices, data.astype(np.float64, copy=False), self.shape)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield consecutive blocks of rows: the slice of the rows, and a CSR array of scipy in memory."""
        import scipy.sparse as sp

        starts, n_rows, first = self.indptr[:], self.shape[0], 0
        while first < n_rows:
            last = int(np.searchsorted(starts, starts[first] + _ENTRIES_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), n_rows)
            part, rows = slice(int(starts[first]), int(starts[last])), slice(first, last)
            indptr, shape = starts[first : last + 1] - starts[first], (last - first, self.shape[1])
            block = replace(
                self, indptr=indptr, indices=self.indices[part], data=self.data[part], shape=shape
            ).in_memory()
            yield rows, sp.csr_array((block.data, block.indices, block.indptr), shape=shape)
            first = last

    def matrix(self) -> Any:
        """Return a CSR array of scipy."""
        import scipy.sparse as sp

        rows = self.in_memory()
        return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=self.shape, copy=False)

    def _damage(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{self.path} is damaged ({problem}): restore it, or remove it.")


def are_columns(indices: Array, size: int) -> bool:
    """Return whether indices increase and are below `size`."""
    return not indices.size or bool(indices[0] >= 0 and indices[-1] < size and (indices[1:] > indices[:-1]).all())


def query_rows(queries: SparseRows, start: int, stop: int) -> SparseRows:
    """Return the queries from `start` up to `stop`, without a copy."""
    indptr = queries.indptr[start : stop + 1]
    part = slice(indptr[0], indptr[-1])
    shape = (stop - start, queries.shape[1])
    return SparseRows(indptr - indptr[0], queries.indices[part], queries.data[part], shape)


def query_counts(queries: Any, vectorizer: Any, n_words: int) -> SparseRows:
    """Return the counts (queries x words) of one text or several texts. Counts that are given are checked."""
    if isinstance(queries, str):
        queries = [queries]
    if isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries):
        if not queries:
            return SparseRows(np.zeros(1, np.int32), np.empty(0, np.int32), np.empty(0), (0, n_words))
        queries = vectorizer.transform(queries)
    if isinstance(queries, SparseCounts):  # counted by WordRules, so they need no check
        check_columns("A query", queries.n_words, n_words)
        values = queries.values.astype(np.float64, copy=False)
        return SparseRows(queries.indptr, queries.indices, values, (queries.n_docs, n_words))
    return SparseRows.of(checked_counts(queries, n_words, "A query"))


def used_columns(queries: Any) -> tuple[Array, SparseRows]:
    """Return the words that occur in the queries, and the counts with columns for these words only."""
    words, positions = distinct(queries.indices)
    shape = (queries.shape[0], len(words))
    return words, SparseRows(queries.indptr, positions.astype(queries.indices.dtype), queries.data, shape)


def times_dense(queries: Any, matrix: Any) -> Floats:
    """Return the product of queries (queries x words) and a matrix (words x K), reading only the rows it needs."""
    products = np.zeros((queries.shape[0], matrix.shape[1]))
    for i in range(queries.shape[0]):
        start, end = queries.indptr[i : i + 2]
        rows = matrix[queries.indices[start:end]]
        for value, row in zip(queries.data[start:end], rows, strict=True):
            products[i] += value * row
    return products


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
    words, positions = distinct(np.concatenate([words for words, _ in pairs]))
    weights = np.bincount(positions, np.concatenate([weights for _, weights in pairs]), minlength=len(words))
    in_query, in_document = _are_among(words, query_words), _are_among(words, document_words)
    return [
        WordScore(str(vocabulary[words[i]]), float(weights[i]), bool(in_query[i]), bool(in_document[i]))
        for i in np.argsort(-weights, kind="stable")
        if weights[i] != 0
    ]


def distinct(values: Array) -> tuple[Array, Array]:
    """Return the sorted distinct values, and the index of each value among them.

    numpy.unique does the same, but it imports numpy.ma, which takes longer than a search.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    positions = np.empty(len(values), dtype=np.int64)
    positions[order] = np.cumsum(is_new) - 1
    return ordered[is_new], positions


def _are_among(words: Array, others: Array) -> Array:
    """Return a mask of the words that are among `others`. The words are sorted and distinct."""
    mask = np.zeros(len(words), dtype=bool)
    positions = np.searchsorted(words, others)
    inside = positions < len(words)
    positions = positions[inside]
    mask[positions[words[positions] == others[inside]]] = True
    return mask


def _stored(value: Any, row: int) -> Any:
    """Return the words or the snippet of a hit that was pickled."""
    return value
