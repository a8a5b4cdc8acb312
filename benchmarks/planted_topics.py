"""Whether `select_n_topics` finds the number of topics that a corpus was drawn with.

The corpora have 2000 documents of 100 tokens, 2000 words, Dirichlet(0.1) weights and K = 5, 10, 20 or 40 topics, with
five seeds each. "separated": every topic is drawn from Dirichlet(0.05), so topics share few words. "overlapping": the
topics of `synthetic_corpus`, which share their frequent words (Zipf). "unigram": one distribution, so no topics. All
use the same range, 2 to 60. The settings of `select_n_topics` were chosen with seeds from 100 on; the table uses seeds
0 to 4.

    python benchmarks/planted_topics.py [--kinds separated overlapping unigram] [--numbers 5 10 20 40] [--seeds 5]
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from common import describe_machine, report_figure
from polyseme.datasets import synthetic_corpus
from polyseme.selection import Selection, select_n_topics
from polyseme.selection.n_topics import spread_values

N_DOCUMENTS, N_WORDS, LENGTH = 2000, 2000, 100
RANGE = range(2, 61)


def separated(n_topics: int, seed: int) -> sp.csr_array:
    topics = np.random.default_rng([seed, 7]).dirichlet(np.full(N_WORDS, 0.05), n_topics)
    return synthetic_corpus(N_DOCUMENTS, topic_word=topics, length=LENGTH, random_state=seed).counts()


def overlapping(n_topics: int, seed: int) -> sp.csr_array:
    corpus = synthetic_corpus(N_DOCUMENTS, n_topics=n_topics, n_words=N_WORDS, length=LENGTH, random_state=seed)
    return corpus.counts()


def unigram(n_topics: int, seed: int) -> sp.csr_array:
    return overlapping(1, seed)


KINDS = {"separated": separated, "overlapping": overlapping, "unigram": unigram}


def select(kind: str, n_topics: int, seed: int) -> tuple[Selection, float]:
    """Return the selection for a corpus, and its seconds."""
    X = KINDS[kind](n_topics, seed)
    started = perf_counter()
    return select_n_topics(X, RANGE, reading=False), perf_counter() - started


def path_cost(found: Selection) -> float:
    """Return the time of the path of ten values over that of the largest value alone."""
    values = spread_values(RANGE[0], RANGE[-1])
    return sum(found.fits[value].seconds for value in values) / found.fits[values[-1]].seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--numbers", nargs="+", type=int, default=[5, 10, 20, 40])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    describe_machine()
    print("| corpus | K | chosen, seed by seed | within 20% | seconds per choice | path of 10 / largest alone |")
    print("|---|---|---|---|---|---|")
    totals = []
    for kind in arguments.kinds:
        within = runs = 0
        for n_topics in [1] if kind == "unigram" else arguments.numbers:
            results = [select(kind, n_topics, seed) for seed in range(arguments.seeds)]
            chosen = [found.chosen_to_predict for found, _ in results]
            correct = sum(abs(number - n_topics) <= 0.2 * n_topics for number in chosen)
            within, runs = within + correct, runs + len(chosen)
            seconds = np.median([elapsed for _, elapsed in results])
            ratio = np.median([path_cost(found) for found, _ in results])
            numbers = ", ".join(map(str, chosen))
            print(
                f"| {kind} | {n_topics} | {numbers} | {correct} of {len(chosen)} | {seconds:.1f} | {ratio:.2f} |",
                flush=True,
            )
        print(f"| {kind} | all | | {within} of {runs} | | |", flush=True)
        totals.append((f"number of topics found within 20%, {kind}", f"{within} of {runs}"))
    for what, value in totals:
        report_figure(what, value)


if __name__ == "__main__":
    main()
