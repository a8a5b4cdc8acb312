"""Check the statements of Gaussier and Goutte (2005), "Relation between PLSA and NMF and implications".

Run: .venv/bin/python reproductions/gaussier_goutte_2005.py [--quick]
The script prints tables and saves a plot in build/reproductions. Words are rows in the paper and in formulas.py, and
columns in the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import formulas
from formulas import Array, Pair, Triple, product, scaled, t
from gaussier_equivalence import SOLVERS as PLAIN
from gaussier_equivalence import dense_factors, fixed_points, proof_rules, saddle, same_objective, scaling
from polyseme import PLSA
from polyseme.estimators.nmf import nmf_to_plsa
from polyseme.metrics import align
from polyseme.solvers import Annealed, Tempered
from polyseme.solvers.base import Solver
from polyseme.solvers.coordinate import SCD
from support import (
    EXACT,
    Finding,
    ap_subset,
    arguments,
    as_corpus,
    conclude,
    distance,
    error,
    few,
    joint,
    planted_corpus,
    point,
    problems,
    random_start,
    random_triple,
    run_solver,
    show,
    verdict,
)


@dataclass(frozen=True)
class Size:
    """Sizes of the experiments."""

    problems: int = 40
    fixed_point_iterations: int = 10000
    ap_fixed_point_iterations: int = 1000
    starts: int = 20
    ap_starts: int = 8
    iterations: int = 500
    anneal_steps: int = 30
    planted: tuple[tuple[int, int], ...] = ((3, 0), (3, 1), (4, 0), (4, 1), (5, 0), (5, 1), (6, 0), (6, 1))
    """(number of topics, seed)"""
    stage_steps: int = 200
    ap_docs: int = 200
    exact_starts: int = 10
    documents: tuple[int, ...] = (50, 200, 800, 3200)
    lengths: tuple[int, ...] = (20, 100, 500)
    consistency_seeds: int = 5


QUICK = Size(
    problems=5,
    fixed_point_iterations=1000,
    ap_fixed_point_iterations=50,
    starts=6,
    ap_starts=2,
    iterations=300,
    planted=((3, 0), (4, 0)),
    stage_steps=100,
    ap_docs=40,
    exact_starts=4,
    documents=(50, 1000),
    lengths=(20, 500),
    consistency_seeds=3,
)


# Section 3: local optima, annealing, components


class Spread(NamedTuple):
    """Final log-likelihoods over starts, for each solver."""

    data: str
    finals: dict[str, Array]


def spread(data: str, X: Any, K: int, n_starts: int, size: Size) -> Spread:
    """Run every solver from the same starts for the same number of iterations."""
    corpus = as_corpus(X)
    finals = {}
    for name in ("EM", "NMF", "tempered at 0.9", "annealed"):
        finals[name] = np.array([
            run_solver(_solver(name, seed, size), corpus, random_start(corpus, K, seed), size.iterations)
            .report.log_likelihood
            for seed in range(n_starts)
        ])  # fmt: skip
    best = max(values.max() for values in finals.values())
    show(
        f"{data}, K = {K}: log-likelihood (nats per token) after {size.iterations} iterations from {n_starts} starts",
        ("", "mean", "standard deviation", "worst", "best", "within 1e-3 of the best of all"),
        [(name, f"{v.mean():.4f}", f"{v.std():.4f}", f"{v.min():.4f}", f"{v.max():.4f}", (v >= best - 1e-3).sum())
         for name, v in finals.items()],
    )  # fmt: skip
    return Spread(data, finals)


def _solver(name: str, seed: int, size: Size) -> Solver:
    if name == "annealed":
        return Annealed(steps=size.anneal_steps, random_state=seed)
    return Tempered(0.9) if name.startswith("tempered") else PLAIN[name]


def spread_findings(spreads: list[Spread]) -> list[Finding]:
    nmf = [float(np.ptp(part.finals["NMF"])) for part in spreads]
    calmer = [part.finals["annealed"].std() < part.finals["EM"].std() for part in spreads[:1]]
    better = [part.finals["annealed"].mean() > part.finals["EM"].mean() for part in spreads[:1]]
    ranges = "; ".join(
        f"{part.data}: NMF's likelihoods range over {np.ptp(part.finals['NMF']):.4f} nats per token, EM's over "
        f"{np.ptp(part.finals['EM']):.4f}"
        for part in spreads
    )
    shown = "; ".join(
        f"{part.data}: "
        + ", ".join(f"{name} {v.std():.4f} ({v.mean():.4f})" for name, v in part.finals.items() if name != "NMF")
        for part in spreads
    )
    return [
        Finding("Local optima of NMF", "NMF is as prone to local optima as EM", ranges, verdict("true", nmf[0] > 1e-2)),
        Finding("Annealing and the start", "tempered or annealed EM is less sensitive to the start",
                f"standard deviation over starts (mean likelihood); {shown}", verdict("true", *calmer, *better)),
    ]  # fmt: skip


class Stages(NamedTuple):
    """Distinct topics at the end of each stage of annealing."""

    name: str
    betas: Array
    distinct: list[int]


FITTED_TOPICS = 10


def stages(name: str, X: Any, size: Size) -> Stages:
    """Anneal slowly with more topics than the data contain."""
    corpus = as_corpus(X)
    settings = Annealed(start=0.5, stages=11, steps=size.stage_steps)
    run: Any = run_solver(settings, corpus, random_start(corpus, FITTED_TOPICS, 0), settings.stages * settings.steps)
    betas, distinct = zip(*run.stages, strict=True)
    return Stages(name, np.array(betas), list(distinct))


def plateau(distinct: Sequence[int]) -> int | None:
    """Return the number of topics that stays longest, except 1 and all."""
    runs = [(len(list(group)), number) for number, group in groupby(distinct) if 1 < number < FITTED_TOPICS]
    longest = max(runs, default=(0, 0))
    return longest[1] if longest[0] >= 2 else None


def components(size: Size, ap: Any) -> tuple[list[Stages], Finding]:
    """Check the plateau of annealing on planted data and on AP."""
    seen = [stages(f"{K} planted", planted_corpus(200, 60, K, 200, seed), size) for K, seed in size.planted]
    hits = sum(plateau(s.distinct) == K for s, (K, _) in zip(seen, size.planted, strict=True))
    summary = f"the longest plateau is the planted number in {hits} of {len(seen)} corpora "
    summary += f"({size.planted[0][0]} to {size.planted[-1][0]} topics)"
    if ap is not None:
        seen.append(stages("AP", ap, size))
        on_ap = plateau(seen[-1].distinct)
        summary += f"; on AP there is {'no plateau' if on_ap is None else f'a plateau at {on_ap}'}"
    show(f"Distinct topics of {FITTED_TOPICS} at the end of each stage ({size.stage_steps} iterations) of annealing",
         ("data", *(f"{beta:.2f}" for beta in seen[0].betas), "plateau"),
         [(s.name, *s.distinct, plateau(s.distinct) or "none") for s in seen])  # fmt: skip
    return seen, Finding(
        "Annealing and the number of components", "annealing can optimize the number of components to some extent",
        summary + "; at beta = 1 all topics differ",
        verdict("true to some extent", hits >= len(size.planted) - 1),
    )  # fmt: skip


# Section 3: invariance and identifiability


def invariance(size: Size) -> Finding:
    """Check invariance: always for diagonal matrices, for square ones only if both factors stay non-negative."""
    V = problems("noise", size.problems, 12, 15, 4, seed=4)
    W, H = dense_factors(size.problems, 12, 15, 4, seed=4)
    D = np.random.default_rng(4).lognormal(0, 2, (size.problems, 4))
    plain, rescaled = Pair(W, t(H)), Pair(scaled(W, D), scaled(t(H), 1 / D))
    product_error = error(rescaled.F @ t(rescaled.G), plain.F @ t(plain.G))
    for _ in range(50):
        plain, rescaled = formulas.nmf(V, plain), formulas.nmf(V, rescaled)
    iterates = error(rescaled.F @ t(rescaled.G), plain.F @ t(plain.G))
    for _ in range(2000):
        plain = formulas.nmf(V, plain)
    before, after = _nonnegative_share(W, t(H)), _nonnegative_share(plain.F, plain.G)
    show("Invariance", ("", ""), [
        ("(W D)(D^-1 H) = W H, D diagonal: error", few(product_error)),
        ("products after 50 NMF iterations from both: error", few(iterates)),
        ("M square, I + 0.02 x normal: both factors stay non-negative, positive random factors", f"{before:.1%}"),
        ("the same, factors that NMF has fitted", f"{after:.1%}"),
    ])  # fmt: skip
    return Finding(
        "Invariance", "NMF is invariant to a diagonal matrix and its inverse (sect. 2), to a square one (sect. 3)",
        f"diagonal: product to {few(product_error)}, after 50 iterations from both starts to {few(iterates)}; square: "
        f"{before:.1%} of small random ones keep positive factors non-negative, {after:.1%} fitted factors",
        verdict("true for diagonal; square only if non-negative", product_error <= EXACT, iterates <= 1e-10,
                after < before),
    )  # fmt: skip


def _nonnegative_share(F: Array, G: Array, tries: int = 50) -> float:
    """Return how often F M and G M^-T stay non-negative for M = I + 0.02 x normal."""
    rng = np.random.default_rng(5)
    share = 0.0
    for _ in range(tries):
        M = np.eye(F.shape[-1]) + 0.02 * rng.standard_normal((len(F), F.shape[-1], F.shape[-1]))
        both = ((F @ M) >= 0).all(axis=(-1, -2)) & ((G @ t(np.linalg.inv(M))) >= 0).all(axis=(-1, -2))
        share += both.mean() / tries
    return share


def two_solutions() -> tuple[Triple, Triple]:
    """Return two models of the same P(w,d); the topics of the second are 3:1 mixtures of those of the first."""
    first = from_conditionals([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]], [[0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])
    second = from_conditionals([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]])
    return first, second


def from_conditionals(theta: Sequence[Sequence[float]], topics: Sequence[Sequence[float]]) -> Triple:
    """Return P(w|z), P(z), P(d|z) from P(z|d) and P(w|z), for documents of equal length."""
    return formulas.normalized(Pair(np.array(topics).T, np.array(theta) / len(theta)))


def separable(seed: int, n_words: int = 12, n_docs: int = 15, K: int = 3) -> Triple:
    """Return a model where every topic has a word and a document that no other topic has."""
    C, S, H = (part[0] for part in random_triple(1, n_words, n_docs, K, seed))
    C[:K], H[:K] = np.diag(np.full(K, 0.2)), np.diag(np.full(K, 0.2))
    return Triple(C / C.sum(axis=0), S, H / H.sum(axis=0))


def fits_of(now: Triple, size: Size) -> tuple[float, float, int]:
    """Return the largest distances of products and topics of the fits that reach divergence zero, and their number."""
    corpus = as_corpus(product(now).T)
    products, topics = [], []
    for seed in range(size.exact_starts):
        theta, phi = point(run_solver(SCD(), corpus, random_start(corpus, len(now.S), seed), 3000))
        P = joint(corpus, theta, phi)
        if formulas.divergence(product(now).T, P) < 1e-6:
            products.append(P)
            topics.append(phi.T)
    pairs = list(combinations(range(len(topics)), 2))
    furthest = max(float(distance(products[i], products[j])) for i, j in pairs)
    return furthest, max(float(align(topics[i], topics[j])[1].max()) for i, j in pairs), len(topics)


def rounded(rows: Array) -> str:
    return "; ".join(" ".join(f"{x:.2f}" for x in row) for row in rows)


def identifiability(size: Size) -> Finding:
    """Check that the scale is unique, and that order and topics are not."""
    W, H = dense_factors(1, 12, 15, 3, seed=6)
    D = np.array([0.01, 1.0, 100.0])
    a, b = nmf_to_plsa(H[0].T, W[0].T), nmf_to_plsa((H[0] / D[:, np.newaxis]).T, (W[0] * D).T)
    scale = max(error(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True))
    first, second = two_solutions()
    same = error(product(second), product(first))
    distances = align(first.C.T, second.C.T)[1]
    fixed = max(error(product(formulas.em(product(first), each)), product(first)) for each in (first, second))
    positive = formulas.normalized(Pair(W[0], H[0].T / (W[0] @ H[0]).sum()))
    dense, pure = fits_of(positive, size), fits_of(separable(6), size)
    show("Identifiability", ("", ""), [
        ("PLSA parameters of (W, H) and (W D, D^-1 H): error", few(scale)),
        ("two PLSA solutions, products: error", few(same)),
        ("their topics: total variation after the best matching", ", ".join(f"{x:.3f}" for x in distances)),
        ("their P(w|c)", f"{rounded(first.C.T)} and {rounded(second.C.T)}"),
        ("their P(d|c)", f"{rounded(first.H.T)} and {rounded(second.H.T)}"),
        ("one EM step from either, on their product: change", few(fixed)),
    ])  # fmt: skip
    show("Fits of exactly factorable data from different starts that reach divergence zero",
         ("data", "fits", "furthest products", "furthest topics"),
         [("positive factors", dense[2], few(dense[0]), few(dense[1])),
          ("a word and a document of its own for each topic", pure[2], few(pure[0]), few(pure[1]))],
         )  # fmt: skip
    return Finding(
        "Identifiability", "NMF's factors are not identifiable, whereas the PLSA model is",
        f"the scale is fixed (error {few(scale)}), the order is not, and more is not: two solutions with one product "
        f"(error {few(same)}) and topics up to {distances.max():.3f} apart (total variation); fits of one P(w,d) from "
        f"different starts have topics {dense[1]:.2f} apart, but {few(pure[1])} if each topic has a word and a "
        f"document of its own",
        verdict("false: only the scale is", scale <= EXACT, same <= EXACT, distances.max() > 0.05, fixed <= EXACT,
                dense[1] > 0.05, pure[1] < 0.05),
    )  # fmt: skip


def consistency(size: Size) -> Finding:
    """Fit PLSA to more and more documents of known topics, with and without anchor words that identify the topics."""
    rows, errors = [], {}
    for name, length in (*((True, length) for length in size.lengths), (False, size.lengths[-1])):
        for n_docs in size.documents:
            found = [_topic_error(n_docs, length, seed, anchors=name) for seed in range(size.consistency_seeds)]
            errors[name, length, n_docs] = float(np.median(found))
        rows.append(("anchor words" if name else "none", length,
                     *(f"{errors[name, length, n]:.3f}" for n in size.documents)))  # fmt: skip
    show(f"Consistency: largest total variation from the true topics, median of {size.consistency_seeds} corpora",
         ("identified by", "tokens per document", *(f"{n} documents" for n in size.documents)), rows)  # fmt: skip
    few_docs, many_docs = size.documents[0], size.documents[-1]
    short, long = size.lengths[0], size.lengths[-1]
    bias, near = errors[True, short, many_docs], errors[True, long, many_docs]
    free = errors[False, long, many_docs]
    return Finding(
        "Strong consistency (sect. 3)", "PLSA is identifiable, which has implications on strong consistency",
        f"distance from the true topics with {few_docs} and {many_docs} documents: topics with an anchor word each, "
        f"{long} tokens per document {errors[True, long, few_docs]:.3f} and {near:.3f}, {short} tokens "
        f"{errors[True, short, few_docs]:.3f} and {bias:.3f} (every document adds its own P(z|d), so a bias remains "
        f"that only longer documents reduce); without anchor words and pure documents "
        f"{errors[False, long, few_docs]:.3f} and {free:.3f}",
        verdict("only if topics are identifiable and documents grow too", near < errors[True, long, few_docs] / 2.5,
                bias > 3 * near, free > 5 * near),
    )  # fmt: skip


def _topic_error(n_docs: int, length: int, seed: int, *, anchors: bool) -> float:
    """Return the largest total variation between the topics of a corpus and those of PLSA, matched."""
    K, n_words = 3, 40
    words = np.random.default_rng([seed, 7]).dirichlet(np.full(n_words - K, 1.0 if anchors else 5.0), K)
    anchor_words = 0.15 * (np.eye(K) if anchors else np.full((K, K), 1 / K))
    topics = np.hstack([anchor_words, 0.85 * words])
    rng = np.random.default_rng([seed, n_docs, length])
    shares = rng.dirichlet(np.full(K, 0.3 if anchors else 3.0), n_docs) @ topics
    X = np.array([rng.multinomial(length, p / p.sum()) for p in shares], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = PLSA(K, tol=1e-6, max_iter=2000, random_state=seed).fit(X).components_
    gaps = np.abs(found[:, np.newaxis] - topics).sum(axis=2) / 2
    return float(gaps[linear_sum_assignment(gaps)].max())


def picture(folder: Path, spreads: list[Spread], seen: list[Stages]) -> None:
    """Plot the likelihoods of all starts (left) and the distinct topics during annealing (right)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(spreads) + 1, figsize=(3.6 * (len(spreads) + 1), 3.4), layout="constrained")
    for axis, part in zip(axes, spreads, strict=False):
        for row, (name, values) in enumerate(part.finals.items()):
            axis.plot(values, np.full(len(values), -row), "o", alpha=0.5, label=name)
        axis.set_yticks([-row for row in range(len(part.finals))], [name.replace(", ", "\n") for name in part.finals])
        axis.locator_params(axis="x", nbins=4)
        axis.set(title=f"{part.data}: every start", xlabel="log-likelihood, nats per token")
    last = axes[-1]
    shown = {s.name: s for s in seen}
    for s, marker in zip(shown.values(), "os^Dvx", strict=False):
        last.plot(s.betas, s.distinct, marker=marker, markersize=4, linewidth=1, label=s.name)
    last.set(title=f"Distinct topics of {FITTED_TOPICS}", xlabel="beta")
    last.set_yticks(range(1, FITTED_TOPICS + 1))
    last.grid(axis="y", linewidth=0.3)
    last.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gaussier_goutte_2005.png", dpi=110)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> list[Finding]:
    options = arguments(__doc__ or "", argv)
    size = QUICK if options.quick else Size()
    ap = ap_subset(size.ap_docs, 5)
    n = size.problems
    findings = [
        scaling(n),
        same_objective(n),
        proof_rules(n),
        fixed_points(size.fixed_point_iterations, size.ap_fixed_point_iterations, ap),
        saddle(size.iterations),
    ]
    spreads = [spread("Planted corpus", planted_corpus(150, 100, 10, 50, seed=1), 10, size.starts, size)]
    if ap is not None:
        spreads.append(spread("AP", ap, 8, size.ap_starts, size))
    seen, number = components(size, ap)
    findings += [*spread_findings(spreads), number, invariance(size), identifiability(size), consistency(size)]
    if options.pictures is not None:
        picture(options.pictures, spreads, seen)
    conclude("gaussier_goutte_2005", findings, options)
    return findings


if __name__ == "__main__":
    main()
