"""Peak memory of commands, estimators and a first search (Linux).

    python benchmarks/fit_memory.py [--only commands] [--documents 400000] [--topics 50] [--max-iter 5] [--shards-only]
    python benchmarks/fit_memory.py --only estimators [--rows 200000] [--words 50000] [--topics 50]
    python benchmarks/fit_memory.py --only search [--vocabulary 5000000]

commands: `polyseme fit` from JSON lines to a run, with and without --shards. The file repeats the same 20,000 synthetic
documents under different ids. Memory is RssAnon of the process of the command, sampled fifty times per second.

estimators: ten iterations of each estimator on counts with Zipf-distributed words, 100 tokens per document, in a
process of its own. Memory is the peak of the resident memory during the fit minus the resident memory before it, which
includes the counts, as a multiple of the counts (CSR, float32).

search: the first search in a run of which nearly every word occurs once, as a multiple of the index file that it
writes. Memory is measured as for estimators, after a search in a small run.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import scipy.sparse as sp

import polyseme
from common import PROC, THREADS, describe_machine, report_figure, skip
from polyseme import LDA, NMF, PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.runs.searching import INDEX_FILE

_DISTINCT = 20_000
_TOKENS = 100
_RARE_WORDS = 250
"""Words of a document that no other document has."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
ESTIMATORS = {
    "PLSA": (PLSA, {}),
    "PLSA, EM": (PLSA, {"solver": "em"}),
    "NMF": (NMF, {}),
    "NMF, squared loss": (NMF, {"loss": "squared"}),
    "LDA": (LDA, {}),
    "LDA, online": (LDA, {"solver": "online", "max_iter": 1}),
}


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


def resident(name: str) -> int:
    """Return VmRSS or VmHWM of this process in bytes."""
    lines = (PROC / "status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def peak_of(work: Callable[[], object]) -> int:
    """Return the peak of the resident memory during a call minus the resident memory before it, in bytes."""
    (PROC / "clear_refs").write_text("5")  # resets VmHWM
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def in_child(*arguments: object) -> int:
    """Run this script in a new process, and return the number that it prints last."""
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout.split()[-1])


def write_counts(path: Path, rows: int, words: int) -> sp.csr_array:
    """Write and return counts of documents with Zipf-distributed words."""
    shares = 1 / np.arange(1, words + 1) ** 0.9
    ends = np.cumsum(shares / shares.sum())
    tokens = np.searchsorted(ends, np.random.default_rng(0).random(_TOKENS * rows)).clip(max=words - 1)
    documents = np.repeat(np.arange(rows, dtype=np.int32), _TOKENS)
    ones = np.ones(len(tokens), dtype=np.float32)
    counts = sp.coo_array((ones, (documents, tokens.astype(np.int32))), shape=(rows, words)).tocsr()
    sp.save_npz(path, counts, compressed=False)
    return counts


def measure_estimator(name: str, path: str, topics: str) -> int:
    kind, options = ESTIMATORS[name]
    model = kind(int(topics), **{"max_iter": 10, "random_state": 0, "n_jobs": THREADS, **options})
    counts = sp.csr_array(sp.load_npz(path))
    with catch_warnings():
        simplefilter("ignore")
        model.fit(counts[:2000])  # imports
        return peak_of(lambda: model.fit(counts))


def print_estimators(options: argparse.Namespace, folder: Path) -> None:
    path = folder / "counts.npz"
    counts = write_counts(path, options.rows, options.words)
    size = counts.data.nbytes + counts.indices.nbytes + counts.indptr.nbytes
    shape = f"{options.rows:,} x {options.words:,} counts, {counts.nnz / 1e6:.1f} million non-zeros"
    print(f"\n{shape}, {size / 1e6:.0f} MB, {options.topics} topics\n")
    print("| | peak beyond the counts (MB) | multiple of the counts |\n|---|---|---|")
    for name in ESTIMATORS:
        peak = in_child("estimator", name, path, options.topics)
        print(f"| {name} | {peak / 1e6:.0f} | {peak / size:.1f} |", flush=True)
        required = "at most 3.5" if options.rows >= 200_000 and name in ("NMF", "LDA") else ""
        report_figure(f"memory of {name}, {shape}, multiple of the counts", f"{peak / size:.2f}", required)


def write_rare_words(path: Path, words: int) -> None:
    """Write documents of which each has `_RARE_WORDS` words of its own."""
    rng = random.Random(0)
    common = ["common" + "".join(rng.choices(_LETTERS, k=3)) for _ in range(300)]
    with path.open("w", encoding="utf-8") as file:
        for document in range(words // _RARE_WORDS):
            numbers = range(document * _RARE_WORDS, (document + 1) * _RARE_WORDS)
            rare = ["q" + "".join(_LETTERS[number // 26**place % 26] for place in range(6)) for number in numbers]
            text = " ".join([*rare, *rng.choices(common, k=60)])
            file.write(json.dumps({"id": str(document), "text": text}) + "\n")


def print_search(options: argparse.Namespace, folder: Path) -> None:
    for name, words in (("small", 10 * _RARE_WORDS), ("large", options.vocabulary)):
        write_rare_words(folder / "rare.jsonl", words)
        fit = ["fit", "rare.jsonl", "-k", "2", "--max-iter", "1", "--min-df", "1", "--language", "none"]
        measure([*fit, "-q", "--no-page", "-o", name], folder)
    peak, size = in_child("search", folder / "small", folder / "large"), (folder / "large" / INDEX_FILE).stat().st_size
    print(f"\nFirst search in a vocabulary of {options.vocabulary:,} words\n")
    print("| peak (MB) | index file (MB) | multiple of the file |\n|---|---|---|")
    print(f"| {peak / 1e6:.0f} | {size / 1e6:.0f} | {peak / size:.1f} |", flush=True)
    what = f"memory of a first search, {options.vocabulary:,} words, multiple of the index file"
    report_figure(what, f"{peak / size:.2f}", "at most 2" if options.vocabulary >= 5_000_000 else "")


def measure_search(small: str, large: str) -> int:
    polyseme.open_run(small).search("qaaaaaa")
    return peak_of(lambda: polyseme.open_run(large).search("qaaaaaa"))


def print_commands(options: argparse.Namespace, folder: Path) -> None:
    print(f"\n{options.topics} topics, {options.max_iter} iterations\n")
    print("| documents | MB of JSON lines | | seconds | MB of anonymous memory |\n|---|---|---|---|---|")
    found: dict[str, str] = {}
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


PARTS = {"commands": print_commands, "estimators": print_estimators, "search": print_search}


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        measures = {"estimator": measure_estimator, "search": measure_search}
        print(measures[sys.argv[2]](*sys.argv[3:]))
        return
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", choices=PARTS, action="append")
    arguments.add_argument("--documents", type=int, default=400_000)
    arguments.add_argument("--topics", type=int, default=50)
    arguments.add_argument("--max-iter", type=int, default=5)
    arguments.add_argument("--shards-only", action="store_true")
    arguments.add_argument("--rows", type=int, default=200_000)
    arguments.add_argument("--words", type=int, default=50_000)
    arguments.add_argument("--vocabulary", type=int, default=5_000_000)
    options = arguments.parse_args()
    if not PROC.exists():
        skip(f"Memory is read from {PROC}, which exists on Linux only.")
    describe_machine("polars")
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.only or PARTS:
            PARTS[name](options, Path(temporary))


if __name__ == "__main__":
    main()
