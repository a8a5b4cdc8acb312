"""EM for a matrix with hidden entries: x_dw ~ Poisson(sum_k docs_dk words_wk) for the other entries.

    docs_dk  <- docs_dk  (sum_w x words_wk / q) / (sum of words_wk over the words of d that are not hidden)
    words_wk <- words_wk (sum_d x docs_dk / q)  / (sum of docs_dk over the documents of w that are not hidden)

The second line uses the new docs. Each line is an EM step for one factor, so the likelihood of the entries that are
not hidden never decreases. The kernel computes the sums over x, the mask the denominators. Steps are extrapolated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyseme.core.holdout import Mask
from polyseme.core.model import Report
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import Array, Floats, inner
from polyseme.solvers.ascent import Ascent, EvaluatedPoint, extrapolate_arrays
from polyseme.solvers.base import FitEnd, advance_to_end
from polyseme.solvers.coordinate import Unnormalized, column_sums, duality_gap, from_plsa


def fit_seen(
    corpus: MemoryCorpus, mask: Mask, theta: Array, phi: Array, *, max_iter: int, tol: float, extrapolate: bool = True
) -> FitEnd[Ascent[Unnormalized]] | None:
    """Fit counts without their hidden entries, from P(z|d) and P(w|z) (both padded)."""
    start = from_plsa(corpus, theta, phi)
    return advance_to_end(
        lambda: Ascent(_evaluator(corpus, mask), start, extrapolate_arrays(_rescaled) if extrapolate else None),
        max_iter=max_iter,
        tol=tol,
        listeners=[],
    )


def _evaluator(corpus: MemoryCorpus, mask: Mask) -> Callable[[Unnormalized], EvaluatedPoint[Unnormalized]]:
    """Return the function that evaluates a point (see `Ascent`)."""

    def evaluate(point: Unnormalized) -> EvaluatedPoint[Unnormalized]:
        docs, words = point
        row_sums, doc_logs = corpus.rows_and_logs(docs, words)
        over_words = column_sums(words) - mask.sums_over_words(words)
        expected = np.einsum("dk,dk->d", docs, over_words)
        filled = corpus.totals > 0
        logs = float(doc_logs.sum())
        doc_gain = duality_gap(row_sums, over_words, docs, corpus.totals)
        next_docs = _improved(docs, row_sums, over_words)
        word_sums = corpus.word_sums(next_docs, words)
        over_docs = column_sums(next_docs) - mask.sums_over_docs(next_docs)
        word_gain = duality_gap(word_sums, over_docs, words, corpus.word_totals)
        report = Report(
            (logs - float(expected.sum())) / corpus.tokens,
            (logs - inner(corpus.totals[filled], np.log(expected[filled]))) / corpus.tokens,
            max(float(doc_gain.sum() + word_gain.sum()), 0.0) / corpus.tokens,
        )
        return EvaluatedPoint(point, report, _rescaled(next_docs, _improved(words, word_sums, over_docs)))

    return evaluate


def _rescaled(docs: Array, words: Array) -> Unnormalized:
    return Unnormalized(docs, words).rescaled


def _improved(factor: Array, sums: Array, denominators: Floats) -> Array:
    """Return factor * sums / denominators; zero where the denominator is zero."""
    new = np.divide(factor * sums, denominators, out=np.zeros(factor.shape), where=denominators > 0)
    return new.astype(factor.dtype)
