"""Sums of every loss against naive loops, for sparse and dense counts, with weights and any number of threads."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme.core.shard import as_counts
from polyseme.kernels import padded
from polyseme.losses import LOSSES, Beta
from polyseme.losses.absolute import Absolute
from polyseme.losses.updates import LossSums

MEMBERS = {**LOSSES, **{f"beta {beta}": Beta(beta) for beta in (-1, 0.5, 1.5, 3)}}
EVERY = pytest.mark.parametrize("loss", MEMBERS.values(), ids=MEMBERS.keys())
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
K = 3


def naive_value(loss, x, q):
    """Return the loss of two numbers by its formula."""
    if isinstance(loss, Absolute):
        return abs(x - q)
    if loss.name == "chi-square":
        return (x - q) ** 2 / q
    beta = loss.beta
    if beta == 2:
        return (x - q) ** 2 / 2
    if beta == 1:
        return (x * math.log(x / q) if x > 0 else 0) - x + q
    if beta == 0:
        return x / q - math.log(x / q) - 1
    return (x**beta + (beta - 1) * q**beta - beta * x * q ** (beta - 1)) / (beta * (beta - 1))


def naive_ratios(loss, x, q):
    if isinstance(loss, Absolute):
        error = max(abs(x - q), loss.smoothing * x)
        return x / error, q / error
    if loss.name == "chi-square":
        return (x / q) ** 2, 1.0
    return x * q ** (loss.beta - 2), q ** (loss.beta - 1)


def problem(loss, seed, shape=(23, 17)):
    """Return counts, with an empty row and column if the loss allows zeros, and positive factors."""
    rng = np.random.default_rng(seed)
    X = oracles.random_counts(seed, *shape, 0.4).astype(float)
    X[2], X[:, 5] = 0, 0
    if loss.needs_positive:
        X += rng.uniform(0.1, 0.5, shape)
    return X, rng.gamma(1.0, 1.0, (shape[0], K)), rng.gamma(1.0, 1.0, (K, shape[1])), rng.uniform(0, 3, shape[0])


def sums_of(loss, X, layout=np.asarray, **options):
    return LossSums(loss, as_counts(layout(X), np.dtype(np.float64)), K, **{"n_threads": 1, **options})


@EVERY
@LAYOUTS
@pytest.mark.parametrize("seed", range(3))
def test_the_value_is_that_of_a_loop(loss, layout, seed):
    X, W, H, _ = problem(loss, seed)
    Q = W @ H
    naive = [math.fsum(naive_value(loss, x, q) for x, q in zip(*rows, strict=True)) for rows in zip(X, Q, strict=True)]
    sums, factors = sums_of(loss, X, layout), (padded(W, float), padded(H.T, float))
    for found in (sums.values(*factors), sums.docs(*factors)[0]):
        np.testing.assert_allclose(found, naive, rtol=1e-12, atol=1e-12 * np.square(X).sum())
        assert found.sum() == pytest.approx(math.fsum(naive), rel=1e-12)


@EVERY
@LAYOUTS
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_the_terms_are_those_of_a_loop(loss, layout, weighted):
    X, W, H, weights = problem(loss, 3)
    if not weighted:
        weights = np.ones(len(X))
    Q = W @ H
    numerator, denominator = np.vectorize(lambda x, q: naive_ratios(loss, x, q))(X, Q)
    sums = sums_of(loss, X, layout, weights=weights if weighted else None)
    docs, words = sums.docs(padded(W, float), padded(H.T, float))[1], sums.words(padded(W, float), padded(H.T, float))
    for found, naive in zip(docs, (numerator @ H.T, denominator @ H.T), strict=True):
        np.testing.assert_allclose(found[:, :K], naive, rtol=1e-11, atol=1e-12)
        assert not found[:, K:].any()
    for found, ratio in zip(words, (numerator, denominator), strict=True):
        np.testing.assert_allclose(found[:, :K], ratio.T @ (W * weights[:, np.newaxis]), rtol=1e-11, atol=1e-12)


@EVERY
@LAYOUTS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_blocks_do_not_change_the_sums(loss, layout, dtype, monkeypatch):
    monkeypatch.setattr("polyseme.losses.updates._BLOCK_NUMBERS", 1)
    monkeypatch.setattr("polyseme.losses.updates._BLOCK_ROWS", 7)
    X, W, H, weights = problem(loss, 4, (60, 30))
    found = []
    for n_threads in (1, 3):
        counts = as_counts(layout(X.astype(dtype)), np.dtype(dtype))
        sums = LossSums(loss, counts, K, n_threads=n_threads, weights=weights)
        values, docs = sums.docs(padded(W, dtype), padded(H.T, dtype))
        found.append((values, *docs, *sums.words(padded(W, dtype), padded(H.T, dtype))))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    exact = sums_of(loss, X).docs(padded(W, float), padded(H.T, float))[0]
    np.testing.assert_allclose(found[0][0], exact, rtol=1e-4 if dtype == np.float32 else 1e-10, atol=1e-3)


@pytest.mark.parametrize("loss", [Beta(0.5), Beta(1.5), Beta(3)])
def test_sparse_counts_are_made_dense_a_block_at_a_time(loss, monkeypatch):
    shapes = []
    X, W, H, _ = problem(loss, 5, (200, 40))
    counts = as_counts(sp.csr_array(X), np.dtype(np.float64))
    whole = type(counts).dense_rows

    def counted(self, rows):
        dense = whole(self, rows)
        shapes.append(dense.shape)
        return dense

    monkeypatch.setattr(type(counts), "dense_rows", counted)
    monkeypatch.setattr("polyseme.losses.updates._BLOCK_NUMBERS", 40 * 64)
    sums = LossSums(loss, counts, K, n_threads=2)
    sums.docs(padded(W, float), padded(H.T, float))
    sums.words(padded(W, float), padded(H.T, float))
    assert sorted(shapes) == sorted(2 * [(64, 40)] * 3 + 2 * [(8, 40)])


@pytest.mark.parametrize(
    "loss", [LOSSES["squared"], LOSSES["chi-square"], LOSSES["absolute"]], ids=lambda loss: loss.name
)
def test_other_losses_never_make_sparse_counts_dense(loss, monkeypatch):
    def fails(*_):
        raise AssertionError("a block became dense")

    X, W, H, weights = problem(loss, 6)
    counts = as_counts(sp.csr_array(X), np.dtype(np.float64))
    monkeypatch.setattr(type(counts), "dense_rows", fails)
    sums = LossSums(loss, counts, K, n_threads=1, weights=weights)
    sums.docs(padded(W, float), padded(H.T, float))
    sums.words(padded(W, float), padded(H.T, float))
    sums.values(padded(W, float), padded(H.T, float))


@pytest.mark.parametrize("loss", [Beta(0.0), Beta(-1)])
@LAYOUTS
def test_data_with_zeros_are_refused_where_the_loss_is_infinite(loss, layout):
    from polyseme import InputError

    X = np.ones((3, 4))
    loss.check_data(as_counts(layout(X), np.dtype(np.float64)))
    X[1, 2] = 0
    with pytest.raises(InputError, match="is infinite where X is zero: add a small number"):
        loss.check_data(as_counts(layout(X), np.dtype(np.float64)))
