"""Simulation of an iteration on a cluster, from rates that are measured on this machine.

A worker runs the E-step of its shards one after the other and adds their statistics. The statistics of the workers are
added in a tree over the network, with FAN_IN children per node. One worker runs the M-step of the topics and sends them
to all others, where the number of receivers doubles in each round.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np

from common import time_call
from polyseme.core.model import Model, e_step, m_step
from polyseme.core.shard import FAN_IN, merged
from polyseme.data.dask import connected
from polyseme.data.disk import DiskCorpus
from polyseme.kernels import padded_width
from polyseme.solvers.initialize import named_start

FLOAT32 = np.dtype(np.float32)
MOST_SHARDS = 8
WORKERS = (16, 64, 256, 1024)


class Rates(NamedTuple):
    """Speed of one worker with one thread."""

    nanoseconds: float
    """Time of an E-step per non-zero."""
    merge: float
    """Bytes of statistics per second that are added to others."""
    m_step: float
    """Bytes of statistics per second in the M-step."""
    transfer: float
    """Bytes per second between two worker processes on this machine."""

    def summary(self) -> str:
        """Return all rates in one line."""
        return (
            f"rates of one worker: {self.nanoseconds:.0f} ns per non-zero, sums added at {self.merge / 1e9:.1f} GB/s, "
            f"M-step at {self.m_step / 1e9:.1f} GB/s, sent to another process at {self.transfer / 1e9:.2f} GB/s"
        )


class Size(NamedTuple):
    """Size of a corpus and its model."""

    topics: int
    words: int
    documents: int
    shard_nonzeros: list[int]

    @property
    def sum_bytes(self) -> int:
        """Size of the statistics of a shard."""
        return 8 * self.words * padded_width(self.topics)

    @property
    def topic_bytes(self) -> int:
        return self.sum_bytes // 2


class Iteration(NamedTuple):
    """Seconds of the parts of an iteration."""

    e_steps: float
    """E-steps and sums of the slowest worker."""
    mean_e_steps: float
    tree: float
    """Sums over the workers, and the M-step."""
    topics_out: float

    @property
    def seconds(self) -> float:
        return self.e_steps + self.tree + self.topics_out


def iteration(size: Size, workers: int, rates: Rates, network: float, speeds: Any = 1.0) -> Iteration:
    """Return the seconds of an iteration; `speeds` are relative speeds of the E-steps of the shards, with mean one."""
    n_shards = len(size.shard_nonzeros)
    each = 1e-9 * rates.nanoseconds * np.array(size.shard_nonzeros) / speeds
    each = each + size.sum_bytes / rates.merge
    busy = np.zeros(workers)
    np.add.at(busy, np.arange(n_shards) * workers // n_shards, each)  # consecutive shards belong to one worker
    tree, left = 0.0, workers
    while left > 1:
        children = min(FAN_IN, left)
        tree += (children - 1) * (size.sum_bytes / network + size.sum_bytes / rates.merge)
        left = -(-left // FAN_IN)
    tree += size.sum_bytes / rates.m_step
    out = int(np.ceil(np.log2(workers))) * size.topic_bytes / network
    return Iteration(float(busy.max()), float(busy.mean()), tree, out)


def measure_rates(shards: DiskCorpus, topics: int, seed: int) -> Rates:
    """Return medians over some shards, with one thread."""
    model, each, stats = Model(topics), [], []
    with shards.session(FLOAT32, 1) as corpus:
        theta, phi = named_start("random", corpus, model, np.random.default_rng(seed))
        for number in range(min(MOST_SHARDS, corpus.n_shards)):
            shard = corpus.shard(number)
            rows = e_step(model, shard, theta.of(number, shard), phi).next_rows  # also reads the file of the shard
            started = time.perf_counter()
            stats.append(e_step(model, shard, rows, phi).stats)
            each.append(1e9 * (time.perf_counter() - started) / shards.manifest.shards[number].nonzeros)
            stats = stats[-2:]
        two = stats if len(stats) == 2 else stats * 2
        total = merged(two)
        size = total.word_sums.nbytes
        adding = np.median([time_call(lambda: total.merge_into(total.word_sums, two[1])) for _ in range(5)])
        ending = np.median([time_call(lambda: m_step(model, corpus, phi, total)) for _ in range(3)])
    return Rates(float(np.median(each)), size / float(adding), size / float(ending), transfer_rate(size))


def transfer_rate(size: int) -> float:
    """Return the bytes per second from one worker to the other."""
    with connected(2) as client:
        first, second = sorted(client.nthreads())

        def once(key: str) -> float:
            array = client.submit(_ones, size // 8, workers=[first], key=f"array-{key}")
            client.gather(client.submit(len, array, workers=[first], key=f"computed-{key}"))
            return time_call(lambda: client.gather(client.submit(len, array, workers=[second], key=f"sent-{key}")))

        return size / float(np.median([once(str(i)) for i in range(6)][1:]))


def _ones(n: int) -> Any:
    return np.ones(n)


def print_plan(arguments: argparse.Namespace, rates: Rates) -> None:
    """Print the predicted iteration for clusters of several sizes."""
    nonzeros = arguments.plan_documents * arguments.nonzeros_a_document
    n_shards = -(-nonzeros // arguments.shard_nonzeros)
    size = Size(arguments.topics, arguments.words, arguments.plan_documents, [arguments.shard_nonzeros] * n_shards)
    theta_bytes = 4 * padded_width(size.topics) * size.documents
    network = min(arguments.network_rate, rates.transfer)
    print(
        f"{size.documents:.0e} documents: {16 * nonzeros / 1e12:.1f} TB of shards, {theta_bytes / 1e12:.2f} TB of "
        f"theta, {n_shards:,} shards; sums of a shard {size.sum_bytes / 1e6:.0f} MB; network {network / 1e9:.2f} GB/s"
    )
    speeds = np.random.default_rng(0).lognormal(0, arguments.spread, n_shards)
    for workers in WORKERS:
        found = iteration(size, workers, rates, network, speeds)
        memory = 2 * theta_bytes / workers + 16 * arguments.shard_nonzeros + 5 * size.sum_bytes + size.topic_bytes
        print(
            f"{workers:5} workers: {found.seconds:8.1f} s per iteration (E-steps {found.e_steps:.1f}, sums and M-step "
            f"{found.tree:.1f}, topics out {found.topics_out:.1f}), {memory / 1e9:.1f} GB per worker, "
            f"efficiency {found.mean_e_steps / found.seconds:.0%}"
        )
