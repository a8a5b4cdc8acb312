"""One EM iteration against scikit-learn's and enstop's, against sgemm, by threads, and its growth and memory.

    python benchmarks/sweep.py

Our iterations and the peers' alternate in one process, and medians are compared: only ratios within a run count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF as SklearnNMF

from common import NEWSGROUPS, describe_machine, installed, load_counts, patch_numpy_for_enstop, seconds_of
from polyseme.initialise import random_topics
from polyseme.kernels import padded
from polyseme.model import Model
from polyseme.solvers import EM
from polyseme.sources.memory import MemorySource, counts_of

warnings.filterwarnings("ignore")


def our_run(X: sp.csr_array, K: int, threads: int, dtype: type = np.float32):
    """A run of EM, warm: one iteration is done."""
    source = MemorySource(counts_of(X, np.dtype(dtype)), None, threads)
    phi = padded(random_topics(source, K, np.random.default_rng(0)), dtype)
    run = EM().begin(Model(K), source, padded(np.full((X.shape[0], K), 1 / K), dtype), phi)
    run.advance()
    return run


def sklearn_seconds(X: sp.csr_array, K: int, W: np.ndarray, H: np.ndarray, iterations: int = 4) -> float:
    """Seconds of one multiplicative iteration: the difference of a longer and a shorter fit."""

    def fit(n: int) -> float:
        model = SklearnNMF(K, init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=n, tol=0)
        return seconds_of(lambda: model.fit_transform(X, W=W.copy(), H=H.copy()))

    return (fit(1 + iterations) - fit(1)) / iterations


def enstop_seconds(X: sp.csr_array, K: int, iterations: int = 4) -> float:
    patch_numpy_for_enstop()
    from enstop import PLSA

    def fit(n: int) -> float:
        model = PLSA(n_components=K, n_iter=n, n_iter_per_test=10**9, tolerance=0, random_state=0)
        return seconds_of(lambda: model.fit(sp.csr_matrix(X)))

    fit(1)
    return (fit(1 + iterations) - fit(1)) / iterations


def sgemm_gigaflops(n: int = 2048) -> float:
    a = np.random.default_rng(0).random((n, n), dtype=np.float32)
    return 2 * n**3 / min(seconds_of(lambda: a @ a) for _ in range(5)) / 1e9


def against_peers(X: sp.csr_array, K: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    W = rng.random((X.shape[0], K), dtype=np.float32)
    H = rng.random((K, X.shape[1]), dtype=np.float32)
    one, two = our_run(X, K, 1), our_run(X, K, 2)
    ours, ours_one, theirs, blas = [], [], [], []
    for _ in range(rounds):
        ours += [seconds_of(two.advance) for _ in range(8)]
        ours_one += [seconds_of(one.advance) for _ in range(4)]
        theirs.append(sklearn_seconds(X, K, W, H))
        blas.append(sgemm_gigaflops())
    mine, single, peer, sgemm = (float(np.median(values)) for values in (ours, ours_one, theirs, blas))
    speed = 6 * K * X.nnz / mine / 1e9
    print(f"\nK = {K}, float32, one iteration (E- and M-step), medians of {rounds} alternating rounds")
    print(f"  polyseme, 2 threads   {mine * 1e3:8.1f} ms   (fastest {min(ours) * 1e3:.1f})")
    print(f"  polyseme, 1 thread    {single * 1e3:8.1f} ms   two threads over one: {single / mine:.2f}x")
    print(f"  scikit-learn NMF mu   {peer * 1e3:8.1f} ms   polyseme is {peer / mine:.1f}x as fast")
    print(f"  {speed:.1f} GF/s (6 K flop a non-zero) = {100 * speed / sgemm:.0f}% of sgemm's {sgemm:.0f} GF/s")
    if installed("enstop") != "not installed":
        peer = enstop_seconds(X, K)
        print(f"  enstop PLSA           {peer * 1e3:8.1f} ms   polyseme is {peer / mine:.1f}x as fast")


def slope(sizes: list[float], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(X: sp.csr_array) -> None:
    fastest = lambda run: min(seconds_of(run.advance) for _ in range(7))  # noqa: E731
    parts = [sp.csr_array(X[: X.shape[0] // part]) for part in (8, 4, 2, 1)]
    seconds = [fastest(our_run(part, 50, 2)) for part in parts]
    print(f"\ngrowth with non-zeros (K = 50): exponent {slope([part.nnz for part in parts], seconds):.2f}")
    widths = [64, 128, 256, 512]
    seconds = [fastest(our_run(X, K, 2)) for K in widths]
    times = ", ".join(f"K = {K}: {value * 1e3:.0f} ms" for K, value in zip(widths, seconds, strict=True))
    print(f"growth with K from 64 to 512: exponent {slope(widths, seconds):.2f} ({times})")


def memory(K: int) -> None:
    """Peak memory of a fit beyond the process with the data loaded, in a process of its own."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from common import NEWSGROUPS, load_counts, peak_memory, reset_peak_memory; import warnings;"
        "from polyseme import PLSA; warnings.simplefilter('ignore'); X = load_counts(NEWSGROUPS);"
        "PLSA(2, max_iter=1).fit(X[:50]); reset_peak_memory(); before = peak_memory();"
        f"PLSA({K}, solver=sys.argv[2], max_iter=5, random_state=0).fit(X); extra = peak_memory() - before;"
        f"csr = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes; factors = 4 * {K} * sum(X.shape);"
        "print(extra / 2**20, (csr + factors) / 2**20)"
    )
    for solver in ("em", "auto"):
        output = subprocess.run(
            [sys.executable, "-c", code, os.path.dirname(__file__), solver], capture_output=True, text=True, check=True
        ).stdout
        extra, data = (float(value) for value in output.split())
        print(
            f"peak memory, K = {K}, solver {solver}: {extra:.0f} MB beyond the input "
            f"= {extra / data:.2f} x (CSR + factors)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--k", type=int, nargs="+", default=[20, 50])
    arguments = parser.parse_args()
    describe_machine("enstop")
    X = load_counts(NEWSGROUPS)
    print(f"newsgroups_df10: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros")
    for K in arguments.k:
        against_peers(X, K, arguments.rounds)
    growth(X)
    memory(50)


if __name__ == "__main__":
    main()
