"""EM for a tensor of counts: P(i_1 .. i_n) = sum_z P(z) prod_m P(i_m|z).

References
----------
W. Peng. Equivalence between nonnegative tensor factorization and tensorial probabilistic latent semantic analysis.
    SIGIR 2009.
S. Zafeiriou and M. Petrou. Nonnegative tensor factorization as an alternative Csiszar-Tusnady procedure. Data Mining
    and Knowledge Discovery 22, 2011.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from polyseme.core.model import Report
from polyseme.data.tensor import TensorCounts, new_tuples, operand, row_max
from polyseme.kernels import (
    FOLD_IN_STEPS,
    FOLD_IN_TOLERANCE,
    Array,
    Floats,
    SparseCounts,
    em_words,
    normalize_columns,
    padded,
    padded_width,
)
from polyseme.solvers.ascent import Ascent, EvaluatedPoint, extrapolate_arrays

_NUMBERS_AT_ONCE = 1 << 22

TensorPoint = tuple[Array, ...]
"""P(z) (width numbers, float64), then P(item|z) of every mode (items x width)."""

TensorRun = Ascent[TensorPoint]


def random_start(corpus: TensorCounts, n_topics: int, rng: np.random.Generator) -> TensorPoint:
    """Return a start: P(item|z) of every mode is the share of the item times exponential noise, P(z) is uniform."""
    factors = []
    for totals in corpus.totals:
        noise = rng.standard_exponential((totals.size, n_topics))
        factors.append(normalize_columns(noise * totals[:, np.newaxis]))
    return padded_point(np.full(n_topics, 1.0 / n_topics), factors, corpus.dtype)


def padded_point(weights: Floats, factors: list[Floats], dtype: np.dtype[np.floating]) -> TensorPoint:
    """Return P(z) (K numbers) and P(item|z) (items x K), padded."""
    wide = np.zeros(padded_width(weights.size))
    wide[: weights.size] = weights
    return (wide, *(padded(factor, dtype) for factor in factors))


def evaluate(corpus: TensorCounts, point: TensorPoint) -> EvaluatedPoint[TensorPoint]:
    """Run the E-step at a point and the M-step from there: P(z) ∝ n_z and P(i|z) ∝ n_iz, from the same posterior.

    The residual adds a bound on the gain from P(i|z) of each mode (as for words in PLSA, with u_z = N P(z); entries
    that are zero do not count), and, by Jensen's inequality, N log max_z n_z / (N P(z)) for P(z).
    """
    weights, *factors = point
    tokens = corpus.tokens
    swept = corpus.sweep(weights, factors)
    mass = tokens * weights
    gain = 0.0
    step: list[Array] = []
    for factor, expected, totals in zip(factors, swept.expected, corpus.totals, strict=True):
        slopes = np.divide(expected, factor, out=np.zeros_like(expected), where=factor > 0)
        better, gains = em_words(factor, slopes, mass, totals, n_threads=corpus.n_threads)
        step.append(better)
        gain += float(gains.sum())
    by_topic = swept.expected[0].sum(axis=0)
    growth = np.divide(by_topic, mass, out=np.zeros_like(mass), where=mass > 0).max()
    gain += tokens * float(np.log(max(growth, 1.0)))
    value = swept.log / tokens
    residual = max(gain, 0.0) / tokens if np.isfinite(value) else float("inf")
    return EvaluatedPoint(point, Report(value, value, residual), (by_topic / by_topic.sum(), *step))


def normalized(weights: Floats, *factors: Array) -> TensorPoint:
    """Return the point with distributions that sum to one."""
    return (weights / weights.sum(), *(normalize_columns(factor) for factor in factors))


def begin(corpus: TensorCounts, start: TensorPoint, *, extrapolate: bool) -> TensorRun:
    """Start a fit of a tensor."""
    return Ascent(partial(evaluate, corpus), start, extrapolate_arrays(normalized) if extrapolate else None)


def fold_in(corpus: TensorCounts, mode: int, weights: Floats, factors: list[Array], *, n_threads: int) -> Array:
    """Return P(z|item) (items x K) of every item of `mode`, from the factors of the other modes (items x width each).

    An item is a document and the tuples of its counts are the words: P(tuple|z) is the product of P(item|z) over the
    other modes. The items are processed in chunks; one item needs memory for its tuples times K. An item without counts
    of positive probability gets P(z).
    """
    K = weights.size
    scaled = [factor / row_max(factor)[:, np.newaxis] for factor in factors]
    theta = np.tile(weights.astype(corpus.dtype), (corpus.shape[mode], 1))
    for items, tuples, counts in _item_chunks(corpus, mode, max(1, _NUMBERS_AT_ONCE // padded_width(K))):
        B = operand(np.ones(padded_width(K)), scaled, tuples)
        B /= row_max(B)[:, np.newaxis]
        known: Array = B.max(axis=1) > 0
        known_counts = counts.with_values(np.where(known[counts.indices], counts.values, 0))
        folded, _ = known_counts.fold_in(
            B, K, empty=weights, tol=FOLD_IN_TOLERANCE, max_iter=FOLD_IN_STEPS, n_threads=n_threads, u=np.ones(K)
        )
        theta[items] = folded
    return theta


def _item_chunks(
    corpus: TensorCounts, mode: int, tuples_at_once: int
) -> Iterator[tuple[Array, dict[int, Array], SparseCounts]]:
    """Yield chunks of the items of a mode: indices of the items, distinct tuples by mode, counts (items x tuples)."""
    order = np.argsort(corpus.coords[mode], kind="stable")
    starts = np.append(new_tuples([corpus.coords[mode][order]]), order.size)
    first = 0
    while first < starts.size - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + tuples_at_once, side="right")) - 1)
        part = order[starts[first] : starts[last]]
        others = {m: index[part] for m, index in enumerate(corpus.coords) if m != mode}
        by_tuple = np.lexsort(list(others.values()))
        new = new_tuples([index[by_tuple] for index in others.values()])
        column = np.empty(part.size, dtype=np.int32)
        column[by_tuple] = np.repeat(np.arange(new.size), np.diff(np.append(new, part.size)))
        tuples = {m: index[by_tuple[new]] for m, index in others.items()}
        indptr = (starts[first : last + 1] - starts[first]).astype(np.int32)
        counts = SparseCounts(indptr, column, corpus.values[part], last - first, int(new.size))
        yield corpus.coords[mode][order[starts[first:last]]], tuples, counts
        first = last
