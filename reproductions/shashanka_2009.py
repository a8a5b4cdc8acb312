"""Check every number of Shashanka (2009), "Simplex decompositions for real-valued datasets".

Run: .venv/bin/python reproductions/shashanka_2009.py [--quick] [--seeds N] [--keep FOLDER]
The script prints tables and saves a plot in build/reproductions.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from formulas import Array
from polyseme import LDA, PLSA, CorrelatedTopicModel, RealTopicModel
from polyseme.plots import plot_simplex
from polyseme.simplex import Hull, SimplexDecomposition, SimplexMap
from polyseme.simplex.maps import lift
from shashanka_example2 import (
    Runs,
    example_2,
    example_2_findings,
    found_bases,
    matched,
    package_finding,
    paper_model,
    related_work_findings,
    run_all,
)
from shashanka_scenes import scene_findings
from support import Finding, conclude, few, make_parser, parse_options, show, verdict

PRINTED = 5e-4
"""Tolerance for printed numbers, whose inputs were rounded."""

THREE = np.array([[-2.5, -0.5], [-1.5, 1.5], [-2.0, 0.5]])
FIVE = np.array([[-0.6179, 0.7010], [-0.6371, -0.5129], [0.3201, 1.4165], [0.2714, -0.1687], [0.7628, 0.1634]])
FIVE_LIFTED = np.array([
    [-0.1507, 0.7231, -0.5723], [-0.6599, 0.2411, 0.4187], [0.8046, 0.3519, -1.1565],
    [0.1230, -0.2607, 0.1377], [0.6061, -0.4727, -0.1334],
])  # fmt: skip
LEAST = -3.1004
FIVE_MAPPED = np.array([
    [0.3171, 0.4111, 0.2718], [0.2624, 0.3593, 0.3784], [0.4198, 0.3712, 0.2090],
    [0.3466, 0.3053, 0.3481], [0.3985, 0.2825, 0.3190],
])  # fmt: skip
TOPICS = np.array([[0.6993, 0.2414, 0.0594], [0.2343, 0.0199, 0.7459], [0.0456, 0.7217, 0.2327]])
BASES = np.array([[3.0115, 3.1210], [1.4100, -4.6995], [-4.4464, 1.1465]])
FIVE_WEIGHTS = np.array([
    [0.3586, 0.1968, 0.4445], [0.2272, 0.3607, 0.4121], [0.5345, 0.1337, 0.3318],
    [0.3605, 0.3467, 0.2928], [0.4481, 0.3194, 0.2324],
])  # fmt: skip


def ratios(points: Array) -> Array:
    """Return |AB| : |BC| : |CA|, relative to the smallest distance."""
    AB, CA, BC = pdist(points)
    sides = np.array([AB, BC, CA])
    return sides / sides[sides > 1e-12].min() if (sides > 1e-12).any() else sides


def format_ratios(values: Array) -> str:
    return " : ".join(f"{value:.4g}" for value in values)


def three_points() -> list[Finding]:
    naive = {}
    for offset in (3.5, 4.5):
        moved = THREE + offset
        naive[offset] = moved / moved.sum(axis=1, keepdims=True)
    simplex_map = SimplexMap.of_paper(THREE)
    real = simplex_map.to_simplex(THREE)
    printed = [[0, 0.5977, 0.4023], [0.2576, 0.6161, 0.1263], [0.1288, 0.6069, 0.2643]]
    normalized = [[0.25, 0.75], [0.2857, 0.7143], [0.2727, 0.7273]]
    gap = max(float(np.abs(naive[3.5] - normalized).max()), float(np.abs(real - printed).max()))
    collapsed = float(np.abs(naive[4.5] - [1 / 3, 2 / 3]).max())
    show("Three points", ("", "|AB| : |BC| : |CA|"),
         [("data", format_ratios(ratios(THREE))), ("plus 3.5, normalized", format_ratios(ratios(naive[3.5]))),
          ("plus 4.5, normalized", "all three at (1/3, 2/3)"), ("Real", format_ratios(ratios(real)))])  # fmt: skip
    skew = ratios(naive[3.5])
    difference = float(np.abs(ratios(real) - [2, 1, 1]).max())
    return [
        Finding("Naive translation (sect. 3.1)", "plus 3.5: 2.75 : 1 : 1.75 where the data has 2 : 1 : 1; plus 4.5: "
                "one point",
                f"{format_ratios(skew)}; one point to {few(collapsed)}",
                verdict("true", np.abs(skew - [2.75, 1, 1.75]).max() < 5e-3, collapsed < 1e-12)),
        Finding("The map (sect. 3.2)", "A'(0, 0.5977, 0.4023), ...: 2 : 1 : 1",
                f"the printed points to {few(gap)}, the ratios to {few(difference)}",
                verdict("true", gap <= PRINTED, difference <= 1e-12)),
    ]  # fmt: skip


def appendix_a() -> list[Finding]:
    orthogonal = sums = distances = back = 0.0
    for W in range(1, 201):
        T = lift(np.eye(W)).T
        orthogonal = max(orthogonal, float(np.abs(T.T @ T - np.eye(W)).max()))
        sums = max(sums, float(np.abs(T.sum(axis=0)).max()))
        X = np.random.default_rng(W).normal(size=(10, W))
        simplex_map = SimplexMap.of_paper(X)
        P = simplex_map.to_simplex(X)
        scale = pdist(P) / pdist(X)
        distances = max(distances, float(np.abs(scale / scale[0] - 1).max()))
        back = max(back, float(np.abs(simplex_map.from_simplex(P) - X).max()))
    first = lift(np.eye(2)).T[:, 0] * np.sqrt(2)
    text_sign = float(np.abs(lift(FIVE) @ np.eye(3) - FIVE_LIFTED).max())
    other = np.array([[-1, 1], [1, 1], [0, -2]]) / np.sqrt([2, 6])
    wrong = float(np.abs(FIVE @ other.T - FIVE_LIFTED).max())
    return [
        Finding("Appendix A", "an orthonormal T whose columns sum to zero, for any dimension",
                f"dimensions 1 to 200: T'T = I to {few(orthogonal)}, sums to {few(sums)}, ratios of distances to "
                f"{few(distances)}, back to {few(back)}; applied in O(W)",
                verdict("true", max(orthogonal, sums, distances, back) <= 1e-12)),
        Finding("T in two dimensions", "the text has [-1, 1, 0] as the first column",
                f"the printed numbers come from [{first[0]:.0f}, {first[1]:.0f}, {first[2]:.0f}] of Appendix A (error "
                f"{few(text_sign)}; {wrong:.2f} with the text's)",
                verdict("the text has the wrong sign", text_sign <= PRINTED, wrong > 0.1)),
    ]  # fmt: skip


def example_1() -> list[Finding]:
    """Check the five points of the example; the shift of the map is the printed minimum of all thousand points."""
    simplex_map = SimplexMap(np.full(3, LEAST))
    lifted = float(np.abs(lift(FIVE) - FIVE_LIFTED).max())
    mapped = float(np.abs(simplex_map.to_simplex(FIVE) - FIVE_MAPPED).max())
    bases = float(np.abs(simplex_map.from_simplex(TOPICS) - BASES).max())
    weights = float(np.abs(Hull(BASES).weights(FIVE) - FIVE_WEIGHTS).max())
    again = float(np.abs(Hull(TOPICS).weights(FIVE_MAPPED) - FIVE_WEIGHTS).max())
    rows = [("T x of the five points", lifted), ("mapped to the simplex", mapped), ("bases carried back", bases)]
    shown = [*rows, ("weights given the bases", weights), ("weights given the topics", again)]
    show("Example 1: largest difference to the printed numbers", ("", "difference"), [(a, few(b)) for a, b in shown])
    return [
        Finding("Example 1, five points", "T x, the mapped points and the bases as printed",
                "; ".join(f"{name} to {few(gap)}" for name, gap in rows),
                verdict("true", max(lifted, mapped, bases) <= PRINTED)),
        Finding("Example 1, mixture weights", "of the five points, as printed",
                f"the exact weights given the printed bases differ by {few(weights)}, given the printed topics by "
                f"{few(again)}: the paper's EM had not quite converged",
                verdict("true to three digits", max(weights, again) <= 1e-3)),
    ]  # fmt: skip


def gaussian_cloud(seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=(1000, 2))


def gaussian_points(seeds: int) -> tuple[Finding, RealTopicModel]:
    """Count how many of 1000 Gaussian points lie outside of the triangle; the paper has 37."""
    models = [paper_model(gaussian_cloud(seed), seed) for seed in range(seeds)]
    counts = [int(model.outside_hull(gaussian_cloud(seed), 1e-3).sum()) for seed, model in enumerate(models)]
    ours = [int(RealTopicModel(PLSA(3)).fit(gaussian_cloud(seed)).outside_hull(gaussian_cloud(seed), 1e-3).sum())
            for seed in range(seeds)]  # fmt: skip
    gaps = [model.reconstruction_error(gaussian_cloud(s))[model.outside_hull(gaussian_cloud(s), 1e-3)]
            for s, model in enumerate(models)]  # fmt: skip
    least = min((float(gap.min()) for gap in gaps if gap.size), default=np.inf)
    show(f"1000 Gaussian points, {seeds} seeds: points outside the triangle", ("", "least", "median", "most"),
         [("the paper's algorithm", min(counts), int(np.median(counts)), max(counts)),
          ("smallest simplex, margin 0.05", min(ours), int(np.median(ours)), max(ours))])  # fmt: skip
    return Finding(
        "Example 1, 1000 points", "37 points lie outside and are modeled with error",
        f"{min(counts)} to {max(counts)} over {seeds} seeds (median {np.median(counts):.0f}), each with an error above "
        f"zero; it depends on the start and on when EM stops",
        verdict("of the same size", min(counts) <= 37 <= 4 * max(counts), least > 0),
    ), models[0]  # fmt: skip


def figure_1_points() -> Array:
    """Return 400 distributions over three words from three topics with a little noise, as in figure 1."""
    rng = np.random.default_rng(1)
    topics = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.1, 0.65]])
    return np.array([rng.multinomial(300, p) for p in rng.dirichlet([0.8] * 3, 400) @ topics]) / 300


def figure_1() -> tuple[Finding, SimplexDecomposition]:
    points = figure_1_points()
    model = PLSA(3, solver="em", tol=1e-3, max_iter=1000, random_state=0).fit(points)
    seen = SimplexDecomposition.of(model, points)
    outside = seen.outside(1e-2)
    inside_error, outside_error = float(seen.errors[~outside].max()), float(seen.errors[outside].min(initial=np.inf))
    return Finding(
        "PLSA as a simplex (fig. 1)", "points inside the hull of the topics are modeled closely, those outside with "
        "error",
        f"400 points: {outside.sum()} outside by more than 1% of the diameter, with errors from {outside_error:.3f}; "
        f"errors inside at most {inside_error:.3f}",
        verdict("true", outside_error > 0.009, inside_error < outside_error + 5e-3),
    ), seen  # fmt: skip


def complexity() -> Finding:
    """Check that the map costs less than the topic model (section 4.1)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 100))
    started = time.perf_counter()
    rows = SimplexMap.of_paper(X).to_simplex(X)
    mapping = time.perf_counter() - started
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        PLSA(3, solver="em", tol=0, max_iter=50, random_state=0).fit(np.maximum(rows, 0))
    fitting = time.perf_counter() - started
    show(
        "Seconds, 2000 points in 100 dimensions", ("map", "50 iterations of EM"), [(f"{mapping:.3f}", f"{fitting:.3f}")]
    )
    return Finding(
        "Complexity (sect. 4.1)", "the topic model is the bottleneck, the map a matrix product",
        "the map takes less time than 50 iterations of EM; by the structure of T it is O(W) per point, without a "
        "matrix product",
        verdict("true", mapping < fitting),
    )  # fmt: skip


def standard_learners(seeds: int) -> Finding:
    """Compare Real topic models with clusterings, and their weights with other features, on standardized wines."""
    wines = load_wine()
    X, labels = StandardScaler().fit_transform(wines.data), wines.target
    topics = {"Real-PLSA": PLSA, "Real-LDA": LDA, "Real-CTM": CorrelatedTopicModel}
    real = {name: (lambda seed, make=make: RealTopicModel(make(3, random_state=seed))) for name, make in topics.items()}
    groups = {
        **{name: lambda seed, make=make: make(seed).fit(X).doc_topic_.argmax(axis=1) for name, make in real.items()},
        "k-means": lambda seed: KMeans(3, n_init=10, random_state=seed).fit_predict(X),
        "Gaussian mixture": lambda seed: GaussianMixture(3, n_init=5, random_state=seed).fit_predict(X),
    }
    features = {**real, "PCA": lambda seed: PCA(2), "FastICA": lambda seed: FastICA(2, random_state=seed),
                "all measurements": lambda seed: "passthrough"}  # fmt: skip

    def clustered(found: Array) -> float:
        table = np.zeros((3, 3))
        np.add.at(table, (found, labels), 1)
        return float(table[linear_sum_assignment(-table)].sum() / len(labels))

    def classified(make: Callable[[int], Any], seed: int) -> float:
        learner = make_pipeline(StandardScaler(), make(seed), LogisticRegression(C=100))
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        return float(cross_val_score(learner, wines.data, labels, cv=folds).mean())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clusters = {name: float(np.mean([clustered(make(s)) for s in range(seeds)])) for name, make in groups.items()}
        classes = {name: float(np.mean([classified(make, s) for s in range(seeds)])) for name, make in features.items()}
    show(f"Wines of three cultivars, mean of {seeds} seeds: accuracy of three clusters, and of logistic regression",
         ("method", "clusters", "5-fold classification"),
         [(name, *(f"{part[name]:.3f}" if name in part else "" for part in (clusters, classes)))
          for name in dict.fromkeys((*clusters, *classes))])  # fmt: skip
    parts = [", ".join(f"{name} {value:.3f}" for name, value in part.items()) for part in (clusters, classes)]
    return Finding(
        "Standard learners (sect. 5)", "future work: compare Real topic models with standard learning algorithms",
        f"wines (178 x 13, both signs), accuracy of three clusters: {parts[0]}; of logistic regression on their "
        f"weights and on other features: {parts[1]}",
        verdict("as good as standard methods of the same dimension",
                min(clusters[name] for name in topics) >= max(clusters["k-means"], clusters["Gaussian mixture"]) - 0.02,
                min(classes[name] for name in topics) >= max(classes["PCA"], classes["FastICA"]) - 0.02),
    )  # fmt: skip


def picture(folder: Path, seen: SimplexDecomposition, cloud: RealTopicModel, runs: Runs) -> None:
    """Plot figures 1 to 3, and the errors of all seeds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 7.5), layout="constrained")
    grid = figure.add_gridspec(2, 12)
    chosen = [int(seen.errors.argmax()), int(seen.errors.argmin())]
    plot_simplex(seen, form="space", highlight=chosen, ax=figure.add_subplot(grid[0, :4], projection="3d")).set_title(
        "Fig. 1: 400 distributions"
    )
    plot_simplex(seen, form="simplex", highlight=chosen, ax=figure.add_subplot(grid[0, 4:8])).set_title(
        "Fig. 1: PLSA's topics"
    )
    X = gaussian_cloud(0)
    ax = plot_simplex(SimplexDecomposition.of(cloud, X), highlight=range(5), ax=figure.add_subplot(grid[0, 8:]))
    ax.set_title("Fig. 2: Real-PLSA, 1000 points")
    ax.legend(fontsize=7, loc="upper right")
    problem = example_2(0, 91)
    panels = {"Fig. 3: bases": problem.bases}
    for title, method in (("paper's algorithm", "the paper's algorithm"), ("smallest simplex", "smallest simplex"),
                          ("best-case FastICA", "FastICA")):  # fmt: skip
        found = found_bases(method, problem, 0)
        panels[title] = found[matched(found, problem.bases)[1]]
    places = np.linspace(1, 10, 91)
    for index, (title, bases) in enumerate(panels.items()):
        ax = figure.add_subplot(grid[1, 2 * index : 2 * index + 2])
        for k, basis in enumerate(bases):
            ax.plot(places, problem.bases[k], color=f"C{k}", linewidth=0.6, linestyle=":")
            ax.plot(places, basis, color=f"C{k}")
        ax.set(title=title, ylim=(problem.bases.min() - 0.5, problem.bases.max() + 0.5))
        ax.title.set_fontsize(10)
    ax = figure.add_subplot(grid[1, 8:])
    for method, found in runs[10, 0.0].items():
        worst = np.sort(found[:, -1])
        ax.step(np.maximum(worst, 1e-4), np.arange(1, len(worst) + 1) / len(worst), where="post", label=method)
    ax.set(xscale="log", xlabel="worst of three RMS errors", ylabel="share of seeds", title="Example 2, 10 dimensions")
    ax.legend(fontsize=7)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "shashanka_2009.png", dpi=60)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> list[Finding]:
    parser = make_parser(__doc__ or "")
    parser.add_argument("--seeds", type=int, help="seeds of example 2 (200; 5 with --quick)")
    parser.add_argument("--keep", type=Path, help="folder for partial results of example 2, which later calls use")
    options = parse_options(parser, argv)
    seeds = options.seeds or (5 if options.quick else 200)
    few_seeds = 3 if options.quick else 20
    first, seen = figure_1()
    second, cloud = gaussian_points(few_seeds)
    runs = run_all(seeds, options.keep)
    findings = [
        first,
        *three_points(),
        *appendix_a(),
        package_finding(),
        *example_1(),
        second,
        *example_2_findings(runs),
        complexity(),
        *related_work_findings(few_seeds),
        *scene_findings(10 if options.quick else 30, 1 if options.quick else 5, real=not options.quick),
        standard_learners(1 if options.quick else 5),
    ]
    if options.pictures is not None:
        picture(options.pictures, seen, cloud, runs)
    conclude("shashanka_2009", findings, options)
    return findings


if __name__ == "__main__":
    main()
