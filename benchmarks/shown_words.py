"""Words shown for a topic and its typical documents: coherence, diversity, length.

    python benchmarks/shown_words.py

The topics of the same PLSA are described by their most probable words, by relevance on tokens and by relevance on
documents (the default of polyseme), with ten words per topic. Figures are means over seeds: NPMI in documents, NPMI in
windows of 10 words (20 Newsgroups only), and diversity, the share of different words among those of all topics.

Typical documents are the first three of each topic: their median length over the median of the corpus, and the share
with the main label of their topic (the label with most of its tokens), compared with the documents of largest P(d|z).

20 Newsgroups is counted with the rules for English, words of at least 2 documents and at most half of them, without
numbers other than years; AP has its own counts.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from common import AP, NEWS_TEXTS, describe_machine, load_counts, load_lines, report_figure
from polyseme import PLSA
from polyseme.metrics import coherence, top_words, topic_diversity
from polyseme.metrics.coherence import TokenSequences
from polyseme.metrics.words import token_amounts
from polyseme.runs.typical import topic_documents
from polyseme.text import Vectorizer

WORDS, DOCUMENTS = 10, 3
NUMBER, YEAR = re.compile(r"[\d.,]+"), re.compile(r"(1[5-9]|20)\d\d")

RANKINGS: dict[str, Callable[[PLSA], Any]] = {
    "probability": lambda model: top_words(model.components_, WORDS),
    "relevance on tokens": lambda model: top_words(
        token_amounts(model.components_, model.topic_weights_, model.unigram_, model.n_tokens_), WORDS
    ),
    "relevance on documents": lambda model: top_words(model, WORDS),
}


class Data(NamedTuple):
    """A corpus with its labels."""

    name: str
    counts: sp.csr_array
    sequences: TokenSequences | None
    labels: np.ndarray | None


def newsgroups(n_documents: int) -> Data:
    """Return the first documents of a fixed permutation of 20 Newsgroups."""
    lines = load_lines(NEWS_TEXTS)
    rows = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))[:n_documents]]
    texts = [row["text"] for row in rows]
    vectorizer = Vectorizer(language="english", min_df=2, max_df=0.5)
    counts = sp.csr_array(vectorizer.fit_transform(texts))
    words = vectorizer.get_feature_names_out()
    is_word = np.array([not NUMBER.fullmatch(word) or bool(YEAR.fullmatch(word)) for word in words])
    column = np.where(is_word, np.cumsum(is_word) - 1, -1).astype(np.int32)
    sequences = vectorizer.sequences(texts)
    tokens = np.where(sequences.tokens >= 0, column[sequences.tokens], -1)
    labels = np.array([row["id"].partition("/")[0] for row in rows])
    return Data("20 Newsgroups", counts[:, is_word], TokenSequences(tokens, sequences.indptr), labels)


def word_figures(data: Data, models: list[PLSA]) -> dict[str, tuple[float, float, float]]:
    """Return NPMI in documents and in windows (NaN without texts) and diversity of each ranking, as means."""
    found = {}
    for name, ranking in RANKINGS.items():
        rows = []
        for model in models:
            words = ranking(model)
            windows = np.nan if data.sequences is None else coherence(words, data.sequences, "npmi").mean
            rows.append((coherence(words, data.counts, "npmi").mean, windows, topic_diversity(words)))
        found[name] = tuple(np.mean(rows, axis=0).tolist())
    return found


def document_figures(data: Data, models: list[PLSA]) -> dict[str, tuple[float, float]]:
    """Return the median length of the first documents over that of the corpus, and the share with the main label."""
    lengths = data.counts.sum(axis=1)
    median = np.median(lengths[lengths > 0])
    found: dict[str, list[tuple[float, float]]] = {"largest P(d|z)": [], "typical documents": []}
    for model in models:
        largest = [list(np.argsort(-row, kind="stable")[:DOCUMENTS]) for row in model.topic_doc_]
        typical = topic_documents(model._fitted, model._training, [data.counts], DOCUMENTS).documents
        for name, chosen in zip(found, (largest, typical), strict=True):
            rows = [row for documents in chosen for row in documents]
            found[name].append((float(np.median(lengths[rows]) / median), _with_main_label(data, model, chosen)))
    return {name: tuple(np.mean(rows, axis=0).tolist()) for name, rows in found.items()}


def _with_main_label(data: Data, model: PLSA, chosen: list[list[int]]) -> float:
    """Return the share of the documents with the main label of their topic; NaN without labels."""
    if data.labels is None:
        return np.nan
    names, numbers = np.unique(data.labels, return_inverse=True)
    shares = np.array([np.bincount(numbers, row, len(names)) for row in model.topic_doc_])
    main = shares.argmax(axis=1)
    return float(np.mean([numbers[row] == main[topic] for topic, rows in enumerate(chosen) for row in rows]))


def _format(value: float, digits: int) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def evaluate(data: Data, K: int, seeds: int) -> None:
    """Print all figures of a corpus."""
    models = [PLSA(K, random_state=seed).fit(data.counts) for seed in range(seeds)]
    words, documents = word_figures(data, models), document_figures(data, models)
    print(f"{data.name}, K = {K}: {data.counts.shape[0]} documents, {data.counts.shape[1]} words, {seeds} seeds")
    print(f"  {'words by':24} {'NPMI in documents':>18} {'in windows of 10':>17} {'diversity':>10}")
    for name, (npmi, windows, diversity) in words.items():
        print(f"  {name:24} {npmi:18.3f} {_format(windows, 3):>17} {diversity:10.2f}")
    print(f"  {'first three documents':24} {'length over median':>18} {'with main label':>17}")
    for name, (length, match) in documents.items():
        print(f"  {name:24} {length:18.1f} {_format(match, 2):>17}", flush=True)
    npmi, windows, diversity = words["relevance on documents"]
    before, windows_before, _ = words["probability"]
    required = {10: "at least +40%", 20: "at least +20%"}.get(K, "")
    report_figure(
        f"NPMI in documents over ranking by probability, {data.name}, K = {K}", f"{npmi / before - 1:+.0%}", required
    )
    report_figure(f"diversity of the words shown, {data.name}, K = {K}", f"{diversity:.2f}", "at least 0.95")
    if data.sequences is not None:
        report_figure(
            f"NPMI in windows over ranking by probability, {data.name}, K = {K}",
            f"{windows / windows_before - 1:+.0%}", "at least 0%",
        )  # fmt: skip
    length = documents["typical documents"][0]
    report_figure(f"length of typical documents over the median, {data.name}, K = {K}", f"{length:.1f}", "at most 2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=5000, help="documents of 20 Newsgroups")
    parser.add_argument("--k", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    describe_machine()
    corpora = newsgroups(options.documents), Data("AP", load_counts(AP), None, None)
    for data in corpora:
        for K in options.k:
            evaluate(data, K, options.seeds)


if __name__ == "__main__":
    main()
