"""Complete fits with well-known tools: seconds, and perplexity of held-out documents.

    python benchmarks/tools.py [--k 20] [--documents 18774] [--picture docs/pictures/tools.png]

Every tool fits the same counts of 20 Newsgroups (words in at least 10 documents) with two threads, and with the
settings that its documentation shows or defaults to:

    polyseme PLSA, LDA                the defaults
    scikit-learn NMF                  solver="mu", beta_loss="kullback-leibler", max_iter=200: the same model as PLSA
    scikit-learn LDA                  the defaults (batch, 10 passes), n_jobs=2
    gensim LDA                        LdaMulticore, passes=10 as in its tutorial, workers=2
    tomotopy LDA                      1000 iterations as in its examples, workers=2

Only the fit is timed; converting the counts to the tool's own form is not. A tenth of the documents is held out. All
topics are evaluated by one function: half of the words of each held-out document are folded in by maximum likelihood,
and the other half is predicted (completion perplexity, with 1% of the unigram; lower is better).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from common import NEWSGROUPS, THREADS, can_import, describe_machine, load_counts, report_figure, report_ratio
from polyseme import LDA, PLSA

warnings.filterwarnings("ignore")


class Fit(NamedTuple):
    """Time of a tool, and the quality of its topics."""

    tool: str
    seconds: float
    perplexity: float


def time_result(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def polyseme_plsa(counts: sp.csr_array, k: int) -> tuple[float, Any]:
    seconds, model = time_result(lambda: PLSA(k, random_state=0, n_jobs=THREADS).fit(counts))
    return seconds, model.components_


def polyseme_lda(counts: sp.csr_array, k: int) -> tuple[float, Any]:
    seconds, model = time_result(lambda: LDA(k, random_state=0, n_jobs=THREADS).fit(counts))
    return seconds, model.components_


def sklearn_nmf(counts: sp.csr_array, k: int) -> tuple[float, Any]:
    from sklearn.decomposition import NMF

    model = NMF(k, solver="mu", beta_loss="kullback-leibler", init="random", max_iter=200, random_state=0)
    seconds, _ = time_result(lambda: model.fit(counts))
    return seconds, model.components_


def sklearn_lda(counts: sp.csr_array, k: int) -> tuple[float, Any]:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(k, n_jobs=THREADS, random_state=0)
    seconds, _ = time_result(lambda: model.fit(counts))
    return seconds, model.components_


def gensim_lda(counts: sp.csr_array, k: int) -> tuple[float, Any]:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaMulticore

    corpus = list(Sparse2Corpus(counts.T.tocsc().astype(np.int64)))
    names = {word: str(word) for word in range(counts.shape[1])}
    seconds, model = time_result(
        lambda: LdaMulticore(corpus, k, id2word=names, passes=10, workers=THREADS, random_state=0)
    )
    return seconds, model.get_topics()


def tomotopy_lda(counts: sp.csr_array, k: int) -> tuple[float, Any]:
    import tomotopy

    model = tomotopy.LDAModel(k=k, seed=0)
    words = np.arange(counts.shape[1]).astype(str)
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        row = np.repeat(counts.indices[start:end], counts.data[start:end].astype(np.int64))
        if len(row):
            model.add_doc(words[row].tolist())
    seconds, _ = time_result(lambda: model.train(1000, workers=THREADS))
    topics = np.zeros((k, counts.shape[1]))
    topics[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(topic) for topic in range(k)]
    return seconds, topics


TOOLS: dict[str, tuple[str, Callable[[sp.csr_array, int], tuple[float, Any]]]] = {
    "polyseme PLSA": ("polyseme", polyseme_plsa),
    "polyseme LDA": ("polyseme", polyseme_lda),
    "scikit-learn NMF (KL)": ("sklearn", sklearn_nmf),
    "scikit-learn LDA": ("sklearn", sklearn_lda),
    "gensim LDA": ("gensim", gensim_lda),
    "tomotopy LDA": ("tomotopy", tomotopy_lda),
}
MODELS = {"scikit-learn NMF (KL)": "polyseme PLSA"}
"""Fits of polyseme with the same model; `polyseme LDA` for all others."""


def completion_perplexity(topics: Any, train: sp.csr_array, test: sp.csr_array) -> float:
    """Return the completion perplexity of the held-out documents for these topics."""
    base = PLSA(2, max_iter=1, random_state=0, dtype="float64").fit(train)
    return float(
        base.with_topics(np.asarray(topics, dtype=np.float64), train).completion_perplexity(test, inference="model")
    )


def draw(fits: list[Fit], path: Path) -> None:
    """Draw bars of seconds, labeled with the perplexity of each fit."""
    from matplotlib.figure import Figure

    fits = sorted(fits, key=lambda fit: fit.seconds, reverse=True)
    drawing = Figure(figsize=(7.5, 2.9), layout="constrained")
    axes = drawing.add_subplot()
    ours = ["#1f6f8b" if fit.tool.startswith("polyseme") else "#b9bec4" for fit in fits]
    axes.barh([fit.tool for fit in fits], [fit.seconds for fit in fits], color=ours)
    axes.set_xlim(right=1.5 * max(fit.seconds for fit in fits))
    for row, fit in enumerate(fits):
        axes.text(fit.seconds, row, f"  {fit.seconds:.1f} s, perplexity {fit.perplexity:.0f}", va="center", fontsize=9)
    axes.set_xlabel("seconds of a fit; perplexity of held-out documents, lower is better")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    drawing.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--documents", type=int, help="number of documents, drawn at random")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    describe_machine("gensim", "tomotopy")
    counts = load_counts(NEWSGROUPS)
    rows = np.random.default_rng(0).permutation(counts.shape[0])[: arguments.documents]
    cut = len(rows) // 10
    test, train = counts[np.sort(rows[:cut])], counts[np.sort(rows[cut:])]
    fits = []
    for tool, (module, fit) in TOOLS.items():
        if not can_import(module, tool):
            continue
        seconds, topics = fit(train, arguments.k)
        fits.append(Fit(tool, seconds, completion_perplexity(topics, train, test)))
        report_figure(f"{tool}, K = {arguments.k}", f"{seconds:.1f} s, completion perplexity {fits[-1].perplexity:.1f}")
    by_tool = {fit.tool: fit for fit in fits}
    for fit in fits:
        if not fit.tool.startswith("polyseme"):
            ours = by_tool[MODELS.get(fit.tool, "polyseme LDA")]
            report_ratio(f"complete fit, K = {arguments.k}", fit.tool, ours.seconds, fit.seconds)
    if arguments.picture:
        draw(fits, arguments.picture)


if __name__ == "__main__":
    main()
