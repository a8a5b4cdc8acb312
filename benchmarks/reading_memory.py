"""Reading a large JSON lines file: speed, and memory above that of an idle process (Linux).

    python benchmarks/reading_memory.py [--gigabytes 2]

The file is written from a synthetic corpus. Memory is RssAnon, sampled at every hundredth document.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from common import anonymous_memory, describe_machine, report_figure
from polyseme.datasets import synthetic_corpus
from polyseme.text import read


def write(path: Path, gigabytes: float) -> None:
    """Write about 20 MB of synthetic documents repeatedly."""
    corpus = synthetic_corpus(10**9, n_words=20_000, length=300)
    lines = [json.dumps({"id": d.id, "text": d.text, "label": d.label}) + "\n" for d in islice(corpus, 12_000)]
    block = "".join(lines).encode()
    with path.open("wb") as file:
        while file.tell() < gigabytes * 1e9:
            file.write(block)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gigabytes", type=float, default=2.0)
    options = arguments.parse_args()
    describe_machine("polars")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.jsonl")
        writer = get_context("spawn").Process(
            target=write, args=(path, options.gigabytes)
        )  # a separate process, so that its memory is not counted
        writer.start()
        writer.join()
        before = peak = anonymous_memory()
        started, cpu = time.perf_counter(), time.process_time()
        reader = read(path)
        for number, _ in enumerate(reader):
            if number % 100 == 0:
                peak = max(peak, anonymous_memory())
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        size = path.stat().st_size / 1e6
        print(
            f"{size:.0f} MB, {reader.documents} documents: {seconds:.1f} s, {size / seconds:.0f} MB/s; "
            f"RssAnon {before / 1e6:.0f} MB before, at most {peak / 1e6:.0f} MB while reading"
        )
        report_figure("reading JSON lines", f"{size / cpu:.0f} MB per CPU second")
        report_figure(f"memory of reading {size:.0f} MB of JSON lines", f"{(peak - before) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
