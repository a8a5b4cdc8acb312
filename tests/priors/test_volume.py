"""The prior of topics of small volume: it finds the corners where maximum likelihood has a ridge."""

import numpy as np
import pytest

import oracles
from polyseme import NMF, PLSA, InputError, UnsupportedError
from polyseme.metrics import align
from polyseme.priors import Dirichlet, MinimumVolume
from prior_cases import counts, factor


def ridge(seed, n_docs=200, n_words=40, n_topics=4, tokens=2000, purest=0.8):
    """Return counts of documents without pure ones, of topics that share all words."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 2.0), n_topics)
    weights = rng.dirichlet(np.full(n_topics, 0.5), 20 * n_docs)
    weights = weights[weights.max(axis=1) <= purest][:n_docs]
    return rng.poisson(tokens * weights @ topics).astype(float), topics


@pytest.mark.parametrize("seed", range(3))
def test_it_recovers_topics_better_than_maximum_likelihood(seed):
    X, topics = ridge(seed)
    settings = {"random_state": seed, "tol": 1e-7, "max_iter": 3000, "n_jobs": 1}
    plain = PLSA(4, **settings).fit(X)
    small = PLSA(4, topic_word_prior=MinimumVolume(), **settings).fit(X)
    assert align(topics, small.components_)[1].mean() < 0.75 * align(topics, plain.components_)[1].mean()
    assert (np.diff(small.history_["objective"]) > -1e-12).all()
    assert small.log_likelihood_ > plain.log_likelihood_ - 1e-3


def test_the_log_density_is_that_of_the_volume():
    f, prior = factor(), MinimumVolume(0.7, 0.2).with_documents(30)
    K, W = f.shape
    gram = np.array([[W * sum(f[i] * f[j]) + 0.2 * (i == j) for j in range(K)] for i in range(K)])
    assert prior.log_density(f) == pytest.approx(-0.7 * 30 / 2 * np.log(np.linalg.det(gram)), rel=1e-12)
    assert prior.row_log_density(f).shape == (K,)


def test_more_documents_are_a_stronger_prior():
    once = MinimumVolume(0.5).with_documents(20).maximize(counts(), factor())
    np.testing.assert_array_equal(once, MinimumVolume(0.25).with_documents(40).maximize(counts(), factor()))


def test_the_fit_says_how_many_documents_there_are():
    X, _ = ridge(0, n_docs=60)
    weights = np.random.default_rng(1).integers(0, 3, 60).astype(float)
    model = PLSA(3, topic_word_prior=MinimumVolume(), random_state=0, tol=1e-5, dtype="float64")
    model.fit(X, sample_weight=weights)
    prior = MinimumVolume().with_documents(weights.sum())
    likelihood = (weights[:, np.newaxis] * X * np.log(model.doc_topic_ @ model.components_)).sum()
    tokens = weights @ X.sum(axis=1)
    objective = (likelihood + prior.log_density(model.components_)) / tokens
    assert model.history_["objective"][-1] == pytest.approx(objective, abs=1e-5)


def test_words_without_counts_in_a_topic_stay_out_of_it():
    n, f = counts(), factor()
    n[0, 2] = f[0, 2] = 0
    after = MinimumVolume(50).maximize(n, oracles.normalized(f))
    assert after[0, 2] == 0
    assert np.count_nonzero(after) == after.size - 1


@pytest.mark.parametrize("solver", ["scd", "nmf", "plsi"])
def test_solvers_without_priors_refuse_it(solver):
    X, _ = ridge(0, n_docs=30)
    with pytest.raises(UnsupportedError, match=r"Solvers that fit this model: .*em"):
        PLSA(2, solver=solver, topic_word_prior=MinimumVolume()).fit(X)


def test_it_becomes_an_nmf():
    X, _ = ridge(0, n_docs=40)
    model = PLSA(3, topic_word_prior=MinimumVolume(), random_state=0, tol=1e-4).fit(X)
    nmf = model.to_nmf()
    assert isinstance(nmf, NMF)
    expected = X.sum(axis=1, keepdims=True) * model.doc_topic_ @ model.components_
    np.testing.assert_allclose(nmf.doc_factor_ @ nmf.components_, expected, rtol=1e-4)


def test_wrong_settings():
    with pytest.raises(InputError, match="MinimumVolume: delta must be greater than zero"):
        MinimumVolume(delta=0)
    with pytest.raises(InputError, match="MinimumVolume: strength must not be negative"):
        MinimumVolume(-1)
    with pytest.raises(InputError, match="MinimumVolume has its own M-step"):
        PLSA(2, topic_word_prior=[MinimumVolume(), Dirichlet(2)]).fit(ridge(0, n_docs=30)[0])
    with pytest.raises(InputError, match=r"acts on P\(w\|z\)|P\(w\|z\)"):
        PLSA(2, doc_topic_prior=MinimumVolume()).fit(ridge(0, n_docs=30)[0])
