"""M-step of a row: the distribution f that maximizes Q(f) = sum n log f + beta sum f log f.

For beta = 0 it is n, normalized. For beta < 0 (more entropy) Q is concave. For beta > 0 (less entropy; Shashanka, Raj
and Smaragdis 2007) Q has several local maxima, and the closed form with Lambert's W_-1 is undefined where the best f
exceeds n / beta.

References
----------
M. Shashanka, B. Raj and P. Smaragdis (2007). Sparse overcomplete latent variable decomposition of counts data. Advances
in Neural Information Processing Systems 20.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import entr, wrightomega, xlogy

from polyseme.kernels import Floats

Index = npt.NDArray[np.intp]

_MAX_STEPS = 100
"""Maximum number of steps of the iteration for beta > 0. Each step raises Q."""
_STEP_TOLERANCE = 1e-9
"""A row has converged when a step changes none of its entries by more than this."""
_ROUNDING = 1e-14
"""Relative rounding error of Q."""
_OFF_PEAK = 1e-3
"""Total probability of the other entries in a peaked start."""
_NEWTON_STEPS = 100
"""Maximum number of Newton steps for a multiplier. About five are needed."""
_NEGLIGIBLE = 1e-100
"""Entropic weights below this count as zero. For beta > 0, counts below this share of their row, or of one token, are
set to zero, so that zeros become exact."""


def row_maximum(totals: Floats, factor: Floats, entropic_weight: float = 0.0) -> Floats:
    """Return the best rows for n = max(totals, 0), starting from the rows of `factor`.

    A row without positive totals keeps its largest entry, among the entries with a count or a probability. Without
    entropic weight, tied entries keep their proportions in `factor`.
    """
    counts = np.maximum(totals, 0)
    if entropic_weight > 0:
        counts[counts < _NEGLIGIBLE * np.maximum(counts.sum(axis=1, keepdims=True), 1)] = 0
    sums = counts.sum(axis=1, keepdims=True)
    filled = sums[:, 0] > 0
    if filled.all():
        return _best_rows(counts, sums, factor, entropic_weight)
    result = np.empty_like(counts)
    result[filled] = _best_rows(counts[filled], sums[filled], factor[filled], entropic_weight)
    result[~filled] = _keep_largest(totals[~filled], factor[~filled], entropic_weight)
    return result


def _best_rows(counts: Floats, sums: Floats, factor: Floats, entropic_weight: float) -> Floats:
    """Return the best rows for counts whose sums are positive."""
    if abs(entropic_weight) < _NEGLIGIBLE:
        return counts / sums
    if entropic_weight > 0:
        return _less_entropy(counts, sums, factor, entropic_weight)
    return _more_entropy(counts, sums, -entropic_weight)


def _keep_largest(totals: Floats, factor: Floats, entropic_weight: float) -> Floats:
    """Return the rows for totals without a positive entry."""
    candidate = (factor > 0) | (totals > 0)
    candidate |= ~candidate.any(axis=1, keepdims=True)
    if entropic_weight < 0:
        candidate[:] = True
    scores = np.where(candidate, totals, -np.inf)
    tied = scores == scores.max(axis=1, keepdims=True)
    if entropic_weight < 0:
        return _shares(tied.astype(np.float64))
    result = np.where(tied, factor, 0)
    result += tied * (result.sum(axis=1, keepdims=True) == 0)
    if entropic_weight > 0:
        result = (result == result.max(axis=1, keepdims=True)).astype(np.float64)
    return _shares(result)


def _less_entropy(counts: Floats, sums: Floats, factor: Floats, beta: float) -> Floats:
    """Return the best rows for beta > 0: the best of the local maxima that are reached from up to three starts.

    The first start is n, normalized. Rows that may have another maximum also start from a peak at the largest count.
    The current row is a third start where it is better than the result of the others, so that no M-step lowers Q.

    The entries of the best f are in the order of n, because f log f is the same function for every entry, and the
    iteration preserves this order. At such a maximum only the largest entry can exceed n / beta. So it is unique if the
    largest n is at least beta, and otherwise there is at most one maximum without a peak. There is no proof that there
    is at most one with a peak, or that the Newton steps do not lead to another maximum, but a numerical search found no
    counterexample.
    """
    result = _iterate(counts, counts / sums, beta)
    several = np.flatnonzero(counts.max(axis=1) < beta)
    _improve(result, several, counts, _peaked(counts[several]), beta)
    current = _moved_to_counts(counts, factor)
    current_is_better = _objective(counts, current, beta) > _objective(counts, result, beta)
    _improve(result, np.flatnonzero(current_is_better), counts, current[current_is_better], beta)
    return result


def _improve(result: Floats, rows: Index, counts: Floats, start: Floats, beta: float) -> None:
    """Run the iteration from `start` in these rows, and update the result where it is better (in place)."""
    if rows.size:
        other = _iterate(counts[rows], start, beta)
        better = _objective(counts[rows], other, beta) > _objective(counts[rows], result[rows], beta)
        result[rows[better]] = other[better]


def _peaked(counts: Floats) -> Floats:
    """Return starts with nearly all probability on the (first) largest count of each row."""
    start = _OFF_PEAK * _shares(counts)
    start[np.arange(len(counts)), counts.argmax(axis=1)] += 1 - _OFF_PEAK
    return start


def _iterate(counts: Floats, factor: Floats, beta: float) -> Floats:
    """Iterate f_k = n_k / (mu - beta log f_k_old), with one mu per row, until convergence.

    The convex function beta sum f log f lies above its tangent at the old f. The step maximizes Q with the tangent in
    place of that term, so it raises Q. A Newton step follows where it is as good, because the iteration alone needs
    hundreds of steps when the best f is close to n / beta.
    """
    result = factor.copy()
    moving = np.arange(len(counts))
    for _ in range(_MAX_STEPS):
        n, f = counts[moving], result[moving]
        with np.errstate(divide="ignore"):
            costs = np.where(n > 0, -beta * np.log(f), np.inf)
        costs -= costs.min(axis=1, keepdims=True)
        step = _shares(n / (_multiplier(n, costs) + costs))
        newton = _newton_step(n, step, beta)
        reached = _objective(n, step, beta)
        as_good = _objective(n, newton, beta) >= reached - _ROUNDING * np.abs(reached)
        step[as_good] = newton[as_good]
        result[moving] = step
        moving = moving[np.abs(step - f).max(axis=1) > _STEP_TOLERANCE]
        if not moving.size:
            break
    return result


def _newton_step(counts: Floats, factor: Floats, beta: float) -> Floats:
    """Return the rows after a Newton step for Q on the simplex. The Hessian of Q is diagonal.

    Rows do not move where Q is not concave, because there Newton's method leads to saddle points, or where the step is
    long. Q is concave along the simplex if all (negated) curvatures are positive, or if one is not and the sum of the
    inverse curvatures is negative.
    """
    positive = counts > 0
    curvature = counts - beta * factor
    scale = np.zeros_like(counts)
    np.divide(factor * factor, curvature, out=scale, where=positive & (curvature != 0))
    convex = (positive & (curvature <= 0)).sum(axis=1)
    total = scale.sum(axis=1)
    concave = (convex == 0) | ((convex == 1) & (total < 0))
    total[~concave] = 1
    gradient = np.zeros_like(counts)
    np.divide(counts, factor, out=gradient, where=positive)
    gradient += beta * np.log(factor, out=np.zeros_like(counts), where=positive)
    move = scale * (gradient - ((scale * gradient).sum(axis=1) / total)[:, np.newaxis])
    near = concave & (np.abs(move) <= factor / 2).all(axis=1)
    return _shares(np.where(near[:, np.newaxis], factor + move, factor))


def _moved_to_counts(counts: Floats, factor: Floats) -> Floats:
    """Return the rows with the probability of entries without counts moved to the largest count, to raise Q."""
    current = np.where(counts > 0, factor, 0)
    current[np.arange(len(counts)), counts.argmax(axis=1)] += np.maximum(1 - current.sum(axis=1), 0)
    return _shares(current)


def _objective(counts: Floats, factor: Floats, beta: float) -> Floats:
    """Return Q of each row."""
    return np.asarray((xlogy(counts, factor) - beta * entr(factor)).sum(axis=1))


def _multiplier(counts: Floats, costs: Floats) -> Floats:
    """Return the root nu > 0 of F(nu) = sum n / (nu + c) = 1 of each row. The smallest c where n > 0 must be zero.

    1 / F, a harmonic mean of lines, is concave and increasing, so Newton's method from the left never passes the root.
    """
    nu = (counts - costs).max(axis=1, keepdims=True)
    for _ in range(_NEWTON_STEPS):
        denominators = nu + costs
        parts = counts / denominators
        total = parts.sum(axis=1, keepdims=True)
        step = total * (total - 1) / (parts / denominators).sum(axis=1, keepdims=True)
        moving = step > 1e-15 * nu
        nu = np.where(moving, nu + step, nu)  # so that a row does not depend on the others
        if not moving.any():
            break
    return np.asarray(nu)


def _more_entropy(counts: Floats, sums: Floats, weight: float) -> Floats:
    """Return the best rows for beta = -weight < 0. They solve n / f - weight log f = mu, and are unique.

    With u = n / (weight f) and t = mu / weight, this is u + log u = t + log(n / weight), so u is the value of Wright's
    omega function (Lambert's W_0 in log form). Multiplying by f and summing gives mu = sum n + weight entropy(f), so t
    is at most log m above sum n / weight. Newton's method on log sum f is kept between the bounds known so far.
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
            new_t = t + np.log(total) * total / (f / (1 + u)).sum(axis=1, keepdims=True)
        inside = (new_t >= low) & (new_t <= high)
        new_t = np.where(inside, new_t, (low + high) / 2)
        new_t = np.where(moving, new_t, t)  # so that a row does not depend on the others
        moving = np.abs(new_t - t) > 1e-14 * np.maximum(np.abs(t), 1)
        t = new_t
        if not moving.any():
            break
    return _shares(_entropic_row(counts, offsets, weight, t)[0])


def _entropic_row(counts: Floats, offsets: Floats, weight: float, t: Floats) -> tuple[Floats, Floats]:
    """Return f = n / (weight u) = exp(u - t), by the more accurate of the two formulas, and u."""
    u = wrightomega(t + offsets)
    return np.where(u > 1, counts / (weight * np.maximum(u, 1)), np.exp(np.minimum(u, 1) - t)), u


def _shares(rows: Floats) -> Floats:
    """Return the rows divided by their sums."""
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
