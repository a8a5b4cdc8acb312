"""Distances between distributions: documents by P(z|d), words by P(z|w), topics by P(w|z), or texts by their counts.

A map of the topics: a plane that keeps their distances as well as a plane can.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.core.factors import rows_to_one
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, checked_sparse

METRICS = ("symmetric-kl", "hellinger", "cosine")


def word_topics(topic_word: Array, topic_weights: Floats) -> Floats:
    """P(z|w), words x K, by Bayes: P(z) P(w|z) / P(w); rows of zeros for words of no topic."""
    joint = np.asarray(topic_word, dtype=np.float64).T * np.asarray(topic_weights, dtype=np.float64)
    return rows_to_one(joint)


def distances(rows: Any, others: Any = None, metric: str = "hellinger", *, smoothing: float = 1e-3) -> Floats:
    """The distance of every row to every row of `others` (else to each other): rows x others.

    Rows are non-negative, dense or sparse, and scaled to sum to one; a row of zeros says nothing, and counts as
    uniform. With distributions p and q:

    "hellinger"     sqrt(1 - sum sqrt(p q)), from 0 to 1
    "cosine"        1 - p q / (|p| |q|), from 0 to 1
    "symmetric-kl"  sum (p - q) log(p / q), in nats, from 0. It is infinite where only one of the two is zero, so both
                    are first mixed with `smoothing` of the uniform distribution; 0 gives the bare formula.
    """
    if metric not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    if not 0 <= smoothing < 1:
        raise InputError(f"smoothing must be at least 0 and below 1, got {smoothing}.")
    P = _distributions(rows)
    Q = P if others is None else _distributions(others)
    if P.shape[1] != Q.shape[1]:
        raise InputError(f"Rows and others must be equally long, got {P.shape[1]} and {Q.shape[1]} numbers.")
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
    """Rows that sum to one, as float64, CSR or dense; rows of zeros become uniform."""
    if not sp.issparse(rows):
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2:
            raise InputError(f"Distances are between the rows of a table, got {values.ndim} dimensions.")
        _refuse_negative(values)
        empty = values.sum(axis=1) == 0
        return rows_to_one(np.where(empty[:, np.newaxis], 1.0, values))
    P = sp.csr_array(checked_sparse(rows, "The table"), dtype=np.float64)
    _refuse_negative(P.data)
    sums = np.asarray(P.sum(axis=1)).ravel()
    if (sums == 0).any():
        uniform = sp.csr_array((sums == 0).astype(np.float64)[:, np.newaxis]) @ sp.csr_array(np.ones((1, P.shape[1])))
        P = sp.csr_array(P + uniform)
        sums = np.asarray(P.sum(axis=1)).ravel()
    P = sp.csr_array(sp.diags_array(1.0 / sums) @ P)
    P.eliminate_zeros()
    return P


def _refuse_negative(values: Array) -> None:
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("Distances are between distributions: numbers must be finite and not negative.")


def _products(P: Any, Q: Any) -> Floats:
    """P Q' as a dense array."""
    product = P @ Q.T
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def _map(P: Any, function: Any) -> Any:
    """A function with f(0) = 0 of every number."""
    if not sp.issparse(P):
        return function(P)
    return sp.csr_array((function(P.data), P.indices, P.indptr), P.shape)


def _unit(P: Any) -> Any:
    squares = _map(P, np.square).sum(axis=1)
    lengths = np.sqrt(np.asarray(squares).ravel())
    return sp.csr_array(sp.diags_array(1.0 / lengths) @ P) if sp.issparse(P) else P / lengths[:, np.newaxis]


def _symmetric_kl(P: Any, Q: Any, smoothing: float) -> Floats:
    """By products of matrices alone: sum p log p + sum q log q - sum p log q - sum q log p.

    Smoothed logarithms are log(s) + L with s = smoothing / n, so that L is zero where p is, and stays sparse.
    """
    n = P.shape[1]
    base = smoothing / n
    kept = 1.0 - smoothing

    def logs(R: Any) -> Any:
        if smoothing > 0:
            return _map(R, lambda p: np.log1p(kept * p / base))
        return _map(R, lambda p: np.log(p, out=np.zeros_like(p), where=p > 0))

    def cross(R: Any, L: Any) -> Floats:
        """sum r log q without the constant log(s), which cancels."""
        return np.asarray(kept * _products(R, L) + base * np.asarray(L.sum(axis=1)).ravel())

    def own(R: Any, L: Any) -> Floats:
        products = R.multiply(L) if sp.issparse(R) else R * L
        return np.asarray(kept * np.asarray(products.sum(axis=1)).ravel() + base * np.asarray(L.sum(axis=1)).ravel())

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
    """Places in the plane, K x 2 (classical multidimensional scaling; Torgerson 1952).

    With J = I - 1/K the leading eigenvectors of -J D^2 J / 2, each times the root of its eigenvalue. The sign of each
    axis is such that its largest coordinate is positive.
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
