"""PLSA of three-way counts: growth of an EM iteration with the non-zeros, and comparison with tensorly.

    python benchmarks/tensor.py [--k 20] [--largest 2000000] [--threads 2]

The tensors are drawn from K topics. The growth is the slope of log seconds over log non-zeros (medians of a few
rounds). The non-negative PARAFAC of tensorly minimizes squared errors, so only the times of a sweep are comparable. It
fits a small dense tensor in float32 with both of its methods: multiplicative updates, and HALS, which its documentation
calls faster to converge. Starts are random and tol=0; the time of a longer fit minus that of one sweep leaves out the
start. BLAS has the same number of threads. Its sparse form (tensorly.contrib.sparse) fits the sparse tensor.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from common import can_import, describe_machine, report_figure, report_ratio, time_call
from polyseme.solvers.tensor import TensorCounts, begin, count_tuples, random_start

warnings.filterwarnings("ignore")

SHAPE = (20_000, 10_000, 50)
SMALL = (200, 200, 30)


def sample_tensor(shape: tuple[int, ...], K: int, tokens: int, threads: int, seed: int = 0) -> TensorCounts:
    """Return counts of `tokens` draws from K topics with a few hundred items of each mode."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(K, size=tokens)
    coords = []
    for size in shape:
        popularity = rng.permutation(size)
        common = np.minimum((size * rng.random(tokens) ** 3).astype(np.int64), size - 1)
        coords.append(popularity[(common + topics * (size // K)) % size])
    keys, values = np.unique(np.ravel_multi_index(tuple(coords), shape), return_counts=True)
    return TensorCounts(np.unravel_index(keys, shape), values.astype(np.float32), shape, threads)


def seconds_per_step(counts: TensorCounts, K: int, rounds: int) -> float:
    run = begin(counts, random_start(counts, K, np.random.default_rng(0)), extrapolate=False)
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        run.advance()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def measure_growth(K: int, largest: int, threads: int) -> None:
    sizes, seconds = [], []
    for tokens in (largest // 16, largest // 8, largest // 4, largest // 2, largest):
        counts = sample_tensor(SHAPE, K, tokens, threads)
        c = counts.column_mode
        tuples = count_tuples([index for mode, index in enumerate(counts.coords) if mode != c])
        sizes.append(counts.values.size)
        seconds.append(seconds_per_step(counts, K, 5))
        print(
            f"{counts.values.size:9d} non-zeros, {tuples:9d} tuples, columns are mode {c}: "
            f"{1e3 * seconds[-1]:8.1f} ms, {1e9 * seconds[-1] / sizes[-1] / K:.2f} ns per non-zero and topic"
        )
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    what = f"exponent of an EM iteration on three-way counts in non-zeros, K = {K}"
    report_figure(what, f"{slope:.2f}", "at most 1.1")


def compare_tensorly(K: int, threads: int) -> None:
    if not can_import("tensorly"):
        return
    from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals

    counts = sample_tensor(SMALL, K, 100_000, threads)
    dense = np.zeros(SMALL, dtype=np.float32)
    dense[counts.coords] = counts.values
    print(f"\n{SMALL} with {counts.values.size} non-zeros ({100 * counts.values.size / dense.size:.0f}%), float32")
    methods = {
        "tensorly non_negative_parafac": (non_negative_parafac, dense),
        "tensorly non_negative_parafac_hals": (non_negative_parafac_hals, dense),
    }
    if can_import("sparse"):
        import sparse
        from tensorly.contrib.sparse.decomposition import non_negative_parafac as sparse_parafac

        methods["tensorly non_negative_parafac, sparse"] = (sparse_parafac, sparse.COO(dense))
    ours = seconds_per_step(counts, K, 11)
    for name, (fit, tensor) in methods.items():
        report_ratio(f"a sweep over three-way counts, K = {K}", name, ours, seconds_per_sweep(fit, tensor, K))


def seconds_per_sweep(fit, tensor, K: int, sweeps: int = 5) -> float:
    def seconds(n: int) -> float:
        return time_call(lambda: fit(tensor, K, n_iter_max=n, init="random", random_state=0, tol=0))

    seconds(1)
    return (seconds(1 + sweeps) - seconds(1)) / sweeps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--largest", type=int, default=2_000_000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    describe_machine("tensorly")
    print(f"three-way counts {SHAPE}, K = {arguments.k}, float32, {arguments.threads} threads")
    measure_growth(arguments.k, arguments.largest, arguments.threads)
    compare_tensorly(arguments.k, arguments.threads)


if __name__ == "__main__":
    main()
