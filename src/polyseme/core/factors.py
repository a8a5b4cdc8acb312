"""The two factors, theta = P(z|d) and phi = P(w|z): normalizing, the symmetric view, the link to NMF, matching.

Inside the solvers phi is kept word-major (words x K, columns sum to one), so that a word's K values lie together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyseme.kernels import Array, Floats


def rows_to_one(factor: Array) -> Array:
    """Rows divided by their sums; a row of zeros stays one."""
    sums = factor.sum(axis=1, dtype=np.float64, keepdims=True)
    return np.asarray(factor / np.where(sums > 0, sums, 1).astype(factor.dtype))


def columns_to_one(factor: Array) -> Array:
    """Columns divided by their sums; a column of zeros stays one."""
    sums = factor.sum(axis=0, dtype=np.float64)
    return np.asarray(factor / np.where(sums > 0, sums, 1).astype(factor.dtype))


class SymmetricView(NamedTuple):
    """P(d,w) = sum_z P(z) P(d|z) P(w|z), from the asymmetric P(d) sum_z P(z|d) P(w|z)."""

    topic_weights: Floats
    """P(z), K numbers"""
    topic_doc: Floats
    """P(d|z), K x documents, rows sum to one"""


def symmetric_view(doc_topic: Array, doc_weights: Floats) -> SymmetricView:
    """By Bayes: P(z) = sum_d P(d) P(z|d) and P(d|z) = P(d) P(z|d) / P(z).

    A topic of weight zero gets P(d|z) = P(d).
    """
    joint = doc_topic.astype(np.float64).T * doc_weights
    weights = joint.sum(axis=1)
    topic_doc = np.tile(doc_weights, (joint.shape[0], 1))
    np.divide(joint, weights[:, np.newaxis], out=topic_doc, where=weights[:, np.newaxis] > 0)
    return SymmetricView(weights, topic_doc)


class PLSAParameters(NamedTuple):
    """P(z), P(d|z) (K x documents), P(w|z) (K x words), and the total that was divided out."""

    topic_weights: Floats
    topic_doc: Floats
    topic_word: Floats
    total: float


def nmf_to_plsa(W: Array, H: Array) -> PLSAParameters:
    """V = W H (documents x K, K x words) as total * sum_z P(z) P(d|z) P(w|z) (Gaussier and Goutte 2005).

    With A_k = sum_d W_dk and B_k = sum_w H_kw: P(d|z) = W / A, P(w|z) = H / B, P(z) = A B / sum(A B).
    The product is kept exactly; a component that is zero on either side has weight zero.
    """
    W, H = W.astype(np.float64), H.astype(np.float64)
    A, B = W.sum(axis=0), H.sum(axis=1)
    weights = A * B
    total = float(weights.sum())
    topic_doc = _rows_or_uniform(W.T, A)
    topic_word = _rows_or_uniform(H, B)
    return PLSAParameters(weights / total if total > 0 else weights, topic_doc, topic_word, total)


def plsa_to_nmf(parameters: PLSAParameters) -> tuple[Floats, Floats]:
    """W = total * P(z) P(d|z) (documents x K) and H = P(w|z) (K x words): the way back."""
    W = parameters.total * parameters.topic_doc.T * parameters.topic_weights
    return W, parameters.topic_word.copy()


def _rows_or_uniform(rows: Floats, sums: Floats) -> Floats:
    result = np.full(rows.shape, 1.0 / rows.shape[1])
    np.divide(rows, sums[:, np.newaxis], out=result, where=sums[:, np.newaxis] > 0)
    return result


def align(topics: Array, others: Array) -> tuple[Array, Floats]:
    """Matches topics (K x words) with others (K' x words) one to one, so that the total distance is least.

    Returns `order`, with others[order[i]] the partner of topics[i] (-1 where K' < K leaves none), and the total
    variation distance of each pair (half the sum of absolute differences; 1 for no partner).
    """
    cost = np.array([0.5 * np.abs(others - topic).sum(axis=1) for topic in topics])
    left, right = linear_sum_assignment(cost)
    order = np.full(len(topics), -1)
    distance = np.ones(len(topics))
    order[left], distance[left] = right, cost[left, right]
    return order, distance
