"""How much the topics of a fit with a given number of topics depend on the seed.

For corpora with labels and as many topics as labels, NMI of the largest topics of documents with the labels, for five
seeds: of fits from the topics that several short fits share (`polyseme.selection.consensus_topics`, the start of
`polyseme fit -k`), and of fits from the start of the estimator's default. The figure of a row is the worst NMI as a
share of the best one.

    python benchmarks/starts.py [--corpora NAME ...] [--models NAME ...] [--quick]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score

from common import DATA, NEWS_TEXTS, THREADS, describe_machine, load_counts, load_lines, report_figure, require_file
from polyseme.runs.models import make_model
from polyseme.selection import consensus_topics
from polyseme.text import Vectorizer

SEEDS = 5
MODELS = ("plsa", "lda", "ctm", "hierarchical", "nmf")
FIVE = ("comp.graphics", "rec.sport.hockey", "sci.space", "soc.religion.christian", "talk.politics.mideast")
EIGHT = ("alt.atheism", "comp.sys.mac.hardware", "misc.forsale", "rec.autos", "rec.sport.baseball", "sci.crypt",
         "sci.med", "talk.politics.guns")  # fmt: skip
QUICK_DOCUMENTS = 1000


def newsgroups(groups: tuple[str, ...] = ()) -> tuple[sp.csr_array, np.ndarray]:
    rows = [row for row in load_lines(NEWS_TEXTS) if not groups or row["label"] in groups]
    counts = Vectorizer(language="english", min_df=2, max_df=0.5).fit_transform([row["text"] for row in rows])
    return sp.csr_array(counts), np.array([row["label"] for row in rows])


def cells() -> tuple[sp.csr_array, np.ndarray]:
    labels = require_file(DATA / "counts" / "pbmc_facs.labels.tsv").read_text().splitlines()[1:]
    return load_counts(DATA / "counts" / "pbmc_facs.npz"), np.array([line.split("\t")[-1] for line in labels])


CORPORA: dict[str, Callable[[], tuple[sp.csr_array, np.ndarray]]] = {
    "5 newsgroups": lambda: newsgroups(FIVE),
    "8 newsgroups": lambda: newsgroups(EIGHT),
    "20 newsgroups": newsgroups,
    "blood cells": cells,
}


def agreement(model: str, counts: sp.csr_array, labels: np.ndarray, seed: int, start: Any) -> float:
    """Return the NMI of a fit with the labels."""
    estimator = make_model(model, len(set(labels)), random_state=seed, start=start, n_jobs=THREADS)
    return float(normalized_mutual_info_score(labels, estimator.fit(counts).doc_topic_.argmax(axis=1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--quick", action="store_true", help="fewer documents and seeds, and one model")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    describe_machine()
    print("| corpus | model | start | NMI of each seed | mean | worst / best |")
    print("|---|---|---|---|---|---|")
    for name in arguments.corpora:
        counts, labels = CORPORA[name]()
        seeds, models = range(SEEDS), arguments.models
        if arguments.quick:
            rows = np.random.default_rng(0).permutation(len(labels))[:QUICK_DOCUMENTS]
            counts, labels, seeds, models = counts[rows], labels[rows], range(2), models[:1]
        shared = [consensus_topics(counts, len(set(labels)), n_jobs=THREADS, random_state=seed) for seed in seeds]
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
