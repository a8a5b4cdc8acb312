"""A whole fit by coordinate ascent in compiled code (coordinate_fit.hpp)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from polyseme import _kernels
from polyseme.kernels.counts import PASS_TOLERANCE, SparseCounts, check_operands
from polyseme.kernels.factors import Array, Floats, aligned_copy

_RECENT = 10
"""Iterations whose gain estimates what is still to be gained (kRecent)."""
_FIRST_SIZE = 0.5
"""Size of the first extrapolation."""


@dataclass(frozen=True)
class FitCounts:
    """Counts by document and, times the weights of the documents, by word."""

    by_doc: SparseCounts
    by_word: SparseCounts
    totals: Floats
    """Tokens of each document."""
    weights: Floats | None
    """Weights of the documents; None if all are one."""


@dataclass
class CoordinateFit:
    """A fit by coordinate ascent: unnormalized factors docs (documents x width) and words (words x width)."""

    docs: Array
    words: Array
    extrapolated: Array
    """Words from which the next iteration starts."""
    numbers: Floats = field(
        default_factory=lambda: np.array([np.nan, _FIRST_SIZE, 1, 0, *[np.nan] * _RECENT], dtype=np.float64)
    )
    """Log-likelihood per token (NaN before the first iteration), size of the next extrapolation, whether the next
    iteration is plain, whether a plain one gained nothing, and the log-likelihood before each of the last iterations.
    """

    @classmethod
    def begun(cls, docs: Array, words: Array) -> CoordinateFit:
        """Return a fit that starts from these factors, of which it makes copies."""
        return cls(aligned_copy(docs), aligned_copy(words), aligned_copy(words))

    @property
    def log_likelihood(self) -> float:
        return float(self.numbers[0])

    @property
    def exhausted(self) -> bool:
        return bool(self.numbers[3])

    @property
    def remaining(self) -> float:
        """Return the gain of the last ten iterations, an estimate of what is still to be gained."""
        return float(self.numbers[0] - self.numbers[4]) if not np.isnan(self.numbers[4]) else np.inf

    def run(
        self, counts: FitCounts, n_topics: int, *, passes: int, extrapolate: bool, max_iter: int, tol: float,
        n_threads: int, stop: npt.NDArray[np.uint8],
    ) -> int:  # fmt: skip
        """Run iterations until `remaining` is at most `tol`, and return their number.

        Another thread ends the fit early by setting `stop` (one number) to 1. After Ctrl-C in the main thread the
        factors are those of the last complete iteration.
        """
        by_doc, by_word = counts.by_doc, counts.by_word
        check_operands(by_doc, self.docs, self.words, counts.weights)
        weights = np.ones(by_doc.n_docs) if counts.weights is None else counts.weights
        done: int = _kernels.coordinate_fit(
            by_doc.indptr, by_doc.indices, by_doc.values, by_word.indptr, by_word.indices, by_word.values,
            counts.totals, weights, self.docs, self.words, self.extrapolated, self.numbers, topics=n_topics,
            passes=passes, extrapolate=extrapolate, enough=PASS_TOLERANCE, max_iter=max_iter, tol=tol, stop=stop,
            n_threads=n_threads,
        )  # fmt: skip
        return done
