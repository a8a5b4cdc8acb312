"""The smallest simplex around points, with a soft margin.

Points are given by their barycentric coordinates b (points x K) in some simplex with corners v. Let all faces but the
one opposite corner k stay. Then the new simplex has the corners v_k and v_k + (v_j - v_k) / u_j, its volume is the old
one divided by prod_j u_j, and a point lies behind the new face if sum_j b_j u_j <= 1. So the best face solves

    max  sum_j log u_j - sum_i cap_i max(0, sum_j b_ij u_j - 1)       over u > 0, j != k,

which is concave, and the coordinates in the new simplex are b_j u_j and, for k, one minus their sum. The faces take
turns until none moves. With cap_i = (K - 1) weight_i / (margin x total weight) the points beyond a face weigh at most
the share `margin` of all (as nu does in the nu-SVM); if that is less than any one point, no point is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.kernels import Floats


class _Effort(NamedTuple):
    """How far a search goes: precision of a face (nats), the step of a corner that still counts, most rounds."""

    precision: float
    settled: float
    rounds: int


_ROUGH = _Effort(1e-3, 3e-2, 10)
_FINE = _Effort(1e-7, 1e-4, 20)


class Simplex(NamedTuple):
    """Corners (K x K-1) and what they cost: log volume plus the penalties of the points outside."""

    corners: Floats
    cost: float


def smallest_simplex(points: Floats, starts: list[Floats], margin: float, weights: Floats) -> Simplex:
    """The best of the simplices reached from `starts`, each K corners in K - 1 dimensions.

    points : n x (K-1); weights : n positive numbers; margin : the share of their sum that may lie beyond any one face.
    """
    if points.shape[1] == 0:
        return Simplex(starts[0], 0.0)
    best, *others = [_settled(points, corners, margin, weights, _ROUGH) for corners in starts]
    for other in others:
        if other.cost < best.cost - _ROUGH.precision:
            best = other
    return _settled(points, best.corners, margin, weights, _FINE)


def barycentric(points: Floats, corners: Floats) -> Floats:
    """Coordinates b (points x K), b v = point and sum b = 1, of points in K - 1 dimensions."""
    edges = (corners[:-1] - corners[-1]).T
    first = np.linalg.solve(edges, (points - corners[-1]).T).T
    return np.column_stack([first, 1 - first.sum(axis=1)])


def _settled(points: Floats, corners: Floats, margin: float, weights: Floats, effort: _Effort) -> Simplex:
    K = len(corners)
    allowed = margin * weights.sum()
    caps = np.full(len(weights), 2.0 * (K - 1))  # no point's multiplier can exceed K - 1: so much is a hard margin
    if allowed > 0:
        caps = np.minimum((K - 1) * weights / allowed, caps)
    b = barycentric(points, corners)
    corners, b = _moved_out(corners, b, allowed, weights)
    for _ in range(effort.rounds):
        largest = 0.0
        for k in range(K):
            others = np.arange(K) != k
            u = _best_face(b[:, others], caps, effort.precision)
            b[:, others] *= u
            b[:, k] = 1 - b[:, others].sum(axis=1)
            corners[others] = corners[k] + (corners[others] - corners[k]) / u[:, np.newaxis]
            largest = max(largest, float(np.abs(np.log(u)).max()))
        if largest < effort.settled:
            break
    volume = np.linalg.slogdet(corners[:-1] - corners[-1])[1]
    return Simplex(corners, float(volume + (caps * np.maximum(-b, 0).sum(axis=1)).sum()))


def _moved_out(corners: Floats, b: Floats, allowed: float, weights: Floats) -> tuple[Floats, Floats]:
    """Every face moved out, in parallel, until the points beyond it weigh no more than is allowed."""
    low = np.zeros(len(corners))
    for k in range(len(corners)):
        order = np.argsort(b[:, k], kind="stable")
        first_kept = int((np.cumsum(weights[order]) <= allowed).sum())
        low[k] = min(float(b[order[min(first_kept, len(order) - 1)], k]), 0.0)
    size = 1 - low.sum()
    return size * corners + low @ corners, (b - low) / size


def _best_face(b: Floats, caps: Floats, precision: float) -> Floats:
    """u of the module's problem, by Newton's method on a smoothed hinge whose smoothing mu goes to zero.

    Points far behind the face have no part in it, and are left out until one is seen beyond it.
    """
    K = b.shape[1] + 1
    depth = 1 - b.sum(axis=1)
    near = depth <= (np.partition(depth, len(depth) // 4)[len(depth) // 4] if len(depth) > 200 * K else np.inf)
    while True:
        u = _newton(b[near], caps[near], precision)
        missed = ~near & (b @ u > 1)
        if not missed.any():
            return u
        near |= missed


def _newton(b: Floats, caps: Floats, precision: float) -> Floats:
    n, m = b.shape
    u, mu = np.ones(m), 0.1 * m / n
    while True:
        behind, slack = _slacks(b @ u - 1, caps, mu)
        for _ in range(50):
            p, q = mu / behind, mu / slack
            curvature = p * q / (q * behind + p * slack)
            gradient = b.T @ p - 1 / u
            step = -np.linalg.solve((b * curvature[:, np.newaxis]).T @ b + np.diag(u**-2.0), gradient)
            gain = -gradient @ step
            shrinking = step < 0
            length = min(1.0, 0.95 * float((-u / np.where(shrinking, step, -np.inf)).min(initial=2.0, where=shrinking)))
            before = _barrier(u, behind, slack, caps, mu)
            while True:
                trial = u + length * step
                behind, slack = _slacks(b @ trial - 1, caps, mu)
                if length < 1e-6 or _barrier(trial, behind, slack, caps, mu) <= before - 1e-4 * length * gain:
                    break
                length /= 2
            u = trial
            if gain < 0.1 * mu * n:
                break
        if mu * n < precision:
            return u
        mu *= 0.1


def _slacks(beyond: Floats, caps: Floats, mu: float) -> tuple[Floats, Floats]:
    """r and s > 0 with s - r = beyond and mu / r + mu / s = cap: the hinge cap max(beyond, 0) is cap s for mu = 0."""
    a = caps * beyond
    root = np.sqrt(a * a + 4 * mu * mu)
    long = root + np.abs(a)
    short = 4 * mu * mu / long
    r = (2 * mu + np.where(a > 0, short, long)) / (2 * caps)
    s = (2 * mu + np.where(a > 0, long, short)) / (2 * caps)
    return r, s


def _barrier(u: Floats, r: Floats, s: Floats, caps: Floats, mu: float) -> float:
    return float((caps * s).sum() - mu * (np.log(r) + np.log(s)).sum() - np.log(u).sum())
