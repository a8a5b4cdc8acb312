"""What a shard of documents sends home after a visit: enough to improve phi and to judge the fit.

Statistics of shards add up to those of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.kernels import Floats


@dataclass(frozen=True)
class ShardStats:
    """Sums over the documents of a shard, each document with its weight."""

    word_sums: Floats
    """sum_d weight r A_d (words x width)"""
    log_operands: float
    """sum x log q, q the product of the operands"""
    log_likelihood: float
    """sum x log P(w|d); the same as log_operands unless the operands are not the factors themselves"""
    tokens: float
    """sum x"""
    topic_mass: Floats
    """sum_d n_d theta_dk (width numbers)"""
    doc_gain: float
    """what re-optimising the document side could still gain, at most, in nats"""
    doc_log_density: float = 0.0
    """of the prior on the documents' weights, each document as often as it counts"""

    def merge(self, other: ShardStats) -> ShardStats:
        """The statistics of both shards together."""
        return ShardStats(
            self.word_sums + other.word_sums,
            self.log_operands + other.log_operands,
            self.log_likelihood + other.log_likelihood,
            self.tokens + other.tokens,
            self.topic_mass + other.topic_mass,
            self.doc_gain + other.doc_gain,
            self.doc_log_density + other.doc_log_density,
        )
