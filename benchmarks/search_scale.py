"""A search index of a million documents: seconds to open it, to answer a query, and anonymous memory.

    python benchmarks/search_scale.py

Words follow Zipf's law, and documents have 100 tokens. The index is built in memory (--documents), stored in a file
(--folder), and searched in a new process, which prints its own figures: the time from the call of `load` to its
return, the median time of queries after the first of each word, and the anonymous memory of the process (RssAnon).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from common import describe_machine, report_figure
from polyseme.core.fitted import FittedTopics
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.retrieval import SearchIndex

WORDS, TOPICS, LENGTH, PART = 100_000, 50, 100, 50_000


class ZipfParts:
    """Counts of random documents in parts, the same in every iteration."""

    def __init__(self, n_docs: int) -> None:
        self.n_docs = n_docs
        weights = 1 / np.arange(10, WORDS + 10)
        self._ends = np.cumsum(weights / weights.sum())

    def __iter__(self):
        for first in range(0, self.n_docs, PART):
            rng, n = np.random.default_rng(first), min(PART, self.n_docs - first)
            words = np.minimum(np.searchsorted(self._ends, rng.random(n * LENGTH)), WORDS - 1).astype(np.int32)
            part = sp.csr_array((np.ones(len(words), np.float32), words, np.arange(0, len(words) + 1, LENGTH)),
                                shape=(n, WORDS))  # fmt: skip
            part.sum_duplicates()
            yield part


def build(path: Path, n_docs: int) -> None:
    """Build and store the index."""
    rng = np.random.default_rng(0)
    index = SearchIndex(sp.vstack(list(ZipfParts(n_docs)), format="csr"), [f"w{number}" for number in range(WORDS)])
    fitted = FittedTopics(
        topic_word=rng.dirichlet(np.full(WORDS, 0.1), size=TOPICS).astype(np.float32),
        topic_weights=np.full(TOPICS, 1 / TOPICS), unigram=np.full(WORDS, 1 / WORDS),
        active=np.ones(TOPICS, dtype=bool), n_tokens=1.0, n_documents=n_docs, inference=MaximumLikelihood(),
    )  # fmt: skip
    weights = np.empty((n_docs, TOPICS), dtype=np.float32)
    for start in range(0, n_docs, PART):
        weights[start : start + PART] = rng.dirichlet(np.full(TOPICS, 0.1), size=min(PART, n_docs - start))
    index.set_model(fitted, weights).save(path)


def search(path: Path, n_queries: int) -> None:
    """Open the index and print its figures."""
    started = time.perf_counter()
    index = SearchIndex.load(path)
    opened = time.perf_counter() - started
    words = next(iter(ZipfParts(n_queries)))
    rng, queries = np.random.default_rng(1), []
    for row in range(n_queries):  # six words of a document each
        chosen = rng.choice(words.indices[slice(*words.indptr[row : row + 2])], 6, replace=False)
        queries.append(" ".join(f"w{word}" for word in chosen))
    seconds = []
    for round_ in range(2):
        for text in queries:
            started = time.perf_counter()
            index.search(text)
            if round_:
                seconds.append(time.perf_counter() - started)
    index.similar_documents("17", 5)
    status = Path("/proc/self/status").read_text(encoding="utf-8") if Path("/proc/self/status").exists() else ""
    anonymous = [int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")]
    report_figure("seconds to open the index", f"{opened:.3f} s", "under 1 s")
    report_figure("a query by bm25+topics, median", f"{np.median(seconds) * 1e3:.2f} ms", "under 2 ms")
    if anonymous:
        report_figure("anonymous memory of the search", f"{anonymous[0] / 2**20:.2f} GB", "less than 1 GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="folder for the files; a temporary one without it")
    parser.add_argument("--search", type=Path, help="search this index and end")
    options = parser.parse_args()
    if options.search:
        search(options.search, options.queries)
        return
    describe_machine()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "index"
        started = time.perf_counter()
        build(path, options.documents)
        size = path.stat().st_size / 2**30
        print(
            f"{options.documents:,} documents: {size:.2f} GB, built in {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        command = [sys.executable, __file__, "--search", str(path), "--queries", str(options.queries)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
