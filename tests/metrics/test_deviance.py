"""Deviance that topics explain, against dense arrays."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import xlogy

from polyseme import LDA, PLSA
from polyseme.core.shard import sparse_counts
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import evaluate
from polyseme.metrics.deviance import residual_covariance

CORPUS = synthetic_corpus(200, n_topics=4, n_words=60, length=50, random_state=3)


@pytest.mark.parametrize("model", [PLSA(4), PLSA(3, background=0.3), LDA(4)])
def test_parts_are_those_of_dense_arrays(model):
    X = sp.vstack([CORPUS.counts(), sp.csr_array((1, 60))], format="csr")
    model.set_params(random_state=0, n_jobs=1).fit(X)
    explained = evaluate(model, X).explained
    x, folded = X.toarray().astype(float), model.fold_in(X)
    every = sparse_counts(sp.csr_array(np.ones(x.shape)), np.dtype(np.float64))
    probabilities = model._fitted.token_probabilities(folded, every).reshape(x.shape)
    totals = x.sum(axis=1, keepdims=True)
    mu, base = totals * probabilities, totals * x.sum(axis=0) / x.sum()
    parts = [2 * (xlogy(x, np.where(x > 0, x / np.maximum(m, 1e-300), 1)) - x + m) for m in (mu, base)]
    tolerance = {"rtol": 1e-4, "atol": 1e-4}
    assert explained.total == pytest.approx(1 - parts[0].sum() / parts[1].sum(), rel=1e-4)
    np.testing.assert_allclose(
        explained.documents[:-1], 1 - parts[0].sum(axis=1)[:-1] / parts[1].sum(axis=1)[:-1], **tolerance
    )
    assert np.isnan(explained.documents[-1])
    np.testing.assert_allclose(explained.words, 1 - parts[0].sum(axis=0) / parts[1].sum(axis=0), **tolerance)
    np.testing.assert_allclose(explained.dispersion, ((x - mu) ** 2).sum(axis=0) / mu.sum(axis=0), **tolerance)
    np.testing.assert_array_equal(explained.worst_documents(7), np.argsort(explained.documents)[:7])
    frequent = np.flatnonzero(x.sum(axis=0) >= explained.least_tokens)
    np.testing.assert_array_equal(
        explained.worst_words(), frequent[np.argsort(explained.words[frequent], kind="stable")[:10]]
    )


def test_one_topic_explains_nothing_and_more_topics_explain_more():
    X = CORPUS.counts()
    found = [evaluate(PLSA(k, random_state=0, n_jobs=1).fit(X), X).explained.total for k in (1, 2, 4)]
    assert abs(found[0]) < 1e-6
    assert found[0] < found[1] < found[2] < 1


def test_words_that_come_in_bursts_are_overdispersed():
    rng = np.random.default_rng(0)
    plain = rng.multinomial(100, np.full(20, 0.05), 300)
    bursts = plain.copy()
    bursts[:, 0] = np.where(rng.random(300) < 0.1, 50, 0)
    for X, low, high in ((plain, 0.8, 1.2), (bursts, 20, 60)):
        explained = evaluate(PLSA(1, n_jobs=1).fit(X), X).explained
        assert low < explained.dispersion[0] < high
    assert 0.8 < explained.median_dispersion < 1.5


def test_the_covariance_of_residuals_is_that_of_dense_arrays():
    rng = np.random.default_rng(1)
    x, theta, topics = (
        rng.poisson(2.0, (30, 8)).astype(float),
        rng.dirichlet(np.ones(3), 30),
        rng.dirichlet(np.ones(8), 3),
    )
    totals, columns = x.sum(axis=1, keepdims=True), np.array([0, 2, 3, 7])
    residuals = (x - totals * (theta @ topics))[:, columns]
    expected = residuals.T @ (residuals / totals)
    root = np.sqrt((theta @ topics).sum(axis=0)[columns])
    expected /= np.outer(root, root)
    np.fill_diagonal(expected, 0)
    counts = sparse_counts(sp.csr_array(x), np.dtype(np.float64))
    np.testing.assert_allclose(residual_covariance(counts, theta, topics.T, columns), expected, atol=1e-10)
