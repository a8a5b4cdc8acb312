"""Intervals and tests from the spread of resamples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import false_discovery_control
from scipy.stats import t as student

from polyseme.kernels import Floats


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates with intervals, as arrays of the same shape.

    Attributes
    ----------
    estimate : array
        The estimates.
    low : array
        Lower ends of the intervals.
    high : array
        Upper ends.
    error : array
        Standard errors.
    """

    estimate: Floats
    low: Floats
    high: Floats
    error: Floats

    def __getitem__(self, key: Any) -> Self:
        return type(self)(**{name: np.asarray(values[key]) for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class Differences(Intervals):
    """Differences with intervals and tests, as arrays of the same shape.

    Attributes
    ----------
    estimate : array
        The differences.
    low : array
        Lower ends of the intervals.
    high : array
        Upper ends.
    error : array
        Standard errors.
    p_values : array
        Probability of a difference at least as large if there is none.
    q_values : array
        Smallest false discovery rate at which the difference is found, by Benjamini and Hochberg over all differences.
    """

    p_values: Floats
    q_values: Floats


def normal_intervals(estimate: Floats, error: Floats, level: float, df: float) -> Intervals:
    """Return estimate +- t error."""
    half = student.ppf(0.5 + level / 2, df) * error
    return Intervals(estimate, estimate - half, estimate + half, error)


def share_intervals(estimate: Floats, error: Floats, level: float, df: float) -> Intervals:
    """Return intervals of shares, symmetric for their square roots, so that none is below zero.

    `error` is the standard error of the square root.
    """
    root = np.sqrt(estimate)
    half = student.ppf(0.5 + level / 2, df) * error
    low, high = np.maximum(root - half, 0) ** 2, np.minimum((root + half) ** 2, 1)
    return Intervals(estimate, low, high, 2 * root * error)


def differences_of(estimate: Floats, error: Floats, level: float, df: float) -> Differences:
    """Return differences with t intervals, p-values and false discovery rates over all of them."""
    found = normal_intervals(estimate, error, level, df)
    scores = np.divide(np.abs(estimate), error, out=np.full(estimate.shape, np.nan), where=error > 0)
    p_values = np.where(np.isnan(scores), 1.0, 2 * student.sf(np.nan_to_num(scores), df))
    q_values = false_discovery_control(p_values, axis=None).reshape(p_values.shape) if p_values.size else p_values
    return Differences(found.estimate, found.low, found.high, found.error, p_values, q_values)


def count_intervals(estimate: Floats, variance: Floats, level: float) -> Intervals:
    """Return intervals of rates whose variance is `variance` times the rate, by quantiles of gamma distributions.

    For a variance of 1 / n they are the exact intervals of the rate of a Poisson count with exposure n (Garwood 1936),
    so that a rate of zero has an interval of positive length.
    """
    tail, count = (1 - level) / 2, estimate / variance
    low = np.where(count > 0, gammaincinv(np.maximum(count, 1e-300), tail), 0.0) * variance
    high = np.minimum(gammaincinv(count + 1, 1 - tail) * variance, 1.0)
    return Intervals(estimate, low, high, np.sqrt(estimate * variance))


class Bias(NamedTuple):
    """Bias of estimates, measured in documents drawn from the model."""

    mean: Floats
    """Mean bias, which is subtracted; zero without drawn documents."""
    variance: Floats
    """Variance of what remains: of the mean, and of the part of the bias that drawn documents do not show."""


@dataclass(frozen=True)
class Sampling:
    """Level of intervals, and what a limited number of resampled units does to their width."""

    level: float
    df: float
    """Degrees of freedom of the spread of the resamples."""
    inflation: float
    """Factor of standard errors: the spread of resamples of n units is too small by the root of (n - 1) / n."""
    unseen: float = 0.0
    """Bias that remains after correction, as a multiple of the bias that was subtracted."""

    def bias(self, draws: Floats) -> Bias:
        """Return the bias from the errors of estimates in every drawn corpus (first axis)."""
        if not len(draws):
            return Bias(np.zeros(draws.shape[1:]), np.zeros(draws.shape[1:]))
        noise = draws.var(axis=0, ddof=1) / len(draws) if len(draws) > 1 else np.zeros(draws.shape[1:])
        return self.bias_of_moments(draws.mean(axis=0), noise)

    def bias_of_moments(self, mean: Floats, noise: Floats) -> Bias:
        """Return the bias from the mean error and the variance of this mean."""
        return Bias(mean, noise + self.unseen**2 * np.maximum(mean**2 - noise, 0))

    def error(self, draws: Floats) -> Floats:
        """Return the standard error of an estimate from its values in the resamples (first axis), which may be NaN."""
        known = np.isfinite(draws)
        n = known.sum(axis=0)
        mean = np.where(known, draws, 0).sum(axis=0) / np.maximum(n, 1)
        squares = np.where(known, draws - mean, 0) ** 2
        variance = squares.sum(axis=0) / np.maximum(n - 1, 1)
        return np.where(n > 1, self.inflation * np.sqrt(variance), np.nan)

    def quantiles(self, estimate: Floats, draws: Floats) -> Intervals:
        """Return intervals between quantiles of the values in the resamples (first axis), which may be NaN."""
        tail = (1 - self.level) / 2
        ordered = np.sort(draws, axis=0)  # NaN last
        last = np.isfinite(draws).sum(axis=0)[np.newaxis] - 1

        def at(share: float, direction: Any) -> Floats:
            place = np.maximum(direction(share * last), 0).astype(np.intp)
            return np.asarray(np.take_along_axis(ordered, place, axis=0)[0])

        low, high = np.minimum(at(tail, np.floor), estimate), np.maximum(at(1 - tail, np.ceil), estimate)
        return Intervals(estimate, low, high, self.error(draws))
