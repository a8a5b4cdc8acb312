"""How much the topics of a fit with a given number of topics depend on the seed.

For corpora with labels and as many topics as labels, NMI of the largest topics of documents with the labels, for five
seeds: of fits from the topics that several short fits share (`polyseme.selection.reading.shared_topics`, the start of
`polyseme fit -k`), and of fits from the start of the estimator's default. The figure of a row is the worst NMI as a
share of the best one.

    python benchmarks/starts.py [--corpora NAME ...] [--models NAME ...] [--quick]
    python benchmarks/starts.py --inits random documents [--seeds 5] [--k 20 100]

    python benchmarks/starts.py --streams

With --inits, named starts of PLSA are compared: how many of 100 fits find three disjoint blocks of words, and medians
of the likelihood, the CPU time and, where there are labels and as many topics, the NMI. With --streams, how often the
topics are found by one, three and ten calls of `partial_fit` with the same documents; and the completion perplexity of
held-out documents after a stream of calls, and after a fit to all of its documents at once.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score

from common import (
    AP,
    DATA,
    NEWS_TEXTS,
    NEWSGROUPS,
    THREADS,
    describe_machine,
    load_counts,
    load_lines,
    report_figure,
    require_file,
)
from polyseme import LDA, PLSA
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import align
from polyseme.runs.models import make_model
from polyseme.selection.reading import shared_topics
from polyseme.solvers.initialize import STARTS
from polyseme.text import Vectorizer

SEEDS = 5
MODELS = ("plsa", "lda", "ctm", "hierarchical", "nmf")
FIVE = ("comp.graphics", "rec.sport.hockey", "sci.space", "soc.religion.christian", "talk.politics.mideast")
EIGHT = ("alt.atheism", "comp.sys.mac.hardware", "misc.forsale", "rec.autos", "rec.sport.baseball", "sci.crypt",
         "sci.med", "talk.politics.guns")  # fmt: skip
QUICK_DOCUMENTS = 1000
FOUND = 0.3
"""Cosine distance up to which a topic is found."""


def newsgroups(groups: tuple[str, ...] = ()) -> tuple[sp.csr_array, np.ndarray]:
    rows = [row for row in load_lines(NEWS_TEXTS) if not groups or row["label"] in groups]
    counts = Vectorizer(language="english", min_df=2, max_df=0.5).fit_transform([row["text"] for row in rows])
    return sp.csr_array(counts), np.array([row["label"] for row in rows])


def labeled(name: str) -> tuple[sp.csr_array, np.ndarray]:
    counts = load_counts(DATA / "counts" / f"{name}.npz")
    lines = require_file(DATA / "counts" / f"{name}.labels.tsv").read_text().splitlines()[-counts.shape[0] :]
    return counts, np.array([line.split("\t")[-1] for line in lines])


CORPORA: dict[str, Callable[[], tuple[sp.csr_array, np.ndarray]]] = {
    "5 newsgroups": lambda: newsgroups(FIVE),
    "8 newsgroups": lambda: newsgroups(EIGHT),
    "20 newsgroups": newsgroups,
    "blood cells": partial(labeled, "pbmc_facs"),
}


def agreement(model: str, counts: sp.csr_array, labels: np.ndarray, seed: int, start: Any) -> float:
    """Return the NMI of a fit with the labels."""
    estimator = make_model(model, len(set(labels)), random_state=seed, start=start, n_jobs=THREADS)
    return float(normalized_mutual_info_score(labels, estimator.fit(counts).doc_topic_.argmax(axis=1)))


def compare_inits(inits: list[str], numbers: list[int], n_seeds: int) -> None:
    """Print a table of fits of PLSA by named start."""
    blocks = np.kron(np.eye(3), np.full((3, 3), 2.0))
    print("| corpus | K | init | median log-likelihood | median NMI | median CPU s | median iterations |")
    print("|---|---|---|---|---|---|---|")
    for init in inits:
        fits = (PLSA(3, init=init, random_state=seed, n_jobs=1).fit(blocks) for seed in range(100))
        by_block = [fit.components_.reshape(3, 3, 3).sum(axis=2).argmax(axis=1) for fit in fits]
        print(f"| three blocks | 3 | {init} | {sum(len(set(found)) == 3 for found in by_block)} of 100 | | | |")
    corpora = {
        "AP": (load_counts(AP), None),
        "newsgroups_df10": (load_counts(NEWSGROUPS), None),
        "newsgroups_fasttopics": labeled("newsgroups_fasttopics"),
        "pbmc_facs": labeled("pbmc_facs"),
    }
    for name, (counts, labels) in corpora.items():
        for K in numbers if labels is None else [len(set(labels))]:
            rows: dict[str, list[tuple[float, ...]]] = {init: [] for init in inits}
            for seed in range(n_seeds):
                for init in inits:
                    started = time.process_time()
                    fit = PLSA(K, init=init, random_state=seed, n_jobs=1).fit(counts)
                    used = time.process_time() - started
                    nmi = np.nan if labels is None else normalized_mutual_info_score(labels, fit.doc_topic_.argmax(1))
                    rows[init].append((fit.history_["log_likelihood"][-1], nmi, used, fit.n_iter_))
            for init, found in rows.items():
                value, nmi, used, n_iter = np.median(found, axis=0)
                print(f"| {name} | {K} | {init} | {value:.4f} | {nmi:.3f} | {used:.1f} | {n_iter:.0f} |", flush=True)


def three_blocks() -> tuple[np.ndarray, np.ndarray]:
    """Return counts of nine documents and their three topics, which share no words."""
    return np.kron(np.eye(3), np.full((3, 3), 3.0)), np.kron(np.eye(3), np.full((1, 3), 1 / 3))


def planted() -> tuple[np.ndarray, np.ndarray]:
    """Return counts of 200 documents of five topics, and the topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(60, 0.05), 5)
    return np.array([rng.multinomial(80, p) for p in rng.dirichlet(np.full(5, 0.1), 200) @ topics]), topics


def compare_streams() -> None:
    """Print for how many of 60 seeds every topic is found by calls of `partial_fit`."""
    makers: dict[str, Callable[..., Any]] = {
        "scikit-learn LDA": lambda K, n, seed: LatentDirichletAllocation(K, total_samples=n, random_state=seed),
        "LDA": lambda K, n, seed: LDA(K, random_state=seed, n_jobs=1),
        "LDA, random": lambda K, n, seed: LDA(K, init="random", random_state=seed, n_jobs=1),
        "PLSA": lambda K, n, seed: PLSA(K, random_state=seed, n_jobs=1),
        "PLSA, random": lambda K, n, seed: PLSA(K, init="random", random_state=seed, n_jobs=1),
    }
    print("| data | estimator | 1 call | 3 calls | 10 calls |")
    print("|---|---|---|---|---|")
    for name, (counts, topics) in {"three blocks": three_blocks(), "planted": planted()}.items():
        for label, make in makers.items():
            models, row, done = [make(len(topics), len(counts), seed) for seed in range(60)], [], 0
            for calls in (1, 3, 10):
                for model in models:
                    for _ in range(calls - done):
                        model.partial_fit(counts)
                done = calls
                found = (model.components_ / model.components_.sum(axis=1, keepdims=True) for model in models)
                row.append(sum(align(topics, rows, metric="cosine")[1].max() < FOUND for rows in found))
            print(f"| {name} | {label} | {' | '.join(map(str, row))} |", flush=True)


def short_documents() -> tuple[sp.csr_array, np.ndarray]:
    """Return counts of 41,000 documents of 15 words and 20 topics, and the topics."""
    corpus = synthetic_corpus(41_000, n_words=2000, n_topics=20, length=15, topic_word_prior=0.05, random_state=5)
    return sp.csr_array(corpus.counts().astype(np.float32)), corpus.topic_word


def compare_held_out() -> None:
    """Print the completion perplexity of held-out documents, means of two seeds, and how many planted topics are found.

    Every model reads 25 parts of the documents, one call for each.
    """
    corpora: dict[str, Callable[[], Any]] = {
        "AP": lambda: (load_counts(AP), None),
        "poliblog5k": lambda: (load_counts(DATA / "counts" / "poliblog5k.npz"), None),
        "newsgroups_df10": lambda: (load_counts(NEWSGROUPS), None),
        "41,000 short documents": short_documents,
    }
    print("| corpus | estimator | stream | fit | planted topics, stream | fit |")
    print("|---|---|---|---|---|---|")
    for name, load in corpora.items():
        counts, topics = load()
        order = np.random.default_rng(1).permutation(counts.shape[0])
        n_test = min(1000, order.size // 5)
        test, train = counts[order[:n_test]], counts[order[n_test:]]
        for label, maker in {"PLSA": PLSA, "LDA": LDA}.items():
            figures = []
            for seed in range(2):
                stream, fit = (maker(20, random_state=seed, n_jobs=1) for _ in range(2))
                for part in np.array_split(np.arange(train.shape[0]), 25):
                    stream.partial_fit(train[part])
                pair = (stream, fit.fit(train))
                found = [found_topics(topics, model) for model in pair] if topics is not None else []
                figures.append([*(model.completion_perplexity(test) for model in pair), *found])
            means = np.mean(figures, axis=0)
            print(f"| {name} | {label} | {' | '.join(f'{value:.1f}' for value in means)} |", flush=True)


def found_topics(topics: np.ndarray, model: Any) -> int:
    """Return how many topics a model has found."""
    return int((align(topics, model.components_, metric="cosine")[1] < FOUND).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--quick", action="store_true", help="fewer documents and seeds, and one model")
    parser.add_argument("--inits", nargs="+", choices=STARTS, help="compare these starts of PLSA")
    parser.add_argument("--streams", action="store_true", help="compare starts of partial_fit")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of --inits")
    parser.add_argument("--k", nargs="+", type=int, default=[20, 100], help="of --inits, for corpora without labels")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    describe_machine()
    if arguments.streams:
        compare_streams()
        compare_held_out()
        return
    if arguments.inits:
        compare_inits(arguments.inits, arguments.k, arguments.seeds)
        return
    print("| corpus | model | start | NMI of each seed | mean | worst / best |")
    print("|---|---|---|---|---|---|")
    for name in arguments.corpora:
        counts, labels = CORPORA[name]()
        seeds, models = range(SEEDS), arguments.models
        if arguments.quick:
            rows = np.random.default_rng(0).permutation(len(labels))[:QUICK_DOCUMENTS]
            counts, labels, seeds, models = counts[rows], labels[rows], range(2), models[:1]
        shared = [shared_topics(counts, len(set(labels)), n_jobs=THREADS, random_state=seed) for seed in seeds]
        for model in models:
            for start, topics in (("shared", shared), ("default", [None] * len(seeds))):
                found = [agreement(model, counts, labels, seed, topics[seed]) for seed in seeds]
                share = min(found) / max(found)
                each = " ".join(f"{value:.3f}" for value in found)
                print(f"| {name} | {model} | {start} | {each} | {np.mean(found):.3f} | {share:.3f} |", flush=True)
                if start == "shared" and not arguments.quick:
                    report_figure(f"{model} on {name}: worst NMI of {SEEDS} seeds by the best", f"{share:.3f}", "0.95")


if __name__ == "__main__":
    main()
