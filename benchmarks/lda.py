"""LDA by variational Bayes against scikit-learn's LatentDirichletAllocation: seconds to an equal bound.

    python benchmarks/lda.py [--k 50] [--passes 3] [--iterations 24] [--variants | --online]

Both have the same priors (1/K), 2 threads and float32 counts. The bound of both is computed by one function, outside of
the timed sections: documents are inferred to convergence with fixed topics, in float64. The time of polyseme includes
its start, a few iterations of PLSA, whose topics are evaluated like all others; "the peer's start" is the random topics
of scikit-learn. --variants prints instead where a fit of polyseme ends without each of its parts, and --online the
held-out perplexity of one pass of online LDA from several starts, beside that of the batch fit.

scikit-learn runs both of its methods: batch, and online, which its documentation recommends for large data, with its
default batches (128) and learning rate, on shuffled documents, because the file sorts them by newsgroup.
evaluate_every=-1 avoids the perplexity; n_jobs=2. A pass is over all documents.
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

from common import AP, NEWSGROUPS, THREADS, describe_machine, load_counts, report_figure, report_ratio
from polyseme import LDA
from polyseme.core.dirichlet import Concentration, DirichletPosterior, dirichlet_means
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers import OnlineVariational
from polyseme.solvers.dirichlet import (
    Priors,
    Variational,
    expected_counts,
    first_lambda,
    flat_topics,
    plsa_path,
)

warnings.filterwarnings("ignore")

POINTS_A_PASS = 4
"""Points per pass of the online method."""


class Point(NamedTuple):
    """Topics after some seconds of a fit."""

    seconds: float
    topic_word: np.ndarray
    """lambda, K x words."""


Bounds = dict[str, list[tuple[float, float]]]
"""(seconds, bound per token) of the points of each method."""


class Evaluator:
    """Computes the bound per token of topics, with priors 1/K."""

    def __init__(self, X: sp.csr_array, K: int) -> None:
        self._corpus = MemoryCorpus(as_counts(X.astype(np.float64), np.dtype(np.float64)), None, THREADS)
        self._alpha, self._eta = np.full(K, 1 / K), np.full(X.shape[1], 1 / K)

    def bound(self, topic_word: np.ndarray) -> float:
        lambda_ = topic_word.astype(np.float64)
        posterior = DirichletPosterior(lambda_, self._alpha, self._eta)
        documents = posterior.weights(self._corpus.by_doc, dirichlet_means(lambda_), None, n_threads=THREADS).bounds
        assert documents is not None
        return (documents.sum() + posterior.topics_term(n_threads=THREADS)) / self._corpus.tokens


class RecordingLDA(LatentDirichletAllocation):
    """LatentDirichletAllocation that records its topics before the first step and after every `every` steps."""

    def record(self, every: int) -> list[Point]:
        """Return the list that `fit` fills."""
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


def fit_scikit_learn(X: sp.csr_array, K: int, passes: int, method: str) -> list[Point]:
    model = RecordingLDA(
        K, learning_method=method, max_iter=passes, n_jobs=THREADS, random_state=0, evaluate_every=-1
    )  # fmt: skip
    steps = 1 if method == "batch" else -(-X.shape[0] // model.batch_size) // POINTS_A_PASS
    points = model.record(steps)
    order = np.random.default_rng(0).permutation(X.shape[0])
    model.fit(sp.csr_matrix(X)[order])
    return points


def fit_polyseme(
    X: sp.csr_array, K: int, iterations: int, start: np.ndarray | None, solver: Variational | None = None
) -> Iterator[Point]:
    """Yield points of a fit; the time of the caller between points is not included."""
    started = time.perf_counter()
    corpus = MemoryCorpus(as_counts(X, np.dtype(np.float32)), None, THREADS)
    priors = Priors(Concentration(np.full(K, 1 / K)), Concentration(np.full(X.shape[1], 1 / K)))
    rng = np.random.default_rng(0)
    used = 0.0
    if start is None:
        for plsa in plsa_path(corpus, K, rng):
            theta, phi = plsa.theta, plsa.phi
            used += time.perf_counter() - started
            yield Point(used, first_lambda(phi, priors, corpus.tokens)[:, :K].T)
            started = time.perf_counter()
    else:
        theta = padded(np.full((X.shape[0], K), 1 / K), np.float32)
        phi = padded((start / start.sum(axis=1, keepdims=True)).T, np.float32)
    expected = expected_counts(theta, corpus.totals)
    run = (solver or Variational()).begin(corpus, priors, lambda: expected, phi, rng)
    used += time.perf_counter() - started
    yield Point(used, run.lambda_[:, :K].T)
    for _ in range(iterations):
        started = time.perf_counter()
        run.advance()
        used += time.perf_counter() - started
        yield Point(used, run.lambda_[:, :K].T)


def report(name: str, points: Iterator[Point], theirs: Bounds, evaluator: Evaluator, K: int) -> None:
    """Print when the points reach each bound of the peers, and ratios for the last bound of each peer."""
    last, iteration = Point(0.0, np.empty(0)), 0
    reached: dict[tuple[str, int], float] = {}
    print(f"\n{name}")
    for iteration, point in enumerate(points):
        last = point
        remaining = [(m, i) for m, path in theirs.items() for i in range(len(path)) if (m, i) not in reached]
        if not remaining:
            continue
        bound = evaluator.bound(point.topic_word)
        for method, number in remaining:
            seconds, wanted = theirs[method][number]
            if bound >= wanted:
                reached[method, number] = point.seconds
                print(
                    f"  bound {wanted:.4f} of {method}: {point.seconds:6.2f} s (iteration {iteration}, at {bound:.4f}) "
                    f"against {seconds:6.1f} s"
                )
    end = evaluator.bound(last.topic_word)
    print(f"  end: {end:.4f} after {last.seconds:.2f} s, {iteration} iterations")
    for method, path in theirs.items():
        seconds, wanted = path[-1]
        ours = reached.get((method, len(path) - 1))
        if ours is None:
            report_figure(f"{name}: nats short of the bound of {method}, K = {K}", f"{wanted - end:.4f} at its end")
        else:
            ratio = report_ratio(f"{name}: to the peer's bound {wanted:.4f}, K = {K}", method, ours, seconds)
            report_figure(f"{name}: speed to the bound of {method}, K = {K}", f"{ratio:.1f} times", "at least 30")


def variants(X: sp.csr_array, K: int, iterations: int, evaluator: Evaluator) -> None:
    """Print where a fit of polyseme ends without each of its parts."""
    flat = flat_topics(X.shape[1], K, np.random.default_rng(0)).T
    cases = {
        "default": (None, Variational()),
        "start near uniform topics": (flat, Variational()),
        "document weights never reset": (None, Variational(refresh=0)),
        "start near uniform topics, never reset": (flat, Variational(refresh=0)),
        "no extrapolation": (None, Variational(extrapolate=False)),
        "no document steps": (None, Variational(doc_steps=0)),
    }
    for name, (start, solver) in cases.items():
        report(name, fit_polyseme(X, K, iterations, start, solver), {}, evaluator, K)


def online_starts(K: int) -> None:
    """Print the perplexity of held-out halves of a tenth of the documents, after one pass from several starts."""
    for path in (AP, NEWSGROUPS):
        X = load_counts(path)
        X = X[np.random.default_rng(0).permutation(X.shape[0])]
        test, train = X[: X.shape[0] // 10], X[X.shape[0] // 10 :]
        random = OnlineVariational(offset=10.0)  # forgets the start sooner
        fits = {
            "batch": LDA(K, random_state=0),
            "online, one pass": LDA(K, solver="online", max_iter=1, tol=0, random_state=0),
            "online, one pass from random topics": LDA(K, solver=random, init="random", max_iter=1, random_state=0),
        }
        for name, model in fits.items():
            report_figure(f"{path.stem}, K = {K}, {name}", f"{model.fit(train).completion_perplexity(test):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=24)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--online", action="store_true")
    arguments = parser.parse_args()
    describe_machine()
    X = load_counts(NEWSGROUPS)
    K = arguments.k
    print(f"newsgroups_df10: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros; K = {K}, {THREADS} threads")
    evaluator = Evaluator(X, K)
    if arguments.online:
        online_starts(K)
        return
    if arguments.variants:
        variants(X, K, arguments.iterations, evaluator)
        return
    paths = {method: fit_scikit_learn(X, K, arguments.passes, method) for method in ("batch", "online")}
    theirs: Bounds = {}
    for method, path in paths.items():
        print(f"\nscikit-learn, {method}")
        theirs[f"scikit-learn {method}"] = [(point.seconds, evaluator.bound(point.topic_word)) for point in path[1:]]
        for seconds, bound in theirs[f"scikit-learn {method}"]:
            print(f"  {seconds:6.1f} s, bound {bound:.4f} per token")
    report("LDA", fit_polyseme(X, K, arguments.iterations, None), theirs, evaluator, K)
    same = fit_polyseme(X, K, arguments.iterations, paths["batch"][0].topic_word)
    report("LDA from the peer's start", same, theirs, evaluator, K)


if __name__ == "__main__":
    main()
