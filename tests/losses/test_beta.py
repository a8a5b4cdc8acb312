"""The family of beta divergences: its members, its limits, and wrong parameters."""

import numpy as np
import pytest

from polyseme import InputError
from polyseme.core.model import as_loss
from polyseme.kernels import ReciprocalSums, padded
from polyseme.losses import LOSSES, Beta
from sentences import sentence

x, q = np.random.default_rng(0).gamma(1.0, 1.0, (2, 6, 50))


@pytest.mark.parametrize(("name", "beta"), [("itakura-saito", 0), ("kullback-leibler", 1), ("squared", 2)])
def test_named_losses_are_members_and_limits_of_the_family(name, beta):
    assert LOSSES[name] == Beta(beta)
    assert Beta(beta).name == name
    for near in (beta - 1e-5, beta + 1e-5):
        np.testing.assert_allclose(Beta(near).values(x, q), Beta(beta).values(x, q), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("beta", "exponent"), [(-1, 1 / 3), (0, 0.5), (0.5, 2 / 3), (1, 1), (1.5, 1), (2, 1), (3, 0.5), (4, 1 / 3)]
)
def test_the_exponents_are_those_of_fevotte_and_idier(beta, exponent):
    assert Beta(beta).powers.exponent == pytest.approx(exponent)


@pytest.mark.parametrize("beta", [-1, 0, 0.5, 1, 1.5, 2, 3])
def test_the_loss_is_zero_at_x_positive_elsewhere_and_scales_with_the_power_beta(beta):
    loss = Beta(beta)
    np.testing.assert_allclose(loss.values(x, x), 0, atol=1e-10 * max(1, (x**beta).max()))
    assert (loss.values(x, q) > 0).all()
    np.testing.assert_allclose(loss.values(3 * x, 3 * q), 3.0**beta * loss.values(x, q), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("columns", [1, 7, 32, 64, 257])
def test_the_compiled_itakura_saito_sums_equal_the_formulas(dtype, rows, columns):
    rng = np.random.default_rng(columns)
    K = 5
    X = np.exp(rng.normal(0, 2, (rows, columns))).astype(dtype)
    A, topics = rng.gamma(1.0, 1.0, (rows, K)).astype(dtype), rng.gamma(1.0, 1.0, (K, columns)).astype(dtype)
    floors, weights = np.full(rows, 0.5, dtype=dtype), rng.uniform(0, 2, (rows, 1)).astype(dtype)
    Q = np.maximum(A.astype(float) @ topics, 0.5)
    sums, wide, words = ReciprocalSums(X, floors), padded(A, dtype), padded(topics.T, dtype)
    losses, numerators, denominators = sums.docs(wide, words, K, n_threads=2)
    rtol = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(losses, Beta(0).values(X.astype(float), Q).sum(axis=1), rtol=rtol)
    np.testing.assert_allclose(numerators[:, :K], (X / Q**2) @ topics.T, rtol=rtol)
    np.testing.assert_allclose(denominators[:, :K], (1 / Q) @ topics.T, rtol=rtol)
    assert not numerators[:, K:].any()
    assert not denominators[:, K:].any()
    numerators, denominators = sums.words(wide, wide * weights, words, K, n_threads=2)
    np.testing.assert_allclose(numerators[:, :K], (X / Q**2).T @ (A * weights), rtol=rtol)
    np.testing.assert_allclose(denominators[:, :K], (1 / Q).T @ (A * weights), rtol=rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_itakura_saito_loss_has_no_limits_within_the_type(dtype):
    """A loss whose ratios multiply to numbers far outside of float64, and one with a ratio that underflows to zero."""
    rng = np.random.default_rng(0)
    X = (10 ** rng.uniform(-15, 15, size=(3, 700))).astype(dtype)
    X[1] *= dtype(1e-6)
    A, B, floors = padded(np.ones((3, 1)), dtype), padded(np.ones((700, 1)), dtype), np.full(3, 1e-20, dtype=dtype)
    sums = ReciprocalSums(X, floors)
    wide = X.astype(np.float64)
    expected = (wide - np.log(wide) - 1).sum(axis=1)
    losses = sums.docs(A, B, 1, n_threads=1)[0]
    np.testing.assert_allclose(losses, expected, rtol=1e-6 if dtype == np.float32 else 1e-12)
    ones = ReciprocalSums(np.ones_like(X), floors)
    B[130, 0] = np.finfo(dtype).max
    A[1, 0] = 4
    losses = ones.docs(A, B, 1, n_threads=1)[0]
    assert not np.isfinite(losses[1])


@pytest.mark.parametrize("beta", [np.nan, np.inf, -np.inf, "1", None, True, [1.0]], ids=repr)
def test_a_wrong_beta_raises(beta):
    with pytest.raises(InputError, match="Beta: beta must be a finite number, got") as error:
        Beta(beta)
    sentence(error)


def test_a_loss_is_found_by_name_or_given():
    assert as_loss("squared") is LOSSES["squared"]
    assert as_loss(Beta(1.5)) == Beta(1.5)
    assert Beta(1.5).name == "beta(1.5)"
    assert Beta(np.float32(0.5)) == Beta(0.5)
