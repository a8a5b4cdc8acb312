"""PLSA of three-way counts: how an EM iteration grows with the non-zeros, and beside tensorly's non-negative PARAFAC.

    python benchmarks/tensor.py [--k 20] [--largest 2000000] [--threads 2]

The tensors are drawn from K topics; the growth is the slope of log seconds over log non-zeros (median of a few rounds).
tensorly fits least squares, so only seconds a sweep compare. It gets a small tensor, made dense, in float32, by both of
its methods: multiplicative updates, and HALS, which it documents as the faster one to converge; random starts and tol=0
(a fit of more sweeps less a fit of one, so that its start is not counted), BLAS with as many threads as ours. Its
sparse form (tensorly.contrib.sparse) gets the tensor sparse, as ours does.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from common import can_import, compared, describe_machine, figure, seconds_of
from polyseme.data.tensor import TensorCounts, count_tuples
from polyseme.solvers.tensor import begin, random_start

warnings.filterwarnings("ignore")

SHAPE = (20_000, 10_000, 50)
SMALL = (200, 200, 30)


def drawn(shape: tuple[int, ...], K: int, tokens: int, threads: int, seed: int = 0) -> TensorCounts:
    """So many draws from K topics with a few hundred items of each mode."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(K, size=tokens)
    coords = []
    for size in shape:
        popularity = rng.permutation(size)
        common = np.minimum((size * rng.random(tokens) ** 3).astype(np.int64), size - 1)
        coords.append(popularity[(common + topics * (size // K)) % size])
    keys, counts = np.unique(np.ravel_multi_index(tuple(coords), shape), return_counts=True)
    return TensorCounts(np.unravel_index(keys, shape), counts.astype(np.float32), shape, threads)


def seconds_a_step(source: TensorCounts, K: int, rounds: int) -> float:
    run = begin(source, random_start(source, K, np.random.default_rng(0)), extrapolate=False)
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        run.advance()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def growth(K: int, largest: int, threads: int) -> None:
    sizes, seconds = [], []
    for tokens in (largest // 16, largest // 8, largest // 4, largest // 2, largest):
        source = drawn(SHAPE, K, tokens, threads)
        c = source.column_mode
        tuples = count_tuples([index for mode, index in enumerate(source.coords) if mode != c])
        sizes.append(source.values.size)
        seconds.append(seconds_a_step(source, K, 5))
        print(
            f"{source.values.size:9d} non-zeros, {tuples:9d} tuples, columns are mode {c}: "
            f"{1e3 * seconds[-1]:8.1f} ms, {1e9 * seconds[-1] / sizes[-1] / K:.2f} ns a non-zero and topic"
        )
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    figure(f"exponent of an EM iteration of three ways in non-zeros, K = {K}", f"{slope:.2f}", "at most 1.1")


def beside_tensorly(K: int, threads: int) -> None:
    if not can_import("tensorly"):
        return
    from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals

    source = drawn(SMALL, K, 100_000, threads)
    dense = np.zeros(SMALL, dtype=np.float32)
    dense[source.coords] = source.values
    print(f"\n{SMALL} with {source.values.size} non-zeros ({100 * source.values.size / dense.size:.0f}%), float32")
    methods = {
        "tensorly non_negative_parafac": (non_negative_parafac, dense),
        "tensorly non_negative_parafac_hals": (non_negative_parafac_hals, dense),
    }
    if can_import("sparse"):
        import sparse
        from tensorly.contrib.sparse.decomposition import non_negative_parafac as of_sparse

        methods["tensorly non_negative_parafac, sparse"] = (of_sparse, sparse.COO(dense))
    ours = seconds_a_step(source, K, 11)
    for name, (fit, tensor) in methods.items():
        compared(f"a sweep of three ways, K = {K}", name, ours, seconds_a_sweep(fit, tensor, K))


def seconds_a_sweep(fit, tensor, K: int, sweeps: int = 5) -> float:
    def seconds(n: int) -> float:
        return seconds_of(lambda: fit(tensor, K, n_iter_max=n, init="random", random_state=0, tol=0))

    seconds(1)
    return (seconds(1 + sweeps) - seconds(1)) / sweeps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--largest", type=int, default=2_000_000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    describe_machine("tensorly")
    print(f"three ways {SHAPE}, K = {arguments.k}, float32, {arguments.threads} threads")
    growth(arguments.k, arguments.largest, arguments.threads)
    beside_tensorly(arguments.k, arguments.threads)


if __name__ == "__main__":
    main()
