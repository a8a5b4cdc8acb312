"""Folding in: each document reaches its optimum, independent of the other documents of its batch."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme.core.fold_in import fold_in
from polyseme.core.model import Model
from polyseme.core.shard import sparse_counts
from polyseme.kernels import padded


def as_counts(X, dtype=np.float64):
    return sparse_counts(sp.csr_array(X), np.dtype(dtype))


def folded(X, phi, *, dtype=np.float64, topic_weights=None, n_threads=1, **options):
    return fold_in(
        Model(len(phi)), as_counts(X, dtype), phi.astype(dtype), topic_weights, n_threads=n_threads, **options
    )


def log_rows(X, theta, phi):
    return np.array([oracles.log_likelihood(X[d : d + 1], theta[d : d + 1], phi) for d in range(len(X))])


@pytest.fixture(scope="module")
def problem():
    X = oracles.mixed_counts(0, 40, 50, 5)
    _, phi = oracles.random_factors(1, 40, 50, 6)
    return X, phi


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_each_document_is_within_the_tolerance_of_its_optimum(problem, dtype, tol):
    X, phi = problem
    theta = folded(X, phi, dtype=dtype, tol=tol).doc_topic
    assert theta.dtype == dtype
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-6)
    assert (theta >= 0).all()
    gap = log_rows(X, oracles.fold_in(X, phi, steps=5000), phi) - log_rows(X, theta.astype(np.float64), phi)
    assert (gap <= tol * X.sum(axis=1)).all()


def test_many_sparse_topics():
    """Most topics lack most words, and K is larger than the widths with compiled specializations."""
    rng = np.random.default_rng(2)
    X = oracles.mixed_counts(3, 20, 40, 5)
    phi = oracles.normalized(rng.exponential(size=(150, 40)) * (rng.random((150, 40)) < 0.2) + 1e-9)
    theta = folded(X, phi, tol=1e-6).doc_topic
    gap = log_rows(X, oracles.fold_in(X, phi, steps=5000), phi) - log_rows(X, theta, phi)
    assert (gap <= 1e-6 * X.sum(axis=1)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_do_not_depend_on_the_batch_or_the_threads(problem, dtype):
    X, phi = problem
    X = X.repeat(5, axis=0)
    whole = folded(X, phi, dtype=dtype).doc_topic
    for n_threads in (2, 3, 8):
        assert np.array_equal(folded(X, phi, dtype=dtype, n_threads=n_threads).doc_topic, whole)
    for d in range(0, len(X), 7):
        assert np.array_equal(folded(X[d : d + 1], phi, dtype=dtype).doc_topic[0], whole[d])
    order = np.random.default_rng(4).permutation(len(X))
    assert np.array_equal(folded(X[order], phi, dtype=dtype).doc_topic, whole[order])


def test_unknown_words_are_ignored_and_counted(problem):
    X, phi = problem
    known = phi.copy()
    known[:, 10:20] = 0
    known = oracles.normalized(known)
    without = X.copy()
    without[:, 10:20] = 0
    result = folded(X, known)
    assert result.unseen_tokens == X[:, 10:20].sum()
    assert np.array_equal(result.doc_topic, folded(without, known).doc_topic)
    assert folded(without, known).unseen_tokens == 0


def test_a_document_without_known_words_gets_the_topic_weights(problem):
    X, phi = problem
    X = X.copy()
    phi = phi.copy()
    phi[:, 0] = 0
    X[3] = 0
    X[5] = 0
    X[5, 0] = 4
    weights = np.random.default_rng(5).dirichlet(np.ones(6))
    theta = folded(X, phi, topic_weights=weights).doc_topic
    assert np.array_equal(theta[3], weights)
    assert np.array_equal(theta[5], weights)
    by_length = folded(X, phi).doc_topic
    tokens = X[:, 1:].sum(axis=1)
    np.testing.assert_allclose(by_length[3], tokens @ by_length / tokens.sum(), rtol=1e-12)


def test_empty_documents_get_uniform_weights_if_all_are_empty():
    theta = folded(np.zeros((3, 4)), np.full((2, 4), 0.25)).doc_topic
    assert np.array_equal(theta, np.full((3, 2), 0.5))


def test_a_single_topic_has_weight_one(problem):
    X, phi = problem
    assert np.array_equal(folded(X, phi[:1]).doc_topic, np.ones((40, 1)))


def test_the_scale_of_the_counts_does_not_change_the_weights(problem):
    X, phi = problem
    for factor in (1e-6, 0.5, 1e9):
        theta = folded(X * factor, phi, tol=1e-10).doc_topic
        np.testing.assert_allclose(theta @ phi, folded(X, phi, tol=1e-10).doc_topic @ phi, atol=1e-5)


def test_tempered_folding_in_reaches_the_tempered_fixed_point(problem):
    X, phi = problem
    beta = 0.7
    model = Model(6, temperature=beta)
    theta = fold_in(model, as_counts(X), phi, None, n_threads=1, tol=1e-10).doc_topic
    np.testing.assert_allclose(oracles.tempered_step(X, theta, phi, beta)[0], theta, atol=1e-8)


def test_folding_in_with_a_background_matches_naive_em(problem):
    """The background is one more topic of fixed weight lambda. EM updates the other weights."""
    X, phi = problem
    share, background = 0.3, X.sum(axis=0) / X.sum()
    B = padded(np.vstack([phi, background]).T, np.float64)
    theta, steps = as_counts(X).fold_in(
        B, 6, empty=np.full(6, 1 / 6), tol=1e-10, max_iter=20000, n_threads=2, background=share
    )
    assert (steps > 0).all()
    expected = np.full((40, 6), 1 / 6)
    whole = np.vstack([phi, background])
    for _ in range(3000):
        mixed = np.hstack([(1 - share) * expected, np.full((40, 1), share)])
        counted = np.einsum("dw,dwk->dk", X, oracles.posterior(mixed, whole))
        expected = oracles.normalized(counted[:, :6])
    ours = (1 - share) * theta @ phi + share * background
    theirs = (1 - share) * expected @ phi + share * background
    gap = np.where(X > 0, X * np.log(theirs / ours), 0).sum(axis=1)
    assert (gap <= 1e-8 * X.sum(axis=1)).all()


def test_the_number_of_steps_is_negative_if_the_limit_is_reached(problem):
    X, phi = problem
    B = padded(phi.T, np.float64)
    _, steps = as_counts(X).fold_in(B, 6, empty=np.full(6, 1 / 6), tol=0.0, max_iter=1, n_threads=1)
    assert (steps == -1).all()
