"""Seconds to a likelihood: solver="auto" against plain EM, scikit-learn, enstop and BigARTM, from random starts.

    python benchmarks/solvers.py                       newsgroups_df10, K = 20 and 50, five seeds
    python benchmarks/solvers.py --data counts.npz --k 20 50 100 --seeds 5 --limit 60

A gap is measured, in nats per token, from the best likelihood that any method found for that seed. Our own solvers are
stopped after --limit seconds, the others after --peer-limit. polyseme's solvers and scikit-learn start from the same
factors; enstop and BigARTM start as they do. Likelihoods of all are computed by the same function, outside the clock.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import non_negative_factorization

from common import COMMON_START, NEWSGROUPS, ROOT, describe_machine, installed, load_counts, patch_numpy_for_enstop
from polyseme.initialise import random_topics
from polyseme.kernels import padded
from polyseme.model import Model
from polyseme.solvers import EM, SOLVERS
from polyseme.sources.memory import MemorySource, counts_of

warnings.filterwarnings("ignore")

GAPS = (3e-2, 1e-2, 5e-3, 1e-3)
Trace = list[tuple[float, float]]
"""(seconds, log-likelihood per token) pairs"""


def source_of(X: sp.csr_array) -> MemorySource:
    return MemorySource(counts_of(X, np.dtype(np.float32)), None, 2)


def log_likelihood(source: MemorySource, theta: np.ndarray, phi: np.ndarray) -> float:
    """Of normalised factors theta (documents x K) and phi (words x K)."""
    theta = theta / np.maximum(theta.sum(axis=1, keepdims=True), 1e-300)
    phi = phi / np.maximum(phi.sum(axis=0, keepdims=True), 1e-300)
    logs = source.sweep(padded(theta, np.float32), padded(phi, np.float32), rows=False, words=False).logs
    return source.total_log(logs) / source.tokens


def start(source: MemorySource, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    theta = np.full((source.counts.n_docs, K), 1.0 / K)
    return theta, random_topics(source, K, np.random.default_rng(seed))


def by_polyseme(
    solver: str, X: sp.csr_array, K: int, factors: tuple[np.ndarray, np.ndarray], limit: float, patience: int | None
) -> Trace:
    """A solver's own reports; it ends after `limit` seconds, or when it has converged (patience: most iterations)."""
    theta, phi = (padded(factor, np.float32) for factor in factors)
    source = source_of(X)
    started = time.perf_counter()
    run = SOLVERS[solver]().begin(Model(K), source, theta, phi)
    trace = [(time.perf_counter() - started, run.report.log_likelihood)]
    while trace[-1][0] < limit and not run.exhausted and len(trace) <= (patience or 10**9):
        run.advance()
        trace.append((time.perf_counter() - started, run.report.log_likelihood))
    return trace


def by_sklearn(X: sp.csr_array, K: int, factors: tuple[np.ndarray, np.ndarray], limit: float) -> Trace:
    source, totals = source_of(X), np.asarray(X.sum(axis=1)).reshape(-1, 1)
    W, H = (factors[0] * totals).astype(np.float32), np.ascontiguousarray(factors[1].T, dtype=np.float32)
    W = np.maximum(W, 1e-8)
    trace, used = [], 0.0
    while used < limit:
        started = time.perf_counter()
        W, H, _ = non_negative_factorization(
            X, W, H, n_components=K, init="custom", solver="mu", beta_loss="kullback-leibler", tol=0, max_iter=5
        )
        used += time.perf_counter() - started
        trace.append((used, log_likelihood(source, W * H.sum(axis=1), H.T)))
    return trace


def by_enstop(X: sp.csr_array, K: int, seed: int, limit: float) -> Trace:
    """Fits of growing length from the same seed: each point is a fit of its own."""
    patch_numpy_for_enstop()
    from enstop import PLSA

    source, matrix, trace = source_of(X), sp.csr_matrix(X), []
    PLSA(n_components=K, n_iter=1, random_state=seed).fit(matrix)
    for iterations in (10, 20, 40, 80, 160, 320):
        model = PLSA(n_components=K, n_iter=iterations, n_iter_per_test=10**9, tolerance=0, random_state=seed)
        started = time.perf_counter()
        model.fit(matrix)
        used = time.perf_counter() - started
        trace.append((used, log_likelihood(source, model.embedding_, model.components_.T)))
        if used > limit / 2:
            break
    return trace


@cache
def _quiet_bigartm() -> None:
    """Its log files go to the temporary folder, not to where we are; it takes this setting once a process."""
    import artm

    logging = artm.messages.ConfigureLoggingArgs()
    logging.log_dir = tempfile.gettempdir()
    artm.wrapper.LibArtm(logging_config=logging)


def by_bigartm(X: sp.csr_array, K: int, seed: int, limit: float) -> Trace:
    import artm

    source, trace, used = source_of(X), [], 0.0
    folder = tempfile.mkdtemp()
    _quiet_bigartm()
    try:
        docword, vocab = Path(folder, "docword.x.txt"), Path(folder, "vocab.x.txt")
        coo = X.tocoo()
        rows = np.c_[coo.row + 1, coo.col + 1, coo.data].astype(int)
        np.savetxt(docword, rows, "%d", header=f"{X.shape[0]}\n{X.shape[1]}\n{X.nnz}", comments="")
        vocab.write_text("\n".join(f"w{word}" for word in range(X.shape[1])) + "\n")
        batches = artm.BatchVectorizer(
            data_path=folder, data_format="bow_uci", collection_name="x", target_folder=folder
        )
        model = artm.ARTM(
            num_topics=K, dictionary=batches.dictionary, num_processors=2, cache_theta=True, reuse_theta=True,
            num_document_passes=1, seed=seed,
        )  # fmt: skip
        while used < limit:
            started = time.perf_counter()
            model.fit_offline(batches, num_collection_passes=5)
            used += time.perf_counter() - started
            phi = model.phi_
            order = [f"w{word}" for word in range(X.shape[1])]
            theta = model.get_theta().T.sort_index().to_numpy()
            theta = theta if len(theta) == X.shape[0] else np.full((X.shape[0], K), 1 / K)
            trace.append((used, log_likelihood(source, theta, phi.reindex(order).fillna(0).to_numpy())))
    finally:
        shutil.rmtree(folder)
    return trace


def seconds_to(trace: Trace, level: float) -> float:
    return next((seconds for seconds, value in trace if value >= level), float("inf"))


def value_at(trace: Trace, seconds: float) -> float:
    return max((value for used, value in trace if used <= seconds), default=float("-inf"))


def shown(seconds: float) -> str:
    return f"{seconds:7.2f}" if np.isfinite(seconds) else "      -"


PEERS = ("scikit-learn", "enstop", "bigartm")


def peers(
    X: sp.csr_array, K: int, seed: int, limit: float, wanted: list[str]
) -> Iterator[tuple[str, Callable[[], Trace]]]:
    factors = start(source_of(X), K, seed)
    work: dict[str, tuple[str, Callable[[], Trace]]] = {
        "scikit-learn": ("scikit-learn mu", lambda: by_sklearn(X, K, factors, limit)),
        "enstop": ("enstop", lambda: by_enstop(X, K, seed, limit)),
        "bigartm": ("BigARTM", lambda: by_bigartm(X, K, seed, limit)),
    }
    for name in wanted:
        if installed(name) != "not installed":
            yield work[name]


def compare(
    X: sp.csr_array, K: int, seeds: int, limit: float, peer_seeds: int, peer_limit: float, wanted: list[str]
) -> dict[str, list[Trace]]:
    """Runs every method for every seed and prints seconds to each gap, medians and ratios."""
    limits = {"plain EM": limit}
    traces: dict[str, list[Trace]] = {}
    for seed in range(seeds):
        factors = start(source_of(X), K, seed)
        traces.setdefault("auto", []).append(by_polyseme("auto", X, K, factors, limit, 150))
        traces.setdefault("plain EM", []).append(by_polyseme("em", X, K, factors, limit, None))
        if seed < peer_seeds:
            for name, work in peers(X, K, seed, peer_limit, wanted):
                limits[name] = peer_limit
                traces.setdefault(name, []).append(work())
    best = [
        max(max(value for _, value in method[seed]) for method in traces.values() if seed < len(method))
        for seed in range(seeds)
    ]
    header = "".join(f"{f'to {gap:g}':>9}" for gap in GAPS)
    print(f"\nK = {K}: seconds{header}   final likelihood (median of seeds)")
    times = {
        name: np.array([[seconds_to(trace, best[seed] - gap) for gap in GAPS] for seed, trace in enumerate(method)])
        for name, method in traces.items()
    }
    for name, values in times.items():
        finals = np.median([trace[-1][1] for trace in traces[name]])
        middle = np.median(values, axis=0)
        print(
            f"  {name:16}" + "".join("  " + shown(value) for value in middle) + f"   {finals:.5f} ({len(values)} seeds)"
        )
    for name, values in times.items():
        if name != "auto":
            ratio = np.median(np.minimum(values, limits[name]) / times["auto"][: len(values)], axis=0)
            reached = np.isfinite(np.median(values, axis=0))
            cells = "".join(
                f"{('' if sure else '>') + f'{value:.1f}x':>9}" for value, sure in zip(ratio, reached, strict=True)
            )
            print(f"  auto over {name:14}{cells}")
    pairs = list(zip(traces["auto"], traces["plain EM"], strict=True))
    gain = np.median([auto[-1][1] - em[-1][1] for auto, em in pairs])
    ratio = np.median([em[-1][0] / auto[-1][0] for auto, em in pairs])
    print(f"  auto's final likelihood above plain EM's (median): {gain:+.5f}; EM had {ratio:.1f}x the time")
    tenth = np.median([value_at(auto, em[-1][0] / 10) - em[-1][1] for auto, em in pairs])
    print(f"  auto's likelihood after a tenth of EM's time above EM's last (median): {tenth:+.5f}")
    return traces


def from_common_start() -> None:
    """What auto reaches in the time of 300 plain EM sweeps, from the common start."""
    X, data = load_counts(NEWSGROUPS), np.load(COMMON_START)
    factors = data["doc_topic"], data["topic_word"].T
    theta, phi = (padded(factor, np.float32) for factor in factors)
    run = EM().begin(Model(20), source_of(X), theta, phi)
    started = time.perf_counter()
    for _ in range(300):
        run.advance()
    seconds = time.perf_counter() - started
    trace = by_polyseme("auto", X, 20, factors, seconds, None)
    print(
        f"\ncommon start, K = 20: 300 EM sweeps take {seconds:.1f} s and reach {run.report.log_likelihood:.5f}; "
        f"auto reaches {trace[-1][1]:.5f} in {trace[-1][0]:.1f} s"
    )


def plot(traces: dict[str, list[Trace]], title: str, path: Path) -> None:
    """Gap below the best likelihood of seed 0 against seconds, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    best = max(value for method in traces.values() for _, value in method[0])
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, method in traces.items():
        points = np.array([(seconds, best - value) for seconds, value in method[0]])
        axes.loglog(points[:, 0], np.maximum(points[:, 1], 1e-5), label=name, linewidth=2 if name == "auto" else 1.3)
    axes.set(xlabel="seconds", ylabel="nats per token below the best", title=title, ylim=(1e-4, 1))
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"picture: {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, default=[NEWSGROUPS], help="scipy .npz files of counts")
    parser.add_argument("--k", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=1, help="how many of the seeds the other packages run")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for auto and for plain EM")
    parser.add_argument("--peer-limit", type=float, default=60.0, help="seconds for each of the other packages")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="the other packages to run")
    parser.add_argument("--picture", type=Path, help="where to save a convergence plot of the first case")
    arguments = parser.parse_args()
    describe_machine("enstop", "bigartm")
    picture = arguments.picture
    for path in arguments.data:
        X = load_counts(path)
        print(f"\n{path.stem}: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros")
        for K in arguments.k:
            traces = compare(
                X, K, arguments.seeds, arguments.limit, arguments.peer_seeds, arguments.peer_limit, arguments.peers
            )
            if picture:
                plot(traces, f"{path.stem}, K = {K}, one start", picture)
                picture = None
    if NEWSGROUPS in arguments.data and COMMON_START.is_file():
        from_common_start()


if __name__ == "__main__":
    main()
