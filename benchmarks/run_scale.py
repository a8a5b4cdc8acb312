"""A run of a million documents: seconds and memory to open it, to show its topics, and to read documents.

    python benchmarks/run_scale.py

Documents have 12 words of 20 planted topics and a filler. The run is written once (--documents, --folder) and opened in
a new process, which prints its own figures: anonymous memory beyond the imports, and seconds of each step.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import polyseme
from common import anonymous_memory, describe_machine, report_figure

TOPICS, WORDS, LENGTH = 20, 200, 12


def texts(n_documents: int):
    """Yield texts with three quarters of the words from one topic."""
    rng = np.random.default_rng(0)
    for _ in range(n_documents):
        topic = rng.integers(TOPICS)
        own = [f"topic{topic}word{word}" for word in rng.integers(0, WORDS, 3 * LENGTH // 4)]
        yield " ".join([*own, *(f"filler{word}" for word in rng.integers(0, WORDS, LENGTH // 4))])


def measure(path: Path) -> None:
    """Open the run and print its figures."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="folder for the files; a temporary one without it")
    parser.add_argument("--measure", type=Path, help="open this run and end")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    describe_machine()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path, started = Path(folder) / "run", time.perf_counter()
        polyseme.fit(texts(options.documents), TOPICS, output=path, language=None, page=False, max_iter=20)
        print(f"{options.documents:,} documents: written in {time.perf_counter() - started:.0f} s", flush=True)
        subprocess.run([sys.executable, __file__, "--measure", str(path)], check=True)


if __name__ == "__main__":
    main()
