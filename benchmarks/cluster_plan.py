"""An iteration on a cluster, simulated: rates measured on this machine, and what they mean for larger ones.

A worker visits its shards one after the other and adds their statistics up; those of the workers go up a tree over the
network, with FAN_IN children a node; one of them takes the step of the topics, and these go out to all, doubling.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np

from common import seconds_of
from polyseme.core.model import Model, e_step, m_step
from polyseme.core.statistics import FAN_IN, merged
from polyseme.data.dask import connected
from polyseme.kernels import padded_width
from polyseme.scale import DiskCorpus
from polyseme.solvers.initialize import named_start

FLOAT32 = np.dtype(np.float32)
MOST_SHARDS = 8
WORKERS = (16, 64, 256, 1024)


class Rates(NamedTuple):
    """What one worker of one thread does in a second."""

    nanoseconds: float
    """of a visit, for each non-zero"""
    merge: float
    """bytes of statistics that are added to others"""
    finish: float
    """bytes of statistics that become the next topics"""
    transfer: float
    """bytes from one worker process to another, both on this machine"""

    def told(self) -> str:
        return (
            f"rates of one worker: {self.nanoseconds:.0f} ns a non-zero, sums added at {self.merge / 1e9:.1f} GB/s, "
            f"made topics at {self.finish / 1e9:.1f} GB/s, sent to another process at {self.transfer / 1e9:.2f} GB/s"
        )


class Size(NamedTuple):
    """Of a corpus and its model."""

    topics: int
    words: int
    documents: int
    shard_nonzeros: list[int]

    @property
    def sum_bytes(self) -> int:
        """of the statistics of a shard"""
        return 8 * self.words * padded_width(self.topics)

    @property
    def topic_bytes(self) -> int:
        return self.sum_bytes // 2


class Iteration(NamedTuple):
    visits: float
    """of the slowest worker, with its sums"""
    mean_visits: float
    tree: float
    """the sums of the workers, and the step of the topics"""
    topics_out: float

    @property
    def seconds(self) -> float:
        return self.visits + self.tree + self.topics_out


def iteration(size: Size, workers: int, rates: Rates, network: float, speeds: Any = 1.0) -> Iteration:
    """Seconds of an iteration; `speeds` are those of the visits, one for each shard, the mean being one."""
    n_shards = len(size.shard_nonzeros)
    each = 1e-9 * rates.nanoseconds * np.array(size.shard_nonzeros) / speeds
    each = each + size.sum_bytes / rates.merge
    ends = np.zeros(workers)
    np.add.at(ends, np.arange(n_shards) * workers // n_shards, each)  # neighbors at one worker
    tree, left = 0.0, workers
    while left > 1:
        children = min(FAN_IN, left)
        tree += (children - 1) * (size.sum_bytes / network + size.sum_bytes / rates.merge)
        left = -(-left // FAN_IN)
    tree += size.sum_bytes / rates.finish
    out = int(np.ceil(np.log2(workers))) * size.topic_bytes / network
    return Iteration(float(ends.max()), float(ends.mean()), tree, out)


def measured_rates(shards: DiskCorpus, topics: int, seed: int) -> Rates:
    """Medians over some shards, one thread."""
    source, model = shards.source(FLOAT32, 1), Model(topics)
    theta, phi = named_start("random", source, model, np.random.default_rng(seed))
    each, stats = [], []
    for number in range(min(MOST_SHARDS, source.n_shards)):
        shard = source.shard(number)
        rows = e_step(model, shard, theta.of(number, shard), phi).next_theta  # reads the shard, too
        started = time.perf_counter()
        stats.append(e_step(model, shard, rows, phi).stats)
        each.append(1e9 * (time.perf_counter() - started) / shards.manifest.shards[number].nonzeros)
        stats = stats[-2:]
    two = stats if len(stats) == 2 else stats * 2
    total = merged(two)
    size = total.word_sums.nbytes
    adding = np.median([seconds_of(lambda: total.merge_into(total.word_sums, two[1])) for _ in range(5)])
    ending = np.median([seconds_of(lambda: m_step(model, source, phi, total)) for _ in range(3)])
    return Rates(float(np.median(each)), size / float(adding), size / float(ending), transfer_rate(size))


def transfer_rate(size: int) -> float:
    """Bytes a second from one worker to the other."""
    with connected(2) as client:
        first, second = sorted(client.nthreads())

        def once(key: str) -> float:
            made = client.submit(_numbers, size // 8, workers=[first], key=f"made-{key}")
            client.gather(client.submit(len, made, workers=[first], key=f"ready-{key}"))
            return seconds_of(lambda: client.gather(client.submit(len, made, workers=[second], key=f"taken-{key}")))

        return size / float(np.median([once(str(i)) for i in range(6)][1:]))


def _numbers(n: int) -> Any:
    return np.ones(n)


def tell_plan(arguments: argparse.Namespace, rates: Rates) -> None:
    """An iteration of clusters of several sizes."""
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
            f"{workers:5} workers: {found.seconds:8.1f} s an iteration (visits {found.visits:.1f}, sums and step "
            f"{found.tree:.1f}, topics out {found.topics_out:.1f}), {memory / 1e9:.1f} GB a worker, "
            f"efficiency {found.mean_visits / found.seconds:.0%}"
        )
