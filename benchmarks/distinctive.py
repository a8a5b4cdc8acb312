"""Words that distinguish labels: how many have p below 0.05, with labels at random, by the number of their documents.

    python benchmarks/distinctive.py [--repetitions 3]

The labels of 20 Newsgroups and of docstrings are permuted; AP, which has none, gets eight labels of the same size. In
addition every corpus gets two labels of the same size. A test that holds has 5% in each column. The last table has the
words of five labels of 20 Newsgroups as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from common import AP, NEWS_TEXTS, describe_machine, load_counts, load_lines
from polyseme.datasets import docstrings
from polyseme.metrics import distinctive_words

BINS = ((5, 10), (10, 20), (20, 50), (50, 200), (200, None))


def news() -> tuple[sp.csr_array, list[str], Any]:
    """Return the counts of words of at least two documents, the labels and the words of 20 Newsgroups."""
    lines = load_lines(NEWS_TEXTS)
    vectorizer = CountVectorizer(min_df=2)
    counts = vectorizer.fit_transform([line["text"] for line in lines])
    return counts, [line["label"] for line in lines], vectorizer.get_feature_names_out()


def calibrate(name: str, counts: Any, labels: Sequence[Any], repetitions: int) -> None:
    """Print the shares of p-values below 0.05 and 0.01, and of q-values below 0.05, at permuted labels."""
    rng = np.random.default_rng(0)
    documents = np.bincount(sp.csr_array(counts).indices, minlength=counts.shape[1])
    found = [distinctive_words(counts, rng.permutation(np.asarray(labels))) for _ in range(repetitions)]
    p, q = (np.concatenate([getattr(one, kind) for one in found]) for kind in ("p_values", "q_values"))
    columns = [float(np.mean(p[:, (documents >= low) & (documents < (high or np.inf))] < 0.05)) for low, high in BINS]
    tested = documents >= BINS[0][0]
    columns += [float(np.mean(values[:, tested] < at)) for values, at in ((p, 0.05), (p, 0.01), (q, 0.05))]
    print(f"{name:<14} {len(set(labels)):>6} {tested.sum():>6}" + "".join(f" {share:>8.2%}" for share in columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3, help="number of permutations")
    repetitions = parser.parse_args().repetitions
    describe_machine()
    names = [*(f"{low}-{high - 1}" if high else f"{low} on" for low, high in BINS), "all", "p<.01", "q<.05"]
    print("shares of p < 0.05 by the number of documents of a word; of all tested words; p < 0.01; q < 0.05")
    print(f"{'corpus':<14} {'labels':>6} {'words':>6}" + "".join(f" {name:>8}" for name in names))
    counts, labels, vocabulary = news()
    texts = docstrings()
    corpora = (
        ("20 Newsgroups", counts, labels),
        ("docstrings", CountVectorizer(min_df=2).fit_transform(texts.texts), texts.labels),
        ("AP", ap := load_counts(AP), np.arange(ap.shape[0]) % 8),
    )
    for name, X, of_documents in corpora:
        calibrate(name, X, list(of_documents), repetitions)
        calibrate(name, X, list(np.arange(X.shape[0]) % 2), repetitions)
    found = distinctive_words(counts, labels)
    for label, words in list(found.words(vocabulary, 8).items())[::4]:
        number = int(((found.scores > 0) & (found.q_values <= 0.05))[found.labels.index(label)].sum())
        print(f"{label}: {number:,} words, {', '.join(words)}")


if __name__ == "__main__":
    main()
