"""A run of a million documents: seconds and memory to open it, to show its topics, to read documents, and to compare
groups and months.

    python benchmarks/run_scale.py [--from-shards]

Documents have 12 words of 20 planted topics and a filler, one of three labels and one of 24 months; the second half of
the months has more of the even topics. Counts are in shards. The run is written once (--documents, --folder) and opened
in a new process, which prints its own figures: anonymous memory beyond the imports, its peak, and seconds of each step.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import polyseme
from common import anonymous_memory, describe_machine, report_figure
from polyseme.runs import corpus

TOPICS, WORDS, LENGTH = 20, 200, 12


def rows(n_documents: int):
    """Yield documents with three quarters of the words from one topic."""
    rng = np.random.default_rng(0)
    for number in range(n_documents):
        month = number % 24
        topic = rng.integers(TOPICS)
        if month >= 12 and topic % 2 and rng.random() < 0.2:
            topic -= 1
        own = [f"topic{topic}word{word}" for word in rng.integers(0, WORDS, 3 * LENGTH // 4)]
        text = " ".join([*own, *(f"filler{word}" for word in rng.integers(0, WORDS, LENGTH // 4))])
        yield {"text": text, "label": "abc"[number % 3], "time": f"{2020 + month // 12}-{1 + month % 12:02d}-15"}


def measure(path: Path, n_resamples: int, from_shards: bool) -> None:
    """Open the run and print its figures."""
    if from_shards:
        corpus.MAX_NUMBERS_IN_MEMORY = 0
    polyseme.fit(["red wine", "white wine"], 1, language=None)  # imports what a run needs
    before, started = anonymous_memory(), time.perf_counter()
    run = polyseme.open_run(path)
    report_figure("seconds to open the run", f"{time.perf_counter() - started:.3f} s", "at most 0.2 s")
    report_figure("memory of the open run", f"{(anonymous_memory() - before) / 2**20:.1f} MB", "at most 100 MB")
    started = time.perf_counter()
    run.topics()
    report_figure("its topics with typical documents", f"{time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    run.store.documents.texts[run.info.documents // 2]
    report_figure("the text of one document", f"{(time.perf_counter() - started) * 1e3:.1f} ms")
    report_figure("memory after both", f"{(anonymous_memory() - before) / 2**20:.1f} MB")
    for name, compare in (("groups", run.compare_groups), ("months", lambda **kw: run.over_time("month", **kw))):
        started, cpu = time.perf_counter(), time.process_time()
        found = compare(n_resamples=n_resamples)
        report_figure(
            f"{name} with {n_resamples} resamples",
            f"{time.perf_counter() - started:.0f} s, {time.process_time() - cpu:.0f} s of CPU",
        )
        shares = found.groups.shares if name == "groups" else found.shares
        report_figure(f"standard error of the share of a topic, {name}", f"{np.nanmean(shares.error):.5f}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        report_figure(f"peak memory, {name}", f"{peak / 2**20:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="folder for the files; a temporary one without it")
    parser.add_argument("--measure", type=Path, help="open this run and end")
    parser.add_argument("--from-shards", action="store_true", help="treat the run as one that is too large for memory")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.resamples, options.from_shards)
        return
    describe_machine()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, started = Path(folder) / "run", time.perf_counter()
        table = pl.DataFrame(rows(options.documents))
        polyseme.fit(
            table, TOPICS, output=path, language=None, page=False, levels="none", duplicates="keep", max_iter=20,
            shards=True,
        )  # fmt: skip
        print(f"{options.documents:,} documents: written in {time.perf_counter() - started:.0f} s", flush=True)
        command = [sys.executable, __file__, "--measure", str(path), "--resamples", str(options.resamples)]
        command += ["--from-shards"] if options.from_shards else []
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
