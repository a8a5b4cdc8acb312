"""Time of an iteration and peak memory of fits with thousands of topics.

    python benchmarks/many_topics.py [--k 400 1000 2000] [--iterations 12]

The counts are those of 20 Newsgroups with all words (float32). Each fit runs in a process of its own, with 2 threads.
Printed are the median times of its first and its last four iterations, because topics become sparse as it goes on, the
shares of positive numbers at its end, and the peak memory of the process. The exponents are those of the times in the
number of topics.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from statistics import median

import numpy as np

from common import DATA, THREADS, describe_machine, load_counts, peak_memory, report_figure
from polyseme import PLSA

MOST_MEMORY = 3e9


def measure(K: int, iterations: int) -> list[float]:
    """Return the seconds of early and of late iterations, the share of positive numbers, and the peak memory."""
    counts = load_counts(DATA / "counts" / "newsgroups_fasttopics.npz")
    times: list[float] = []
    fit = PLSA(K, max_iter=iterations, tol=0, random_state=0, n_jobs=THREADS)
    fit.set_params(callback=lambda _: times.append(time.perf_counter())).fit(counts)
    seconds = np.diff(times)
    shares = [float((factor > 0).mean()) for factor in (fit.doc_topic_, fit.components_)]
    return [median(seconds[:4]), median(seconds[-4:]), *shares, peak_memory()]


def main() -> None:
    """Run the fits and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--k", nargs="+", type=int, default=[400, 1000, 2000])
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(options.measure, options.iterations)))
        return
    describe_machine()
    print("| K | first iterations | last iterations | positive P(z|d) | positive P(w|z) | peak memory |")
    print("|---|---|---|---|---|---|")
    found = []
    for K in options.k:
        command = [sys.executable, __file__, "--measure", str(K), "--iterations", str(options.iterations)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        first, last, docs, words, memory = json.loads(done.stdout.splitlines()[-1])
        found.append((first, last))
        print(
            f"| {K:,} | {first:.2f} s | {last:.2f} s | {docs:.1%} | {words:.1%} | {memory / 1e6:,.0f} MB |", flush=True
        )
        report_figure(f"peak memory of {K:,} topics", f"{memory / 1e6:,.0f} MB", f"{MOST_MEMORY / 1e6:,.0f} MB")
    if len(found) > 1:
        for name, seconds in zip(("first", "last"), np.transpose(found), strict=True):
            exponent = np.polyfit(np.log(options.k), np.log(seconds), 1)[0]
            report_figure(f"exponent of the time of the {name} iterations in K", f"{exponent:.2f}", "1")


if __name__ == "__main__":
    main()
