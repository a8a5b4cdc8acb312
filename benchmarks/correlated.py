"""The correlated topic model on 20 Newsgroups: correlated topics, and its perplexity compared with PLSA and LDA.

Words in more than a tenth of the documents are left out instead of a stop list. A tenth of the documents is held out.
Completion perplexity scores the half of their words that did not determine the weights.

    python benchmarks/correlated.py [--k 20] [--iterations 60] [--picture docs/pictures/correlated.png]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from common import NEWSGROUPS, THREADS, describe_machine, load_counts, report_figure
from hierarchy import read_names
from polyseme import LDA, PLSA, CorrelatedTopicModel
from polyseme.plots import plot_topic_graph

warnings.filterwarnings("ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--picture", help="draw the graph of topics into this file")
    arguments = parser.parse_args()
    describe_machine()
    X = load_counts(NEWSGROUPS)
    words, _ = read_names()
    rare = np.bincount(X.indices, minlength=X.shape[1]) <= 0.1 * X.shape[0]
    X, words = X[:, rare], words[rare]
    held_out = np.random.default_rng(0).random(X.shape[0]) < 0.1
    K, same = arguments.k, {"random_state": 0, "n_jobs": THREADS, "max_iter": arguments.iterations}
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} non-zeros, K = {K}, {THREADS} threads")
    iteration = {}
    for model in (
        PLSA(K, solver="em", **same),
        PLSA(K, **same),
        LDA(K, **same),
        CorrelatedTopicModel(K, covariance="diagonal", **same),
        CorrelatedTopicModel(K, **same),
    ):
        started = time.perf_counter()
        model.fit(X[~held_out])
        seconds = time.perf_counter() - started
        print(f"{model}: {seconds:.1f} s, {model.n_iter_} iterations")
        kind = type(model).__name__
        if isinstance(model, PLSA):
            kind += " (EM)" * (model.solver == "em")
        elif isinstance(model, CorrelatedTopicModel):
            kind += ", diagonal" * (model.covariance == "diagonal")
        value = f"{model.completion_perplexity(X[held_out]):.0f} ({seconds:.1f} s)"
        iteration[kind] = float(np.median(np.diff(model.history_["seconds"])))
        report_figure(f"held-out perplexity of {kind}, K = {K}, {arguments.iterations} iterations", value)
    for kind in ("PLSA (EM)", "PLSA", "LDA"):
        ratio = f"{iteration['CorrelatedTopicModel'] / iteration[kind]:.2f} times"
        required = "at most 4" if kind == "PLSA (EM)" else ""
        report_figure(f"an iteration of CorrelatedTopicModel over one of {kind}, K = {K}", ratio, required)
    correlations = model.correlation_
    top = [" ".join(words[np.argsort(-topic)[:4]]) for topic in model.components_]
    pairs = sorted(zip(*np.triu_indices(K, 1), strict=True), key=lambda pair: -correlations[pair])
    for title, selected in (("largest correlation", pairs[:5]), ("smallest correlation", pairs[-5:])):
        for i, j in selected:
            print(f"{title}: {correlations[i, j]:+.2f}  {top[i]}  |  {top[j]}")
    if arguments.picture:
        plot_topic_graph(model, list(words), threshold=0.25).figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
