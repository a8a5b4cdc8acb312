"""RealTopicModel on many points: time and memory beyond the data, by the number of points.

    python benchmarks/real.py [--points N ...]

Points are mixtures of 10 corners in 50 dimensions, with noise; K = 10, with float32 factors.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from common import describe_machine, peak_memory, report_figure, reset_peak_memory
from polyseme import PLSA, RealTopicModel

FEATURES, CORNERS = 50, 10


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n x 50 points and their 10 corners, drawn in parts to save memory."""
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(CORNERS, FEATURES))
    X = np.empty((n, FEATURES))
    for start in range(0, n, 10_000):
        part = X[start : start + 10_000]
        part[:] = rng.dirichlet(np.full(CORNERS, 0.5), len(part)) @ corners + 0.02 * rng.normal(size=part.shape)
    return X, corners


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, nargs="+", default=[125_000, 250_000, 500_000, 1_000_000])
    options = parser.parse_args()
    describe_machine()
    print("| points | seconds | microseconds per point | GB beyond the data | iterations | worst corner |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in options.points:
        X, corners = points(n)
        reset_peak_memory()
        before, started = peak_memory(), time.perf_counter()
        model = RealTopicModel(PLSA(CORNERS, solver="em", dtype="float32")).fit(X)
        seconds, beyond = time.perf_counter() - started, (peak_memory() - before) / 1e9
        gaps = np.sqrt(((corners[:, np.newaxis] - model.components_) ** 2).mean(axis=2)).min(axis=1)
        print(
            f"| {n} | {seconds:.1f} | {1e6 * seconds / n:.1f} | {beyond:.2f} | {model.model_.n_iter_} "
            f"| {gaps.max():.3f} |",
            flush=True,
        )
        del X, model
    what = f"fit of {n:,} points of {FEATURES} features, K = {CORNERS}"
    report_figure(what, f"{seconds:.1f} s, {beyond:.2f} GB beyond the data, worst corner off by {gaps.max():.3f}")


if __name__ == "__main__":
    main()
