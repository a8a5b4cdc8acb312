"""Seconds of a `polyseme search` from the start of the process to its end, on a run of 20 Newsgroups.

    python benchmarks/search_start.py

A run is fitted once (--run keeps it for later calls). The first search builds the index and stores it in the run; the
others read it. Each search is a new process, so the time includes all imports. The share of the imports is measured by
processes that import the same modules and end. CPU seconds are printed beside elapsed ones, because they hardly depend
on the load of the machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common import NEWS_TEXTS, describe_machine, report_figure, require_file

INDEX = "search.safetensors"
QUERY = ("space", "shuttle", "orbit")
TARGET = 0.7
"""Seconds in which the second search must answer."""
IMPORTS = "import polyseme.cli.app, polyseme.retrieval.index"


class Seconds(NamedTuple):
    """Elapsed and CPU seconds of a process."""

    elapsed: float
    cpu: float


def timed(*arguments: str) -> Seconds:
    """Run Python with these arguments and return its seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elapsed = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def describe(name: str, found: list[Seconds]) -> None:
    elapsed, cpu = ([each[column] for each in found] for column in (0, 1))
    print(
        f"  {name:28} median {np.median(elapsed):5.2f} s, least {min(elapsed):5.2f} s; "
        f"CPU median {np.median(cpu):5.2f} s, least {min(cpu):5.2f} s"
    )


def fit(run: Path, documents: int, topics: int) -> None:
    """Fit a run to the first documents of 20 Newsgroups."""
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "news.jsonl"
        with gzip.open(require_file(NEWS_TEXTS), "rt", encoding="utf-8") as source:
            lines = [line for _, line in zip(range(documents), source, strict=False)]
        texts.write_text("".join(lines), encoding="utf-8")
        command = ("-m", "polyseme.cli", "fit", str(texts), "-k", str(topics), "-o", str(run), "-q")
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=18_846)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--run", type=Path, help="folder of the run; fitted if it does not exist")
    options = parser.parse_args()
    require_file(NEWS_TEXTS)
    describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or Path(folder) / "run"
        if not run.is_dir():
            fit(run, options.documents, options.topics)
        (run / INDEX).unlink(missing_ok=True)
        about = json.loads((run / "run.json").read_text(encoding="utf-8"))
        search = ("-m", "polyseme.cli", "search", str(run), *QUERY)
        first = timed(*search)
        size = os.path.getsize(run / INDEX) / 2**20
        print(f"{about['documents']} documents, {about['words']} words; index of {size:.0f} MB")
        describe("first search, builds the index", [first])
        later, imports = [], []
        for _ in range(options.searches):
            later.append(timed(*search))
            imports.append(timed("-c", IMPORTS))
        describe("later searches", later)
        describe("imports alone", imports)
        for method in ("tf", "bm25", "plsi-u"):
            describe(f"later searches by {method}", [timed(*search, "--method", method) for _ in range(3)])
        share = min(each.cpu for each in imports) / min(each.cpu for each in later)
        print(f"  the imports take {share:.0%} of the CPU time of a search")
    seconds = float(np.median([each.elapsed for each in later]))
    report_figure("a search of a stored index, imports included", f"{seconds:.2f} s", f"at most {TARGET} s")


if __name__ == "__main__":
    main()
