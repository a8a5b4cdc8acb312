"""Whether `select_n_topics` finds the number of topics that a corpus was drawn with.

The corpora have 2000 documents of 100 tokens, 2000 words, Dirichlet(0.1) weights and K = 5, 10, 20 or 40 topics, with
five seeds each. "separated": every topic is drawn from Dirichlet(0.05), so topics share few words. "overlapping": the
topics of `synthetic_corpus`, which share their frequent words (Zipf). "unigram": one distribution, so no topics. All
use the same range, 2 to 60. The settings of `select_n_topics` were chosen with seeds from 100 on; the table uses seeds
0 to 4.

For corpora that repeat their words the number to read is chosen as well. "bursty": no topics, but each document draws
its own distribution of words around that of the corpus, Dirichlet(c p), in several shapes. "uneven": no topics, each
word on its own with its own concentration (negative binomial counts). "bursty separated": documents draw distributions
around those of 20 separated topics.

    python benchmarks/planted_topics.py [--kinds separated overlapping unigram bursty uneven "bursty separated"]
        [--numbers 5 10 20 40] [--concentrations 10 30 100] [--seeds 5]
"""

from __future__ import annotations

import argparse
from itertools import product
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from common import describe_machine, report_figure
from polyseme.datasets import synthetic_corpus
from polyseme.selection import select_n_topics
from polyseme.selection.n_topics import Selection, spread_values

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


class Shape(NamedTuple):
    """Size of a corpus."""

    n_documents: int = N_DOCUMENTS
    length: int = LENGTH
    n_words: int = N_WORDS


def repeat_words(means: np.ndarray, concentration: float, shape: Shape, seed: int) -> sp.csr_array:
    """Return documents that draw their own distributions of words from Dirichlet(concentration * mean)."""
    rng = np.random.default_rng([seed, 11])
    shares = rng.standard_gamma(np.broadcast_to(concentration * means, (shape.n_documents, shape.n_words)))
    return sp.csr_array(rng.multinomial(shape.length, shares / shares.sum(axis=1, keepdims=True)))


def zipf(n_words: int) -> np.ndarray:
    words = 1 / np.arange(1, n_words + 1)
    return words / words.sum()


def bursty(concentration: int, shape: Shape, seed: int) -> sp.csr_array:
    return repeat_words(zipf(shape.n_words), concentration, shape, seed)


def uneven(concentration: int, shape: Shape, seed: int) -> sp.csr_array:
    rng = np.random.default_rng([seed, 17])
    means = zipf(shape.n_words)
    shapes = concentration * means * rng.lognormal(0, 1.5, shape.n_words)
    rates = rng.standard_gamma(shapes, (shape.n_documents, shape.n_words)) * means / shapes
    return sp.csr_array(rng.poisson(shape.length * rates))


def bursty_separated(concentration: int, shape: Shape, seed: int) -> sp.csr_array:
    rng = np.random.default_rng([seed, 13])
    topics = rng.dirichlet(np.full(shape.n_words, 0.05), BURSTY_TOPICS)
    means = rng.dirichlet(np.full(BURSTY_TOPICS, 0.1), shape.n_documents) @ topics
    return repeat_words(means, concentration, shape, seed)


BURSTY_TOPICS = 20
BURSTY = {"bursty": bursty, "uneven": uneven, "bursty separated": bursty_separated}
SHAPES = (Shape(), Shape(1000, 20, 200), Shape(300, 400, 2000), Shape(100, 100, 200))
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


def print_bursty(kind: str, concentrations: list[int], n_seeds: int) -> tuple[str, str]:
    """Print both choices for corpora that repeat their words, and return how many of them are called structured."""
    structured = runs = 0
    for shape, concentration in product(SHAPES, concentrations):
        found = [select_n_topics(BURSTY[kind](concentration, shape, seed), RANGE) for seed in range(n_seeds)]
        to_predict = ", ".join(str(one.chosen_to_predict) for one in found)
        to_read = ", ".join(str(one.chosen_to_read) for one in found)
        print(
            f"{kind}, {shape.n_documents} documents of {shape.length} tokens, {shape.n_words} words, concentration "
            f"{concentration}: to predict {to_predict}; to read {to_read}",
            flush=True,
        )
        structured, runs = structured + sum(one.structured for one in found), runs + len(found)
    return f"corpora with topics found, {kind}", f"{structured} of {runs}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, *BURSTY], default=[*KINDS, *BURSTY])
    parser.add_argument("--numbers", nargs="+", type=int, default=[5, 10, 20, 40])
    parser.add_argument("--concentrations", nargs="+", type=int, default=[10, 30, 100])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    describe_machine()
    print("| corpus | K | chosen, seed by seed | within 20% | seconds per choice | path of 10 / largest alone |")
    print("|---|---|---|---|---|---|")
    totals = []
    for kind in [kind for kind in arguments.kinds if kind in KINDS]:
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
    for kind in [kind for kind in arguments.kinds if kind in BURSTY]:
        totals.append(print_bursty(kind, arguments.concentrations, arguments.seeds))
    for what, value in totals:
        report_figure(what, value)


if __name__ == "__main__":
    main()
