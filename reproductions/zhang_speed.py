"""Compare the speed of the algorithms of Zhang, Ding and Tang: iterations, passes and seconds to one likelihood.

Part of zhang_ding_tang.py.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from formulas import Array
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import Sums, Want
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import Solver
from polyseme.solvers.multiplicative import PLSI, MultiplicativeNMF, NormalizedNMF
from support import Finding, as_corpus, begin, planted_corpus, random_start, show, verdict


class CountingCorpus(MemoryCorpus):
    """Corpus that counts passes over the non-zeros: one for the product, one for each kind of sums, none for logs."""

    passes = 0

    def sums(self, A: Array, B: Array, want: Want = Want.ALL, *, memory: Array | None = None) -> Sums:
        self.passes += 1 + (Want.ROWS in want) + (Want.WORDS in want)
        return super().sums(A, B, want, memory=memory)


class Course(NamedTuple):
    """Likelihood, passes and seconds of a run by iteration."""

    likelihood: Array
    passes: Array
    seconds: Array


SPEED = {"EM": EM(), "NMF (Alg. 1)": MultiplicativeNMF(), "PLSI (Alg. 2)": PLSI(), "normalized NMF": NormalizedNMF()}


def course(solver: Solver, X: Any, n_topics: int, seed: int, iterations: int) -> Course:
    corpus = CountingCorpus(as_corpus(X).counts)
    start = random_start(corpus, n_topics, seed)
    began = time.perf_counter()
    run = begin(solver, corpus, start)
    seen = [(run.report.log_likelihood, corpus.passes, 0.0)]
    for _ in range(iterations):
        run.advance()
        seen.append((run.report.log_likelihood, corpus.passes, time.perf_counter() - began))
    return Course(*np.array(seen).T)


def courses(X: Any, n_topics: int, n_starts: int, iterations: int) -> list[dict[str, Course]]:
    """Return the course of every algorithm for each start."""
    return [
        {name: course(solver, X, n_topics, seed, iterations) for name, solver in SPEED.items()}
        for seed in range(n_starts)
    ]


class Costs(NamedTuple):
    """Medians over starts for each algorithm."""

    per_iteration: dict[str, float]
    iterations: dict[str, float]
    passes: dict[str, float]


def speed_table(data: str, runs: list[dict[str, Course]]) -> Costs:
    """Print iterations, passes and seconds to the final likelihood of the slowest of the four."""
    costs = Costs({}, {}, {})
    rows = []
    for name in SPEED:
        at, passes, seconds = [], [], []
        for each in runs:
            target = min(c.likelihood[-1] for c in each.values())
            index = int(np.argmax(each[name].likelihood >= target))
            at.append(index)
            passes.append(each[name].passes[index] - each[name].passes[0])
            seconds.append(each[name].seconds[index])
        costs.per_iteration[name] = float(np.diff(runs[0][name].passes)[0])
        costs.iterations[name], costs.passes[name] = float(np.median(at)), float(np.median(passes))
        rows.append((name, f"{costs.per_iteration[name]:.0f}", f"{np.median(at):.0f}", f"{np.median(passes):.0f}",
                     f"{np.median(seconds):.2f}"))  # fmt: skip
    show(f"Speed on {data}: to the likelihood that the slowest reaches in {len(runs[0]['EM'].passes) - 1} iterations",
         ("algorithm", "passes per iteration", "iterations", "passes", "seconds on this machine"), rows)  # fmt: skip
    return costs


def speed(ap: Any, n_starts: int, iterations: int) -> tuple[list[dict[str, Course]], str, Finding]:
    """Return the runs of the last corpus, its name, and the finding."""
    data = {"planted corpus": (planted_corpus(200, 300, 10, 60, seed=0), 10)}
    if ap is not None:
        data["AP"] = (ap, 10)
    costs = {}
    for name, (X, n_topics) in data.items():
        runs = courses(X, n_topics, n_starts, iterations)
        costs[name] = speed_table(name, runs)
    nmf, plsi = "NMF (Alg. 1)", "PLSI (Alg. 2)"
    parts = [
        f"{name}: {c.iterations[nmf]:.0f} iterations and {c.passes[nmf]:.0f} passes, PLSI {c.iterations[plsi]:.0f} and "
        f"{c.passes[plsi]:.0f}, EM {c.iterations['EM']:.0f} and {c.passes['EM']:.0f}"
        for name, c in costs.items()
    ]
    per = next(iter(costs.values())).per_iteration
    return runs, name, Finding(
        "NMF is faster (sect. 6)", "Algorithms 1 to 3 give equivalent solutions, but NMF is faster, even than EM",
        f"passes per iteration: NMF {per[nmf]:.0f}, PLSI {per[plsi]:.0f}, EM {per['EM']:.0f}; to one likelihood on "
        + "; on ".join(parts),
        verdict(
            "true compared with PLSI; little gain compared with EM",
            per[nmf] < per[plsi], per[nmf] > per["EM"],
            *(c.passes[nmf] < c.passes[plsi] and c.iterations[nmf] < c.iterations["EM"] for c in costs.values()),
            *(0.7 < c.passes[nmf] / c.passes["EM"] < 1.1 for c in costs.values()),
        ),
    )  # fmt: skip
