"""Check statements of Saastamoinen (2016) about LSA, overfitting, sample size and annealing (chapters 3, 4 and 6).

Run: .venv/bin/python reproductions/saastamoinen_claims.py [--quick]
Planted corpora are drawn from LDA. Real data are the Associated Press corpus and 20 Newsgroups in POLYSEME_DATA; their
parts are skipped without them and with --quick. Held-out tokens are scored with (1 - 0.01) P(w|d) + 0.01 P(w). The
script draws no plot.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import newsgroups
from formulas import Array
from polyseme import PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import align
from polyseme.metrics.topics import fit_report
from polyseme.solvers import Annealed
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import Solver
from saastamoinen_words import news_words, planted_words, polysemy, synonyms
from support import (
    Finding,
    ap_subset,
    arguments,
    as_corpus,
    begin,
    conclude,
    planted_corpus,
    point,
    random_start,
    show,
    verdict,
)

UNIGRAM_SHARE = 0.01


@dataclass(frozen=True)
class Size:
    """Sizes of the experiments."""

    word_documents: int = 800
    news_documents: int = 2000
    words: int = 100
    pairs: int = 25
    seeds: int = 2
    documents: tuple[int, ...] = (100, 200, 400, 800, 1600)
    starts: int = 5
    iterations: int = 200


QUICK = Size(word_documents=400, words=30, pairs=10, seeds=1, documents=(50, 400), starts=3)


class Parts(NamedTuple):
    """Tokens of the same documents: those of the fit, and held-out ones."""

    fit: sp.csr_array
    held_out: sp.csr_array

    @property
    def unigram(self) -> Array:
        totals = self.fit.sum(axis=0)
        return np.asarray(totals / totals.sum())


def hold_out(X: Any, share: float, seed: int) -> Parts:
    """Draw a share of all tokens."""
    X = sp.csr_array(X).astype(np.float64)
    drawn = X.copy()
    drawn.data = np.random.default_rng(seed).binomial(X.data.astype(int), share).astype(np.float64)
    rest = sp.csr_array(X - drawn)
    drawn.eliminate_zeros()
    rest.eliminate_zeros()
    return Parts(rest, drawn)


def mean_log(X: sp.csr_array, theta: Array, phi: Array, unigram: Array) -> float:
    """Return the mean log-probability of a token with theta (documents x K) and phi (words x K)."""
    cells = sp.coo_array(X)
    p = np.einsum("ik,ik->i", theta[cells.row], phi[cells.col])
    p = (1 - UNIGRAM_SHARE) * p + UNIGRAM_SHARE * unigram[cells.col]
    seen = unigram[cells.col] > 0
    return float(cells.data[seen] @ np.log(p[seen]) / cells.data[seen].sum())


# Sample size: overfitting (section 4.1), and a better fit of a larger sample (chapter 6)


class Sample(NamedTuple):
    """Documents, from which samples are drawn, new documents, and the true topics if they are known."""

    name: str
    X: sp.csr_array
    new: sp.csr_array
    K: int
    topics: Array | None = None


class Fitted(NamedTuple):
    """Results for one size of the sample."""

    documents: int
    K: int
    parameters: float
    """parameters per token"""
    overfit: float
    """log-probability of a token of the fit minus that of a held-out token of the same documents, in nats"""
    new: float
    """completion perplexity of new documents"""
    fitting: float
    """share of fitting topics, as in chapter 6"""
    distance: float
    """mean total variation from the true topics; NaN if unknown"""


def planted_sample(n_docs: int) -> Sample:
    corpus = synthetic_corpus(n_docs + 200, n_words=300, n_topics=10, length=80, topic_word_prior=0.05, random_state=1)
    counts = sp.csr_array(corpus.counts()).astype(np.float64)
    return Sample("planted topics", counts[:n_docs], counts[n_docs:], 10, corpus.topic_word)


def ap_sample(smallest: int) -> Sample | None:
    """Return AP in random order, with the words of at least three of the documents of the smallest sample."""
    X = ap_subset(2246, 1)
    if X is None:
        return None
    X = sp.csr_array(X[np.random.default_rng(0).permutation(X.shape[0])])
    words = np.flatnonzero((X[:smallest] > 0).sum(axis=0) >= 3)
    X = sp.csr_array(X[:, words])
    return Sample("AP", X[:-300], X[-300:], 20)


def fit_sample(sample: Sample, n_docs: int, K: int, seed: int) -> Fitted:
    """Fit PLSA to four fifths of the tokens of the first documents."""
    parts = hold_out(sample.X[:n_docs], 0.2, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PLSA(K, random_state=seed, max_iter=500).fit(parts.fit)
    of_fit, held_out = (mean_log(X, model.doc_topic_, model.components_.T, parts.unigram) for X in parts)
    known = sample.topics is not None and len(sample.topics) == K
    return Fitted(
        n_docs,
        K,
        float((n_docs * (K - 1) + K * (sample.X.shape[1] - 1)) / parts.fit.sum()),
        of_fit - held_out,
        float(model.completion_perplexity(sample.new, inference="model")),
        fit_report(model.doc_topic_, model.doc_weights_).n_fitting / K,
        float(align(sample.topics, model.components_)[1].mean()) if known else np.nan,
    )


def mean_fit(sample: Sample, n_docs: int, K: int, seeds: int) -> Fitted:
    return Fitted(*np.mean([fit_sample(sample, n_docs, K, seed) for seed in range(seeds)], axis=0).tolist())


def sample_sizes(samples: Sequence[Sample], size: Size) -> list[Finding]:
    """Judge both statements on samples of growing size at a fixed K, and at a K that has grown as the sample has."""
    rows, overfits, fits, less, more, better, closer = [], [], [], [], [], [], []
    smallest, largest = size.documents[0], size.documents[-1]
    for sample in samples:
        fixed = [mean_fit(sample, n, sample.K, size.seeds) for n in size.documents]
        first, last = fixed[0], fixed[-1]
        many = mean_fit(sample, largest, sample.K * largest // smallest, size.seeds)
        rows += [
            (sample.name, f"{one.documents:.0f}", f"{one.K:.0f}", f"{one.parameters:.2f}", f"{one.overfit:.3f}",
             f"{one.new:.0f}", f"{one.fitting:.0%}", "" if np.isnan(one.distance) else f"{one.distance:.2f}")
            for one in [*fixed, many]
        ]  # fmt: skip
        less.append(all(b.overfit < a.overfit for a, b in pairwise(fixed)))
        more.append(many.overfit > 2 * last.overfit)
        better.append(last.new < 0.95 * first.new)
        closer.append(not last.distance > 0.8 * first.distance)
        overfits.append(
            f"{sample.name}, {smallest} and {largest} documents, K = {sample.K}: {first.parameters:.2f} and "
            f"{last.parameters:.2f} parameters per token, {first.overfit:.2f} and {last.overfit:.2f} nats; "
            f"{largest} documents and K = {many.K:.0f}: {many.parameters:.2f} and {many.overfit:.2f}"
        )
        known = f", topics {first.distance:.2f} and {last.distance:.2f} from the true ones (total variation)"
        fits.append(
            f"{sample.name}: perplexity of new documents {first.new:.0f} and {last.new:.0f}"
            f"{known if sample.topics is not None else ''}, fitting topics {first.fitting:.0%} and {last.fitting:.0%}"
        )
    show(f"PLSA of samples of growing size, {size.seeds} seeds",
         ("corpus", "documents", "K", "parameters per token", "overfit (nats)", "perplexity of new documents",
          "fitting topics", "distance from true topics"), rows)  # fmt: skip
    return [
        Finding(
            "Overfitting grows with the corpus (sect. 4.1)",
            "the number of parameters is linear in the size of the corpus, so overfitting is inevitable when it grows",
            "log-probability of a token of the fit minus that of a held-out token of the same documents; "
            + "; ".join(overfits),
            verdict("false at a fixed K: it falls, and grows with K", *less, *more),
        ),
        Finding(
            "A larger sample fits better (ch. 6)",
            "with many topics for the size of the data the model does not fit well; the remedy is a larger sample",
            f"{smallest} and {largest} documents; {'; '.join(fits)}",
            verdict("true for new documents and for the true topics", *better, *closer),
        ),
    ]  # fmt: skip


# Inverse annealing (chapter 4)

SCHEDULES: dict[str, Solver] = {
    "EM": EM(),
    "annealing": Annealed(start=0.6, stop=1.0, stages=9, steps=10),
    "inverse annealing": Annealed(start=1.0, stop=0.6, stages=9, steps=10, noise=0.0),
    "from 1.2 to 1": Annealed(start=1.2, stop=1.0, stages=5, steps=10, noise=0.0),
}
"""Annealing and inverse annealing have the same betas in opposite order; the last one decreases to plain EM."""


class Curve(NamedTuple):
    """Log-likelihood and mean log-probability of held-out tokens after each iteration."""

    likelihood: Array
    held_out: Array


def curve(solver: Solver, parts: Parts, K: int, seed: int, iterations: int) -> Curve:
    corpus = as_corpus(parts.fit)
    run = begin(solver, corpus, random_start(corpus, K, seed))
    values = []
    for _ in range(iterations):
        run.advance()
        theta, phi = point(run)
        values.append((run.report.log_likelihood, mean_log(parts.held_out, theta, phi, parts.unigram)))
    return Curve(*np.array(values).T)


def first_reach(values: Array, level: float) -> float:
    """Return the number of iterations to a level; infinity if it is not reached."""
    reached = np.flatnonzero(values >= level)
    return float(reached[0] + 1) if len(reached) else np.inf


def times(value: float) -> str:
    return "never" if np.isinf(value) else f"{value:.0f}"


def inverse_annealing(corpora: dict[str, tuple[Any, int]], size: Size) -> Finding:
    """Judge the number of iterations to a likelihood and to a held-out probability, medians over starts."""
    rows, texts, checks = [], [], []
    for name, (X, K) in corpora.items():
        parts = hold_out(X, 0.1, seed=0)
        curves = {schedule: [curve(solver, parts, K, seed, size.iterations) for seed in range(size.starts)]
                  for schedule, solver in SCHEDULES.items()}  # fmt: skip
        levels = [  # of every start
            [em.likelihood[size.iterations // 2 - 1] for em in curves["EM"]],
            [em.held_out.max() for em in curves["EM"]],
        ]
        reach: dict[str, list[float]] = {}
        best: dict[str, float] = {}
        for schedule, some in curves.items():
            reach[schedule] = [
                float(np.median([first_reach(one[field], level) for one, level in zip(some, goal, strict=True)]))
                for field, goal in enumerate(levels)
            ]
            best[schedule], end = (
                float(np.exp(-np.median(values)))
                for values in ([one.held_out.max() for one in some], [one.held_out[-1] for one in some])
            )
            at = float(np.median([one.held_out.argmax() + 1 for one in some]))
            rows.append(
                (name, schedule, *map(times, reach[schedule]), f"{best[schedule]:.0f}", times(at), f"{end:.0f}")
            )
        texts.append(f"{name}: " + ", ".join(
            f"{schedule} {times(to_likelihood)} and {times(to_held_out)} (lowest perplexity {best[schedule]:.0f})"
            for schedule, (to_likelihood, to_held_out) in reach.items()
        ))  # fmt: skip
        checks += [
            min(reach["inverse annealing"][0], reach["from 1.2 to 1"][0]) > reach["EM"][0],
            reach["inverse annealing"][1] <= min(reach["EM"][1], reach["annealing"][1]),
        ]
    show(f"Annealing and inverse annealing (beta 0.6 to 1, 1 to 0.6): median iterations over {size.starts} starts",
         ("corpus", "schedule", f"to the likelihood of EM after {size.iterations // 2}", "to the best held-out of EM",
          "lowest held-out perplexity", "at iteration", f"after {size.iterations}"), rows)  # fmt: skip
    return Finding(
        "Inverse annealing (ch. 4)",
        "Hofmann used inverse annealing to improve the rate of convergence of EM",
        f"median iterations to the likelihood of EM after {size.iterations // 2} iterations, and to the best held-out "
        f"probability of EM; {'; '.join(texts)}",
        verdict(
            "false for the likelihood; to EM's best held-out probability as fast as EM and faster than annealing",
            *checks,
        ),
    )


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments(__doc__ or "", argv)
    size = QUICK if options.quick else Size()
    words, news = [planted_words(size.word_documents)], None
    samples, annealed = (
        [planted_sample(size.documents[-1])],
        {"planted topics": (planted_corpus(200, 200, 8, 80, 0), 8)},
    )
    if not options.quick:
        if newsgroups.TEXTS.is_file():
            news = newsgroups.load_news(size.news_documents)
            words.append(news_words(news.X, news.y))
        else:
            print(f"\nskipped: 20 Newsgroups, there is no {newsgroups.TEXTS} (set POLYSEME_DATA to the data folder)")
        ap, few = ap_sample(size.documents[0]), ap_subset(200, 3)
        if ap is not None and few is not None:
            samples.append(ap)
            annealed["AP"] = (few, 20)
    findings = [
        synonyms(words, size.words, size.seeds),
        polysemy(words, size.pairs, size.seeds, news),
        *sample_sizes(samples, size),
        inverse_annealing(annealed, size),
    ]
    conclude("saastamoinen_claims", findings, options)


if __name__ == "__main__":
    main()
