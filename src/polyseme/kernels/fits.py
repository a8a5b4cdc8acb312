"""A whole fit by coordinate ascent in compiled code (coordinate_fit.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyseme import _kernels
from polyseme.kernels.counts import PASS_TOLERANCE, SparseCounts, check_operands
from polyseme.kernels.factors import Array, Floats, aligned_copy, aligned_empty

_FIRST_SIZE = 0.5
"""Size of the first extrapolation."""


def remaining_gain(values: Sequence[float], least: int = 0) -> float:
    """Return an estimate of what a fit can still gain, from its objective at the start and after each iteration.

    It is the gain of the last quarter of the iterations, but at least of 10 and of `least`; infinity before that.
    """
    return float(_kernels.remaining_gain(np.asarray(values, dtype=np.float64), least))


@dataclass(frozen=True)
class FitCounts:
    """Counts by document and, times the weights of the documents, by word."""

    by_doc: SparseCounts
    by_word: SparseCounts
    totals: Floats
    """Tokens of each document."""
    weights: Floats | None
    """Weights of the documents; None if all are one."""


class CoordinateFit:
    """A fit by coordinate ascent, whose factors are updated in place.

    docs, words : unnormalized factors (documents x width and words x width), which are copied.
    """

    def __init__(self, docs: Array, words: Array) -> None:
        self.docs, self.words = aligned_copy(docs), aligned_copy(words)
        self.extrapolated = aligned_copy(words)
        """Words from which the next iteration starts."""
        self.numbers = np.array([np.nan, _FIRST_SIZE, 1, 0, np.inf, np.inf])
        """Log-likelihood per token (NaN until `run` is called), size of the next extrapolation, whether the next
        iteration is plain, whether a plain one gained nothing, the last gain, and the gap."""
        self._new_docs = aligned_empty(docs.shape, docs.dtype)

    @property
    def log_likelihood(self) -> float:
        """Return the mean log P(w|d) of a token."""
        return float(self.numbers[0])

    @property
    def exhausted(self) -> bool:
        """Return whether rounding hides further gains."""
        return bool(self.numbers[3])

    @property
    def gap(self) -> float:
        """Return a bound on the gain from the point that the last iteration started from, per token."""
        return float(self.numbers[5])

    def run(
        self, counts: FitCounts, n_topics: int, *, passes: int, extrapolate: bool, max_iter: int, tol: float = 0,
        n_threads: int = 1, stop: npt.NDArray[np.uint8] | None = None,
    ) -> tuple[int, float]:  # fmt: skip
        """Run iterations until the estimate of what remains to be gained is below `tol`; return their number and it.

        The estimate is `remaining_gain` of the values since the call, or the gap if the fit is exhausted and it is
        smaller.

        Another thread ends the fit early by setting `stop` (one number) to 1. After Ctrl-C in the main thread the
        factors are those of the last complete iteration.
        """
        by_doc, by_word = counts.by_doc, counts.by_word
        check_operands(by_doc, self.docs, self.words, counts.weights)
        weights = np.ones(by_doc.n_docs) if counts.weights is None else np.ascontiguousarray(counts.weights)
        done: tuple[int, float] = _kernels.coordinate_fit(
            by_doc.indptr, by_doc.indices, by_doc.values, by_word.indptr, by_word.indices, by_word.values,
            np.ascontiguousarray(counts.totals), weights, self.docs, self.words, self.extrapolated, self._new_docs,
            self.numbers, topics=n_topics, passes=passes, extrapolate=extrapolate,
            enough=PASS_TOLERANCE, max_iter=max_iter, tol=tol, n_threads=n_threads,
            stop=np.zeros(1, np.uint8) if stop is None else stop,
        )  # fmt: skip
        return done
