"""Fits to the entries of a table that are not hidden: x_dw ~ Poisson(sum_k docs_dk words_wk) for those alone.

    docs_dk  <- docs_dk  (sum_w x words_wk / q) / (sum of words_wk over the words of d that are not hidden)
    words_wk <- words_wk (sum_d x docs_dk / q)  / (sum of docs_dk over the documents of w that are not hidden)

with the new docs in the second line: each step is an EM step for one factor, so that the likelihood of the entries that
are not hidden never falls. The sums over x are the kernel's; the denominators come from the mask (masks.py). Steps are
lengthened while that raises the likelihood (points.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats, inner
from polyseme.masks import Mask
from polyseme.solvers.loop import Ended, Report, advance_to_end
from polyseme.solvers.points import Look, PointRun
from polyseme.solvers.poisson import column_sums, duality_gap, from_plsa
from polyseme.sources.memory import MemorySource


class MaskedPoint(NamedTuple):
    """docs (documents x width) with the scale, words (words x width) whose columns sum to one."""

    docs: Array
    words: Array


def fit_seen(
    source: MemorySource, mask: Mask, theta: Array, phi: Array, *, max_iter: int, tol: float, extrapolate: bool = True
) -> Ended[PointRun[MaskedPoint]] | None:
    """A fit from P(z|d) and P(w|z) (padded, words x width) to counts without their hidden entries."""
    start = MaskedPoint(*from_plsa(source, theta, phi))
    look = _looker(source, mask)
    return advance_to_end(
        lambda: PointRun(look, start, _in_gauge if extrapolate else None), max_iter=max_iter, tol=tol, listeners=[]
    )


def _looker(source: MemorySource, mask: Mask) -> Callable[[MaskedPoint], Look]:
    def look(point: MaskedPoint) -> Look:
        docs, words = point
        sums = source.sweep(docs, words, words=False)
        assert sums.row_sums is not None
        assert sums.logs is not None
        over_words = column_sums(words) - mask.sums_over_words(words)
        expected = np.einsum("dk,dk->d", docs, over_words)
        filled = source.totals > 0
        logs = float(sums.logs.sum())
        doc_gain = duality_gap(sums.row_sums, over_words, docs, source.totals)
        next_docs = _improved(docs, sums.row_sums, over_words)
        word_sums = source.sweep(next_docs, words, rows=False, logs=False).word_sums
        assert word_sums is not None
        over_docs = column_sums(next_docs) - mask.sums_over_docs(next_docs)
        word_gain = duality_gap(word_sums, over_docs, words, source.word_totals)
        report = Report(
            (logs - float(expected.sum())) / source.tokens,
            (logs - inner(source.totals[filled], np.log(expected[filled]))) / source.tokens,
            max(float(doc_gain.sum() + word_gain.sum()), 0.0) / source.tokens,
        )
        step = MaskedPoint(next_docs, _improved(words, word_sums, over_docs))
        return Look(point, report, _in_gauge(step))

    return look


def _improved(factor: Array, sums: Array, denominators: Floats) -> Array:
    new = np.divide(factor * sums, denominators, out=np.zeros(factor.shape), where=denominators > 0)
    return new.astype(factor.dtype)


def _in_gauge(point: tuple[Array, ...]) -> MaskedPoint:
    """The same product with columns of words that sum to one."""
    docs, words = point
    sums = column_sums(words)
    scale = np.where(sums > 0, sums, 1).astype(words.dtype)
    return MaskedPoint(docs * scale, words / scale)
