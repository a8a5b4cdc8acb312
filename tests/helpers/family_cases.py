"""Priors and backgrounds for the tests of the model, with independent dense formulas.

X is documents x words, theta documents x K, phi K x words. A background is a pair (lambda, P(w|B)).
"""

from typing import NamedTuple

import numpy as np
import pytest

import oracles
from polyseme import PLSA
from polyseme.core.model import Background, JointBackground, Model
from polyseme.kernels import padded
from polyseme.priors import Decorrelation, Dirichlet, Entropic, SeedWords, Smoothing, Sparsing, TopicSelection
from polyseme.priors.members import as_prior
from polyseme.solvers.base import FitProblem
from solver_problems import begin_problem, make_corpus


class Case(NamedTuple):
    prior: object
    """The prior as a user passes it."""
    log_density: object
    """Log density as a function of the factor and, for documents, of their lengths and weights."""
    pseudo_counts: object = None
    """Pseudo-counts of the M-step; None if the M-step has another form."""


def _logs(weights):
    """Return a function for sum weights log f of each row; zeros whose weight is not positive are left out."""

    def density(f, *_):
        seen = (f > 0) | (weights > 0)
        with np.errstate(divide="ignore"):
            return (weights * np.log(f, out=np.zeros_like(f), where=seen)).sum(axis=1)

    return density


def _entropies(f):
    return -(f * np.log(f, out=np.zeros_like(f), where=f > 0)).sum(axis=1)


def _selection(f, lengths, weights):
    tokens = lengths * weights
    shares = tokens @ f / tokens.sum()
    return -0.1 * lengths / f.shape[1] * np.log(shares[shares > 0]).sum()


def _selected(f, lengths, weights):
    tokens = lengths * weights
    return -0.1 * lengths[:, np.newaxis] * f / (f.shape[1] * (tokens @ f / tokens.sum()))


def doc_cases(K):
    """Return every prior on P(z|d), for K topics."""
    ramp = np.linspace(1, 2, K)
    target = np.arange(1, K + 1) / np.arange(1, K + 1).sum()
    return {
        "number": Case(1.2, _logs(np.full(K, 0.2)), lambda f, *_: 0.2),
        "dirichlet-vector": Case(Dirichlet(ramp), _logs(ramp - 1), lambda f, *_: ramp - 1),
        "dirichlet-sparse": Case(Dirichlet(0.8), _logs(np.full(K, -0.2)), lambda f, *_: -0.2),
        "smoothing": Case(Smoothing(3, target), _logs(3 * target), lambda f, *_: 3 * target),
        "sparsing": Case(Sparsing(0.5), _logs(np.full(K, -0.5 / K)), lambda f, *_: -0.5 / K),
        "entropic": Case(Entropic(2), lambda f, *_: -2 * _entropies(f)),
        "flat-entropic": Case(Entropic(-2), lambda f, *_: 2 * _entropies(f)),
        "selection": Case(TopicSelection(0.1), _selection, _selected),
        "list": Case(
            [Dirichlet(1.2), Smoothing(3, target), TopicSelection(0.1)],
            lambda f, *totals: (
                _logs(np.full(f.shape[1], 0.2))(f) + _logs(3 * target)(f) + _selection(f, *totals)
            ),
            lambda f, *totals: 0.2 + 3 * target + _selected(f, *totals),
        ),
    }  # fmt: skip


def word_cases(K, n_words):
    """Return every prior on P(w|z), for K topics and a number of words."""
    target = np.arange(1, n_words + 1) / np.arange(1, n_words + 1).sum()
    seeds = np.zeros((K, n_words))
    seeds[0, [0, 2]] = 5
    seeds[K - 1, n_words - 1] = 5
    named = {0: [0, 2], K - 1: [n_words - 1]} if K > 1 else {0: [0, 2, n_words - 1]}

    def others(f):
        return f.sum(axis=0) - f

    return {
        "number": Case(1.1, _logs(np.full(n_words, 0.1)), lambda f: 0.1),
        "dirichlet-vector": Case(Dirichlet(1 + target), _logs(target), lambda f: target),
        "smoothing": Case(Smoothing(20, target), _logs(20 * target), lambda f: 20 * target),
        "sparsing": Case(Sparsing(1), _logs(np.full(n_words, -1 / n_words)), lambda f: -1 / n_words),
        "entropic": Case(Entropic(5), lambda f: -5 * _entropies(f)),
        "flat-entropic": Case(Entropic(-5), lambda f: 5 * _entropies(f)),
        "decorrelation": Case(
            Decorrelation(3), lambda f: -1.5 * (f * others(f)).sum(axis=1), lambda f: -3 * f * others(f)
        ),
        "seed-words": Case(SeedWords(named, strength=5), _logs(seeds), lambda f: seeds),
        "list": Case(
            [Dirichlet(1.1), Decorrelation(3)],
            lambda f: _logs(np.full(n_words, 0.1))(f) - 1.5 * (f * others(f)).sum(axis=1),
            lambda f: 0.1 - 3 * f * others(f),
        ),
    }


def log_likelihood(X, theta, phi, share=0.0, background=0.0, weights=None):
    """Return sum x log P(w|d), P(w|d) = share background + (1 - share) theta phi."""
    p = share * background + (1 - share) * theta @ phi
    seen = X > 0
    terms = np.zeros(X.shape)
    terms[seen] = X[seen] * np.log(p[seen])
    return float(terms.sum() if weights is None else weights @ terms.sum(axis=1))


def expected_counts(X, theta, phi, share=0.0, background=0.0, beta=1.0, weights=None):
    """Return counts by topic of documents and of words, by P(z|d,w) with the background as one more value of z."""
    A = np.hstack([(1 - share) * theta, np.full((len(X), 1), share)])
    B = np.vstack([phi, np.broadcast_to(background, X.shape[1])])
    counted = X[:, :, np.newaxis] * oracles.posterior(A**beta, B**beta)
    weights = np.ones(len(X)) if weights is None else weights
    by_word = np.einsum("d,dwk->kw", weights, counted)
    return counted.sum(axis=1)[:, :-1], by_word[:-1], by_word[-1]


# one small problem, and every prior for it

K, N_WORDS = 3, 14
X = oracles.mixed_counts(1, 20, N_WORDS, K, tokens=50)
DOC_CASES, WORD_CASES = doc_cases(K), word_cases(K, N_WORDS)
THETA, PHI = oracles.random_factors(2, 20, N_WORDS, K)
WEIGHTS = np.random.default_rng(3).exponential(size=20)
BACKGROUND = np.random.default_rng(4).dirichlet(np.ones(N_WORDS))


def over(name, cases):
    return pytest.mark.parametrize(name, cases.values(), ids=cases.keys())


def model_of(doc_prior=None, word_prior=None, *, share=0.0, background=BACKGROUND, n_topics=K, joint=False):
    fixed = (JointBackground if joint else Background)(share, background) if share else None
    return Model(n_topics, 1.0, fixed, as_prior(doc_prior), as_prior(word_prior))


def begin(solver, model, data=X, start=(THETA, PHI), **source):
    """Return the run of a solver at the start, padded for the model."""
    dtype = source.get("dtype", np.float64)
    theta, phi = (padded(factor, dtype, model.n_columns) for factor in (start[0], start[1].T))
    return begin_problem(solver, FitProblem(model, make_corpus(data, **source)), theta, phi)


def fitted(data=X, /, n_components=K, *, sample_weight=None, **parameters):
    return PLSA(n_components, **{"random_state": 0, "max_iter": 30, **parameters}).fit(
        data, sample_weight=sample_weight
    )


def same_fit(one, other, tolerance=0.0):
    for name in ("components_", "doc_topic_", "word_background_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=tolerance)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=tolerance, abs=0)
