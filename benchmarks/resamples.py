"""Seconds of `polyseme.uncertainty.bootstrap` on 20 Newsgroups, and how many times those of the fits it consists of.

    python benchmarks/resamples.py [--topics 20] [--resamples 100] [--documents 18774] [--threads 2]
    python benchmarks/resamples.py --tolerances

With --tolerances, it prints for weblogs the standard errors from fits that end at several tolerances, as a share of
those from fits that go on to 1e-7 (medians over topics and over words with P(w|z) above 1e-3).
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
    parser.add_argument("--tolerances", action="store_true")
    arguments = parser.parse_args()
    describe_machine()
    if arguments.tolerances:
        compare_tolerances()
        return
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


def compare_tolerances(n_documents: int = 2500, n_topics: int = 10, n_resamples: int = 20) -> None:
    """Print how the errors depend on when the fits to resamples end."""
    rng = np.random.default_rng(0)
    counts = load_counts(DATA / "counts" / "poliblog5k.npz")
    X = counts[rng.permutation(counts.shape[0])[:n_documents]]
    X = X[:, np.asarray(X.sum(axis=0)).ravel() > 0]
    groups = rng.integers(0, 2, n_documents).tolist()
    model = PLSA(n_topics, random_state=0).fit(X)
    frequent = model.components_ > 1e-3
    least: list[np.ndarray] = []
    for tol in (1e-7, 1e-3, 3e-4, 1e-4):
        resampling._TOL = tol
        started = time.process_time()
        found = bootstrap(model, X, n_resamples, groups=groups)
        errors = [found.topic_word.error[frequent], found.topic_weights.error, found.groups.shares.error]
        least = least or errors
        words, topics, shares = (float(np.median(a / b)) for a, b in zip(errors, least, strict=True))
        shown = f"P(w|z) {words:.3f}, P(z) {topics:.3f}, shares {shares:.3f}"
        report_figure(f"errors at {tol:.0e}", f"{shown}; {time.process_time() - started:.1f} s of CPU")


if __name__ == "__main__":
    main()
