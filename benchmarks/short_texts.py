"""Topics of texts of a few words: one topic per document, or a mixture of topics in every document.

Agreement (NMI) of the largest topics of documents with their labels, as many topics as labels, for five seeds: a
mixture with one topic per document (`MultinomialMixture`, as `polyseme fit --model mixture` fits it), PLSA (as
`polyseme fit --model plsa` fits it), and NMF of scikit-learn on tf-idf weights. The last column is the perplexity of
held-out halves of a fifth of the documents; tf-idf NMF has none.

subjects     subjects of the posts of 20 Newsgroups, with the group as the label
docstrings   first lines of docstrings, with the package as the label

    python benchmarks/short_texts.py [--corpora NAME ...] [--quick]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score

from common import NEWS_TEXTS, THREADS, describe_machine, load_lines, report_figure
from polyseme.datasets import docstrings
from polyseme.runs.models import make_model
from polyseme.selection.reading import shared_topics
from polyseme.text import Vectorizer

SEEDS = 5
QUICK_DOCUMENTS = 2000


def subjects() -> tuple[list[str], list[str]]:
    rows = load_lines(NEWS_TEXTS)
    return [row["subject"] for row in rows], [row["label"] for row in rows]


def first_lines() -> tuple[list[str], list[str]]:
    corpus = docstrings()
    return [text.strip().partition("\n")[0] for text in corpus.texts], list(corpus.labels)


CORPORA: dict[str, Callable[[], tuple[list[str], list[str]]]] = {"subjects": subjects, "docstrings": first_lines}


def mixture(counts: sp.csr_array, n_topics: int, seed: int) -> Any:
    return make_model("mixture", n_topics, random_state=seed, n_jobs=THREADS).fit(counts)


def plsa(counts: sp.csr_array, n_topics: int, seed: int) -> Any:
    start = shared_topics(counts, n_topics, random_state=seed, n_jobs=THREADS)
    return make_model("plsa", n_topics, random_state=seed, start=start, n_jobs=THREADS).fit(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--quick", action="store_true", help="fewer documents and seeds")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    describe_machine()
    print("| corpus | words per document | model | NMI of each seed | mean | held-out perplexity |")
    print("|---|---|---|---|---|---|")
    for name in arguments.corpora:
        texts, labels = (np.array(values, dtype=object) for values in CORPORA[name]())
        seeds = range(1 if arguments.quick else SEEDS)
        if arguments.quick:
            rows = np.random.default_rng(0).permutation(len(texts))[:QUICK_DOCUMENTS]
            texts, labels = texts[rows], labels[rows]
        counts = sp.csr_array(Vectorizer(language="english", min_df=2, max_df=0.5).fit_transform(texts))
        filled = np.flatnonzero(np.diff(counts.indptr))
        counts, labels = counts[filled], labels[filled]
        n_topics, length = len(set(labels)), counts.sum() / counts.shape[0]
        held_out = np.random.default_rng(0).random(counts.shape[0]) < 0.2
        means = {}
        for title, make in (("mixture", mixture), ("plsa", plsa), ("tf-idf NMF", None)):
            if make is None:
                weights = TfidfTransformer().fit_transform(counts)
                fits = [NMF(n_topics, init="nndsvda", random_state=seed, max_iter=500) for seed in seeds]
                topics, perplexity = [fit.fit_transform(weights).argmax(axis=1) for fit in fits], ""
            else:
                topics = [make(counts, n_topics, seed).doc_topic_.argmax(axis=1) for seed in seeds]
                model = make(counts[~held_out], n_topics, 0)
                perplexity = f"{model.completion_perplexity(counts[held_out], random_state=0):.0f}"
            found = [normalized_mutual_info_score(labels, one) for one in topics]
            means[title], each = float(np.mean(found)), " ".join(f"{value:.3f}" for value in found)
            print(f"| {name} | {length:.1f} | {title} | {each} | {means[title]:.3f} | {perplexity} |", flush=True)
        for other in ("plsa", "tf-idf NMF"):
            what = f"NMI of the mixture with the labels of {name}; {other}: {means[other]:.3f}"
            report_figure(what, f"{means['mixture']:.3f}")


if __name__ == "__main__":
    main()
