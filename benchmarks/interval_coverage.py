"""How often the intervals of `polyseme.uncertainty` contain the true values.

The documents are drawn from known topics by `polyseme.datasets.synthetic_corpus`: Dirichlet weights with concentration
0.1 K, in two groups of the same size, in which the mean weights of the topics differ (by a factor of 3 between the
most different ones), lengths from a Poisson distribution, 1,000 words with Zipf's law. Each repetition draws new
documents. The fit starts from the known topics, so that the figures measure the intervals and not the search for
topics. A row of the table has the share of the 95% intervals that contain the true value: P(w|z) above 0.001, P(z),
shares of the topics in the groups, their difference, and P(z|d) of 50 documents; then the share of p-values below 0.05
for two groups that do not differ (drawn at random), and the share of topics that came back.

The estimators were chosen with other seeds (0 to 60) on corpora of 500 and 5,000 documents with 300 and 1,000 words.

    python benchmarks/interval_coverage.py [--topics 5 20] [--documents 500 5000] [--lengths 30 100 300]
        [--repetitions 200] [--resamples 50]
"""

from __future__ import annotations

import argparse
from itertools import product
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from common import describe_machine, report_figure
from polyseme import PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.uncertainty import bootstrap
from polyseme.uncertainty.intervals import Intervals

N_WORDS, ALPHA, DOCUMENTS_CHECKED = 1000, 0.1, 50
COLUMNS = ("P(w|z)", "P(z)", "shares", "differences", "P(z|d)", "null p < .05", "came back")


def covered(found: Intervals, truth: np.ndarray) -> np.ndarray:
    return (found.low <= truth) & (truth <= found.high)


def repetition(n_topics: int, n_documents: int, length: int, n_resamples: int, seed: int) -> np.ndarray:
    """Return the figures of one repetition, in the order of COLUMNS."""
    topics = synthetic_corpus(1, n_topics=n_topics, n_words=N_WORDS, random_state=7).topic_word
    tilt = 1 + 0.5 * np.where(np.arange(n_topics) % 2, 1, -1)
    means = np.array([tilt, tilt[::-1] if n_topics % 2 == 0 else 2 - tilt])
    means /= means.sum(axis=1, keepdims=True)
    parts = [
        synthetic_corpus(
            n_documents // 2, topic_word=topics, length=length, doc_topic_prior=ALPHA * n_topics * mean,
            random_state=2 * seed + group,
        )
        for group, mean in enumerate(means)
    ]  # fmt: skip
    X = sp.csr_array(sp.vstack([part.counts() for part in parts]))
    rng, half = np.random.default_rng(seed), n_documents // 2
    membership = np.zeros((4, n_documents))
    membership[0, :half] = membership[1, half:] = 1
    membership[2] = rng.permutation(np.arange(n_documents) < half)
    membership[3] = 1 - membership[2]
    model = PLSA(n_topics, init=(None, topics), n_jobs=1).fit(X)
    found = bootstrap(model, X, n_resamples, groups=sp.csr_array(membership), n_jobs=1, random_state=seed)
    assert found.groups is not None
    checked = rng.choice(n_documents, DOCUMENTS_CHECKED, replace=False)
    theta = np.vstack([part.doc_topic() for part in parts])[checked]
    return np.array(
        [
            covered(found.topic_word, topics)[topics > 1e-3].mean(),
            covered(found.topic_weights, means.mean(axis=0)).mean(),
            covered(found.groups.shares[:2], means).mean(),
            covered(found.groups.compare(0, 1), means[0] - means[1]).mean(),
            covered(found.doc_topic(X[checked]), theta).mean(),
            (found.groups.compare(2, 3).p_values < 0.05).mean(),
            found.returned.mean(),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", nargs="+", type=int, default=[5, 20])
    parser.add_argument("--documents", nargs="+", type=int, default=[500, 5000])
    parser.add_argument("--lengths", nargs="+", type=int, default=[30, 100, 300])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=50)
    arguments = parser.parse_args()
    describe_machine()
    print(f"| K | documents | tokens | repetitions | {' | '.join(COLUMNS)} | seconds |")
    print("|" + "---|" * (len(COLUMNS) + 5), flush=True)
    rows = []
    for n_documents, n_topics, length in product(arguments.documents, arguments.topics, arguments.lengths):
        started = perf_counter()
        figures = np.mean(
            [
                repetition(n_topics, n_documents, length, arguments.resamples, 1000 + seed)
                for seed in range(arguments.repetitions)
            ],
            axis=0,
        )
        seconds = (perf_counter() - started) / arguments.repetitions
        shown = " | ".join(f"{figure:.3f}" for figure in figures)
        print(
            f"| {n_topics} | {n_documents} | {length} | {arguments.repetitions} | {shown} | {seconds:.1f} |", flush=True
        )
        rows.append((length, figures))
    for what, least, chosen in (("30 tokens", 0.90, [30]), ("100 tokens and more", 0.92, [100, 300])):
        figures = [row[:4] for length, row in rows if length in chosen]
        if figures:
            report_figure(f"least coverage of 95% intervals, {what}", f"{np.min(figures):.3f}", f"at least {least}")


if __name__ == "__main__":
    main()
