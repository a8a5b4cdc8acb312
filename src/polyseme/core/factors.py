"""The factors theta = P(z|d) and phi = P(w|z): conversion to NMF, matching and merging of topics.

Solvers store phi word-major (words x K, columns sum to one), so that the K values of a word are contiguous.

Merging: if the topic of every token were known, one distribution in place of those of topics i and j, with n_i and n_j
tokens, would lose

    n_i KL(phi_i || m) + n_j KL(phi_j || m)

nats, with m their weighted mean. The pair with the smallest loss is merged first: near-duplicates, and topics with few
tokens.

References
----------
E. Gaussier and C. Goutte (2005). Relation between PLSA and NMF and implications. SIGIR, 601-602.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyseme.kernels import Array, Floats, normalize_rows

_START_SMOOTHING = 1e-3
"""Weight of the unigram in every topic, and of all topics in every document, of a merged start: EM keeps zeros."""
_BLOCK_NUMBERS = 1 << 22


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


def merged_start(topic_counts: Floats, doc_topic: Array, n_topics: int) -> tuple[Floats, Floats]:
    """Return a start of a fit with fewer topics, P(z|d) and P(w|z) without zeros, by merging those of a larger one."""
    counts, doc_topic = merge_topics(topic_counts, doc_topic, n_topics)
    topic_word = normalize_rows(counts)
    unigram = normalize_rows(counts.sum(axis=1)[np.newaxis] @ topic_word)
    return (
        (1 - _START_SMOOTHING) * normalize_rows(doc_topic) + _START_SMOOTHING / n_topics,
        (1 - _START_SMOOTHING) * topic_word + _START_SMOOTHING * unigram,
    )


def merge_topics(topic_counts: Floats, doc_topic: Array, n_topics: int) -> tuple[Floats, Floats]:
    """Merge topics until `n_topics` are left. Returns their expected counts (K x words) and P(z|d) (documents x K)."""
    counts, theta = topic_counts.copy(), doc_topic.astype(np.float64)
    costs = merge_costs(counts)
    remaining = np.ones(len(counts), dtype=bool)
    for _ in range(len(counts) - n_topics):
        first, second = np.unravel_index(np.argmin(costs), costs.shape)
        counts[first] += counts[second]
        theta[:, first] += theta[:, second]
        remaining[second] = False
        costs[second], costs[:, second] = np.inf, np.inf
        others = np.flatnonzero(remaining)
        others = others[others != first]
        costs[np.minimum(first, others), np.maximum(first, others)] = _costs(counts, int(first), others)
    return counts[remaining], theta[:, remaining]


def merge_costs(topic_counts: Floats) -> Floats:
    """Return the loss of merging each pair of topics in nats: K x K, infinite on and below the diagonal."""
    K = len(topic_counts)
    costs = np.full((K, K), np.inf)
    for first in range(K - 1):
        costs[first, first + 1 :] = _costs(topic_counts, first, np.arange(first + 1, K))
    return costs


def _costs(counts: Floats, first: int, others: Array) -> Floats:
    """Return E_i + E_j - E_union, with E = sum_w c log c - n log n of the counts c of a topic and their sum n."""
    step = max(1, _BLOCK_NUMBERS // counts.shape[1])
    own = _negative_entropy(counts[first : first + 1])
    parts = [
        own + _negative_entropy(counts[some]) - _negative_entropy(counts[some] + counts[first])
        for some in (others[start : start + step] for start in range(0, others.size, step))
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _negative_entropy(counts: Floats) -> Floats:
    sums = counts.sum(axis=1)
    return np.asarray(_x_log_x(counts).sum(axis=1) - _x_log_x(sums))


def _x_log_x(x: Floats) -> Floats:
    return np.asarray(x * np.log(x, out=np.zeros_like(x), where=x > 0))


def _rows_or_uniform(rows: Floats, sums: Floats) -> Floats:
    """Return the rows divided by their sums; rows whose sum is zero become uniform."""
    result = np.full(rows.shape, 1.0 / rows.shape[1])
    np.divide(rows, sums[:, np.newaxis], out=result, where=sums[:, np.newaxis] > 0)
    return result
