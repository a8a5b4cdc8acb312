"""Distances between distributions, and a map of topics by these distances.

The distributions may be documents P(z|d), words P(z|w), topics P(w|z), or counts of texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, check_sparse, normalize_rows

METRICS = ("symmetric-kl", "hellinger", "cosine")


def word_topics(topic_word: Array, topic_weights: Floats) -> Floats:
    """Return P(z|w) = P(z) P(w|z) / P(w).

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    topic_weights : array-like of shape (K,)
        P(z).

    Returns
    -------
    array of shape (n_words, K)
        P(z|w); zeros for words that no topic has.
    """
    joint = np.asarray(topic_word, dtype=np.float64).T * np.asarray(topic_weights, dtype=np.float64)
    return normalize_rows(joint)


def distances(rows: Any, others: Any = None, metric: str = "hellinger", *, smoothing: float = 1e-3) -> Floats:
    """Return the distances between rows, as distributions p and q.

    | metric | distance |
    |---|---|
    | "hellinger" | sqrt(1 - sum sqrt(p q)), from 0 to 1 |
    | "cosine" | 1 - p q / (norm(p) norm(q)), from 0 to 1 |
    | "symmetric-kl" | sum (p - q) log(p / q) in nats, at least 0 |

    Parameters
    ----------
    rows : array-like or sparse matrix of shape (n_rows, n_columns)
        Non-negative numbers. Rows are scaled to sum to one; a row of zeros counts as uniform.
    others : array-like or sparse matrix of shape (n_others, n_columns), default=None
        Other rows. None: distances of all pairs of `rows`.
    metric : {"hellinger", "cosine", "symmetric-kl"}, default="hellinger"
        The distance.
    smoothing : float, default=1e-3
        For "symmetric-kl", the weight of the uniform distribution that is mixed with p and q. With 0 the distance is
        infinite if only one of them is zero at an entry.

    Returns
    -------
    array of shape (n_rows, n_others)
        The distances.
    """
    if metric not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    if not 0 <= smoothing < 1:
        raise InputError(f"smoothing must be at least 0 and below 1, got {smoothing}.")
    P = _distributions(rows)
    Q = P if others is None else _distributions(others)
    if P.shape[1] != Q.shape[1]:
        raise InputError(f"rows and others must have the same number of columns, got {P.shape[1]} and {Q.shape[1]}.")
    if metric == "symmetric-kl":
        result = _symmetric_kl(P, Q, smoothing)
    elif metric == "hellinger":
        result = np.sqrt(np.maximum(1.0 - _products(_map(P, np.sqrt), _map(Q, np.sqrt)), 0.0))
    else:
        result = np.maximum(1.0 - _products(_unit(P), _unit(Q)), 0.0)
    if others is None:
        np.fill_diagonal(result, 0.0)
    return result


def _distributions(rows: Any) -> Any:
    """Return rows that sum to one, as float64, CSR or dense; rows of zeros become uniform."""
    if not sp.issparse(rows):
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2:
            raise InputError(f"Distances are between the rows of a matrix, got {values.ndim} dimensions.")
        _check_nonnegative(values)
        empty = values.sum(axis=1) == 0
        return normalize_rows(np.where(empty[:, np.newaxis], 1.0, values))
    P = sp.csr_array(check_sparse(rows, "The table"), dtype=np.float64)
    _check_nonnegative(P.data)
    sums = np.asarray(P.sum(axis=1)).ravel()
    if (sums == 0).any():
        uniform = sp.csr_array((sums == 0).astype(np.float64)[:, np.newaxis]) @ sp.csr_array(np.ones((1, P.shape[1])))
        P = sp.csr_array(P + uniform)
        sums = np.asarray(P.sum(axis=1)).ravel()
    P = sp.csr_array(sp.diags_array(1.0 / sums) @ P)
    P.eliminate_zeros()
    return P


def _check_nonnegative(values: Array) -> None:
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("Distances are between distributions: all numbers must be finite and non-negative.")


def _products(P: Any, Q: Any) -> Floats:
    """Return P Q' as a dense array."""
    product = P @ Q.T
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def _map(P: Any, function: Any) -> Any:
    """Apply a function with f(0) = 0 to every number."""
    if not sp.issparse(P):
        return function(P)
    return sp.csr_array((function(P.data), P.indices, P.indptr), P.shape)


def _unit(P: Any) -> Any:
    squares = _map(P, np.square).sum(axis=1)
    lengths = np.sqrt(np.asarray(squares).ravel())
    return sp.csr_array(sp.diags_array(1.0 / lengths) @ P) if sp.issparse(P) else P / lengths[:, np.newaxis]


def _symmetric_kl(P: Any, Q: Any, smoothing: float) -> Floats:
    """Return sum p log p + sum q log q - sum p log q - sum q log p, by matrix products only.

    Smoothed logarithms are log(s) + L with s = smoothing / n, so that L is zero where p is zero and stays sparse.
    """
    n = P.shape[1]
    base = smoothing / n
    weight = 1.0 - smoothing

    def logs(R: Any) -> Any:
        if smoothing > 0:
            return _map(R, lambda p: np.log1p(weight * p / base))
        return _map(R, lambda p: np.log(p, out=np.zeros_like(p), where=p > 0))

    def cross(R: Any, L: Any) -> Floats:
        """sum r log q without the constant log(s), which cancels."""
        return np.asarray(weight * _products(R, L) + base * np.asarray(L.sum(axis=1)).ravel())

    def own(R: Any, L: Any) -> Floats:
        products = R.multiply(L) if sp.issparse(R) else R * L
        return np.asarray(weight * np.asarray(products.sum(axis=1)).ravel() + base * np.asarray(L.sum(axis=1)).ravel())

    LP, LQ = logs(P), logs(Q)
    result = own(P, LP)[:, np.newaxis] + own(Q, LQ) - cross(P, LQ) - cross(Q, LP).T
    result = np.maximum(result, 0.0)
    if smoothing == 0:
        in_p, in_q = _map(P, np.sign), _map(Q, np.sign)
        both = _products(in_p, in_q)
        only_one = (np.asarray(in_p.sum(axis=1)).ravel()[:, np.newaxis] > both) | (
            np.asarray(in_q.sum(axis=1)).ravel() > both
        )
        result[only_one] = np.inf
    return np.asarray(result)


def classical_scaling(distances: Floats) -> Floats:
    """Return places in the plane (K x 2) with nearly these distances, by classical multidimensional scaling.

    They are the leading eigenvectors of -J D^2 J / 2 with J = I - 1/K, times the square roots of the eigenvalues. The
    coordinate of each axis with the largest absolute value is positive.

    Torgerson, W. S. (1952). Multidimensional scaling: I. Theory and method. Psychometrika 17, 401-419.
    """
    K = len(distances)
    squares = distances**2
    centered = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean()
    values, vectors = np.linalg.eigh(-centered / 2)
    places = np.zeros((K, 2))
    for axis in range(min(2, K)):
        value, vector = values[-1 - axis], vectors[:, -1 - axis]
        if value > 1e-12:
            sign = np.sign(vector[np.argmax(np.abs(vector))])
            places[:, axis] = sign * vector * np.sqrt(value)
    return places
