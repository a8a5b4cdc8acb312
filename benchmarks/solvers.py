"""Seconds to a likelihood: solver="auto" against plain EM, scikit-learn, enstop and BigARTM, from random starts.

    python benchmarks/solvers.py                       newsgroups_df10, K = 20 and 50, five seeds
    python benchmarks/solvers.py --data counts.npz --k 20 50 100 --seeds 5 --limit 60

A gap is measured, in nats per token, from the best likelihood that any method found for that seed. Our own solvers are
stopped after --limit seconds, the others after --peer-limit. polyseme's solvers and scikit-learn start from the same
factors; enstop and BigARTM start as they do. Likelihoods of all are computed by the same function, outside the clock.
The settings of the other packages, and why: benchmarks/solver_peers.py.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from common import COMMON_START, NEWSGROUPS, compared, describe_machine, figure, load_counts
from polyseme.core.model import Model
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers import EM, SOLVERS
from polyseme.solvers.initialize import random_topics
from solver_peers import PEERS, Factors, Trace, available, corpus_of, peers

warnings.filterwarnings("ignore")

GAPS = (3e-2, 1e-2, 5e-3, 1e-3)
EM_GAP, PEER_GAP = 5e-3, 3e-2
"""where ratios are taken: scikit-learn's mu hardly comes nearer, and others get there or not"""


def start(source: MemoryCorpus, K: int, seed: int) -> Factors:
    theta = np.full((source.counts.n_docs, K), 1.0 / K)
    return theta, random_topics(source, K, np.random.default_rng(seed))


def by_polyseme(solver: str, X: sp.csr_array, K: int, factors: Factors, limit: float, patience: int | None) -> Trace:
    """A solver's own reports; it ends after `limit` seconds, or when it has converged (patience: most iterations)."""
    theta, phi = (padded(factor, np.float32) for factor in factors)
    source = corpus_of(X)
    started = time.perf_counter()
    run = SOLVERS[solver]().begin(Model(K), source, theta, phi)
    trace = [(time.perf_counter() - started, run.report.log_likelihood)]
    while trace[-1][0] < limit and not run.exhausted and len(trace) <= (patience or 10**9):
        run.advance()
        trace.append((time.perf_counter() - started, run.report.log_likelihood))
    return trace


def seconds_to(trace: Trace, level: float) -> float:
    return next((seconds for seconds, value in trace if value >= level), float("inf"))


def value_at(trace: Trace, seconds: float) -> float:
    return max((value for used, value in trace if used <= seconds), default=float("-inf"))


def shown(seconds: float) -> str:
    return f"{seconds:7.2f}" if np.isfinite(seconds) else "      -"


def compare(
    X: sp.csr_array, K: int, seeds: int, limit: float, peer_seeds: int, peer_limit: float, here: list[str]
) -> dict[str, list[Trace]]:
    """Runs every method for every seed and prints seconds to each gap, medians and ratios."""
    limits = {"plain EM": limit}
    traces: dict[str, list[Trace]] = {}
    for seed in range(seeds):
        factors = start(corpus_of(X), K, seed)
        traces.setdefault("auto", []).append(by_polyseme("auto", X, K, factors, limit, 150))
        traces.setdefault("plain EM", []).append(by_polyseme("em", X, K, factors, limit, None))
        if seed < peer_seeds:
            for name, work in peers(X, K, seed, factors, peer_limit, here).items():
                limits[name] = peer_limit
                traces.setdefault(name, []).append(work())
    best = [
        max(max(value for _, value in method[seed]) for method in traces.values() if seed < len(method))
        for seed in range(seeds)
    ]
    header = "".join(f"{f'to {gap:g}':>9}" for gap in GAPS)
    print(f"\nK = {K}: seconds{' ' * 12}{header}   final likelihood (median of seeds)")
    for name, method in traces.items():
        times = [[seconds_to(trace, best[seed] - gap) for gap in GAPS] for seed, trace in enumerate(method)]
        cells = "".join("  " + shown(value) for value in np.median(times, axis=0))
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
    figure(f"auto's final likelihood above plain EM's, K = {K}", f"{gain:+.5f}; EM had {ratio:.1f}x the time")
    tenth = np.median([value_at(auto, em[-1][0] / 10) - em[-1][1] for auto, em in pairs])
    value = f"{tenth:+.5f}; EM had {np.median([em[-1][0] for _, em in pairs]):.0f} s"
    figure(f"auto's likelihood in a tenth of EM's time above EM's, K = {K}", value)
    return traces


def ratio_to_gap(peer: str, pairs: list[tuple[float, Trace, Trace]], K: int, gap: float, limit: float) -> None:
    """Of the median seconds to a gap below the best: pairs are (best likelihood, auto, the peer) for each seed."""
    ours, theirs = (float(np.median([seconds_to(pair[which], pair[0] - gap) for pair in pairs])) for which in (1, 2))
    reached = bool(np.isfinite(theirs))
    told(f"auto to {gap:g} nats below the best, K = {K}", peer, ours, theirs if reached else limit, not reached)


def ratio_to_same(peer: str, pairs: list[tuple[float, Trace, Trace]], K: int) -> None:
    """Of the median seconds to the likelihood that the peer has in the end."""
    ours = float(np.median([seconds_to(auto, other[-1][1]) for _, auto, other in pairs]))
    theirs = float(np.median([other[-1][0] for _, _, other in pairs]))
    told(f"auto to the peer's last likelihood ({pairs[0][2][-1][1]:.3f}), K = {K}", peer, ours, theirs, False)


def told(what: str, peer: str, ours: float, theirs: float, at_least: bool) -> None:
    if np.isfinite(ours):
        compared(what, peer, ours, theirs, at_least=at_least)
    else:
        figure(f"{what}, beside {peer}", "not reached by auto")


def from_common_start() -> None:
    """What auto reaches in the time of 300 plain EM sweeps, from the common start."""
    X, data = load_counts(NEWSGROUPS), np.load(COMMON_START)
    factors = data["doc_topic"], data["topic_word"].T
    theta, phi = (padded(factor, np.float32) for factor in factors)
    run = EM().begin(Model(20), corpus_of(X), theta, phi)
    started = time.perf_counter()
    for _ in range(300):
        run.advance()
    seconds = time.perf_counter() - started
    trace = by_polyseme("auto", X, 20, factors, seconds, None)
    print(f"\ncommon start, K = 20: 300 EM sweeps take {seconds:.1f} s and reach {run.report.log_likelihood:.5f}")
    value = f"{trace[-1][1]:.5f} in {trace[-1][0]:.1f} s"
    figure("auto from the common start, in the time of 300 EM sweeps, K = 20", value, "at least -6.7345")


def plot(traces: dict[str, list[Trace]], title: str, path: Path) -> None:
    """Gap below the best likelihood of seed 0 against seconds, on logarithmic axes."""
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
    describe_machine("enstop", "bigartm")
    picture, here = arguments.picture, available(arguments.peers)
    for path in arguments.data:
        X = load_counts(path)
        print(f"\n{path.stem}: {X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros")
        for K in arguments.k:
            traces = compare(X, K, arguments.seeds, arguments.limit, arguments.peer_seeds, arguments.peer_limit, here)
            if picture:
                plot(traces, f"{path.stem}, K = {K}, one start", picture)
                picture = None
    if NEWSGROUPS in arguments.data and COMMON_START.is_file():
        from_common_start()


if __name__ == "__main__":
    main()
