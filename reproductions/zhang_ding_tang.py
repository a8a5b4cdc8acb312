"""Check the statements of Zhang, Ding and Tang, "Note on algorithm differences between nonnegative matrix factorization
and probabilistic latent semantic indexing".

Run: .venv/bin/python reproductions/zhang_ding_tang.py [--quick]
The algorithms in formulas.py follow the paper; the first table shows that the solvers of the package have the same
iterates. The script prints tables and saves a plot in build/reproductions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from itertools import product as pairs_of
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import formulas
from formulas import Array, Pair, divergence
from polyseme.metrics import align
from polyseme.solvers.ascent import EM
from polyseme.solvers.multiplicative import PLSI, MultiplicativeNMF
from support import (
    KINDS,
    Finding,
    ap_subset,
    arguments,
    as_corpus,
    asymmetric,
    conclude,
    distance,
    few,
    joint,
    point,
    polished,
    random_start,
    run_solver,
    show,
    verdict,
)
from zhang_gamma_poisson import gamma_poisson
from zhang_speed import SPEED, Course, speed
from zhang_theorems import (
    after,
    algorithm_1,
    algorithm_2,
    algorithm_3,
    as_pair,
    fixed_sums,
    posterior_normalization,
    setting,
    solver_finding,
    stationary_points,
    theorem_findings,
    theorems,
    times,
)

SAME = 1e-3
"""Products within this total variation count as the same optimum; small problems are far below or above."""


@dataclass(frozen=True)
class Size:
    """Sizes of the experiments."""

    theorem_problems: int = 40
    sum_iterations: tuple[int, ...] = (1, 10, 100, 1000, 5000)
    end_iterations: int = 3000
    eq10_problems: int = 40
    eq10_iterations: int = 6000
    polish: int = 1000
    many_problems: int = 10
    many_updates: int = 2000
    many: tuple[int, ...] = (1, 2, 5, 10)
    speed_docs: int = 300
    speed_iterations: int = 300
    speed_starts: int = 3
    ap_docs: int = 100
    ap_starts: int = 5
    ap_iterations: int = 1000
    posterior_docs: int = 400
    gamma_poisson_docs: int = 200


QUICK = Size(
    theorem_problems=5,
    sum_iterations=(1, 10, 100, 1000),
    end_iterations=200,
    eq10_problems=30,
    eq10_iterations=200,
    polish=100,
    many_problems=2,
    many_updates=200,
    many=(1, 5),
    speed_docs=40,
    speed_iterations=60,
    speed_starts=1,
    ap_docs=40,
    ap_starts=1,
    posterior_docs=100,
    ap_iterations=60,
    gamma_poisson_docs=40,
)


# Equation 10


PAIRS = {"NMF, PLSI": (0, 1), "NMF, EM": (0, 2), "PLSI, EM": (1, 2)}


class Ends(NamedTuple):
    """Distances between the products of the algorithms: pairs (as in PAIRS) x problems of a kind."""

    kind: str
    as_run: Array
    polished: Array
    moved: Array
    """Largest distance between the products of a problem before and after polishing."""
    divergences: Array
    """Largest relative difference of the polished divergences."""

    def counted(self, condition: Array) -> str:
        return f"{condition.sum()} of {condition.size}"


def largest_distance(products: Sequence[Array]) -> Array:
    return np.max([distance(P, Q) for P, Q in combinations(products, 2)], axis=0)


def pair_distances(products: Sequence[Array]) -> Array:
    return np.array([distance(products[i], products[j]) for i, j in PAIRS.values()])


def optima_of(X: Array, pair: Pair, iterations: int) -> Pair:
    """Return the optimum that each run leads to: F = P(w|z), G = P(d,z)."""
    found = []
    for i in range(len(X)):
        corpus = as_corpus(X[i].T * X[i].size)
        theta, phi = polished(corpus, asymmetric(Pair(pair.F[i], pair.G[i])), iterations)
        found.append((phi, theta * X[i].sum(axis=0)[:, np.newaxis]))
    F, G = zip(*found, strict=True)
    return Pair(np.array(F), np.array(G))


def equation_10(size: Size, kind: str) -> Ends:
    """Compare NMF, PLSI and EM from the same starts; normalized NMF has the product of NMF."""
    X, start = setting(size.eq10_problems, seed=7, kinds=[kind])
    first, second, em = as_pair(start), start, start
    for _ in range(size.eq10_iterations):
        first, second, em = formulas.nmf(X, first), formulas.plsi(X, second), formulas.em(X, em)
    ends = [first, as_pair(second), as_pair(em)]
    optima = [times(optima_of(X, end, size.polish)) for end in ends]
    return ends_of(kind, X, [times(end) for end in ends], optima)


def ends_of(kind: str, X: Array, products: Sequence[Array], optima: Sequence[Array]) -> Ends:
    D = np.array([divergence(X, P) for P in optima])
    spread = (D.max(axis=0) - D.min(axis=0)) / np.maximum(D.min(axis=0), 1e-12)
    moved = np.max([distance(P, Q) for P, Q in zip(products, optima, strict=True)], axis=0)
    return Ends(kind, pair_distances(products), pair_distances(optima), moved, spread)


def equation_10_ap(size: Size, ap: Any) -> Ends:
    """Compare the solvers of the package on AP, K = 5, from a few starts."""
    corpus = as_corpus(ap)
    X = ap.toarray() / corpus.tokens
    products: list[list[Array]] = [[], [], []]
    optima: list[list[Array]] = [[], [], []]
    for seed in range(size.ap_starts):
        start = random_start(corpus, 5, seed)
        for i, solver in enumerate((MultiplicativeNMF(), PLSI(), EM())):
            end = point(run_solver(solver, corpus, start, size.ap_iterations))
            products[i].append(joint(corpus, *end))
            optima[i].append(joint(corpus, *polished(corpus, end, size.polish)))
    return ends_of("AP", X, [np.array(P) for P in products], [np.array(P) for P in optima])


def _ends_row(ends: Ends) -> tuple[Any, ...]:
    as_run, apart = ends.as_run.max(axis=0), ends.polished > SAME
    same, different = ends.polished[~apart], ends.polished[apart]
    return (
        ends.kind,
        ends.counted(as_run <= 1e-6),
        ends.counted(as_run <= 1e-2),
        few(np.median(ends.moved)),
        *(ends.counted(pair) for pair in apart),
        ends.counted(apart.any(axis=0)),
        few(same.max()) if same.size else "-",
        f"{few(different.min())} to {few(different.max())}" if different.size else "-",
        few(ends.divergences.max()),
    )


def equation_10_finding(size: Size, ap: Any) -> tuple[list[Ends], Finding]:
    small = [equation_10(size, kind) for kind in KINDS]
    all_ends = small if ap is None else [*small, equation_10_ap(size, ap)]
    show(
        f"Equation 10: NMF, PLSI and EM from one start, {size.eq10_iterations} iterations (AP {size.ap_iterations}); "
        "total variation between their products, as run and polished",
        ("data", "as run: all to 1e-6", "as run: all to 1e-2", "polishing moves (median)",
         *(f"{pair}: different optima" for pair in PAIRS), "any of them", "the same: at most", "different: apart",
         "largest relative difference of divergences"),
        [_ends_row(ends) for ends in all_ends],
    )  # fmt: skip
    apart = [ends.polished > SAME for ends in small]
    pairs = ", ".join(f"{ends.counted(each[0])} ({ends.kind})" for ends, each in zip(small, apart, strict=True))
    three = ", ".join(ends.counted(each.any(axis=0)) for ends, each in zip(small, apart, strict=True))
    return all_ends, Finding(
        "Equation 10", "NMF, PLSI and normalized NMF always reach the same product from the same start",
        f"NMF and normalized NMF do; NMF and PLSI reach different optima in {pairs}, with EM as a third in {three}"
        + ("" if ap is None else _on_ap(all_ends[-1], size)),
        verdict("false, except for NMF and normalized NMF", any(each[0].any() for each in apart)),
    )  # fmt: skip


def _on_ap(ends: Ends, size: Size) -> str:
    apart = ends.as_run[0]
    return (
        f"; on AP NMF and PLSI are {few(apart.min())} to {few(apart.max())} apart (total variation) after "
        f"{size.ap_iterations} iterations, when neither has converged"
    )


# F m times, G n times


def many_times(size: Size) -> Finding:
    """Compare the optima for every (m, n) from the same start (section 5)."""
    rows, apart, n_all = [], 0, 0
    for kind in KINDS:
        X, start = setting(size.many_problems, seed=8, kinds=[kind])
        ends = [_many(X, as_pair(start), m, n, size.many_updates) for m, n in pairs_of(size.many, size.many)]
        optima = [optima_of(X, end, size.polish) for end in ends]
        furthest = largest_distance([times(end) for end in optima])
        D = np.array([divergence(X, times(end)) for end in optima])
        spread = (D.max(axis=0) - D.min(axis=0)) / D.min(axis=0)
        topics = [_topic_distance(optima, i) for i in np.flatnonzero(furthest <= SAME)]
        apart, n_all = apart + int((furthest > SAME).sum()), n_all + len(X)
        rows.append((kind, f"{(furthest <= SAME).sum()} of {len(X)}", few(float(furthest.max())),
                     few(float(spread.max())), few(max(topics, default=0.0))))  # fmt: skip
    show(
        f"F m times, then G n times, m and n in {size.many}: all from one start, {size.many_updates} updates",
        ("data", "all reach the same optimum", "furthest products", "largest relative difference of divergences",
         "furthest topics where products agree"),
        rows,
    )  # fmt: skip
    agree = ", ".join(f"{row[1]} ({row[0]})" for row in rows)
    return Finding(
        "F m times, G n times (sect. 5)", "infinitely many solutions, all with the same values",
        f"all {len(size.many) ** 2} choices of m and n reach one product in {agree}; elsewhere products are up to "
        f"{max(float(row[2]) for row in rows):.2f} apart (total variation)",
        verdict("false in general", apart > 0),
    )  # fmt: skip


def _many(X: Array, now: Pair, m: int, n: int, updates: int) -> Pair:
    return after(lambda X, now: formulas.many_nmf(X, now, m, n), X, now, updates // (m + n))


def _topic_distance(ends: Sequence[Pair], i: int) -> float:
    """Return the largest distance between the topics of problem i and those of the first run."""
    topics = [end.F[i].T for end in ends]
    return max(float(align(topics[0], other)[1].max()) for other in topics[1:])


def picture(folder: Path, all_ends: list[Ends], runs: list[dict[str, Course]], data: str) -> None:
    """Plot the gap by passes (left), and the distances between the results on small problems (right)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    best = max(c.likelihood.max() for c in runs[0].values())
    for name, style in zip(list(SPEED)[:3], ("-", "--", ":"), strict=True):
        c = runs[0][name]
        shown = slice(1, len(c.passes) // 2)
        left.loglog(c.passes[shown] - c.passes[0], best - c.likelihood[shown], style, label=name)
    left.set(xlabel="passes over the non-zeros", ylabel="gap to the best, nats per token")
    left.set_title(f"Speed, {data}, K = 10")
    left.yaxis.set_minor_formatter("")
    left.legend()
    for ends in all_ends[: len(KINDS)]:
        values = np.sort(np.maximum(ends.polished.max(axis=0), 1e-9))
        right.step(values, np.arange(1, len(values) + 1) / len(values), where="post", label=ends.kind)
    right.axvline(SAME, color="gray", linewidth=0.8)
    right.set(xscale="log", xlabel="total variation between products, polished", ylabel="share of problems",
              title="Eq. 10: NMF, PLSI, EM from one start")  # fmt: skip
    right.legend(loc=(0.27, 0.38))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "zhang_ding_tang.png", dpi=110)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> list[Finding]:
    options = arguments(__doc__ or "", argv)
    size = QUICK if options.quick else Size()
    ap, larger_ap = ap_subset(size.ap_docs, 5), ap_subset(size.speed_docs, 3)
    n = size.theorem_problems
    findings = [
        solver_finding(),
        *theorem_findings(theorems(n, ap)),
        algorithm_1(n),
        algorithm_2(n),
        *algorithm_3(n),
        stationary_points(n, size.end_iterations),
        fixed_sums(n, size.sum_iterations),
        many_times(size),
    ]
    all_ends, eq10 = equation_10_finding(size, ap)
    runs, data, faster = speed(larger_ap, size.speed_starts, size.speed_iterations)
    findings += [
        eq10,
        faster,
        posterior_normalization(size.posterior_docs),
        gamma_poisson(size.gamma_poisson_docs, 100),
    ]
    if options.pictures is not None:
        picture(options.pictures, all_ends, runs, data)
    conclude("zhang_ding_tang", findings, options)
    return findings


if __name__ == "__main__":
    main()
