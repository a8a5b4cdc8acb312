"""Update rules of the papers in NumPy, without polyseme.

The orientation is that of Zhang, Ding and Tang: X is words x documents and sums to one; F and C are words x K, G and H
documents x K, S holds K numbers (the diagonal). Every function takes stacks: axes in front are problems side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_TINY = 1e-300


class Triple(NamedTuple):
    """C = P(w|z), S = P(z), H = P(d|z)."""

    C: Array
    S: Array
    H: Array


class Pair(NamedTuple):
    """F (words x K) and G (documents x K)."""

    F: Array
    G: Array


def t(A: Array) -> Array:
    """Return the transpose of each matrix of a stack."""
    return np.swapaxes(A, -1, -2)


def scaled(A: Array, s: Array) -> Array:
    """Return A diag(s)."""
    return A * s[..., np.newaxis, :]


def sums(A: Array) -> Array:
    """Return column sums."""
    return A.sum(axis=-2)


def to_one(A: Array) -> Array:
    """Return A with columns that sum to one."""
    return scaled(A, 1 / np.maximum(sums(A), _TINY))


def ratio(X: Array, P: Array) -> Array:
    """Return X / P, with zeros where X is zero."""
    return np.divide(X, P, out=np.zeros(np.broadcast_shapes(X.shape, P.shape)), where=(X > 0) & (P > 0))


def product(triple: Triple) -> Array:
    """Return C S H'."""
    return scaled(triple.C, triple.S) @ t(triple.H)


def normalized(pair: Pair) -> Triple:
    """Return the same product with columns of C and H that sum to one."""
    return Triple(to_one(pair.F), sums(pair.F) * sums(pair.G), to_one(pair.G))


def divergence(X: Array, P: Array) -> Array:
    """Return sum X log(X / P) - X + P."""
    logs = np.log(ratio(X, P), out=np.zeros(P.shape), where=X > 0)
    return (X * logs - X + P).sum(axis=(-1, -2))


def posterior_em(X: Array, now: Triple) -> Triple:
    """Run the EM step of Zhang et al., eq. 1 and 2 (EM of Gaussier and Goutte), with explicit posteriors."""
    joint = scaled(now.C, now.S)[..., :, np.newaxis, :] * now.H[..., np.newaxis, :, :]
    expected = X[..., np.newaxis] * joint / joint.sum(axis=-1, keepdims=True)
    mass = expected.sum(axis=(-3, -2))
    return Triple(scaled(expected.sum(axis=-2), 1 / mass), mass, scaled(expected.sum(axis=-3), 1 / mass))


def em(X: Array, now: Triple) -> Triple:
    """Run the same step by eq. 3, without posteriors; all three factors are updated from the old ones."""
    R = ratio(X, product(now))
    C = now.C * (R @ now.H)
    return Triple(to_one(C), now.S * sums(C), to_one(now.H * (t(R) @ now.C)))


def new_F(X: Array, now: Pair) -> Array:
    """Run line 2 of Algorithm 1."""
    return scaled(now.F * (ratio(X, now.F @ t(now.G)) @ now.G), 1 / np.maximum(sums(now.G), _TINY))


def new_G(X: Array, now: Pair) -> Array:
    """Run line 3 of Algorithm 1."""
    return new_F(t(X), Pair(now.G, now.F))


def nmf_printed(X: Array, now: Pair) -> Pair:
    """Run Algorithm 1 as printed: both factors are updated from the old ones."""
    return Pair(new_F(X, now), new_G(X, now))


def nmf(X: Array, now: Pair) -> Pair:
    """Run Algorithm 1 in Gauss-Seidel order: G is updated with the new F."""
    return many_nmf(X, now, 1, 1)


def many_nmf(X: Array, now: Pair, times_F: int, times_G: int) -> Pair:
    """Update F several times, then G several times (section 5)."""
    for _ in range(times_F):
        now = Pair(new_F(X, now), now.G)
    for _ in range(times_G):
        now = Pair(now.F, new_G(X, now))
    return now


def plsi_printed(X: Array, now: Triple) -> Triple:
    """Run Algorithm 2 as printed: H is divided by diag(C' R H) with the old C, and its R has the old S."""
    C = to_one(now.C * (ratio(X, product(now)) @ now.H))
    R = ratio(X, product(Triple(C, now.S, now.H)))
    S = now.S * sums(C * (R @ now.H))
    H = scaled(now.H * (t(R) @ C), 1 / sums(now.C * (R @ now.H)))
    return Triple(C, S, H)


def plsi(X: Array, now: Triple) -> Triple:
    """Run Algorithm 2, corrected: R is recomputed before every line, and each line uses the newest factors."""
    C = to_one(now.C * (ratio(X, product(now)) @ now.H))
    S = now.S * sums(C * (ratio(X, product(Triple(C, now.S, now.H))) @ now.H))
    H = to_one(now.H * (t(ratio(X, product(Triple(C, S, now.H)))) @ C))
    return Triple(C, S, H)


def normalized_nmf_printed(X: Array, now: Triple) -> Triple:
    """Run Algorithm 3 as printed: lines 2 to 5 with every right-hand side at t - 1 (line 5 repeats line 3)."""
    R = ratio(X, product(now))
    q = sums(now.C * (R @ now.H))
    C = scaled(now.C * (R @ now.H), 1 / q)
    H = scaled(now.H * (t(R) @ now.C), 1 / q)
    return Triple(C, now.S * q, H)


def normalized_nmf(X: Array, now: Triple) -> Triple:
    """Run Algorithm 3 in Gauss-Seidel order: C and S, then H and S from the new values."""
    C = now.C * (ratio(X, product(now)) @ now.H)
    half = Triple(to_one(C), now.S * sums(C), now.H)
    H = now.H * (t(ratio(X, product(half))) @ half.C)
    return Triple(half.C, half.S * sums(H), to_one(H))
