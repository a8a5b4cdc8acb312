"""LDA by variational Bayes against scikit-learn's LatentDirichletAllocation: seconds to an equal bound.

    python benchmarks/lda.py [--k 50] [--passes 3] [--iterations 24] [--variants]

Both have the same priors (1/K), 2 threads and float32 counts. The bound of both is taken by one function, outside the
clock: documents inferred to convergence with the topics fixed, in float64. `polyseme` includes its start, a few
iterations of PLSA, whose topics are judged like all others; "same start" begins at scikit-learn's own random topics.
With --variants, where our fit ends without each of its parts instead.

scikit-learn runs by both of its methods: batch, and online, which it documents as much faster on large data, with its
default batches (128) and learning rate, on shuffled documents, as the file has them by newsgroup. evaluate_every=-1
spares it the perplexity; n_jobs=2. A pass is over all documents.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation

from common import NEWSGROUPS, THREADS, compared, describe_machine, figure, load_counts
from polyseme.core.dirichlet import Concentration, topic_sums, topics_term, word_operands
from polyseme.core.shard import counts_of
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers.variational import (
    Priors,
    Variational,
    flat_topics,
    infer,
    likely_path,
    padded_parameters,
    start_point,
)

warnings.filterwarnings("ignore")

POINTS_A_PASS = 4
"""of the online method"""


class Point(NamedTuple):
    seconds: float
    topic_word: np.ndarray
    """lambda, K x words"""


Judged = dict[str, list[tuple[float, float]]]
"""(seconds, bound per token) of each method's points"""


class Judge:
    """The bound per token of any topics, at priors 1/K."""

    def __init__(self, X: sp.csr_array, K: int) -> None:
        self._corpus = MemoryCorpus(counts_of(X.astype(np.float64), np.dtype(np.float64)), None, THREADS)
        self._alpha, self._eta = np.full(K, 1 / K), np.full(X.shape[1], 1 / K)

    def bound(self, topic_word: np.ndarray) -> float:
        lambda_ = padded_parameters(topic_word.astype(np.float64))
        documents = infer(self._corpus.by_doc, lambda_, self._alpha, n_threads=THREADS).bounds
        sums = topic_sums(lambda_, len(topic_word))
        words = word_operands(lambda_, self._eta, sums, n_threads=THREADS)
        return (documents.sum() + topics_term(words, self._eta, sums)) / self._corpus.tokens


class Watched(LatentDirichletAllocation):
    """scikit-learn's estimator, which notes the topics before the first step and after every `every` steps."""

    def watch(self, every: int) -> list[Point]:
        """The list that fit fills."""
        self.every_, self.steps_, self.seconds_, self.points_ = every, 0, 0.0, []
        return self.points_

    def _em_step(self, *arguments, **settings):
        if not self.points_:
            self.points_.append(Point(0.0, self.components_.copy()))
        started = time.perf_counter()
        super()._em_step(*arguments, **settings)
        self.seconds_ += time.perf_counter() - started
        self.steps_ += 1
        if self.steps_ % self.every_ == 0:
            self.points_.append(Point(self.seconds_, self.components_.copy()))


def by_scikit_learn(X: sp.csr_array, K: int, passes: int, method: str) -> list[Point]:
    model = Watched(
        K, learning_method=method, max_iter=passes, n_jobs=THREADS, random_state=0, evaluate_every=-1
    )  # fmt: skip
    steps = 1 if method == "batch" else -(-X.shape[0] // model.batch_size) // POINTS_A_PASS
    points = model.watch(steps)
    order = np.random.default_rng(0).permutation(X.shape[0])
    model.fit(sp.csr_matrix(X)[order])
    return points


def by_polyseme(
    X: sp.csr_array, K: int, iterations: int, start: np.ndarray | None, solver: Variational | None = None
) -> Iterator[Point]:
    """Points of a fit; what the reader does between them is not counted."""
    started = time.perf_counter()
    source = MemoryCorpus(counts_of(X, np.dtype(np.float32)), None, THREADS)
    priors = Priors(Concentration(np.full(K, 1 / K)), Concentration(np.full(X.shape[1], 1 / K)))
    rng = np.random.default_rng(0)
    used = 0.0
    if start is None:
        for theta, phi in likely_path(source, K, rng):
            used += time.perf_counter() - started
            yield Point(used, start_point(source, priors, theta, phi)[0][:, :K].T)
            started = time.perf_counter()
    else:
        theta = padded(np.full((X.shape[0], K), 1 / K), np.float32)
        phi = padded((start / start.sum(axis=1, keepdims=True)).T, np.float32)
    run = (solver or Variational()).begin(source, priors, theta, phi, rng)
    used += time.perf_counter() - started
    yield Point(used, run.lambda_[:, :K].T)
    for _ in range(iterations):
        started = time.perf_counter()
        run.advance()
        used += time.perf_counter() - started
        yield Point(used, run.lambda_[:, :K].T)


def report(name: str, points: Iterator[Point], theirs: Judged, judge: Judge, K: int) -> None:
    """Prints when the points reach each bound of the others; ratios for the last of each."""
    last, iteration = Point(0.0, np.empty(0)), 0
    reached: dict[tuple[str, int], float] = {}
    print(f"\n{name}")
    for iteration, point in enumerate(points):
        last = point
        waiting = [(m, i) for m, path in theirs.items() for i in range(len(path)) if (m, i) not in reached]
        if not waiting:
            continue
        bound = judge.bound(point.topic_word)
        for method, number in waiting:
            seconds, wanted = theirs[method][number]
            if bound >= wanted:
                reached[method, number] = point.seconds
                print(
                    f"  bound {wanted:.4f} of {method}: {point.seconds:6.2f} s (iteration {iteration}, at {bound:.4f}) "
                    f"against {seconds:6.1f} s"
                )
    end = judge.bound(last.topic_word)
    print(f"  end: {end:.4f} after {last.seconds:.2f} s, {iteration} iterations")
    for method, path in theirs.items():
        seconds, wanted = path[-1]
        ours = reached.get((method, len(path) - 1))
        if ours is None:
            figure(f"{name}: nats short of the bound of {method}, K = {K}", f"{wanted - end:.4f} at its end")
        else:
            compared(f"{name}: to the peer's bound {wanted:.4f}, K = {K}", method, ours, seconds)


def variants(X: sp.csr_array, K: int, iterations: int, judge: Judge) -> None:
    """Where our own fit ends without each of its parts."""
    flat = flat_topics(X.shape[1], K, np.random.default_rng(0)).T
    cases = {
        "as it is": (None, Variational()),
        "start near uniform topics": (flat, Variational()),
        "documents never tried afresh": (None, Variational(refresh=0)),
        "start near uniform topics, never afresh": (flat, Variational(refresh=0)),
        "no extrapolation": (None, Variational(extrapolate=False)),
        "no document steps": (None, Variational(doc_steps=0)),
    }
    for name, (start, solver) in cases.items():
        report(name, by_polyseme(X, K, iterations, start, solver), {}, judge, K)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=24)
    parser.add_argument("--variants", action="store_true")
    arguments = parser.parse_args()
    describe_machine()
    X = load_counts(NEWSGROUPS)
    K = arguments.k
    print(f"newsgroups_df10: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros; K = {K}, {THREADS} threads")
    judge = Judge(X, K)
    if arguments.variants:
        variants(X, K, arguments.iterations, judge)
        return
    paths = {method: by_scikit_learn(X, K, arguments.passes, method) for method in ("batch", "online")}
    theirs: Judged = {}
    for method, path in paths.items():
        print(f"\nscikit-learn, {method}")
        theirs[f"scikit-learn {method}"] = [(point.seconds, judge.bound(point.topic_word)) for point in path[1:]]
        for seconds, bound in theirs[f"scikit-learn {method}"]:
            print(f"  {seconds:6.1f} s, bound {bound:.4f} a token")
    report("LDA", by_polyseme(X, K, arguments.iterations, None), theirs, judge, K)
    same = by_polyseme(X, K, arguments.iterations, paths["batch"][0].topic_word)
    report("LDA from the peer's start", same, theirs, judge, K)


if __name__ == "__main__":
    main()
