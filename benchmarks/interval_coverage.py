"""How often the intervals of `polyseme.uncertainty` contain the true values.

The documents are drawn from known topics: 1,000 words with Zipf's law (`polyseme.datasets.synthetic_corpus`), lengths
from a Poisson distribution, P(z|d) from a Dirichlet distribution with concentration 0.1 K. Its mean depends on the
group of the document (two groups of the same size) and linearly on a number x between 0 and 1, so that the true
shares, differences and effects are known. Each repetition draws new documents. The fit starts from the known topics,
so that the figures measure the intervals and not the search for topics. A row of the table has the share of the 95%
intervals that contain the true value: P(w|z) above 0.001, P(z), shares of the topics in the groups, their difference,
effects of the group and of x (``~ group + x + noise``), and P(z|d) of 10 documents; then the share of p-values below
0.05 for two groups that do not differ (drawn at random) and for a column of noise, and the share of topics that came
back. With --draws, it also has effects computed from posterior draws of P(z|d) (the topics fixed, errors of Huber and
White, combined by Rubin's rule), which takes longer than everything else. Behind every figure is its standard error,
from the variation between repetitions.
The estimators were chosen with other seeds (0 to 60, 5000 to 5099) on corpora of 500 and 5,000 documents.

    python benchmarks/interval_coverage.py [--topics 5 20] [--documents 500 5000] [--lengths 30 100 300]
        [--repetitions 200] [--first 0] [--resamples 50] [--clusters 0] [--simulations 12] [--draws]
        [--append FILE]

With --append, the figures of every repetition are added to a file, and repetitions that it has are not computed again,
so that the table can be computed in pieces; --summarize FILE prints the table of all of them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
import scipy.sparse as sp

from common import describe_machine, report_figure
from polyseme import PLSA
from polyseme.core.shard import sparse_counts
from polyseme.datasets import draw_tokens, synthetic_corpus
from polyseme.uncertainty.bootstrap import intervals_of
from polyseme.uncertainty.effects import effects_of
from polyseme.uncertainty.intervals import Intervals
from polyseme.uncertainty.resampling import Resampling, document_posteriors, posterior_draws, prior_of

N_WORDS, ALPHA, DOCUMENTS_CHECKED, DRAWS = 1000, 0.1, 10, 20
COLUMNS = (
    "P(w|z)", "P(z)", "shares", "differences", "effects", "P(z|d)", "null p < .05", "null effects p < .05", "came back",
    "effects by draws",
)  # fmt: skip


def covered(found: Intervals, truth: np.ndarray) -> np.ndarray:
    return (found.low <= truth) & (truth <= found.high)


class KeptFits(Resampling):
    """Fits that serve intervals and effects."""

    def resamples(self):
        if not hasattr(self, "kept"):
            self.kept = list(super().resamples())
        return iter(self.kept)

    def simulations(self, topic_weights):
        if not hasattr(self, "drawn"):
            self.drawn = list(super().simulations(topic_weights))
        return iter(self.drawn)


def draw(n_topics: int, n_documents: int, length: int, n_clusters: int, seed: int) -> dict:
    """Return documents and the truth. With clusters, the mean weights vary between clusters of documents."""
    rng = np.random.default_rng([seed, 9])
    topics = synthetic_corpus(1, n_topics=n_topics, n_words=N_WORDS, random_state=7).topic_word
    sign = np.where(np.arange(n_topics) % 2, 1.0, -1.0)
    if n_topics % 2:
        sign[0] = 0
    group, x, noise = np.arange(n_documents) % 2, rng.random(n_documents), rng.random(n_documents)
    clusters = rng.integers(0, n_clusters // 2, n_documents) * 2 + group if n_clusters else np.arange(n_documents)
    slope = np.roll(sign, 2) * (np.arange(n_topics) < 4) * 0.6
    slope -= slope.mean()
    means = 1 + 0.5 * np.outer(2 * group - 1, sign) * 0.6 + np.outer(x - 0.5, slope)
    if n_clusters:
        means *= np.exp(0.2 * rng.standard_normal((n_clusters, n_topics)))[clusters]
        means /= means.sum(axis=1, keepdims=True) / n_topics
    means /= n_topics
    drawn = rng.standard_gamma(ALPHA * n_topics * means) + 1e-300
    theta = drawn / drawn.sum(axis=1, keepdims=True)
    documents, words = draw_tokens(rng, np.maximum(rng.poisson(length, n_documents), 1), theta, topics)
    X = sp.csr_array(sp.coo_array((np.ones(len(words)), (documents, words)), shape=(n_documents, N_WORDS)))
    return {
        "X": X, "theta": theta, "topics": topics, "group": group, "x": x, "noise": noise, "clusters": clusters,
        "means": (1 + 0.3 * np.outer([-1, 1], sign)) / n_topics, "slope": slope / n_topics,
    }  # fmt: skip


def effects_by_draws(data: dict, topics: np.ndarray, prior: np.ndarray, seed: int) -> Intervals:
    """Return effects of the group and of x by the method of composition."""
    counts = sparse_counts(data["X"], np.dtype(np.float32))
    gamma = document_posteriors(counts, topics, prior, n_threads=1)
    thetas = posterior_draws(counts, topics, prior, gamma, DRAWS, np.random.default_rng(seed))
    design = np.column_stack([np.ones(len(gamma)), data["group"], data["x"], data["noise"]])
    inverse = np.linalg.pinv(design)
    fits = [inverse @ theta for theta in thetas]
    variances = [(inverse**2) @ (theta - design @ fit) ** 2 for theta, fit in zip(thetas, fits, strict=True)]
    estimate = np.mean(fits, axis=0)
    error = np.sqrt(np.mean(variances, axis=0) + (1 + 1 / DRAWS) * np.var(fits, axis=0, ddof=1))
    return Intervals(estimate, estimate - 1.96 * error, estimate + 1.96 * error, error)[1:3]


def repetition(
    n_topics: int,
    n_documents: int,
    length: int,
    n_resamples: int,
    n_clusters: int,
    n_simulations: int,
    seed: int,
    with_draws: bool,
) -> list[float]:
    """Return the figures of one repetition, in the order of COLUMNS, the last one only with draws."""
    data = draw(n_topics, n_documents, length, n_clusters, seed)
    X, topics, means = data["X"], data["topics"], data["means"]
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(data["group"])
    membership = np.array([data["group"] == 0, data["group"] == 1, shuffled == 0, shuffled == 1], dtype=float)
    model = PLSA(n_topics, init=(None, topics), n_jobs=1).fit(X)
    clusters = data["clusters"] if n_clusters else None
    fits = KeptFits(model, X, n_resamples, clusters=clusters, n_simulations=n_simulations, random_state=seed, n_jobs=1)
    found = intervals_of(fits, model, sp.csr_array(membership), 10)
    assert found.groups is not None
    table = {"group": data["group"].astype(float), "x": data["x"], "noise": data["noise"]}
    regression = effects_of(fits, model, "~ group + x + noise", table, None)
    truth = np.array([means[1] - means[0], data["slope"]])
    checked = rng.choice(n_documents, min(DOCUMENTS_CHECKED, n_documents), replace=False)
    figures = (
        covered(found.topic_word, topics)[topics > 1e-3].mean(),
        covered(found.topic_weights, means.mean(axis=0)).mean(),
        covered(found.groups.shares[:2], means).mean(),
        covered(found.groups.compare(0, 1), means[0] - means[1]).mean(),
        covered(regression.coefficients[1:3], truth).mean(),
        covered(found.doc_topic(X[checked]), data["theta"][checked]).mean(),
        (found.groups.compare(2, 3).p_values < 0.05).mean(),
        (regression.coefficients.p_values[3] < 0.05).mean(),
        found.returned.mean(),
    )
    if with_draws:
        prior = prior_of(found.concentration, found.topic_weights.estimate)
        by_draws = effects_by_draws(data, model.components_.astype(float), prior, seed)
        figures += (covered(by_draws, truth).mean(),)
    return [float(figure) for figure in figures]


def read_results(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def summarize(results: list[dict]) -> None:
    cells = defaultdict(list)
    for result in results:
        cells[tuple(result["cell"])].append((*result["figures"], result["seconds"]))
    n_shown = len(next(iter(cells.values()))[0]) - 1
    print(f"| K | documents | tokens | clusters | repetitions | {' | '.join(COLUMNS[:n_shown])} | CPU seconds |")
    print("|" + "---|" * (n_shown + 6))
    for (n_topics, n_documents, length, _, n_clusters, _), figures in sorted(cells.items()):
        mean, error = np.mean(figures, axis=0), np.std(figures, axis=0, ddof=1) / np.sqrt(len(figures))
        shown = [f"{value:.3f} ({se:.3f})" for value, se in zip(mean[:-1], error[:-1], strict=True)]
        row = [n_topics, n_documents, length, n_clusters or "none", len(figures), *shown, f"{mean[-1]:.1f}"]
        print(f"| {' | '.join(map(str, row))} |")
    for what, least, chosen in (("30 tokens", 0.90, [30]), ("100 tokens and more", 0.92, [100, 300])):
        means = [np.mean(figures, axis=0)[:6] for cell, figures in cells.items() if cell[2] in chosen]
        if means:
            report_figure(f"least coverage of 95% intervals, {what}", f"{np.min(means):.3f}", f"at least {least}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", nargs="+", type=int, default=[5, 20])
    parser.add_argument("--documents", nargs="+", type=int, default=[500, 5000])
    parser.add_argument("--lengths", nargs="+", type=int, default=[30, 100, 300])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first repetition")
    parser.add_argument("--resamples", type=int, default=50)
    parser.add_argument("--clusters", type=int, default=0, help="number of clusters, an even number; 0: none")
    parser.add_argument("--simulations", type=int, default=12, help="drawn corpora that measure the bias")
    parser.add_argument("--draws", action="store_true", help="also effects by posterior draws")
    parser.add_argument("--append", type=Path, metavar="FILE")
    parser.add_argument("--summarize", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.summarize:
        summarize(read_results(arguments.summarize))
        return
    describe_machine()
    results = read_results(arguments.append) if arguments.append and arguments.append.exists() else []
    done = {(*result["cell"], result["number"]) for result in results}
    for n_documents, n_topics, length in product(arguments.documents, arguments.topics, arguments.lengths):
        for number in range(arguments.first, arguments.first + arguments.repetitions):
            cell = (
                n_topics, n_documents, length, arguments.resamples, arguments.clusters, arguments.simulations,
            )  # fmt: skip
            if (*cell, number) in done:
                continue
            started = process_time()
            figures = repetition(*cell, 1000 + number, arguments.draws)
            results.append({"cell": cell, "figures": figures, "seconds": process_time() - started, "number": number})
            if arguments.append:
                with arguments.append.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    summarize(results)


if __name__ == "__main__":
    main()
