"""What a search gives back: documents with the parts of their scores and the words that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, overload

import numpy as np

from polyseme.kernels import Array, Floats


@dataclass(frozen=True)
class Reason:
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
    _explain: Callable[[int], list[Reason]] = field(repr=False, compare=False)

    @cached_property
    def words(self) -> list[Reason]:
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


def _stored(words: list[Reason], row: int) -> list[Reason]:
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
) -> list[Reason]:
    """Reasons of one document, from parts (words, weights) in which a word may come more than once."""
    pairs = list(parts)
    words, positions = np.unique(np.concatenate([words for words, _ in pairs]), return_inverse=True)
    weights = np.bincount(positions, np.concatenate([weights for _, weights in pairs]), minlength=len(words))
    in_query, in_document = np.isin(words, query_words), np.isin(words, document_words)
    return [
        Reason(str(vocabulary[words[i]]), float(weights[i]), bool(in_query[i]), bool(in_document[i]))
        for i in np.argsort(-weights, kind="stable")
        if weights[i] != 0
    ]
