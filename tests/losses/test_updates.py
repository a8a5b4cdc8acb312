"""Updates of a factor: never a higher loss, and sums that stay where a constraint fixes them."""

import numpy as np
import pytest

from polyseme.core.shard import as_counts
from polyseme.kernels import padded
from polyseme.losses import LOSSES, Beta
from polyseme.losses.absolute import Absolute
from polyseme.losses.base import Powers
from polyseme.losses.updates import LossSums, Terms, constrained, multiplied

MEMBERS = {
    **{name: loss for name, loss in LOSSES.items() if name != "absolute"},
    **{f"beta {beta}": Beta(beta) for beta in (-1, 0.5, 1.1, 1.5, 1.9, 2.5, 3)},
    "absolute": Absolute(1e-7),
}
EVERY = pytest.mark.parametrize("loss", MEMBERS.values(), ids=MEMBERS.keys())


def random_problem(loss, seed, normalized):
    """Return small counts and factors; with `normalized`, rows of W sum to those of X, and rows of H to one."""
    rng = np.random.default_rng(seed)
    D, W, K = rng.integers(2, 20), rng.integers(2, 20), rng.integers(1, 6)
    X = rng.poisson(rng.uniform(0.2, 3), (D, W)) * rng.choice([1e-3, 1.0, 1e3])
    X[0], X[:, 0] = X[0] + 0.1, X[:, 0] + 0.1
    if loss.needs_positive:
        X = X + 0.3
    docs, words = rng.gamma(0.5, 1.0, (D, K)) + 1e-6, rng.gamma(0.5, 1.0, (W, K)) + 1e-6
    if normalized:
        words /= words.sum(axis=0)
        docs *= X.sum(axis=1, keepdims=True) / docs.sum(axis=1, keepdims=True)
    return X, padded(docs, float), padded(words, float), K


def losses_of_steps(loss, seed, normalized, n_steps=8):
    """Yield the loss before each half-step and at the end."""
    X, docs, words, K = random_problem(loss, seed, normalized)
    sums = LossSums(loss, as_counts(X, np.dtype(np.float64)), K, n_threads=1)
    ones = np.ones(words.shape[1])
    for _ in range(n_steps):
        values, terms = sums.docs(docs, words)
        yield values.sum()
        docs = (
            constrained(docs, terms, loss.powers, X.sum(axis=1)) if normalized else multiplied(docs, terms, loss.powers)
        )
        yield sums.values(docs, words).sum()
        terms = sums.words(docs, words)
        if normalized:
            words = np.ascontiguousarray(
                constrained(words.T, Terms(terms.numerators.T, terms.denominators.T), loss.powers, ones).T
            )
            np.testing.assert_allclose(words[:, :K].sum(axis=0), 1, rtol=1e-12)
            np.testing.assert_allclose(docs.sum(axis=1), X.sum(axis=1), rtol=1e-12)
        else:
            words = multiplied(words, terms, loss.powers)
        assert min(docs.min(), words.min()) >= 0
    yield sums.values(docs, words).sum()


def check_monotone(loss, seeds):
    for seed in seeds:
        for normalized in (False, True):
            values = np.array(list(losses_of_steps(loss, seed, normalized)))
            relative = 1e-7 if isinstance(loss, Absolute) else 1e-11  # the smoothing, or rounding
            allowed = relative * values[:-1] + 1e-12 * values[0]
            assert (np.diff(values) <= allowed).all(), (loss, seed, normalized)


@EVERY
def test_no_update_raises_the_loss(loss):
    check_monotone(loss, range(25))


@pytest.mark.slow
@EVERY
def test_no_update_raises_the_loss_in_five_hundred_problems(loss):
    check_monotone(loss, range(25, 525))


@pytest.mark.parametrize("powers", [Powers(0.0, 1.0), Powers(0.0, 2.0), Powers(0.0, 3.0), Powers(1.0, 0.0),
                                    Powers(0.5, 0.5), Powers(1.5, 0.0)])  # fmt: skip
def test_a_constrained_update_has_one_multiplier_per_row(powers):
    """The slope of the majorizer is the same for all entries of a row, except those at the bound t = 0.1."""
    rng = np.random.default_rng(0)
    factor = rng.gamma(0.3, 1.0, (40, 6)) + 1e-9
    numerators, denominators = np.exp(rng.normal(0, 3, (2, 40, 6)))
    new = constrained(factor, Terms(numerators, denominators), powers, factor.sum(axis=1))
    np.testing.assert_allclose(new.sum(axis=1), factor.sum(axis=1), rtol=1e-12)
    if powers.fall == 0:
        assert (new >= 0.0999 * factor).all()
    rise, fall = (1.0, 1.0) if powers.rise > 0 and powers.fall > 0 else powers
    t = new / factor
    with np.errstate(divide="ignore"):
        slope = denominators * t**rise - numerators * t**-fall
    scale = np.abs(denominators) + np.abs(numerators)
    for row in range(40):
        inside = (new[row] > 1e-6 * new[row].max()) & (t[row] > 0.1001)
        spread = np.ptp(slope[row][inside])
        assert spread <= 1e-5 * max(scale[row][inside].max(), np.abs(slope[row][inside]).max())


def test_rows_without_a_total_and_zeros_stay_as_they_are():
    factor = np.array([[0.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    terms = Terms(np.array([[1.0, 2.0], [5.0, 1.0], [0.0, 0.0]]), np.ones((3, 2)))
    new = constrained(factor, terms, Powers(1.0, 0.0), np.array([0.0, 2.0, 2.0]))
    assert np.array_equal(new, factor)


def test_a_denominator_of_zero_gives_zero():
    new = multiplied(np.ones((1, 2)), Terms(np.ones((1, 2)), np.array([[0.0, 2.0]])), Powers(0.0, 1.0))
    assert new.tolist() == [[0.0, 0.5]]
