"""Seconds of `polyseme.uncertainty.bootstrap` on 20 Newsgroups, and how many times those of the fits it consists of.

python benchmarks/resamples.py [--topics 20] [--resamples 100] [--documents 18774] [--threads 2]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from common import DATA, describe_machine, load_counts, report_figure
from polyseme import PLSA
from polyseme.uncertainty import bootstrap, resampling


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--documents", type=int, default=18774)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    describe_machine()
    counts = load_counts(DATA / "counts" / "newsgroups_fasttopics.npz")
    X = counts[np.random.default_rng(0).permutation(counts.shape[0])[: arguments.documents]]
    X = X[:, np.asarray(X.sum(axis=0)).ravel() > 0]
    model = PLSA(arguments.topics, random_state=0, n_jobs=arguments.threads).fit(X)
    plain, within = resampling.fit_batch, 0.0

    def timed(*args, **options):
        nonlocal within
        started = time.perf_counter()
        fits = plain(*args, **options)
        within += time.perf_counter() - started
        return fits

    resampling.fit_batch = timed
    started, cpu = time.perf_counter(), time.process_time()
    found = bootstrap(model, X, arguments.resamples, n_jobs=arguments.threads)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    name = f"{arguments.resamples} resamples of {X.shape[0]:,} documents, {arguments.topics} topics"
    report_figure(name, f"{seconds:.1f} s, {cpu:.1f} s of CPU", "below 60 s on two cores")
    report_figure("times the seconds of its fits", f"{seconds / within:.2f}", "at most 3")
    report_figure("topics that came back in 90% of the resamples", f"{(found.returned >= 0.9).sum()}")


if __name__ == "__main__":
    main()
