"""Many small fits in one call (`polyseme.solvers.batch`): seconds, and the same fits one after the other.

    python benchmarks/batch.py [--fits 100] [--single 20]

Matrices of 96 types of mutations x 200 samples (signatures/ in the folder of the data), K = 1 to 25, as many random
starts of each K as --fits says. A fit ends when the last quarter of its iterations, at least ten, has gained less than
1e-6 nats per token. --single fits of each K = 5, 15 and 25 also run as
`PLSA(solver="scd")`, which gives the same bits.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp

from common import DATA, THREADS, describe_machine, report_figure, report_ratio, require_file
from polyseme import PLSA
from polyseme.core.shard import sparse_counts
from polyseme.solvers.base import seeds
from polyseme.solvers.batch import Problem, fit_batch

warnings.filterwarnings("ignore")

LARGEST, ENOUGH, MAX_ITER = 25, 1e-6, 5000
REQUIRED = 75
"""Seconds for 2,500 fits on two cores."""


def counts_of(name: str) -> sp.csr_array:
    """Return types x samples, at most 200 samples."""
    file = np.load(require_file(DATA / "signatures" / f"{name}.npz"), allow_pickle=True)
    return sp.csr_array(file["counts"][:200].T.astype(np.float64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=100, help="fits of each K")
    parser.add_argument("--single", type=int, default=20, help="fits that also run one after the other")
    options = parser.parse_args()
    describe_machine()
    for name in ("SP_5", "scenario8"):
        X = counts_of(name)
        shape = f"{X.shape[0]} x {X.shape[1]}"
        for dtype in (np.float64, np.float32):
            counts = sparse_counts(X, np.dtype(dtype))
            problems = [Problem(K, seed) for K in range(1, LARGEST + 1) for seed in range(options.fits)]
            started, used = time.perf_counter(), time.process_time()
            fits = fit_batch(counts, problems, max_iter=MAX_ITER, tol=ENOUGH, n_threads=THREADS)
            seconds, used = time.perf_counter() - started, time.process_time() - used
            steps = [fit.n_iter for fit in fits]
            what = f"{name}, {shape}, {np.dtype(dtype).name}: {len(fits)} fits, K = 1 to {LARGEST}"
            needed = f"at most {REQUIRED * len(fits) / 2500:.0f} s"
            report_figure(
                what, f"{seconds:.1f} s ({used:.1f} s of CPU; median {np.median(steps):.0f} iterations)", needed
            )
            converged = sum(fit.converged for fit in fits)
            report_figure(f"{what}, converged", f"{converged} of {len(fits)}")
        compare_with_single(name, X, options.single)


def compare_with_single(name: str, X: sp.csr_array, n_fits: int) -> None:
    """Print the ratio of the seconds of the same iterations, in one call and one fit after the other."""
    counts, numbers = sparse_counts(X, np.dtype(np.float64)), (5, 15, 25)
    problems = [Problem(K, next(seeds(seed, 1))) for K in numbers for seed in range(n_fits)]
    started = time.perf_counter()
    fits = fit_batch(counts, problems, max_iter=200, tol=ENOUGH, n_threads=THREADS)
    together, started = time.perf_counter() - started, time.perf_counter()
    for number, fit in enumerate(fits):
        K, seed = numbers[number // n_fits], number % n_fits
        model = PLSA(K, solver="scd", random_state=seed, max_iter=200, tol=ENOUGH, dtype="float64", n_jobs=THREADS).fit(
            X
        )
        assert np.array_equal(model.components_, fit.topic_word)
    report_ratio(
        f"{name}: {len(fits)} fits in one call, K = 5, 15, 25", "PLSA.fit, the same bits", together,
        time.perf_counter() - started,
    )  # fmt: skip


if __name__ == "__main__":
    main()
