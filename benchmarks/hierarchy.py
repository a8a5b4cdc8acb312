"""Hierarchical PLSA on 20 Newsgroups without a stop list, compared with plain PLSA with the same number of topics.

Speed: one EM iteration of each from the same start, alternating (median). Quality (median over seeds): purity of the
leaves against the 20 labels (each document belongs to its most probable leaf, each leaf to its most frequent label),
and the nodes that contain the twenty most frequent function words.

    python benchmarks/hierarchy.py [--seeds 5] [--branching 2 3 5] [--iterations 100] [--speed-only]
        [--picture docs/pictures/hierarchical.png]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp

from common import DATA, NEWSGROUPS, THREADS, describe_machine, load_counts, report_figure, require_file
from polyseme import PLSA, HierarchicalPLSA
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.core.tree import as_tree
from polyseme.data.corpus import MemoryCorpus
from polyseme.plots import plot_tree
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import FitProblem
from polyseme.solvers.tree import TreeRun, leaf_topics, random_start

warnings.filterwarnings("ignore")

FUNCTION_WORDS = [
    "the", "of", "to", "and", "in", "is", "that", "it", "for", "you",
    "be", "on", "with", "this", "as", "are", "have", "not", "was", "or",
]  # fmt: skip


def read_names() -> tuple[np.ndarray, np.ndarray]:
    """Return the words of newsgroups_df10 (those in at least ten documents) and the labels."""
    folder = DATA / "counts"
    full = load_counts(folder / "newsgroups_fasttopics.npz")
    often = np.bincount(full.indices, minlength=full.shape[1]) >= 10
    words = require_file(folder / "newsgroups_fasttopics.vocab.txt").read_text().splitlines()[: full.shape[1]]
    labels = require_file(folder / "newsgroups_fasttopics.labels.tsv").read_text().splitlines()[-full.shape[0] :]
    return np.array(words)[often], np.unique([line.split("\t")[-1] for line in labels], return_inverse=True)[1]


def measure_speed(X: sp.csr_array, branching: tuple[int, ...], rounds: int = 25) -> None:
    """Print the time of one iteration of a tree and of plain PLSA."""
    corpus = MemoryCorpus(as_counts(X, np.dtype(np.float32)), None, THREADS)
    tree = as_tree(None, len(branching), branching, ())
    K = len(tree.leaves)
    start = random_start(corpus, tree, np.random.default_rng(0))
    nested = TreeRun(corpus, tree, start, extrapolate=False)
    plain = EM().begin(FitProblem(Model(K), corpus), start.theta, leaf_topics(*start[1:]))
    seconds: dict[str, list[float]] = {"plain": [], "tree": []}
    for _ in range(rounds):
        for name, run in (("plain", plain), ("tree", nested)):
            started = time.perf_counter()
            run.advance()
            seconds[name].append(time.perf_counter() - started)
    flat, deep = (float(np.median(seconds[name])) for name in ("plain", "tree"))
    print(
        f"one EM iteration, {K} leaves, depth {tree.depth}, {len(tree.parents)} nodes, float32, {THREADS} threads: "
        f"plain {1e3 * flat:.1f} ms, tree {1e3 * deep:.1f} ms"
    )
    report_figure(f"an iteration of a tree of {K} leaves over a plain one", f"{deep / flat:.2f}x", "at most 2x")


def purity(clusters: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of documents whose label is the most frequent one of their cluster."""
    table = sp.coo_array((np.ones(len(labels)), (clusters, labels))).toarray()
    return float(table.max(axis=1).sum() / len(labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--branching", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--speed-only", action="store_true")
    parser.add_argument("--picture", help="draw the first tree into this file")
    arguments = parser.parse_args()
    describe_machine()
    X = load_counts(NEWSGROUPS)
    branching = tuple(arguments.branching)
    measure_speed(X, branching)
    if arguments.speed_only:
        return
    words, labels = read_names()
    K = int(np.prod(branching))
    function_words = np.flatnonzero(np.isin(words, FUNCTION_WORDS))
    flat, deep, root_shares = [], [], []
    for seed in range(arguments.seeds):
        plain = PLSA(K, random_state=seed, n_jobs=THREADS).fit(X)
        tree = HierarchicalPLSA(
            depth=len(branching), branching=branching, random_state=seed, n_jobs=THREADS, max_iter=arguments.iterations
        ).fit(X)
        flat.append(purity(plain.doc_topic_.argmax(axis=1), labels))
        deep.append(purity(tree.labels_, labels))
        generated = tree.node_word_[:, function_words].sum(axis=1) * tree.node_weights_
        shares = generated / generated.sum()
        inner = np.setdiff1d(np.arange(len(shares)), [0, *tree.leaves_])
        root_shares.append(shares[0])
        largest = max(shares[1:])
        print(
            f"seed {seed}: purity plain {flat[-1]:.4f}, tree {deep[-1]:.4f}; log-likelihood plain "
            f"{plain.log_likelihood_:.4f}, tree {tree.log_likelihood_:.4f}; function words: root {shares[0]:.2f}, "
            f"between {shares[inner].sum():.2f}, all {K} leaves {shares[tree.leaves_].sum():.2f}, "
            f"the next node {largest:.2f}"
        )
        if seed == 0:
            print(tree.tree_text(list(words)))
            if arguments.picture:
                ax = plot_tree(tree, list(words), n_words=6)
                ax.figure.savefig(arguments.picture, dpi=80)
    gap = np.median(deep) - np.median(flat)
    value = f"{gap:+.4f} ({np.median(deep):.4f}, {np.median(flat):.4f}; median of {arguments.seeds})"
    report_figure("purity of the leaves less that of plain topics", value, "at least -0.02")
    report_figure("function words in the root", f"{np.median(root_shares):.2f}")


if __name__ == "__main__":
    main()
