"""The M-step of a row: the distribution f that maximizes Q(f) = sum n log f + beta sum f log f.

beta = 0 gives n normalized. beta < 0 (more entropy) is concave. beta > 0 (less entropy, Shashanka, Raj and Smaragdis
2007) has several local maxima, and the closed form by Lambert's W_-1 has no value where the best f exceeds n / beta.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import entr, wrightomega, xlogy

from polyseme.kernels import Floats

Index = npt.NDArray[np.intp]

_MAX_STEPS = 100
"""steps of the iteration for beta > 0; each of them raises Q"""
_STEP_TOLERANCE = 1e-9
"""a row rests when none of its entries moves by more"""
_ROUNDING = 1e-14
"""what the last digits of Q may hide, as a share of it"""
_REST = 1e-3
"""what a peaked start leaves to the other entries"""
_NEWTON_STEPS = 100
"""a bound that is not met: both equations for a multiplier take about five"""
_NOTHING = 1e-100
"""an entropic weight below this is none; when beta > 0, counts below this share of their row, or of one token, are
taken as zero: so zeros become exact"""


def row_maximum(totals: Floats, factor: Floats, entropic_weight: float = 0.0) -> Floats:
    """The best row for n = max(totals, 0), each from its row in `factor`.

    A row with nothing above zero keeps what is largest in it, among the entries that had a count or a probability:
    without entropic weight, ties share as they did in `factor`.
    """
    counts = np.maximum(totals, 0)
    if entropic_weight > 0:
        counts[counts < _NOTHING * np.maximum(counts.sum(axis=1, keepdims=True), 1)] = 0
    sums = counts.sum(axis=1, keepdims=True)
    filled = sums[:, 0] > 0
    if filled.all():
        return _best_rows(counts, sums, factor, entropic_weight)
    result = np.empty_like(counts)
    result[filled] = _best_rows(counts[filled], sums[filled], factor[filled], entropic_weight)
    result[~filled] = _keep_largest(totals[~filled], factor[~filled], entropic_weight)
    return result


def _best_rows(counts: Floats, sums: Floats, factor: Floats, entropic_weight: float) -> Floats:
    if abs(entropic_weight) < _NOTHING:
        return counts / sums
    if entropic_weight > 0:
        return _less_entropy(counts, sums, factor, entropic_weight)
    return _more_entropy(counts, sums, -entropic_weight)


def _keep_largest(totals: Floats, factor: Floats, entropic_weight: float) -> Floats:
    """Rows without a positive entry."""
    in_play = (factor > 0) | (totals > 0)
    in_play |= ~in_play.any(axis=1, keepdims=True)
    if entropic_weight < 0:
        in_play[:] = True
    candidates = np.where(in_play, totals, -np.inf)
    tied = candidates == candidates.max(axis=1, keepdims=True)
    if entropic_weight < 0:
        return _shares(tied.astype(np.float64))
    held = np.where(tied, factor, 0)
    held += tied * (held.sum(axis=1, keepdims=True) == 0)
    if entropic_weight > 0:
        held = (held == held.max(axis=1, keepdims=True)).astype(np.float64)
    return _shares(held)


def _less_entropy(counts: Floats, sums: Floats, factor: Floats, beta: float) -> Floats:
    """beta > 0: the best of what is reached from n normalized and, where there may be another maximum, from a peak.

    The best f has the order of n, because f log f is the same for every entry, and the iteration keeps that order. At a
    maximum with the order of n only the largest entry can exceed n / beta. So there is one such maximum if the largest
    n is at least beta, and otherwise at most one without a peak. Not proved, but true in a search: there is at most one
    with a peak, and Newton's short cuts do not lead elsewhere. The current row is a third start where it is better than
    what the others reach, so that no M-step lowers Q.
    """
    result = _climb(counts, counts / sums, beta)
    several = np.flatnonzero(counts.max(axis=1) < beta)
    _improve(result, several, counts, _peaked(counts[several]), beta)
    current = _moved_to_counts(counts, factor)
    ahead = _objective(counts, current, beta) > _objective(counts, result, beta)
    _improve(result, np.flatnonzero(ahead), counts, current[ahead], beta)
    return result


def _improve(result: Floats, rows: Index, counts: Floats, start: Floats, beta: float) -> None:
    """Climbs from `start` in these rows and keeps what is better than the result so far."""
    if rows.size:
        other = _climb(counts[rows], start, beta)
        better = _objective(counts[rows], other, beta) > _objective(counts[rows], result[rows], beta)
        result[rows[better]] = other[better]


def _peaked(counts: Floats) -> Floats:
    """Nearly all for the largest count of each row (the first of several), the rest in proportion."""
    start = _REST * _shares(counts)
    start[np.arange(len(counts)), counts.argmax(axis=1)] += 1 - _REST
    return start


def _climb(counts: Floats, factor: Floats, beta: float) -> Floats:
    """f_k = n_k / (mu - beta log f_k_old), one mu for each row, until nothing moves.

    The convex beta sum f log f lies above its tangent at the old f, and the step maximizes Q with the tangent in its
    place: so every step raises Q. Newton's step from there is taken as well where it is as good: alone, the iteration
    takes hundreds of steps when the best f is near n / beta.
    """
    result = factor.copy()
    moving = np.arange(len(counts))
    for _ in range(_MAX_STEPS):
        n, f = counts[moving], result[moving]
        with np.errstate(divide="ignore"):
            costs = np.where(n > 0, -beta * np.log(f), np.inf)
        costs -= costs.min(axis=1, keepdims=True)
        step = _shares(n / (_multiplier(n, costs) + costs))
        newton = _newton(n, step, beta)
        reached = _objective(n, step, beta)
        as_good = _objective(n, newton, beta) >= reached - _ROUNDING * np.abs(reached)
        step[as_good] = newton[as_good]
        result[moving] = step
        moving = moving[np.abs(step - f).max(axis=1) > _STEP_TOLERANCE]
        if not moving.size:
            break
    return result


def _newton(counts: Floats, factor: Floats, beta: float) -> Floats:
    """Newton's step for Q, whose Hessian is diagonal, on the simplex; none where Q is not concave there, or far off.

    Q is concave along the simplex if all curvatures are positive, or if one is not and their inverses add up to less
    than zero. Elsewhere Newton's steps lead to saddles.
    """
    seen = counts > 0
    curvature = counts - beta * factor
    scale = np.zeros_like(counts)
    np.divide(factor * factor, curvature, out=scale, where=seen & (curvature != 0))
    convex = (seen & (curvature <= 0)).sum(axis=1)
    total = scale.sum(axis=1)
    concave = (convex == 0) | ((convex == 1) & (total < 0))
    total[~concave] = 1
    gradient = np.zeros_like(counts)
    np.divide(counts, factor, out=gradient, where=seen)
    gradient += beta * np.log(factor, out=np.zeros_like(counts), where=seen)
    move = scale * (gradient - ((scale * gradient).sum(axis=1) / total)[:, np.newaxis])
    near = concave & (np.abs(move) <= factor / 2).all(axis=1)
    return _shares(np.where(near[:, np.newaxis], factor + move, factor))


def _moved_to_counts(counts: Floats, factor: Floats) -> Floats:
    """The current rows; entries without counts give what they have to the one with most: Q never falls by that."""
    current = np.where(counts > 0, factor, 0)
    current[np.arange(len(counts)), counts.argmax(axis=1)] += np.maximum(1 - current.sum(axis=1), 0)
    return _shares(current)


def _objective(counts: Floats, factor: Floats, beta: float) -> Floats:
    return np.asarray((xlogy(counts, factor) - beta * entr(factor)).sum(axis=1))


def _multiplier(counts: Floats, costs: Floats) -> Floats:
    """The root nu > 0 of F(nu) = sum n / (nu + c) = 1 in each row; the least c of an entry with n > 0 is zero.

    1 / F is concave and rises (a harmonic mean of lines), so Newton's steps on it from the left never pass the root.
    """
    nu = (counts - costs).max(axis=1, keepdims=True)
    for _ in range(_NEWTON_STEPS):
        denominators = nu + costs
        parts = counts / denominators
        total = parts.sum(axis=1, keepdims=True)
        step = total * (total - 1) / (parts / denominators).sum(axis=1, keepdims=True)
        moving = step > 1e-15 * nu
        nu = np.where(moving, nu + step, nu)  # a row that rests does not wait for the others
        if not moving.any():
            break
    return np.asarray(nu)


def _more_entropy(counts: Floats, sums: Floats, weight: float) -> Floats:
    """beta = -weight < 0: n / f - weight log f = mu, one mu for each row; the maximum is unique.

    With u = n / (weight f) and t = mu / weight this is u + log u = t + log (n / weight): u is Wright's omega function,
    Lambert's W_0 in log form. Multiplying by f and adding up gives mu = sum n + weight entropy(f), so t lies within
    log m above sum n / weight: Newton's steps on log sum f, kept between the bounds known so far.
    """
    with np.errstate(divide="ignore"):
        offsets = np.log(counts) - np.log(weight)
    low = sums / weight
    high = low + np.log(counts.shape[1])
    t = low + entr(_shares(counts + weight / counts.shape[1])).sum(axis=1, keepdims=True)
    moving = np.ones_like(t, dtype=bool)
    for _ in range(_NEWTON_STEPS):
        f, u = _entropic_row(counts, offsets, weight, t)
        total = f.sum(axis=1, keepdims=True)
        low, high = np.where(total >= 1, t, low), np.where(total <= 1, t, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            following = t + np.log(total) * total / (f / (1 + u)).sum(axis=1, keepdims=True)
        inside = (following >= low) & (following <= high)
        following = np.where(inside, following, (low + high) / 2)
        following = np.where(moving, following, t)  # a row that rests does not wait for the others
        moving = np.abs(following - t) > 1e-14 * np.maximum(np.abs(t), 1)
        t = following
        if not moving.any():
            break
    return _shares(_entropic_row(counts, offsets, weight, t)[0])


def _entropic_row(counts: Floats, offsets: Floats, weight: float, t: Floats) -> tuple[Floats, Floats]:
    """f and u at t: f = n / (weight u) = exp(u - t), whichever loses fewer digits."""
    u = wrightomega(t + offsets)
    return np.where(u > 1, counts / (weight * np.maximum(u, 1)), np.exp(np.minimum(u, 1) - t)), u


def _shares(rows: Floats) -> Floats:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
