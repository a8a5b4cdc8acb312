"""Many fits of the same counts by coordinate ascent: starts, resampled documents, numbers of topics.

Each fit runs in compiled code without Python between its iterations, and threads take one problem after the other, so
many small fits use all cores. The counts and their transpose are shared. A fit ends where a fit by `SCD` of its
documents from the same start ends, with the same bits, whatever the other problems and the number of threads are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Condition, get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.core.fold_in import fold_in_shard
from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import (
    Array,
    CoordinateFit,
    FitCounts,
    Floats,
    SparseCounts,
    map_in_threads,
    normalize_rows,
    padded,
)
from polyseme.solvers.coordinate import SCD, Unnormalized, from_plsa
from polyseme.solvers.initialize import given_topics, named_start

_MAX_ITER = 1000


@dataclass(frozen=True, eq=False)
class Problem:
    """One fit of `fit_batch`."""

    n_topics: int
    start: Any
    """The seed of a start from documents, P(w|z) with documents folded in, or P(z|d) and P(w|z)."""
    document_weights: Floats | None = None
    """Weights of the documents. One of weight zero takes no part, and its P(z|d) is zero. None: all are one."""
    counts: SparseCounts | None = None
    """Counts to fit instead of those of the batch, with the same words."""


@dataclass(frozen=True, eq=False)
class BatchFit:
    """Result of a fit of `fit_batch`."""

    doc_topic: Array
    """P(z|d) at the last iteration; zeros for a document without words or with weight zero."""
    topic_word: Array
    """P(w|z)."""
    log_likelihood: float
    """Mean log P(w|d) of a token."""
    n_iter: int
    converged: bool
    """Whether the criterion of `tol` holds at the end."""


def fit_batch(
    counts: SparseCounts,
    problems: Iterable[Problem],
    *,
    max_iter: int = _MAX_ITER,
    tol: float = 1e-3,
    n_threads: int = 1,
    solver: SCD | None = None,
    progress: Callable[[int], Any] | None = None,
) -> list[BatchFit]:
    """Fit every problem by coordinate ascent, in threads, and return the fits in the order of the problems.

    counts : counts that the problems share; the factors have their type. problems : taken one by one by the threads, so
    that a generator can make large ones when they are needed. tol : as in `PLSA`. solver : settings of coordinate
    ascent without multiplicative steps. progress : called in the calling thread with the number of problems that are
    done, not necessarily for every number.
    """
    settings = SCD() if solver is None else solver
    plain = counts.transposed(None)
    numbered = enumerate(problems)
    fits: dict[int, BatchFit] = {}
    taken, stop = 0, np.zeros(1, dtype=np.uint8)
    changed, caller = Condition(), get_ident()

    def next_problem() -> tuple[int, Problem] | None:
        nonlocal taken
        with changed:
            numbered_problem = None if stop[0] else next(numbered, None)
            taken += numbered_problem is not None
        return numbered_problem

    def work(_: int) -> None:
        try:
            for number, problem in iter(next_problem, None):
                fit = _fit(_corpus_of(problem, counts, plain), problem, settings, max_iter, tol, stop)
                with changed:
                    fits[number] = fit
                    changed.notify_all()
                if progress is not None and get_ident() == caller:
                    progress(len(fits))
            if get_ident() == caller:  # waits here, because joining threads would delay Ctrl-C
                with changed:
                    changed.wait_for(lambda: stop[0] or len(fits) == taken)
        except BaseException:
            with changed:
                stop[0] = 1
                changed.notify_all()
            raise

    for _ in map_in_threads(work, list(range(n_threads)), n_threads):
        pass
    return [fits[number] for number in range(taken)]


def _corpus_of(problem: Problem, counts: SparseCounts, transpose: SparseCounts) -> MemoryCorpus:
    """Return the documents of positive weight, with the transpose of the counts if it can be shared."""
    weights = problem.document_weights
    if problem.counts is not None:
        counts = problem.counts
    elif weights is None or (weights > 0).all():
        return MemoryCorpus(counts.with_transpose(transpose), weights)
    return MemoryCorpus.of(counts.matrix(), counts.dtype, weights, 1)


def _fit(
    corpus: MemoryCorpus, problem: Problem, settings: SCD, max_iter: int, tol: float, stop: npt.NDArray[np.uint8]
) -> BatchFit:
    K = problem.n_topics
    theta, phi = _start(corpus, Model(K), problem.start)
    fit = CoordinateFit(*from_plsa(corpus, theta, phi))
    counts = FitCounts(corpus.by_doc, corpus.by_word, corpus.totals, corpus.weights)
    n_iter, remaining = fit.run(
        counts, K, passes=settings.passes, extrapolate=settings.extrapolate, max_iter=max_iter, tol=tol, stop=stop
    )
    end = Unnormalized(fit.docs, fit.words)
    doc_topic = end.theta[:, :K]
    if corpus.kept is not None:
        complete = np.zeros((corpus.all_documents.n_docs, K), dtype=corpus.dtype)
        complete[corpus.kept] = doc_topic
        doc_topic = complete
    return BatchFit(
        np.ascontiguousarray(doc_topic), np.ascontiguousarray(end.phi[:, :K].T), fit.log_likelihood, n_iter,
        remaining < tol,
    )  # fmt: skip


def _start(corpus: MemoryCorpus, model: Model, start: Any) -> tuple[Array, Array]:
    """Return theta and phi, padded."""
    if isinstance(start, int | np.integer):
        return named_start("documents", corpus, model, np.random.default_rng(start))
    if not isinstance(start, tuple):
        phi = given_topics(start, corpus, model)
        return fold_in_shard(model, corpus, phi), phi
    doc_topic, topic_word = start
    rows = doc_topic if corpus.kept is None else doc_topic[corpus.kept]
    return padded(normalize_rows(rows), corpus.dtype), given_topics(topic_word, corpus, model)
