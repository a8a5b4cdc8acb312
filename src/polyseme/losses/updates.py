"""Minimum of a majorizer: the multiplicative update of a factor, and the same for a factor with given sums.

Without a constraint, an entry changes by t = (numerator / denominator)^exponent. If the entries of a row (or a column)
must have a given sum, the slope of the majorizer is minus a multiplier m, the same for all entries of the row:

    denominator t^rise - numerator t^-fall = -m

The row's sum decreases in m. It is convex in m if fall = 0 and rise = 1, if rise = 0, or if both powers are 1, so that
Newton's method never passes the root when it starts where the sum is too large: at the largest m for which a single
entry is already the whole sum. If both powers are positive, both become 1, which only raises the majorizer: t^b / b <=
t^2 / 2 + const for 1 <= b <= 2, and -t^(b-1) / (b-1) <= -log t + const. If rise > 1, the sum is not convex, and m is
found by bisection.
"""

from __future__ import annotations

import numpy as np

from polyseme.kernels import Array, Floats, times_ratio, without_negligible
from polyseme.losses.base import Powers
from polyseme.losses.sums import Terms

_NEWTON_STEPS, _BISECTIONS = 60, 50
_LEAST_CHANGE = 0.1
"""Smallest t where the minimum could be at t = 0, because an update cannot make a zero positive again."""
_PRECISION = 1e-14
"""Relative error of a sum at which Newton's method stops."""


def multiplied(factor: Array, terms: Terms, powers: Powers, *, n_threads: int = 1) -> Array:
    """Return the factor after a multiplicative update. An entry becomes zero if its denominator is zero."""
    numerators, denominators = terms
    exponent = powers.exponent
    if exponent in (0.5, 1):
        return times_ratio(factor, numerators, denominators, exponent == 0.5, n_threads=n_threads)
    change = np.divide(numerators, denominators, out=np.zeros(factor.shape), where=denominators > 0)
    return without_negligible(change**exponent * factor, factor.dtype)


def constrained(factor: Array, terms: Terms, powers: Powers, totals: Floats) -> Array:
    """Return the factor (rows x width) after an update that keeps the sum of each row equal to its total.

    A row whose entries cannot change, or whose total is zero, stays as it is.
    """
    rows = np.flatnonzero((totals > 0) & ((factor > 0) & (terms.numerators > 0)).any(axis=1))
    f, goal = factor[rows].astype(np.float64), totals[rows, np.newaxis]
    # Padding and entries that are zero stay zero: their ratios are set to harmless numbers.
    live = f > 0
    N = np.where(live, terms.numerators[rows], 0.0)
    D = np.where(live, np.maximum(terms.denominators[rows], np.finfo(np.float64).tiny), 1.0)
    if powers.rise > 1:
        new = _by_bisection(f, N, D, powers.rise, goal)
    else:
        form = Powers(1.0, 1.0) if powers.rise > 0 and powers.fall > 0 else powers
        new = _by_newton(f, N, D, form, goal)
    sums = new.sum(axis=1, keepdims=True)
    good = np.isfinite(sums) & (sums > 0)
    updated = factor.copy()
    scaled = new * (goal / np.where(good, sums, 1))
    updated[rows] = np.where(good, without_negligible(scaled, factor.dtype), factor[rows])
    return updated


def _by_newton(f: Floats, N: Floats, D: Floats, powers: Powers, goal: Floats) -> Floats:
    """Return f t with the sums `goal`, where the sum is convex in the multiplier."""
    can = (f > 0) & (N > 0)
    if powers.rise == 0:  # the multiplier is then counted from minus the smallest D, near which it may lie
        D = np.where(can, D - np.min(D, axis=1, keepdims=True, where=can, initial=np.inf), 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        whole = goal / f  # t of an entry that is the whole sum, the largest t possible
        falling = N * whole**-powers.fall
        alone = falling - D * whole**powers.rise
    multiplier = np.max(alone, axis=1, keepdims=True, where=can, initial=-np.inf)
    new = f
    for _ in range(_NEWTON_STEPS):
        t, slope = _change(N, D, multiplier, powers, falling)
        new = f * t
        excess = new.sum(axis=1, keepdims=True) - goal
        steepness = (f * slope).sum(axis=1, keepdims=True)
        step = np.divide(excess, steepness, out=np.zeros_like(excess), where=steepness > 0)
        moving = excess > _PRECISION * goal
        if not moving.any():
            break
        multiplier = multiplier + np.where(moving, step, 0)
    return new


def _change(N: Floats, D: Floats, multiplier: Floats, powers: Powers, least: Floats) -> tuple[Floats, Floats]:
    """Return t for a multiplier, and minus its derivative. `least` is the smallest possible D + m if rise = 0."""
    if powers.fall == 0:
        t = (N - multiplier) / D
        return np.maximum(t, _LEAST_CHANGE), np.where(t > _LEAST_CHANGE, 1 / D, 0)
    if powers.rise == 0:
        denominator = np.where(N > 0, np.maximum(D + multiplier, least), 1)
        t = (N / denominator) ** (1 / powers.fall)
        return t, t / (powers.fall * denominator)
    root = np.sqrt(multiplier**2 + 4 * D * N)
    positive = multiplier > 0
    t = np.where(positive, 2 * N, root - multiplier) / np.where(positive, root + multiplier, 2 * D)
    return t, np.divide(t, root, out=np.zeros_like(t), where=root > 0)


def _by_bisection(f: Floats, N: Floats, D: Floats, rise: float, goal: Floats) -> Floats:
    """Return f t with the sums `goal`, where t = ((N - m) / D)^(1 / rise)."""
    with np.errstate(divide="ignore", over="ignore"):
        alone = N - D * (goal / f) ** rise
    low = np.max(alone, axis=1, keepdims=True, where=f > 0, initial=-np.inf)
    high = np.max(N, axis=1, keepdims=True)  # the sum is at most a tenth of the goal there
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_small = (f * _root(N - middle, D, rise)).sum(axis=1, keepdims=True) < goal
        low, high = np.where(too_small, low, middle), np.where(too_small, middle, high)
    return f * _root(N - low, D, rise)


def _root(slope: Floats, D: Floats, rise: float) -> Floats:
    return np.maximum((np.maximum(slope, 0) / D) ** (1 / rise), _LEAST_CHANGE)
