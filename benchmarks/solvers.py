"""Seconds to a likelihood: solver="auto" against plain EM, scikit-learn, enstop, BigARTM and poismf, from random
starts.

    python benchmarks/solvers.py                       newsgroups_df10, K = 20 and 50, five seeds
    python benchmarks/solvers.py --data counts.npz --k 20 50 100 --seeds 5 --limit 60

A gap is the difference to the best likelihood that any method found for that seed, in nats per token. The solvers of
polyseme stop after --limit seconds, the other packages after --peer-limit. polyseme and scikit-learn start from the
same factors; the others use their own starts. All likelihoods are computed by the same function, outside of the
timed sections. benchmarks/solver_peers.py lists the settings of the other packages with reasons.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from common import COMMON_START, NEWSGROUPS, describe_machine, load_counts, report_figure, report_ratio
from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import SOLVERS, FitProblem
from polyseme.solvers.initialize import random_topics
from solver_peers import PEERS, Factors, Trace, as_corpus, available, peers

warnings.filterwarnings("ignore")

GAPS = (3e-2, 1e-2, 5e-3, 1e-3)
EM_GAP, PEER_GAP = 5e-3, 3e-2
"""Gaps for which ratios are printed. scikit-learn's `mu` rarely reaches a gap below the second one."""


def start(corpus: MemoryCorpus, K: int, seed: int) -> Factors:
    """Return uniform document weights and random topics."""
    theta = np.full((corpus.counts.n_docs, K), 1.0 / K)
    return theta, random_topics(corpus, K, np.random.default_rng(seed))


def trace_polyseme(solver: str, X: sp.csr_array, K: int, factors: Factors, limit: float, max_iter: int | None) -> Trace:
    """Run a solver for `limit` seconds, `max_iter` iterations or until no gain is possible."""
    theta, phi = (padded(factor, np.float32) for factor in factors)
    corpus = as_corpus(X)
    started = time.perf_counter()
    run = SOLVERS[solver]().begin(FitProblem(Model(K), corpus), theta, phi)
    trace = [(time.perf_counter() - started, run.report.log_likelihood)]
    while trace[-1][0] < limit and not run.exhausted and len(trace) <= (max_iter or 10**9):
        run.advance()
        trace.append((time.perf_counter() - started, run.report.log_likelihood))
    return trace


def seconds_to(trace: Trace, level: float) -> float:
    """Return the seconds until a likelihood is reached, or infinity."""
    return next((seconds for seconds, value in trace if value >= level), float("inf"))


def value_at(trace: Trace, seconds: float) -> float:
    """Return the best likelihood within the first seconds."""
    return max((value for used, value in trace if used <= seconds), default=float("-inf"))


def format_seconds(seconds: float) -> str:
    return f"{seconds:7.2f}" if np.isfinite(seconds) else "      -"


def compare(
    X: sp.csr_array, K: int, seeds: int, limit: float, peer_seeds: int, peer_limit: float, packages: list[str]
) -> dict[str, list[Trace]]:
    """Run every method for every seed and print seconds to each gap, medians and ratios."""
    limits = {"plain EM": limit}
    traces: dict[str, list[Trace]] = {}
    for seed in range(seeds):
        factors = start(as_corpus(X), K, seed)
        traces.setdefault("auto", []).append(trace_polyseme("auto", X, K, factors, limit, 150))
        traces.setdefault("plain EM", []).append(trace_polyseme("em", X, K, factors, limit, None))
        if seed < peer_seeds:
            for name, run_peer in peers(X, K, seed, factors, peer_limit, packages).items():
                limits[name] = peer_limit
                traces.setdefault(name, []).append(run_peer())
    best = [
        max(max(value for _, value in method[seed]) for method in traces.values() if seed < len(method))
        for seed in range(seeds)
    ]
    header = "".join(f"{f'to {gap:g}':>9}" for gap in GAPS)
    print(f"\nK = {K}: seconds{' ' * 12}{header}   final likelihood (median of seeds)")
    for name, method in traces.items():
        times = [[seconds_to(trace, best[seed] - gap) for gap in GAPS] for seed, trace in enumerate(method)]
        cells = "".join("  " + format_seconds(value) for value in np.median(times, axis=0))
        print(f"  {name:25}{cells}   {np.median([trace[-1][1] for trace in method]):.5f} ({len(method)} seeds)")
    for name in limits:
        pairs = list(zip(best, traces["auto"], traces[name], strict=False))
        if name == "plain EM":
            ratio_to_gap(f"polyseme {name}", pairs, K, EM_GAP, limits[name])
        elif name == "scikit-learn mu" or all(seconds_to(other, top - PEER_GAP) < np.inf for top, _, other in pairs):
            ratio_to_gap(name, pairs, K, PEER_GAP, limits[name])
        if name != "plain EM":
            ratio_to_same(name, pairs, K)
    pairs = list(zip(traces["auto"], traces["plain EM"], strict=True))
    gain = np.median([auto[-1][1] - em[-1][1] for auto, em in pairs])
    ratio = np.median([em[-1][0] / auto[-1][0] for auto, em in pairs])
    report_figure(f"auto's final likelihood above plain EM's, K = {K}", f"{gain:+.5f}; EM had {ratio:.1f}x the time")
    tenth = np.median([value_at(auto, em[-1][0] / 10) - em[-1][1] for auto, em in pairs])
    value = f"{tenth:+.5f}; EM had {np.median([em[-1][0] for _, em in pairs]):.0f} s"
    report_figure(f"auto's likelihood in a tenth of EM's time above EM's, K = {K}", value)
    return traces


def ratio_to_gap(peer: str, pairs: list[tuple[float, Trace, Trace]], K: int, gap: float, limit: float) -> None:
    """Print the ratio of the median seconds to a gap; pairs are (best likelihood, auto, peer) for each seed."""
    ours, theirs = (float(np.median([seconds_to(pair[which], pair[0] - gap) for pair in pairs])) for which in (1, 2))
    reached = bool(np.isfinite(theirs))
    report_comparison(
        f"auto to {gap:g} nats below the best, K = {K}", peer, ours, theirs if reached else limit, not reached
    )


def ratio_to_same(peer: str, pairs: list[tuple[float, Trace, Trace]], K: int) -> None:
    """Print the ratio of the median seconds to the last likelihood of the peer."""
    ours = float(np.median([seconds_to(auto, other[-1][1]) for _, auto, other in pairs]))
    theirs = float(np.median([other[-1][0] for _, _, other in pairs]))
    report_comparison(
        f"auto to the peer's last likelihood ({pairs[0][2][-1][1]:.3f}), K = {K}", peer, ours, theirs, False
    )


def report_comparison(what: str, peer: str, ours: float, theirs: float, at_least: bool) -> None:
    """Print a ratio, or that auto did not reach the target."""
    if np.isfinite(ours):
        report_ratio(what, peer, ours, theirs, at_least=at_least)
    else:
        report_figure(f"{what}, beside {peer}", "not reached by auto")


def from_common_start() -> None:
    """Print the likelihood that auto reaches in the time of 300 iterations of plain EM, from the common start."""
    X, data = load_counts(NEWSGROUPS), np.load(COMMON_START)
    factors = data["doc_topic"], data["topic_word"].T
    theta, phi = (padded(factor, np.float32) for factor in factors)
    run = EM().begin(FitProblem(Model(20), as_corpus(X)), theta, phi)
    started = time.perf_counter()
    for _ in range(300):
        run.advance()
    seconds = time.perf_counter() - started
    trace = trace_polyseme("auto", X, 20, factors, seconds, None)
    print(f"\ncommon start, K = 20: 300 EM sweeps take {seconds:.1f} s and reach {run.report.log_likelihood:.5f}")
    value = f"{trace[-1][1]:.5f} in {trace[-1][0]:.1f} s"
    report_figure("auto from the common start, in the time of 300 EM sweeps, K = 20", value, "at least -6.7345")


def plot(traces: dict[str, list[Trace]], title: str, path: Path) -> None:
    """Draw the gap of seed 0 to the best likelihood against seconds, on logarithmic axes."""
    from matplotlib.figure import Figure

    best = max(value for method in traces.values() for _, value in method[0])
    canvas = Figure(figsize=(7, 4.2), layout="constrained")
    axes = canvas.subplots()
    for name, method in traces.items():
        points = np.array([(seconds, best - value) for seconds, value in method[0]])
        style = {"linewidth": 2} if name == "auto" else {"linewidth": 1.3, "marker": "" if len(points) > 20 else "o"}
        axes.loglog(points[:, 0], np.maximum(points[:, 1], 1e-5), label=name, markersize=4, **style)
    axes.set(xlabel="seconds", ylabel="nats per token below the best", title=title, ylim=(1e-4, 1))
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=90)


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
    describe_machine("enstop", "bigartm", "poismf")
    picture, packages = arguments.picture, available(arguments.peers)
    for path in arguments.data:
        X = load_counts(path)
        print(f"\n{path.stem}: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros")
        for K in arguments.k:
            traces = compare(
                X, K, arguments.seeds, arguments.limit, arguments.peer_seeds, arguments.peer_limit, packages
            )
            if picture:
                plot(traces, f"{path.stem}, K = {K}, one start", picture)
                picture = None
    if NEWSGROUPS in arguments.data and COMMON_START.is_file():
        from_common_start()


if __name__ == "__main__":
    main()
