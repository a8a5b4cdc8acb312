"""Dense reference implementation of the models and the EM of Hong (2012), with posteriors as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulas import Array


class Asymmetric(NamedTuple):
    """Formulation 1."""

    theta: Array
    """P(z|d), documents x K"""
    phi: Array
    """P(w|z), K x words"""


class Symmetric(NamedTuple):
    """Formulation 2."""

    weights: Array
    """P(z)"""
    docs: Array
    """P(d|z), K x documents"""
    phi: Array
    """P(w|z), K x words"""


def start(X: Array, K: int, seed: int) -> Asymmetric:
    rng = np.random.default_rng([seed, 2012])
    return Asymmetric(rng.dirichlet(np.ones(K), len(X)), rng.dirichlet(np.ones(X.shape[1]), K))


def normalize_rows(factor: Array) -> Array:
    return to_one(factor, axis=1)


def to_one(numbers: Array, axis: int) -> Array:
    """Divide by the sums; zeros stay zeros, which happens only for words that do not occur."""
    total = numbers.sum(axis=axis, keepdims=True)
    return numbers / np.where(total > 0, total, 1)


def weighted(X: Array, values: Array) -> float:
    """Return sum n values over the words that occur."""
    return float((X[X > 0] * values[X > 0]).sum())


def log_likelihood(X: Array, P: Array) -> float:
    return weighted(X, np.log(P, out=np.zeros_like(P), where=X > 0))


def posterior(now: Asymmetric) -> Array:
    """Return P(z|d,w), documents x words x K; theta may be scaled by P(d)."""
    return to_one(now.theta[:, np.newaxis, :] * now.phi.T, axis=2)


def by_terms(X: Array, now: Asymmetric) -> Asymmetric:
    """Run equations 13 and 14, which are equal to 33 to 35."""
    expected = X[:, :, np.newaxis] * posterior(now)
    return Asymmetric(expected.sum(axis=1) / X.sum(axis=1, keepdims=True), normalize_rows(expected.sum(axis=0).T))


def by_tokens(X: Array, now: Asymmetric) -> Asymmetric:
    """Run equations 8 to 12, with a posterior for every position of every document."""
    theta, phi = np.zeros_like(now.theta), np.zeros_like(now.phi)
    for d, row in enumerate(X.astype(int)):
        for w in np.repeat(np.arange(len(row)), row):
            R = now.phi[:, w] * now.theta[d]
            R = R / R.sum()
            theta[d] += R
            phi[:, w] += R
    return Asymmetric(theta / X.sum(axis=1, keepdims=True), normalize_rows(phi))


def symmetric_step(X: Array, now: Symmetric) -> Symmetric:
    """Run equations 36 to 38."""
    expected = X[:, :, np.newaxis] * posterior(Asymmetric(now.weights * now.docs.T, now.phi))
    mass = expected.sum(axis=(0, 1))
    return Symmetric(mass / X.sum(), normalize_rows(expected.sum(axis=1).T), normalize_rows(expected.sum(axis=0).T))


def as_symmetric(X: Array, now: Asymmetric) -> Symmetric:
    """Apply Bayes' rule, with P(d) = n(d) / N (equation 33)."""
    joint = now.theta * (X.sum(axis=1) / X.sum())[:, np.newaxis]
    return Symmetric(joint.sum(axis=0), normalize_rows(joint.T), now.phi)


def joint_of(now: Symmetric) -> Array:
    """Return P(d,w), equation 22."""
    return (now.weights * now.docs.T) @ now.phi
