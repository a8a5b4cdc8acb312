"""Time of whole fits against an older commit, by the number of topics.

    python benchmarks/fits.py --against COMMIT [--now HEAD] [--data news ap] [--k 50 200 400] [--seeds 5] [--longest 3]
    python benchmarks/fits.py --against COMMIT --sweep [--data news ap] [--k 50 200] [--seeds 5] [--threads 2]
    python benchmarks/fits.py --rest [--data news ap] [--k 10 50 200] [--seeds 1] [--solvers auto em] [--longest 4]

Both commits are built as tools/compare_builds.py builds them. Each fit runs in a process of its own, in alternating
order, and its CPU time counts, by default of one thread. For every corpus and number of topics it prints the medians
over the seeds of

    end        ratio of the time of a fit with default settings, and how much the likelihood at its end differs
    to 5e-3    ratio of the time until the likelihood is within 5e-3 nats per token of the best that either has reached
    iteration  ratio of the time of an iteration, over the iterations that both have
    EM         ratio of the time of an iteration of solver="em"

and then the exponent of the new time to 5e-3 in the number of topics. With --longest, a fit goes on without a tolerance
for that many times its own iterations, and what it still gains is printed: the true rest after the default fit. Ratios
above one mean that the new commit is faster.

With --sweep, only the iterations of solver="em" run, in float32, and their elapsed time counts.

With --rest, only the installed package runs, with default settings, and for every fit the estimate of what it can still
gain at its end is printed next to this rest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from common import AP, DATA, NEWSGROUPS, ROOT, describe_machine, load_counts, require_file
from polyseme import PLSA

FILES = {
    "news": NEWSGROUPS,
    "ap": AP,
    "poliblog": DATA / "counts" / "poliblog5k.npz",
    "cells": DATA / "counts" / "pbmc_facs.npz",
}
GAP = 5e-3

RUN = """
import json, sys, time, warnings
import numpy as np, scipy.sparse as sp
from polyseme import PLSA
warnings.filterwarnings("ignore")
X = sp.csr_array(sp.load_npz(sys.argv[1]))
X = X[:, np.asarray(X.sum(axis=0)).ravel() > 0]
times, values, settings = [], [], json.loads(sys.argv[2])
clock = time.perf_counter if settings.pop("elapsed", False) else time.process_time
def note(entry):
    times.append(clock())
    values.append(entry["log_likelihood"])
X = X.astype(settings.pop("dtype", X.dtype))
PLSA(callback=note, **settings).fit(X)
print(json.dumps([[t - times[0] for t in times], values]))
"""


def fitted(build: Path, path: Path, **settings: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the CPU seconds and the log-likelihood of each iteration of a fit in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(build)}
    command = [sys.executable, "-c", RUN, str(path), json.dumps(settings)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    times, values = json.loads(done.stdout)
    return np.array(times), np.array(values)


def seconds_to(fit: tuple[np.ndarray, np.ndarray], value: float) -> float:
    """Return when a fit has reached a log-likelihood; infinity if it has not."""
    reached = np.flatnonzero(fit[1] >= value)
    return float(fit[0][reached[0]]) if reached.size else float("inf")


def compare(builds: list[Path], path: Path, K: int, options: argparse.Namespace) -> float:
    """Print the line of one number of topics, and return the new time to the gap."""
    rows: list[list[float]] = []
    rests = []
    for seed in range(options.seeds):
        common = {"n_components": K, "random_state": seed, "n_jobs": options.threads}
        fits, sweeps = {}, {}
        for side in (0, 1) if seed % 2 == 0 else (1, 0):
            fits[side] = fitted(builds[side], path, **common)
            times = fitted(builds[side], path, **common, solver="em", max_iter=8, tol=0)[0]
            sweeps[side] = median(np.diff(times))
        (old_times, old), (new_times, new) = fits[0], fits[1]
        target = max(old[-1], new[-1]) - GAP
        both = min(old.size, new.size) - 1
        rows.append([
            old_times[-1] / new_times[-1], new[-1] - old[-1], seconds_to(fits[0], target), seconds_to(fits[1], target),
            old_times[both] / new_times[both], sweeps[0] / sweeps[1], new_times[-1], new.size - 1.0,
            old.size - 1.0,
        ])  # fmt: skip
        if options.longest:
            longer = fitted(builds[1], path, **common, tol=0, max_iter=int(options.longest * (new.size - 1)))[1]
            rests.append(max(longer[-1] - new[-1], 0.0))
    end, better, old_gap, new_gap, iteration, em, seconds, iterations, before = np.median(np.array(rows), axis=0)
    ratio = median(row[2] / row[3] for row in rows) if np.isfinite(new_gap) else float("nan")
    rest = f"  rest {median(rests):.1e}" if rests else ""
    ends = f"{seconds:.1f} s; iterations {before:.0f} -> {iterations:.0f}"
    print(
        f"K = {K:4}  end {end:5.2f} ({better:+.1e} nats; {ends})  "
        f"to {GAP:g} {ratio:5.2f} ({old_gap:.1f} / {new_gap:.1f} s)  iteration {iteration:5.2f}  EM {em:5.2f}{rest}",
        flush=True,
    )
    return float(new_gap)


def compare_sweeps(builds: list[Path], path: Path, K: int, options: argparse.Namespace) -> None:
    """Print how many times as fast an iteration of EM is as before: the ratio of the medians, and of the minima."""
    times: list[list[float]] = [[], []]
    settings = {"n_components": K, "n_jobs": options.threads, "solver": "em", "tol": 0, "max_iter": 25, "elapsed": True}
    for seed in range(options.seeds):
        for side in (0, 1) if seed % 2 == 0 else (1, 0):
            times[side] += list(np.diff(fitted(builds[side], path, **settings, random_state=seed, dtype="float32")[0]))
    old, new = times
    print(
        f"K = {K:4}  EM iteration {median(old) / median(new):.2f} times as fast ({1e3 * median(old):.2f} -> "
        f"{1e3 * median(new):.2f} ms; fastest {min(old) / min(new):.2f}, {1e3 * min(old):.2f} -> "
        f"{1e3 * min(new):.2f} ms)", flush=True,
    )  # fmt: skip


def print_rests(name: str, X: sp.csr_array, options: argparse.Namespace) -> None:
    """Print where default fits end, and what they gain if they go on."""
    times = options.longest or 4
    for solver, K, seed in product(options.solvers, options.k, range(options.seeds)):
        common = {"solver": solver, "random_state": seed, "n_jobs": options.threads}
        started = time.process_time()
        end = PLSA(K, **common, max_iter=5000).fit(X)
        seconds, n = time.process_time() - started, end.n_iter_
        longer = PLSA(K, **common, tol=0, max_iter=int(times * n)).fit(X)
        rest = longer.history_["objective"][-1] - end.history_["objective"][-1]
        print(
            f"| {name} | {solver} | {K} | {seed} | {n} | {seconds:.1f} | {end.history_['remaining'][-1]:.1e} | "
            f"{rest:.1e} |", flush=True,
        )  # fmt: skip


def main() -> None:
    """Build both commits, run the fits and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--against", metavar="COMMIT")
    mode.add_argument("--rest", action="store_true")
    parser.add_argument("--now", default="HEAD", metavar="COMMIT")
    parser.add_argument("--data", nargs="+", default=["news", "ap"], choices=list(FILES))
    parser.add_argument("--k", nargs="+", type=int, default=[50, 200, 400])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sweep", action="store_true", help="only iterations of EM")
    parser.add_argument("--longest", type=float, default=0, metavar="TIMES")
    parser.add_argument("--solvers", nargs="+", default=["auto", "em"], help="of --rest")
    options = parser.parse_args()
    if options.rest:
        warnings.simplefilter("ignore", ConvergenceWarning)
        describe_machine()
        print("| data | solver | K | seed | iterations | CPU s | estimate | rest |\n|---|---|---|---|---|---|---|---|")
        for name in options.data:
            print_rests(name, load_counts(require_file(FILES[name])), options)
        return
    sys.path.append(str(ROOT / "tools"))
    from compare_builds import build, commit_hash

    builds = [build(commit_hash(name)) for name in (options.against, options.now)]
    describe_machine()
    for name in options.data:
        path = require_file(FILES[name])
        clock = "elapsed" if options.sweep else "CPU"
        print(f"{name}: {options.seeds} seeds, {options.threads} threads; ratios of {clock} time, old / new")
        if options.sweep:
            for K in options.k:
                compare_sweeps(builds, path, K, options)
            continue
        gaps = [compare(builds, path, K, options) for K in options.k]
        if len(gaps) > 1 and np.isfinite(gaps).all():
            exponent = np.polyfit(np.log(options.k), np.log(gaps), 1)[0]
            print(f"exponent of the time to {GAP:g} in K: {exponent:.2f}")


if __name__ == "__main__":
    main()
