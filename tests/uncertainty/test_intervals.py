"""Intervals and tests from the spread of resamples."""

import numpy as np
import pytest
from scipy.stats import chi2, poisson
from scipy.stats import t as student

from polyseme.uncertainty.intervals import Sampling, count_intervals, differences_of, share_intervals

RNG = np.random.default_rng(0)


def test_intervals_of_counts_are_those_of_garwood():
    counts, exposure = np.array([0.0, 1, 2, 7, 40]), 1000
    found = count_intervals(counts / exposure, np.full(5, 1 / exposure), 0.95)
    low = np.where(counts > 0, chi2.ppf(0.025, np.maximum(2 * counts, 1)) / 2, 0)
    np.testing.assert_allclose(found.low * exposure, low, rtol=1e-9)
    np.testing.assert_allclose(found.high * exposure, chi2.ppf(0.975, 2 * (counts + 1)) / 2, rtol=1e-9)


@pytest.mark.parametrize("mean", [0.5, 2, 10])
def test_intervals_of_counts_cover_the_rate(mean):
    counts = np.arange(60.0)
    found = count_intervals(counts / 1e4, np.full(60, 1e-4), 0.9)
    inside = (found.low <= mean / 1e4) & (mean / 1e4 <= found.high)
    assert poisson.pmf(counts[inside], mean).sum() >= 0.9


def test_intervals_of_shares_stay_between_zero_and_one():
    found = share_intervals(np.array([0.0, 0.01, 0.5, 1.0]), np.array([0.05, 0.2, 0.01, 0.1]), 0.95, 20)
    assert (found.low >= 0).all()
    assert (found.high <= 1).all()
    assert (found.low <= found.estimate).all()
    assert (found.estimate <= found.high).all()
    np.testing.assert_allclose(found.error[2], 2 * np.sqrt(0.5) * 0.01)


def test_differences_have_the_p_values_of_t_tests_and_rates_of_benjamini_and_hochberg():
    estimate, error = RNG.normal(size=(3, 4)), RNG.uniform(0.3, 2, (3, 4))
    found = differences_of(estimate, error, 0.9, 12)
    p = 2 * (1 - student.cdf(np.abs(estimate / error), 12))
    np.testing.assert_allclose(found.p_values, p, rtol=1e-9)
    order = np.argsort(p, axis=None)
    naive = np.empty(12)
    for place, index in enumerate(order):
        naive[index] = min(p.ravel()[later] * 12 / (rank + 1) for rank, later in enumerate(order) if rank >= place)
    np.testing.assert_allclose(found.q_values, naive.reshape(3, 4), rtol=1e-9)
    np.testing.assert_allclose(found.high - found.low, 2 * student.ppf(0.95, 12) * error)
    assert found[0].p_values.shape == (4,)


def test_a_difference_without_spread_is_not_significant():
    assert differences_of(np.array([0.0]), np.array([0.0]), 0.95, 5).p_values == [1.0]


def test_errors_ignore_missing_values():
    draws = RNG.normal(size=(30, 2))
    draws[::3, 1] = np.nan
    draws = np.column_stack([draws, np.full(30, np.nan)])
    found = Sampling(0.95, 29, 1.5).error(draws)
    np.testing.assert_allclose(found[:2], [1.5 * draws[:, 0].std(ddof=1), 1.5 * np.nanstd(draws[:, 1], ddof=1)])
    assert np.isnan(found[2])


def test_quantiles_contain_the_estimate_and_ignore_missing_values():
    draws = np.arange(101.0)[:, np.newaxis] * [1, 1]
    draws[50:, 1] = np.nan
    found = Sampling(0.9, 100, 1.0).quantiles(np.array([50.0, 70.0]), draws)
    np.testing.assert_allclose(found.low, [5, 2], atol=1)  # 0.05 in binary may be above or below
    np.testing.assert_allclose(found.high, [95, 70], atol=1)


def test_bias_is_subtracted_and_widens_intervals_where_it_is_above_noise():
    draws = np.array([[0.3, 0.1], [0.1, -0.1], [0.2, 0.1], [0.2, -0.1]])
    sampling = Sampling(0.95, 3, 1.0, 1.5)
    found = sampling.bias(draws)
    np.testing.assert_allclose(found.mean, [0.2, 0])
    noise = draws.var(axis=0, ddof=1) / 4
    np.testing.assert_allclose(found.variance, noise + np.array([2.25 * (0.04 - noise[0]), 0]))
    assert not sampling.bias(draws[:0]).variance.any()
