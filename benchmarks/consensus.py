"""Consensus topics against single fits on planted corpora, and what reproducibility says of topics.

For corpora drawn from known topics:

- The distance to the planted topics (mean total variation of matched topics) of the consensus of `polyseme.selection`,
  and of the most likely one of as many single fits from random starts.
- The area under the ROC curve with which reproducibility, and stability, separate planted topics from those that split
  or merge planted ones, in a consensus with too few, the right number, and too many topics. A topic is planted if its
  distance to a planted topic is below 0.3 and no other topic is nearer to that one. The least affinity of a topic that
  comes back, 0.85, was chosen on corpora of this generator with other seeds.
- The numbers of programs chosen in simulated cells, whose genes vary beyond Poisson noise, with the least mean
  stability of `consensus` and with 0.8. The former was chosen on eight similar sets with other seeds.
- The number of mutational signatures of ten random sets, the cosines of the true signatures with those found, and the
  exposures; and the same for ten sets of similar, flat signatures, most of which nearly every sample has, where the
  number is given. The steps of `refine` were chosen on such sets with other seeds.

With data, the same for two published synthetic sets.

    python benchmarks/consensus.py [--corpora 20] [--fits 20] [--only planted cells sets similar signatures]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import kl_div
from scipy.stats import chi2
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from common import DATA, THREADS, describe_machine, report_figure, require_file
from polyseme.core.shard import sparse_counts
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import align
from polyseme.selection import consensus
from polyseme.selection.consensus import LEAST_STABLE, STABLE
from polyseme.signatures import assign, extract, refine
from polyseme.solvers.batch import Problem, fit_batch

N_TOPICS = 8
SEED = 1000
"""First seed of the corpora: not those with which settings were chosen."""
N_SETS = 10
N_CELLS = 16
"""Number of sets of simulated cells."""
PARTS = ("planted", "cells", "sets", "similar", "signatures")
KINDS = (
    {"doc_topic_prior": 0.1, "length": 60},
    {"doc_topic_prior": 0.1, "length": 200},
    {"doc_topic_prior": 0.3, "length": 200},
)


def distance(planted: Any, topics: Any) -> float:
    return float(align(planted, topics)[1].mean())


def most_likely(counts: sp.csr_array, n_fits: int, seed: int) -> Any:
    """Return P(w|z) of the most likely of single fits."""
    shared = sparse_counts(counts, np.dtype(np.float32))
    fits = fit_batch(shared, [Problem(N_TOPICS, seed + fit) for fit in range(n_fits)], tol=1e-4, n_threads=THREADS)
    return max(fits, key=lambda fit: fit.log_likelihood).topic_word


def is_planted(planted: Any, topics: Any) -> Any:
    """Return for each topic whether it is the nearest one to a planted topic, and near enough."""
    distances = np.array([0.5 * np.abs(planted - topic).sum(axis=1) for topic in topics])
    nearest = distances.argmin(axis=1)
    rows = np.arange(len(topics))
    return (distances[rows, nearest] < 0.3) & (distances.argmin(axis=0)[nearest] == rows)


def compare_with_planted(n_corpora: int, n_fits: int) -> None:
    print("| corpus | consensus | most likely single fit |\n|---|---|---|")
    nearer, planted, reproducibility, stability = 0, [], [], []
    for number in range(n_corpora):
        corpus = synthetic_corpus(
            600, n_topics=N_TOPICS, n_words=1000, random_state=SEED + number, **KINDS[number % len(KINDS)]
        )
        counts = sp.csr_array(corpus.counts())
        found = consensus(
            counts, [N_TOPICS - 3, N_TOPICS, N_TOPICS + 4], n_fits=n_fits, n_jobs=THREADS, random_state=number
        )
        ours = distance(corpus.topic_word, found.solutions[N_TOPICS].model.components_)
        single = distance(corpus.topic_word, most_likely(counts, n_fits, number))
        nearer += ours <= single
        print(f"| {number} | {ours:.4f} | {single:.4f} |", flush=True)
        for solution in found.solutions.values():
            planted.extend(is_planted(corpus.topic_word, solution.model.components_))
            reproducibility.extend(solution.reproducibility)
            stability.extend(solution.topic_stability)
    report_figure("corpora where the consensus is at least as near", f"{nearer} of {n_corpora}", "18 of 20")
    report_figure("AUC of reproducibility", f"{roc_auc_score(planted, reproducibility):.3f}", "at least 0.9")
    report_figure("AUC of stability", f"{roc_auc_score(planted, stability):.3f}", "-")


def simulated_cells(seed: int) -> tuple[sp.csr_array, int]:
    """Return counts of cells and the number of programs: types, of which some are similar, and activities in all types.

    Cells differ in depth, molecules of other cells are 5%, and a gene varies by a gamma variable in each cell.
    """
    rng = np.random.default_rng(seed)
    n_genes, n_types, n_activities = 1000, int(rng.integers(3, 9)), int(rng.integers(3))
    base, profiles, change = rng.lognormal(0, 1.6, n_genes), [], np.zeros(n_genes)
    nested = rng.random() < 0.5
    for number in range(n_types):
        similar = nested and number % 2 == 1  # to the type before
        changed = rng.random(n_genes) < (0.05 if similar else 0.12)
        change = change * similar + changed * rng.normal(0.8, 1.4, n_genes)
        profiles.append(base * np.exp(change))
    for _ in range(n_activities):
        profiles.append(base * np.exp((rng.random(n_genes) < 0.06) * np.abs(rng.normal(2, 1, n_genes))))
    programs = np.array(profiles) / np.sum(profiles, axis=1, keepdims=True)
    n_cells = int(rng.choice([700, 1500]))
    usage = np.zeros((n_cells, len(programs)))
    usage[np.arange(n_cells), rng.choice(n_types, n_cells, p=rng.dirichlet(np.full(n_types, 3)))] = 1
    for number in range(n_types, len(programs)):
        active = np.where(rng.random(n_cells) < 0.2, rng.uniform(0.2, 0.7, n_cells), 0)
        usage *= (1 - active)[:, np.newaxis]
        usage[:, number] += active
    shares = usage @ programs
    shares = 0.95 * shares + 0.05 * shares.mean(axis=0)
    dispersion = rng.choice([0.01, 0.3, 0.6, 1]) * rng.lognormal(-0.5, 1, n_genes)
    depth, spread = rng.choice([500, 1000, 2000]), rng.choice([0.4, 0.7])
    depths = rng.lognormal(np.log(depth) - spread**2 / 2, spread, (n_cells, 1))
    return sp.csr_array(rng.poisson(depths * shares * rng.gamma(1 / dispersion, dispersion, shares.shape))), len(
        programs
    )


def choose_programs(n_fits: int) -> None:
    print("| cells | programs | chosen | with 0.8 |\n|---|---|---|---|")
    errors: dict[float, list[int]] = {STABLE: [], 0.8: []}
    for seed in range(SEED, SEED + N_CELLS):
        counts, true = simulated_cells(seed)
        found = consensus(counts, range(max(2, true - 3), true + 4), n_fits=n_fits, n_jobs=THREADS)
        solutions = found.solutions.values()
        most_stable = max(solutions, key=lambda solution: solution.stability).n_topics
        for limit, values in errors.items():
            stable = (s.n_topics for s in solutions if s.stability >= limit and s.least_stability >= LEAST_STABLE)
            values.append(max(stable, default=most_stable) - true)
        print(f"| {counts.shape[0]} | {true} | {found.chosen} | {true + errors[0.8][-1]} |", flush=True)
    for limit, values in errors.items():
        shown = f"{values.count(0)} right, {sum(value > 0 for value in values)} too large, mean {np.mean(values):+.2f}"
        report_figure(f"numbers of programs of {N_CELLS} sets of cells, mean stability {limit}", shown, "-")


def random_set(seed: int) -> tuple[Any, Any, Any]:
    """Return counts, 3 to 8 signatures from peaked to flat, and exposures of some of them in each sample."""
    rng = np.random.default_rng(seed)
    n_signatures, n_samples = int(rng.integers(3, 9)), int(rng.choice([60, 120, 200, 400]))
    mutations = rng.choice([300, 1000, 3000, 10_000])
    signatures = np.array([rng.dirichlet(np.full(96, flat)) for flat in rng.choice([0.05, 0.1, 0.3, 1], n_signatures)])
    active = rng.random((n_samples, n_signatures)) < rng.uniform(0.25, 0.8, n_signatures)
    active[~active.any(axis=1), rng.integers(n_signatures)] = True
    exposures = active * rng.lognormal(np.log(mutations), 0.8, active.shape)
    return rng.poisson(exposures @ signatures), signatures, exposures


def similar_set(seed: int) -> tuple[Any, Any, Any]:
    """Return counts, 3 to 5 signatures that share one half of their mutations, and exposures to most of them."""
    rng = np.random.default_rng(seed)
    n_signatures, n_samples = int(rng.integers(3, 6)), int(rng.choice([100, 200]))
    mutations, shared = rng.choice([2000, 7000]), rng.dirichlet(np.full(96, 2.0))
    own = [rng.dirichlet(np.full(96, flat)) for flat in rng.choice([0.3, 1, 2], n_signatures)]
    signatures = 0.5 * shared + 0.5 * np.array(own)
    active = rng.random((n_samples, n_signatures)) < rng.uniform(0.7, 0.97, n_signatures)
    active[~active.any(axis=1), 0] = True
    exposures = active * rng.lognormal(np.log(mutations / n_signatures), 0.8, active.shape)
    exposures *= rng.choice([0.3, 1], n_signatures)
    return rng.poisson(exposures @ signatures), signatures, exposures


def find_in_random_sets(n_fits: int) -> None:
    complete = 0
    for seed in range(SEED, SEED + N_SETS):
        counts, truth, exposures = random_set(seed)
        per_sample = counts.sum(axis=1).mean()
        complete += find_signatures(
            f"set {seed}, {len(counts)} samples, {per_sample:.0f} mutations", counts, truth, exposures, n_fits
        )
    report_figure("sets with the true number, and every signature at a cosine of 0.9", f"{complete} of {N_SETS}", "-")


def find_in_similar_sets(n_fits: int) -> None:
    for seed in range(SEED, SEED + N_SETS):
        counts, truth, exposures = similar_set(seed)
        name = f"similar set {seed}, {len(counts)} samples, {counts.sum(axis=1).mean():.0f} mutations"
        find_signatures(name, counts, truth, exposures, n_fits, [len(truth)])


def find_in_published_sets(n_fits: int) -> None:
    for name in ("scenario8", "SP_5"):
        with np.load(require_file(DATA / "signatures" / f"{name}.npz"), allow_pickle=False) as data:
            counts, truth, exposures = data["counts"], data["signatures"], data["exposures"]
        truth = truth / truth.sum(axis=1, keepdims=True)
        exposures = exposures if len(exposures) == len(counts) else exposures.T
        find_signatures(name, counts, truth, exposures, n_fits)


def find_signatures(
    name: str, counts: Any, truth: Any, exposures: Any, n_fits: int, numbers: Sequence[int] = range(1, 11)
) -> bool:
    """Print what is found; return whether the number is right and every true signature has a similar one."""
    started = time.process_time()
    found = extract(counts, numbers, n_fits=n_fits, n_jobs=THREADS)
    extracted = time.process_time()
    signatures = refine(counts, found.model.components_)
    refined = time.process_time()
    least = [cosine_similarity(truth, table).max(axis=1).min() for table in (found.model.components_, signatures)]
    report_figure(f"{name}: signatures found", f"{found.chosen} of {len(truth)}", f"{len(truth)}")
    report_figure(
        f"{name}: least cosine of a true signature, extracted, refined", f"{least[0]:.3f}, {least[1]:.3f}",
        "at least 0.9",
    )  # fmt: skip
    report_figure(
        f"{name}: CPU seconds of {n_fits} fits of each of {len(numbers)} numbers, of refining",
        f"{extracted - started:.1f}, {refined - extracted:.1f}", "-",
    )  # fmt: skip
    if found.chosen != len(truth):
        return False
    for what, table in (("extracted", found.model.components_), ("refined", signatures)):
        order = linear_sum_assignment(-cosine_similarity(truth, table))[1]
        check_exposures(f"{name}, signatures {what}", counts, table[order], exposures)
    check_exposures(f"{name}, true signatures", counts, truth, exposures, truth)
    return bool(least[1] >= 0.9)


def check_exposures(what: str, counts: Any, signatures: Any, exposures: Any, truth: Any = None) -> None:
    """Print how well exposures are found.

    With the true signatures, a missed exposure is findable if its expected gain in likelihood, at the expected counts,
    reaches the limit of the test in `assign`.
    """
    values = assign(counts, signatures).values
    there, missed = exposures > 0, (exposures > 0) & (values == 0)
    errors = np.abs(values[there] - exposures[there]) / exposures[there]
    report_figure(f"{what}: median relative error of exposures", f"{np.median(errors):.3f}", "-")
    report_figure(f"{what}: exposures missed", f"{missed.sum()} of {there.sum()}", "-")
    report_figure(f"{what}: exposures without a true one", f"{(values[~there] > 0).sum()} of {(~there).sum()}", "-")
    if truth is not None:
        gains = expected_gains(exposures, truth)
        findable = there & (gains >= chi2.isf(0.01, df=1) / 2)
        report_figure(f"{what}: findable exposures missed", f"{(missed & findable).sum()} of {findable.sum()}", "-")


def expected_gains(exposures: Any, signatures: Any) -> Any:
    """Return the loss of likelihood without each exposure, if the counts are the expected ones."""
    expected, gains = exposures @ signatures, np.zeros(exposures.shape)
    for topic in range(len(signatures)):
        others = np.delete(np.arange(len(signatures)), topic)
        fitted = np.maximum(exposures[:, others], 1e-9)
        for _ in range(500):
            mixed = np.maximum(fitted @ signatures[others], 1e-300)
            fitted *= (expected / mixed) @ signatures[others].T
        mixed = np.maximum(fitted @ signatures[others], 1e-300)
        gains[:, topic] = kl_div(expected, mixed).sum(axis=1)
    return gains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", type=int, default=20)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    describe_machine()
    if "planted" in arguments.only:
        compare_with_planted(arguments.corpora, arguments.fits)
    if "cells" in arguments.only:
        choose_programs(arguments.fits)
    if "sets" in arguments.only:
        find_in_random_sets(arguments.fits)
    if "similar" in arguments.only:
        find_in_similar_sets(arguments.fits)
    if "signatures" in arguments.only:
        find_in_published_sets(arguments.fits)


if __name__ == "__main__":
    main()
