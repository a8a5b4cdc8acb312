"""Seconds to an equal completion perplexity: PLSA and LDA against samplers and other models of texts.

    python benchmarks/samplers.py [--k 20] [--limit 60] [--peers tomotopy topica pyrmallet] [--data poliblog newsgroups]

Topics are fitted to 90% of the documents. All topics are judged by one function, outside of the timed sections: half of
the tokens of each other document determine its weights by maximum likelihood, and the other half is scored with 1% of
the unigram (`polyseme.selection.cross_validation`). A target is 1.005 times the best perplexity that a peer reaches;
both times are those of the first topics that reach it. All have 2 threads, and pyrmallet has one, its only setting.

- tomotopy: LDAModel with its defaults; a fit continues.
- topica: LDA with its defaults (sparse sampler, learned priors); NMF with the Kullback-Leibler loss on counts; CTM, its
  STM without covariates, with its spectral start.
- pyrmallet: LDA with its defaults.

Fits of topica and pyrmallet cannot continue, so each of their points is a separate fit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from common import DATA, NEWSGROUPS, THREADS, can_import, describe_machine, load_counts, report_figure, report_ratio
from lda import fit_polyseme
from polyseme.core.fitted import FittedTopics
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.model import Model
from polyseme.core.shard import sparse_counts, split_tokens
from polyseme.kernels import normalize_rows
from polyseme.selection.cross_validation import COMPLETION, score_held_out
from polyseme.solvers.base import SOLVERS, FitProblem
from polyseme.solvers.initialize import named_start
from solver_peers import as_corpus

warnings.filterwarnings("ignore")

CORPORA = {"poliblog": DATA / "counts" / "poliblog5k.npz", "newsgroups": NEWSGROUPS}
PACKAGES = ("tomotopy", "topica", "pyrmallet")
CLOSE = 1.005
"""A target is the best perplexity of a peer times this."""

_LETTERS = str.maketrans("0123456789", "abcdefghij")

Points = Iterator[tuple[float, np.ndarray]]
"""Seconds since the start of a fit, and topics (K x words)."""


class Judge:
    """Completion perplexity of topics for held-out documents."""

    def __init__(self, train: sp.csr_array, test: sp.csr_array) -> None:
        self._unigram = np.asarray(train.sum(axis=0), dtype=np.float64).ravel() / train.sum()
        self._documents = float(train.shape[0])
        counts = sparse_counts(test, np.dtype(np.float32))
        self._observed, self._held_out = (counts.with_values(part) for part in split_tokens(counts, 0))

    def perplexity(self, topic_word: np.ndarray) -> float:
        K = len(topic_word)
        fitted = FittedTopics(
            normalize_rows(topic_word).astype(np.float32), np.full(K, 1 / K), self._unigram, np.ones(K, bool), 1.0,
            self._documents, MaximumLikelihood(),
        )  # fmt: skip
        scores = score_held_out(fitted, COMPLETION, self._observed, self._held_out, 0.01, n_threads=THREADS)
        return scores.perplexity


def fit_plsa(X: sp.csr_array, K: int, iterations: int) -> Points:
    """Yield the topics of PLSA after each iteration."""
    started = time.perf_counter()
    corpus, model = as_corpus(X), Model(K)
    run = SOLVERS["auto"]().begin(
        FitProblem(model, corpus), *named_start("random", corpus, model, np.random.default_rng(0))
    )
    used = time.perf_counter() - started
    for _ in range(iterations):
        started = time.perf_counter()
        run.advance()
        used += time.perf_counter() - started
        yield used, run.phi[:, :K].T


def fit_tomotopy(X: sp.csr_array, K: int, limit: float) -> Points:
    import tomotopy

    started = time.perf_counter()
    model = tomotopy.LDAModel(k=K, seed=1)
    for text in texts_of(X):
        model.add_doc(text)
    used = time.perf_counter() - started
    while used < limit:
        started = time.perf_counter()
        model.train(20, workers=THREADS)
        used += time.perf_counter() - started
        phi = np.array([model.get_topic_word_dist(k) for k in range(K)])
        yield used, in_columns(phi, list(model.used_vocabs), X.shape[1])


def fit_topica(X: sp.csr_array, K: int, limit: float, kind: str) -> Points:
    import topica

    texts, lengths = texts_of(X), {"LDA": (100, 300, 1000), "NMF": (25, 50, 100, 200), "CTM": (10, 30, 100)}
    for iterations in lengths[kind]:
        started = time.perf_counter()
        corpus = topica.Corpus.from_documents(texts)
        if kind == "LDA":
            model = topica.LDA(K, num_threads=THREADS).fit(corpus, iters=iterations)
        elif kind == "NMF":
            model = topica.NMF(K, beta_loss="kullback-leibler", weighting="count").fit(
                corpus, iters=iterations, num_threads=THREADS
            )
        else:
            model = topica.CTM(K).fit(corpus, iters=iterations, num_threads=THREADS)
        used = time.perf_counter() - started
        yield used, in_columns(np.asarray(model.topic_word), list(corpus.vocabulary), X.shape[1])
        if used > limit / 2:
            break


def fit_pyrmallet(X: sp.csr_array, K: int, limit: float) -> Points:
    from pyrmallet import LatentDirichletAllocation

    texts = [" ".join(text) for text in texts_of(X)]
    for iterations in (250, 500, 1000):
        started = time.perf_counter()
        model = LatentDirichletAllocation(K, max_iter=iterations).fit(texts)
        used = time.perf_counter() - started
        yield used, in_columns(np.asarray(model.components_), list(model.feature_names_in_), X.shape[1])
        if used > limit / 2:
            break


def texts_of(X: sp.csr_array) -> list[list[str]]:
    """Return the documents as lists of words."""
    names = np.array([name_of(word) for word in range(X.shape[1])])
    words = np.repeat(X.indices, X.data.astype(np.int64))
    ends = np.cumsum(np.asarray(X.sum(axis=1), dtype=np.int64).ravel())
    return [names[part].tolist() for part in np.split(words, ends[:-1])]


def name_of(word: int) -> str:
    """Return a name of letters, because pyrmallet takes no digits."""
    return "zz" + str(word).translate(_LETTERS)


def in_columns(topic_word: np.ndarray, words: list[str], n_words: int) -> np.ndarray:
    """Return topics with a column for each of our words."""
    full = np.zeros((len(topic_word), n_words))
    columns = {name_of(word): word for word in range(n_words)}
    full[:, [columns[word] for word in words]] = topic_word
    return full


def compare(name: str, X: sp.csr_array, K: int, limit: float, packages: list[str]) -> None:
    """Print the path of each method, and ratios of the seconds to the targets."""
    rows = np.random.default_rng(0).permutation(X.shape[0])
    train, test = X[np.sort(rows[X.shape[0] // 10 :])], X[np.sort(rows[: X.shape[0] // 10])]
    judge = Judge(train, test)
    methods: dict[str, Callable[[], Points]] = {
        "polyseme PLSA": lambda: fit_plsa(train, K, 60),
        "polyseme LDA": lambda: ((p.seconds, p.topic_word) for p in fit_polyseme(train, K, 40, None)),
        "tomotopy LDA": lambda: fit_tomotopy(train, K, limit),
        **{f"topica {kind}": lambda kind=kind: fit_topica(train, K, limit, kind) for kind in ("LDA", "NMF", "CTM")},
        "pyrmallet LDA": lambda: fit_pyrmallet(train, K, limit),
    }
    paths: dict[str, list[tuple[float, float]]] = {}
    print(f"\n{name}, K = {K}: best completion perplexity, first seconds within {CLOSE} of it, all seconds")
    for method, run in methods.items():
        if method.split()[0] not in ("polyseme", *packages):
            continue
        paths[method] = path = [(seconds, judge.perplexity(topics)) for seconds, topics in run()]
        best = min(value for _, value in path)
        print(f"  {method:15} {best:8.1f} {first(path, CLOSE * best):8.2f} s {path[-1][0]:8.2f} s", flush=True)
    for peer in [method for method in paths if not method.startswith("polyseme")]:
        target = CLOSE * min(value for _, value in paths[peer])
        for ours in ("polyseme PLSA", "polyseme LDA"):
            what = f"{name}: {ours.split()[1]} to the perplexity {target:.0f}, K = {K}"
            seconds = first(paths[ours], target)
            if np.isfinite(seconds):
                report_ratio(what, peer, seconds, first(paths[peer], target))
            else:
                report_figure(f"{what}, beside {peer}", f"not reached: {min(value for _, value in paths[ours]):.0f}")


def first(path: list[tuple[float, float]], target: float) -> float:
    """Return the seconds of the first point with at most this perplexity."""
    return next((seconds for seconds, value in path if value <= target), np.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(CORPORA), default=list(CORPORA))
    parser.add_argument("--documents", type=int, help="use this many documents only")
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each peer")
    parser.add_argument("--peers", nargs="*", choices=PACKAGES, default=list(PACKAGES))
    options = parser.parse_args()
    describe_machine(*PACKAGES)
    packages = [name for name in options.peers if can_import(name)]
    for name in options.data:
        X = load_counts(CORPORA[name])
        X = X[np.flatnonzero(np.asarray(X.sum(axis=1)).ravel())[: options.documents]]
        compare(name, X, options.k, options.limit, packages)


if __name__ == "__main__":
    main()
