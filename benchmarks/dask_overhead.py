"""Parts of the time of an EM iteration on Dask workers, compared with the same iteration in memory.

    python benchmarks/dask_overhead.py --documents 10000 100000 1000000

For each size the sweeps of two worker processes and of two threads in memory alternate. The time of the workers is
divided into

    kernel       E-steps of the shards and the M-step of the topics
    reduction    adding up the statistics of the shards
    transfer     topics and statistics that are sent from one worker to the other
    other tasks  tasks that select a part of a result
    scheduling   the rest: the scheduler, messages between processes, and waiting for the other worker

The first four are sums over both workers, divided by two. The corpus is that of `benchmarks/scale.py`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import scale
from common import describe_machine, report_figure, time_call
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.data.dask import connected

WORKERS = 2
REQUIRED = {20_000: "at most +100%", 1_000_000: "at most +25%"}
KINDS = {
    "e_step": "kernel", "m_step": "kernel", "e_and_m_step": "kernel", "sum": "reduction", "sum_of_pairs": "reduction",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 20_000, 100_000])
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "polyseme-scale")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    describe_machine("dask", "distributed")
    for documents in arguments.documents:
        measure(arguments, documents)


def measure(arguments: argparse.Namespace, documents: int) -> None:
    """Print the times of one size."""
    shards = scale.open_corpus(arguments, documents)
    counts = as_counts(scale.load_matrix(arguments, documents), scale.FLOAT32)
    with connected(WORKERS) as client, tempfile.TemporaryDirectory(dir=arguments.folder) as work:
        corpus = scale.dask_corpus(shards, client, Path(work))
        runs = {
            "workers": scale.start_run(corpus, arguments.topics),
            "memory": scale.start_run(MemoryCorpus(counts, None, WORKERS), arguments.topics),
        }
        parts: Counter[str] = Counter()
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(arguments.sweeps):
            for name, run in runs.items():
                with TaskTimes(client) as tasks:
                    seconds[name].append(time_call(run.advance))
                if name == "workers":
                    parts.update(tasks.seconds)
    found = {name: float(np.median(values)) for name, values in seconds.items()}
    mean = float(np.mean(seconds["workers"]))
    shares = {kind: value / WORKERS / arguments.sweeps for kind, value in parts.items()}
    shares["scheduling"] = mean - sum(shares.values())
    print(
        f"\n{documents:,} documents, {counts.values.size:,} non-zeros, {len(shards.manifest.shards)} shards: "
        f"{found['workers']:.3f} s per sweep on {WORKERS} workers, {found['memory']:.3f} s in memory"
    )
    for kind, value in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"    {kind:12} {value:7.3f} s  {value / mean:5.0%}")
    over = found["workers"] / found["memory"] - 1
    report_figure(f"{documents:,} documents, workers against memory", f"{over:+.0%}", REQUIRED.get(documents, ""))


class TaskTimes:
    """Sums of the times of tasks by kind, over all workers, while the block runs."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.seconds: Counter[str] = Counter()

    def __enter__(self) -> TaskTimes:
        from distributed import get_task_stream

        self._stream = get_task_stream(self._client)
        self._stream.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.__exit__(*error)
        for task in self._stream.data:
            name = str(task["key"]).removeprefix("polyseme-").rsplit("-", 2)[0]
            for span in task["startstops"]:
                kind = "transfer" if span["action"] == "transfer" else KINDS.get(name, "other tasks")
                self.seconds[kind] += span["stop"] - span["start"]


if __name__ == "__main__":
    main()
