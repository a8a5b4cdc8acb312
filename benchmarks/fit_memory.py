"""`polyseme fit` from JSON lines to a run, with and without --shards: seconds and peak anonymous memory (Linux).

    python benchmarks/fit_memory.py [--documents 400000] [--topics 50] [--max-iter 5] [--shards-only]

The file repeats the same 20,000 synthetic documents under different ids. Memory is RssAnon of the process of the
command, sampled fifty times per second.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from common import PROC, describe_machine, report_figure, skip
from polyseme.datasets import synthetic_corpus

_DISTINCT = 20_000


def write(path: Path, documents: int) -> None:
    corpus = synthetic_corpus(min(documents, _DISTINCT), n_words=30_000, length=100)
    texts = [json.dumps(document.text) for document in corpus]
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(islice(cycle(texts), documents)):
            file.write(f'{{"id": "{number}", "text": {text}}}\n')


def anonymous_memory(process: int) -> float:
    """Return the anonymous memory of a process in MB; 0 after it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return int(next((line.split()[1] for line in lines if line.startswith("RssAnon")), "0")) / 1e3


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds and the peak anonymous memory (MB) of a command."""
    start, peak = time.perf_counter(), 0.0
    process = subprocess.Popen([sys.executable, "-m", "polyseme.cli", *command], cwd=folder)
    while process.poll() is None:
        peak = max(peak, anonymous_memory(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"polyseme {' '.join(command)} failed.")
    return time.perf_counter() - start, peak


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--documents", type=int, default=400_000)
    arguments.add_argument("--topics", type=int, default=50)
    arguments.add_argument("--max-iter", type=int, default=5)
    arguments.add_argument("--shards-only", action="store_true")
    options = arguments.parse_args()
    if not PROC.exists():
        skip(f"Memory is read from {PROC}, which exists on Linux only.")
    describe_machine("polars")
    print(f"{options.topics} topics, {options.max_iter} iterations\n")
    print("| documents | MB of JSON lines | | seconds | MB of anonymous memory |\n|---|---|---|---|---|")
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for documents in (options.documents // 4, options.documents):
            write(folder / "corpus.jsonl", documents)
            size = (folder / "corpus.jsonl").stat().st_size / 1e6
            for name in ("--shards",) if options.shards_only else ("--shards", "in memory"):
                fit = ["fit", "corpus.jsonl", "-k", str(options.topics), "--max-iter", str(options.max_iter)]
                more = ["--shards"] if name == "--shards" else []
                seconds, peak = measure([*fit, *more, "-q", "--no-page", "--overwrite", "-o", "run"], folder)
                print(f"| {documents:,} | {size:.0f} | {name} | {seconds:.0f} | {peak:.0f} |", flush=True)
                found[name] = f"{peak:.0f} MB, {seconds:.1f} s"
    for name, value in found.items():
        report_figure(f"polyseme fit of {documents:,} documents ({size:.0f} MB), {name}: anonymous memory, time", value)


if __name__ == "__main__":
    main()
