"""Where every solver ends: the optimum, and the residual that says how far it is."""

import numpy as np
import pytest

import oracles
from polyseme import PLSA
from polyseme.solvers import SOLVERS
from solver_problems import (
    EVERY,
    EVERY_PLAIN,
    HOLDING_OUT,
    X,
    advanced,
    begin,
    blocks,
    factorable,
    factors,
    fit,
    mean_log_likelihood,
    multipliers,
    saturated,
)

# the optimum


def optimum(name, data, start):
    end = fit(SOLVERS[name](), data, start, max_iter=2000, tol=1e-9)
    assert end.converged
    return end.run


@EVERY
def test_one_topic_is_the_unigram(name):
    data = oracles.random_counts(20, 15, 12)
    run = optimum(name, data, oracles.random_factors(21, 15, 12, 1))
    if name in HOLDING_OUT:
        np.testing.assert_allclose(run.theta[:, :1], 1)
        return
    np.testing.assert_allclose(factors(run)[1][0], data.sum(axis=0) / data.sum(), atol=1e-12)


@EVERY
def test_two_themes_without_a_common_word_are_found_exactly(name):
    """The one optimum: every document has one topic, and no model is more likely."""
    data = blocks()
    run = optimum(name, data, oracles.random_factors(1, *data.shape, 2))
    theta, phi = factors(run)
    half = len(data) // 2
    if name not in HOLDING_OUT:
        assert saturated(data) - mean_log_likelihood(data, theta, phi) < 1e-9
        np.testing.assert_allclose(np.sort(theta, axis=1), np.tile([0.0, 1.0], (len(data), 1)), atol=1e-4)
    assert len(set(theta[:half].argmax(axis=1))) == len(set(theta[half:].argmax(axis=1))) == 1
    assert theta[0].argmax() != theta[-1].argmax()


@EVERY_PLAIN
@pytest.mark.parametrize("seed", range(3))
def test_exactly_factorable_counts_are_reproduced(name, seed):
    """KL = 0 has many factors and one product: all solvers reach it, to 1e-8 nats per token."""
    data, _ = factorable(seed, 15, 12, 2)
    run = optimum(name, data, oracles.random_factors(1, *data.shape, 2))
    theta, phi = factors(run)
    assert saturated(data) - run.report.log_likelihood < 1e-8
    np.testing.assert_allclose(data.sum(axis=1, keepdims=True) * (theta @ phi), data, rtol=1e-3)


@EVERY_PLAIN
@pytest.mark.parametrize("seed", [3, 4, 6])
def test_two_mixed_themes_have_the_same_optimum_for_all(name, seed):
    """Two clear themes in every document: all solvers end within 1e-8 nats per token of each other.

    The seeds are of corpora where all reach one optimum from this start; on others they end in different ones.
    """
    data = oracles.mixed_counts(seed, 25, 15, 2, tokens=200)
    start = oracles.random_factors(1, *data.shape, 2)
    best = optimum("em", data, start).report.log_likelihood
    assert optimum(name, data, start).report.log_likelihood == pytest.approx(best, abs=1e-8)


# the residual


@EVERY_PLAIN
@pytest.mark.parametrize("iterations", [1, 5, 30])
def test_the_residual_bounds_what_either_side_could_gain(name, iterations):
    data = oracles.mixed_counts(2, 20, 15, 3)
    run = advanced(begin(SOLVERS[name](), data, oracles.random_factors(3, 20, 15, 3)), iterations)
    theta, phi = factors(run)
    now = run.report.log_likelihood
    better_docs = mean_log_likelihood(data, oracles.fold_in(data, phi, steps=800), phi) - now
    lifted = oracles.normalised(np.maximum(phi, 1e-9))
    better_words = mean_log_likelihood(data, theta, oracles.refit_words(data, theta, lifted, steps=800)) - now
    assert max(better_docs, better_words) <= run.report.residual + 1e-9


@EVERY_PLAIN
@pytest.mark.parametrize("problem", ["themes", "blocks", "factorable", "one topic"])
def test_the_residual_is_small_at_the_optimum(name, problem):
    data = {
        "themes": lambda: oracles.mixed_counts(3, 25, 15, 2, tokens=200),
        "blocks": blocks,
        "factorable": lambda: factorable(0, 15, 12, 2)[0],
        "one topic": lambda: oracles.random_counts(20, 15, 12),
    }[problem]()
    run = optimum(name, data, oracles.random_factors(1, *data.shape, 1 if problem == "one topic" else 2))
    assert run.report.residual < 1e-6
    for steepest in multipliers(data, *factors(run)):
        assert steepest.max() < 1 + 1e-4


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tol_is_what_a_fit_stops_at(name):
    loose, tight = (
        PLSA(3, solver=name, random_state=0, tol=tol, max_iter=400, dtype=np.float64).fit(X) for tol in (0.1, 1e-4)
    )
    assert loose.n_iter_ <= tight.n_iter_
    if name not in HOLDING_OUT:
        assert loose.history_["residual"][-1] <= 0.1
    if loose.n_iter_ > 1 and name not in (*HOLDING_OUT, "annealed"):
        assert loose.history_["residual"][-2] > 0.1
