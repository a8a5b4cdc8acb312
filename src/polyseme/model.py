"""The objective that a fit raises, as operands for the kernel and as M-steps on expected counts.

Plain PLSA: sum_dw x log sum_k theta_dk phi_kw. A temperature beta != 1 (tempered EM, Hofmann 1999) raises the
operands to that power; what then rises is F_beta = (1/beta) sum x log sum_k (theta_dk phi_kw)^beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from polyseme.kernels import Array, Floats, Sums, em_rows, em_words, inner, weighted_sum
from polyseme.stats import ShardStats


class Shard(Protocol):
    """What a source offers of the documents it holds: see sources/memory.py."""

    @property
    def weights(self) -> Floats | None: ...
    @property
    def totals(self) -> Floats: ...
    @property
    def weighted_totals(self) -> Floats: ...
    @property
    def word_totals(self) -> Floats: ...
    @property
    def tokens(self) -> float: ...
    @property
    def n_threads(self) -> int: ...
    def sweep(self, A: Array, B: Array, *, rows: bool = True, words: bool = True, logs: bool = True) -> Sums: ...
    def total_log(self, logs: Floats) -> float: ...


@dataclass(frozen=True)
class Model:
    """PLSA with K topics. Arrays are padded (see kernels.py): theta documents x width, phi words x width."""

    n_topics: int
    temperature: float = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether the kernel's operands are the factors themselves, and nothing is added to the likelihood."""
        return self.temperature == 1.0

    def operand(self, factor: Array) -> Array:
        """What the kernel sees of a factor."""
        return factor if self.temperature == 1.0 else factor**self.temperature

    def objective(self, log_operands: float) -> float:
        """The value that EM raises, from the kernel's sum of x log q."""
        return log_operands / self.temperature


def visit(model: Model, shard: Shard, theta: Array, phi: Array) -> tuple[Array, ShardStats]:
    """One E-step over a shard, and the M-step of its documents: the next theta, and what the shard sends home.

    theta_dk ∝ n_dk, the expected counts n = operand * row_sums. The statistics describe the point (theta, phi) that
    came in. What better theta could gain is at most sum_d n_d log max_k G_dk with G = row_sums / n_d (Jensen); at a
    temperature the total variation of the step stands in for it.
    """
    A, B = model.operand(theta), model.operand(phi)
    sums = shard.sweep(A, B)
    assert sums.row_sums is not None
    assert sums.word_sums is not None
    assert sums.logs is not None
    log_operands = log_likelihood = shard.total_log(sums.logs)
    next_theta, gains = em_rows(A, sums.row_sums, shard.totals, n_threads=shard.n_threads)
    gain = shard.total_log(gains)
    if not model.is_plain:
        logs = shard.sweep(theta, phi, rows=False, words=False).logs
        assert logs is not None
        log_likelihood = shard.total_log(logs)
        gain = inner(np.abs(next_theta - theta).sum(axis=1), shard.weighted_totals) / 2
    mass = weighted_sum(shard.weighted_totals, theta)
    return next_theta, ShardStats(sums.word_sums, log_operands, log_likelihood, shard.tokens, mass, gain)


def improve_words(model: Model, shard: Shard, phi: Array, stats: ShardStats) -> tuple[Array, float]:
    """The M-step of the words, phi_kw ∝ operand * word_sums, and what better phi could gain at most, in nats.

    The bound is sum_w n_w log max_k H_kw / u_k with H = word_sums and u_k = sum_d n_d theta_dk: the duality gap of the
    Poisson problem for phi, which separates over words (scaling x / p by the largest H_kw / u_k makes it feasible for
    the dual). Jensen's N log sum_k max_w H_kw / N is far looser: one rare word decides it.
    """
    next_phi, gains = em_words(
        model.operand(phi), stats.word_sums, stats.topic_mass, shard.word_totals, n_threads=shard.n_threads
    )
    if model.is_plain:
        return next_phi, float(gains.sum())
    return next_phi, inner(np.abs(next_phi - phi).sum(axis=0), stats.topic_mass) / 2
