"""Algorithm 2 of Zhang, Ding and Tang: PLSI, updating C = P(w|z), then S = P(z), then H = P(d|z).

With R = X / (C S H') recomputed before each line:
    C <- C o (R H) / diag(C' R H),   S <- S diag(C' R H),   H <- H o (R' C) / diag(C' R H).
(As printed H's denominator still uses the old C, and its columns do not sum to one.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyseme.errors import UnsupportedError
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


@dataclass(frozen=True)
class PLSI:
    """P(d,w) = sum_z P(z) P(d|z) P(w|z), its three factors one after the other; normalised at every step."""

    name: ClassVar[str] = "plsi"

    def begin(self, model: Model, source: MemorySource, theta: Array, phi: Array) -> Run:
        if not model.is_plain:
            raise UnsupportedError(
                "solver='plsi' fits plain maximum likelihood only: use solver='auto' for this model."
            )
        return PLSIRun(model, source, from_plsa(source, theta, phi))


class PLSIRun:
    """C (words x width), S (width) and H (documents x width); a document of weight v has v copies of its row of H."""

    exhausted = False

    def __init__(self, model: Model, source: MemorySource, start: Unnormalised) -> None:
        self.model = model
        self._source = source
        scale = column_sums(start.docs, source.weights)
        self.C = start.words
        self.S = scale / source.tokens
        self.H = (start.docs / np.where(scale > 0, scale, 1)).astype(start.docs.dtype)
        self._gain = float("inf")
        self._look()

    @property
    def theta(self) -> Array:
        return self._point().theta

    @property
    def phi(self) -> Array:
        return self.C

    def advance(self) -> None:
        source = self._source
        C = _columns_to_one(self.C * self._word_sums).astype(self.C.dtype)
        row_sums = source.sweep(self._docs(self.S, self.H), C, words=False, logs=False).row_sums
        assert row_sums is not None
        S = self.S * column_sums(self.H * row_sums.astype(np.float64), source.weights)
        docs = self._docs(S, self.H)
        row_sums = source.sweep(docs, C, words=False, logs=False).row_sums
        assert row_sums is not None
        gaps = duality_gap(row_sums, column_sums(C), docs, source.totals)
        H = _columns_to_one(self.H * row_sums.astype(np.float64), source.weights)
        self.C, self.S, self.H = C, S, H.astype(self.H.dtype)
        self._gain = (source.total_log(gaps) + self._word_gap) / source.tokens
        self._look()

    def _docs(self, S: Floats, H: Array) -> Array:
        """N S_k H_dk: the documents' factor, at the counts' scale."""
        return (H * (self._source.tokens * S)).astype(H.dtype)

    def _point(self) -> Unnormalised:
        return Unnormalised(self._docs(self.S, self.H), self.C)

    def _look(self) -> None:
        point = self._point()
        sums = self._source.sweep(*point, rows=False)
        assert sums.word_sums is not None
        assert sums.logs is not None
        log_sum = self._source.total_log(sums.logs)
        mass = column_sums(point.docs, self._source.weights)
        self._word_sums = sums.word_sums
        self._word_gap = float(duality_gap(sums.word_sums, mass, self.C, self._source.word_totals).sum())
        self.report = Report(
            poisson_objective(self._source, log_sum, point),
            log_likelihood(self._source, log_sum, point),
            max(self._gain, 0.0),
        )


def _columns_to_one(factor: Array, weights: Floats | None = None) -> Array:
    sums = column_sums(factor, weights)
    return factor / np.where(sums > 0, sums, 1)
