"""The factors theta = P(z|d) and phi = P(w|z): conversion to NMF, matching of topics.

Solvers store phi word-major (words x K, columns sum to one), so that the K values of a word are contiguous.

References
----------
E. Gaussier and C. Goutte (2005). Relation between PLSA and NMF and implications. SIGIR, 601-602.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyseme.kernels import Array, Floats


class PLSAParameters(NamedTuple):
    """Parameters of the symmetric form, and the sum of the matrix they were computed from."""

    topic_weights: Floats
    """P(z), shape (K,)."""
    topic_doc: Floats
    """P(d|z), K x documents."""
    topic_word: Floats
    """P(w|z), K x words."""
    total: float
    """Sum of all entries of W H."""


def nmf_to_plsa(W: Array, H: Array) -> PLSAParameters:
    """Write W H (documents x K, K x words) as total * sum_z P(z) P(d|z) P(w|z) (Gaussier and Goutte 2005).

    With A_k = sum_d W_dk and B_k = sum_w H_kw: P(d|z) = W / A, P(w|z) = H / B, P(z) = A B / sum(A B). The product does
    not change. A component that is zero in W or in H has weight zero.
    """
    W, H = W.astype(np.float64), H.astype(np.float64)
    A, B = W.sum(axis=0), H.sum(axis=1)
    weights = A * B
    total = float(weights.sum())
    topic_doc = _rows_or_uniform(W.T, A)
    topic_word = _rows_or_uniform(H, B)
    return PLSAParameters(weights / total if total > 0 else weights, topic_doc, topic_word, total)


def plsa_to_nmf(parameters: PLSAParameters) -> tuple[Floats, Floats]:
    """Return W = total * P(z) P(d|z) (documents x K) and H = P(w|z) (K x words), the inverse of `nmf_to_plsa`."""
    W = parameters.total * parameters.topic_doc.T * parameters.topic_weights
    return W, parameters.topic_word.copy()


def align(topics: Array, others: Array) -> tuple[Array, Floats]:
    """Match topics (K x words) with other topics (K' x words) one to one with the smallest total distance.

    Returns `order`, where others[order[i]] is the match of topics[i] (-1 for a topic without a match, if K' < K), and
    the total variation distance of each pair (half the sum of absolute differences; 1 without a match).
    """
    cost = np.array([0.5 * np.abs(others - topic).sum(axis=1) for topic in topics])
    left, right = linear_sum_assignment(cost)
    order = np.full(len(topics), -1)
    distance = np.ones(len(topics))
    order[left], distance[left] = right, cost[left, right]
    return order, distance


def _rows_or_uniform(rows: Floats, sums: Floats) -> Floats:
    """Return the rows divided by their sums; rows whose sum is zero become uniform."""
    result = np.full(rows.shape, 1.0 / rows.shape[1])
    np.divide(rows, sums[:, np.newaxis], out=result, where=sums[:, np.newaxis] > 0)
    return result
