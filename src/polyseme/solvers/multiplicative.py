"""Algorithms 1 and 3 of Zhang, Ding and Tang: KL-NMF by multiplicative updates (Lee and Seung 1999).

The working form is Gauss-Seidel: the second factor's update sees the new first factor. (As printed both use the old
ones, and the likelihood can fall.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats
from polyseme.model import Model
from polyseme.solvers.loop import Report, Run
from polyseme.solvers.poisson import (
    Unnormalised,
    column_sums,
    duality_gap,
    from_plsa,
    log_likelihood,
    poisson_objective,
)
from polyseme.sources.memory import MemorySource

Order = Literal["words-first", "documents-first"]


@dataclass(frozen=True)
class MultiplicativeNMF:
    """Algorithm 1: words_wk *= sum_d v r docs_dk / sum_d v docs_dk and docs_dk *= sum_w r words_wk / sum_w words_wk.

    order : which factor goes first; the paper takes the words, scikit-learn the documents.
    """

    name: ClassVar[str] = "nmf"
    order: Order = "words-first"

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        return MultiplicativeRun(_plain(model, self.name), source, from_plsa(source, theta, phi), self.order, False)


@dataclass(frozen=True)
class NormalizedNMF:
    """Algorithm 3: the same, each factor's columns normalised after its update and the scale kept as S = P(z).

    Its product is that of Algorithm 1 at every iteration: normalising moves scale from one factor to the other.
    """

    name: ClassVar[str] = "normalized-nmf"
    order: Order = "words-first"

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        return MultiplicativeRun(_plain(model, self.name), source, from_plsa(source, theta, phi), self.order, True)


class MultiplicativeRun:
    exhausted = False

    def __init__(self, model: Model, source: MemorySource, point: Unnormalised, order: Order, normalise: bool) -> None:
        if order not in ("words-first", "documents-first"):
            raise InputError(f"order must be 'words-first' or 'documents-first', got {order!r}.")
        self.model = model
        self._source = source
        self._words_first = order == "words-first"
        self._normalise = normalise
        self._look(point)

    @property
    def theta(self) -> Array:
        return self.point.theta

    @property
    def phi(self) -> Array:
        return self.point.phi

    def advance(self) -> None:
        first, second = (self._new_words, self._new_docs) if self._words_first else (self._new_docs, self._new_words)
        point = first(self.point, self._sums)
        sums = self._source.sweep(*point, rows=self._words_first, words=not self._words_first, logs=False)
        self._look(second(point, sums.row_sums if self._words_first else sums.word_sums))

    def _look(self, point: Unnormalised) -> None:
        """The report at a point, and the sums that the next iteration begins with."""
        sums = self._source.sweep(*point, rows=not self._words_first, words=self._words_first)
        assert sums.logs is not None
        log_sum = self._source.total_log(sums.logs)
        self.point, self._sums = point, sums.word_sums if self._words_first else sums.row_sums
        self.report = Report(
            poisson_objective(self._source, log_sum, point),
            log_likelihood(self._source, log_sum, point),
            self._gain(),
        )

    def _new_words(self, point: Unnormalised, sums: Array | None) -> Unnormalised:
        assert sums is not None
        u = column_sums(point.docs, self._source.weights)
        self._word_gain = float(duality_gap(sums, u, point.words, self._source.word_totals).sum())
        return self._gauge(Unnormalised(point.docs, _scaled(point.words, sums, u)))

    def _new_docs(self, point: Unnormalised, sums: Array | None) -> Unnormalised:
        assert sums is not None
        u = column_sums(point.words)
        self._doc_gain = self._source.total_log(duality_gap(sums, u, point.docs, self._source.totals))
        return self._gauge(Unnormalised(_scaled(point.docs, sums, u), point.words))

    def _gauge(self, point: Unnormalised) -> Unnormalised:
        """Algorithm 3 moves the words' scale to the documents: columns of words sum to one, those of docs to P(z)."""
        if not self._normalise:
            return point
        sums = column_sums(point.words)
        sums[sums == 0] = 1
        return Unnormalised(
            (point.docs * sums).astype(point.docs.dtype), (point.words / sums).astype(point.words.dtype)
        )

    _word_gain = _doc_gain = float("inf")

    def _gain(self) -> float:
        """The two half-steps' duality gaps before them."""
        return max(self._word_gain + self._doc_gain, 0.0) / self._source.tokens


def _scaled(factor: Array, sums: Array, u: Floats) -> Array:
    """factor * sums / u; a topic with u = 0 becomes empty."""
    inverse = np.divide(1.0, u, out=np.zeros_like(u), where=u > 0)
    return (factor * (sums * inverse)).astype(factor.dtype)


def _plain(model: Model, name: str) -> Model:
    if not model.is_plain:
        raise UnsupportedError(f"solver={name!r} fits plain maximum likelihood only: use solver='auto' for this model.")
    return model
