"""Fewer topics from more: the two topics whose union loses least become one, again and again.

If every token's topic were known, one distribution in place of those of topics i and j, with n_i and n_j tokens, would
lose n_i KL(phi_i || m) + n_j KL(phi_j || m) nats, m their weighted mean. So near-duplicates go first, and topics that
have few tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.factors import rows_to_one
from polyseme.kernels import Array, Floats

_NUMBERS_AT_ONCE = 1 << 22


class Topics(NamedTuple):
    """What a fit knows of its topics."""

    doc_topic: Array
    """P(z|d), documents x K"""
    components: Array
    """P(w|z), K x words"""
    tokens: Floats
    """how many tokens each topic has"""


def merged(topics: Topics, n_topics: int) -> Topics:
    """The topics merged until `n_topics` are left."""
    counts = topics.components.astype(np.float64) * topics.tokens[:, np.newaxis]
    theta = topics.doc_topic.astype(np.float64)
    costs = _all_costs(counts)
    kept = np.ones(len(counts), dtype=bool)
    for _ in range(len(counts) - n_topics):
        first, second = np.unravel_index(np.argmin(costs), costs.shape)
        counts[first] += counts[second]
        theta[:, first] += theta[:, second]
        kept[second] = False
        costs[second], costs[:, second] = np.inf, np.inf
        others = np.flatnonzero(kept)
        others = others[others != first]
        costs[np.minimum(first, others), np.maximum(first, others)] = _costs(counts, int(first), others)
    return Topics(theta[:, kept], rows_to_one(counts[kept]), counts[kept].sum(axis=1))


def merge_costs(components: Array, tokens: Floats) -> Floats:
    """What merging each two topics would lose, in nats: K x K, infinite on and below the diagonal."""
    return _all_costs(components.astype(np.float64) * tokens[:, np.newaxis])


def _all_costs(counts: Floats) -> Floats:
    K = len(counts)
    costs = np.full((K, K), np.inf)
    for first in range(K - 1):
        costs[first, first + 1 :] = _costs(counts, first, np.arange(first + 1, K))
    return costs


def _costs(counts: Floats, first: int, others: Array) -> Floats:
    """E_i + E_j - E_union, E = sum_w c log c - n log n of a topic's counts c and their sum n."""
    step = max(1, _NUMBERS_AT_ONCE // counts.shape[1])
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
