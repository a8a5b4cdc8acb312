"""One EM iteration compared with scikit-learn, enstop and sgemm; its growth and memory.

    python benchmarks/sweep.py [--rounds 5] [--k 20 50] [--picture FILE]

Iterations of polyseme and of the peers alternate in one process, and medians are compared; only ratios within a run are
meaningful. The time of an iteration of a peer is the difference of a longer and a shorter fit, without the start.

- scikit-learn: NMF(solver="mu", beta_loss="kullback-leibler"), the only solver for this loss; float32, and tol=0, which
  disables the test of convergence. BLAS has 2 threads; the other parts use one.
- enstop: PLSA, its plain class, with all threads of numba; and BlockParallelPLSA, which it offers for more cores.
  n_iter_per_test is so large that the likelihood is not computed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF as SklearnNMF

from common import (
    NEWSGROUPS,
    PROC,
    THREADS,
    can_import,
    describe_machine,
    load_counts,
    report_figure,
    report_left_out,
    report_ratio,
    time_call,
)
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import FitProblem
from polyseme.solvers.initialize import random_topics

warnings.filterwarnings("ignore")


def start_run(X: sp.csr_array, K: int, threads: int, dtype: type = np.float32):
    """Return a run of EM after one iteration."""
    corpus = MemoryCorpus(as_counts(X, np.dtype(dtype)), None, threads)
    phi = padded(random_topics(corpus, K, np.random.default_rng(0)), dtype)
    run = EM().begin(FitProblem(Model(K), corpus), padded(np.full((X.shape[0], K), 1 / K), dtype), phi)
    run.advance()
    return run


def sklearn_seconds(X: sp.csr_array, K: int, iterations: int = 3) -> Callable[[], float]:
    """Return a function that measures one multiplicative iteration in seconds."""
    rng = np.random.default_rng(0)
    W = rng.random((X.shape[0], K), dtype=np.float32)
    H = rng.random((K, X.shape[1]), dtype=np.float32)

    def fit(n: int) -> float:
        model = SklearnNMF(K, init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=n, tol=0)
        return time_call(lambda: model.fit_transform(X, W=W.copy(), H=H.copy()))

    return lambda: (fit(1 + iterations) - fit(1)) / iterations


def enstop_seconds(X: sp.csr_array, K: int, kind: str, iterations: int = 3) -> Callable[[], float]:
    """Return a function that measures one iteration of a class of enstop, after its compilation."""
    import enstop

    matrix = sp.csr_matrix(X)

    def fit(n: int) -> float:
        model = getattr(enstop, kind)(n_components=K, n_iter=n, n_iter_per_test=10**9, tolerance=0, random_state=0)
        return time_call(lambda: model.fit(matrix))

    fit(1)
    return lambda: (fit(1 + iterations) - fit(1)) / iterations


def sgemm_gigaflops(n: int = 2048) -> float:
    a = np.random.default_rng(0).random((n, n), dtype=np.float32)
    return 2 * n**3 / min(time_call(lambda: a @ a) for _ in range(5)) / 1e9


def compare_peers(X: sp.csr_array, K: int, rounds: int) -> None:
    one, two = start_run(X, K, 1), start_run(X, K, THREADS)
    what = f"one EM iteration, K = {K}, float32"
    print(f"\nK = {K}: medians of {rounds} alternating rounds")
    ours, ours_one, blas = [], [], []
    peers = {"scikit-learn NMF mu": sklearn_seconds(X, K)}
    for kind in ("PLSA", "BlockParallelPLSA") if can_import("enstop") else ():
        peers[f"enstop {kind}"] = enstop_seconds(X, K, kind)
    for name, peer in peers.items():
        own, theirs = [], []
        for _ in range(rounds):
            time.sleep(0.5)  # threads of BLAS keep a core busy after their last product
            own += [time_call(two.advance) for _ in range(8)]
            theirs.append(peer())
            ours_one += [time_call(one.advance) for _ in range(4)]
            blas.append(sgemm_gigaflops())
        ratio = report_ratio(what, name, float(np.median(own)), float(np.median(theirs)))
        if K == 50 and name == "scikit-learn NMF mu":
            report_figure(f"speed of one EM iteration over {name}, K = {K}", f"{ratio:.1f} times", "at least 45")
        ours += own
    both, single, sgemm = (float(np.median(values)) for values in (ours, ours_one, blas))
    speed = 6 * K * X.nnz / both / 1e9
    share = f"{100 * speed / sgemm:.0f}% ({speed:.1f} of {sgemm:.0f} GF/s; 6 K flop per non-zero)"
    report_figure(f"share of sgemm's speed, K = {K}", share, "at least 10%")
    report_figure(f"two threads over one, K = {K}", f"{single / both:.2f}x ({single * 1e3:.1f} ms with one)")


def slope(sizes: list[float], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure_growth(X: sp.csr_array, picture: Path | None) -> None:
    fastest = lambda run: min(time_call(run.advance) for _ in range(7))  # noqa: E731
    parts = [sp.csr_array(X[: X.shape[0] // part]) for part in (8, 4, 2, 1)]
    sizes = [part.nnz for part in parts]
    by_size = [fastest(start_run(part, 50, THREADS)) for part in parts]
    report_figure("exponent of an iteration in non-zeros, K = 50", f"{slope(sizes, by_size):.2f}", "at most 1.1")
    widths = [64, 128, 256, 512]
    by_width = [fastest(start_run(X, K, THREADS)) for K in widths]
    times = ", ".join(f"{K}: {value * 1e3:.0f} ms" for K, value in zip(widths, by_width, strict=True))
    report_figure(
        "exponent of an iteration in K from 64 to 512", f"{slope(widths, by_width):.2f} ({times})", "at most 1.15"
    )
    if picture:
        plot([("non-zeros (K = 50)", sizes, by_size), (f"K ({X.nnz} non-zeros)", widths, by_width)], picture)


def plot(cases: list[tuple[str, list[int], list[float]]], path: Path) -> None:
    """Draw the milliseconds of an iteration, and a line for growth in proportion."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, (name, sizes, seconds) in zip(canvas.subplots(1, len(cases)), cases, strict=True):
        milliseconds = 1e3 * np.array(seconds)
        axes.loglog(sizes, milliseconds, "o-", label=f"measured: exponent {slope(sizes, seconds):.2f}")
        axes.loglog(sizes, milliseconds[0] * np.array(sizes) / sizes[0], ":", color="gray", label="in proportion")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        axes.set_yticks(milliseconds, [f"{value:.3g}" for value in milliseconds], fontsize=8)
        axes.minorticks_off()
        axes.set(xlabel=name, ylabel="ms per iteration")
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=90)


def measure_memory(K: int) -> None:
    """Print the peak memory of a fit beyond that of the process with the data, in a separate process."""
    if not PROC.exists():
        report_left_out("peak memory", f"it is read from {PROC}, which exists on Linux only")
        return
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
        what = f"peak memory beyond the input, K = {K}, solver {solver}"
        report_figure(what, f"{extra / data:.2f} x (CSR + factors), {extra:.0f} MB", "at most 3 x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--k", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--picture", type=Path, help="where to save a plot of the growth")
    arguments = parser.parse_args()
    describe_machine("enstop")
    X = load_counts(NEWSGROUPS)
    print(f"newsgroups_df10: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros")
    for K in arguments.k:
        compare_peers(X, K, arguments.rounds)
    print()
    measure_growth(X, arguments.picture)
    measure_memory(50)


if __name__ == "__main__":
    main()
