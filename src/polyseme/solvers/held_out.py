"""Data that a fit does not see, and how well it predicts them: what decides when a fit should end.

The score is the mean log-probability of a held-out token, with a little of the unigram mixed in, since a zero would
decide it; words that the fit does not see at all are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from polyseme.errors import UnsupportedError
from polyseme.kernels import Array, Floats, SparseCounts, inner
from polyseme.solvers.folding import fold_in
from polyseme.solvers.loop import Run
from polyseme.sources.memory import MemorySource
from polyseme.split import split_in_parts, split_tokens


class HeldOut(NamedTuple):
    """What a fit may see, and the score of its present point on the rest."""

    source: MemorySource
    score: Callable[[Run], float]
    rows: Array | None
    """the documents that the source has; None for all"""


def hold_out_tokens(source: MemorySource, share: float, seed: int, smoothing: float) -> HeldOut:
    """Holds out a share of every document's tokens."""
    return _without_tokens(source, split_tokens(source.by_doc, seed, share)[1], smoothing)


def token_folds(source: MemorySource, n_folds: int, seed: int, smoothing: float) -> Iterator[HeldOut]:
    """Every token held out once."""
    for held_out in split_in_parts(source.by_doc, n_folds, seed):
        yield _without_tokens(source, held_out, smoothing)


def document_folds(source: MemorySource, n_folds: int, seed: int, smoothing: float) -> Iterator[HeldOut]:
    """Every document held out once; half of its tokens give its topic weights, by folding in, and half are scored."""
    counts = source.by_doc
    if counts.n_docs < n_folds:
        raise UnsupportedError(f"{counts.n_docs} documents cannot be parted into {n_folds} folds: use fewer folds.")
    order = np.random.default_rng(seed).permutation(counts.n_docs)
    for part in np.array_split(order, n_folds):
        rows = np.setdiff1d(order, part)
        weights = None if source.weights is None else source.weights[rows]
        seen = MemorySource(counts.take(rows), weights, source.n_threads)
        test = counts.take(np.sort(part))
        observed, scored = (test.with_values(values) for values in split_tokens(test, seed))
        test_weights = None if source.weights is None else source.weights[np.sort(part)]
        mean_log = _mean_log(seen, scored, test_weights, smoothing)
        yield HeldOut(seen, _folded_score(seen, observed, scored, mean_log), rows)


class PartedTokens(NamedTuple):
    """Some tokens of every document, the others, and how well these are predicted."""

    seen: MemorySource
    mean_log: Callable[[Array, Array], float]
    """mean log-probability of the other tokens, from operands whose products are P(w|d)"""


def parted_tokens(source: MemorySource, held_out: Floats, smoothing: float) -> PartedTokens:
    """The tokens without those held out (one number a non-zero of `source.by_doc`), and the score on these."""
    counts = source.by_doc
    observed, scored = counts.with_values(counts.values - held_out), counts.with_values(held_out)
    if not scored.values.size or not observed.values.size:
        raise UnsupportedError("There are too few tokens to hold some out: use a fixed beta, Tempered(beta), or EM.")
    seen = MemorySource(observed, source.weights, source.n_threads)
    mean_log = _mean_log(seen, scored, source.weights, smoothing)
    return PartedTokens(seen, lambda A, B: mean_log(scored.products(A, B, n_threads=source.n_threads)))


def _without_tokens(source: MemorySource, held_out: Floats, smoothing: float) -> HeldOut:
    seen, mean_log = parted_tokens(source, held_out, smoothing)
    return HeldOut(seen, lambda run: mean_log(*run.model.probability_operands(run.theta, run.phi)), None)


def _folded_score(
    seen: MemorySource, observed: SparseCounts, scored: SparseCounts, mean_log: Callable[[Array], float]
) -> Callable[[Run], float]:
    def score(run: Run) -> float:
        topics = np.ascontiguousarray(run.phi[:, : run.model.n_topics].T)
        folded = fold_in(run.model, observed, topics, None, n_threads=seen.n_threads)
        operands = run.model.token_operands(folded.doc_topic, topics, folded.background)
        return mean_log(scored.products(*operands, n_threads=seen.n_threads))

    return score


def _mean_log(
    seen: MemorySource, scored: SparseCounts, weights: Floats | None, smoothing: float
) -> Callable[[Array], float]:
    """Mean log of (1 - smoothing) p + smoothing P(w) over the tokens `scored`, each with its document's weight."""
    base = seen.unigram[scored.indices]
    x = scored.values * (base > 0)
    if weights is not None:
        x = x * np.repeat(weights, np.diff(scored.indptr))
    total = float(x.sum())
    if not total > 0:
        raise UnsupportedError("The held-out words do not occur in the rest of the documents: hold out fewer.")

    def mean_log(p: Array) -> float:
        mixed = (1 - smoothing) * p.astype(np.float64) + smoothing * base
        return inner(x, np.log(mixed, out=np.zeros_like(mixed), where=base > 0)) / total

    return mean_log
