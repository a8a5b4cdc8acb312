"""Topics that people can read: their number, and finer levels below them.

number      the number of topics that `reading_n_topics` chooses for 20 Newsgroups, AP, docstrings and an Italian dump,
            three seeds each. For corpora with labels, also NMI and AMI of the largest topics of documents with the
            labels (NMI with the arithmetic mean is the V-measure), as a share of the best direct fit with 5 to 100
            topics: of a fit as in `polyseme fit`, from the typical fit of the choice, and of a direct fit with the
            same number. Corpora of more than 5,000 documents are sampled, with another sample for each seed
planted     how often the number of topics is found for corpora drawn from 5, 10 and 20 topics
unigrams    how often corpora drawn from one distribution are called unstructured
cost        time of the choice, beside that of a fit with 100 topics to all documents
levels      finer levels below 10 topics of 20 Newsgroups, three seeds: the share of the tokens of a topic that belong
            to one topic of the level above (nesting), NMI of the largest topics with the labels, and completion
            perplexity of a tenth of the documents that no fit uses, beside direct fits; and the time to make the
            levels, beside that of the fit
whole       time of `polyseme fit` without -k on all documents of 20 Newsgroups, with the page

    python benchmarks/reading.py [--parts number planted unigrams cost levels whole] [--quick]

The settings of the choice were chosen with these four corpora and with drawn corpora of other seeds (from 100 on).
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

import polyseme
from common import (
    AP,
    DATA,
    NEWS_TEXTS,
    THREADS,
    describe_machine,
    load_counts,
    load_lines,
    report_figure,
    require_file,
)
from planted_topics import overlapping, separated
from polyseme import PLSA
from polyseme.datasets import docstrings, synthetic_corpus
from polyseme.selection import reading_n_topics, reading_topics
from polyseme.selection.cross_validation import document_folds, score_documents
from polyseme.selection.levels import make_levels
from polyseme.selection.reading import MAX_DOCUMENTS, ReadingChoice
from polyseme.text import Vectorizer, read

DUMP = DATA / "wiki" / "itwiki_small.xml.bz2"
NUMBERS = (5, 7, 10, 14, 20, 28, 40, 70, 100)
"""Numbers of topics of the fits that a choice is compared with."""
QUICK_DOCUMENTS = 1500


class Labeled(NamedTuple):
    """Counts as `polyseme fit` makes them, and a label of each document if the corpus has labels."""

    counts: sp.csr_array
    labels: np.ndarray | None = None

    def sample(self, n_documents: int, seed: int) -> Labeled:
        """Return at most `n_documents` documents, drawn at random."""
        rows = np.sort(np.random.default_rng(seed).permutation(self.counts.shape[0])[:n_documents])
        return Labeled(self.counts[rows], None if self.labels is None else self.labels[rows])


def count_words(texts: list[str], language: str) -> sp.csr_array:
    return sp.csr_array(Vectorizer(language=language, min_df=2, max_df=0.5).fit_transform(texts))


def newsgroups() -> Labeled:
    rows = load_lines(NEWS_TEXTS)
    return Labeled(count_words([row["text"] for row in rows], "english"), np.array([row["label"] for row in rows]))


def package_docstrings() -> Labeled:
    corpus = docstrings()
    return Labeled(count_words(corpus.texts, "english"), np.array(corpus.labels))


def italian_dump() -> Labeled:
    return Labeled(count_words([document.text for document in read([str(require_file(DUMP))])], "italian"))


CORPORA: dict[str, Callable[[], Labeled]] = {
    "20 Newsgroups": newsgroups,
    "AP": lambda: Labeled(load_counts(AP)),
    "docstrings": package_docstrings,
    "Italian dump": italian_dump,
}
SPREAD = {"Italian dump": 0.5}
"""Largest difference between seeds as a share of the smallest choice, if not 0.3."""


@cache
def load_corpus(name: str) -> Labeled:
    return CORPORA[name]()


def fit_topics(X: sp.csr_array, n_topics: int, seed: int, init: Any = "random") -> np.ndarray:
    """Return the largest topic of each document."""
    return PLSA(n_topics, init=init, random_state=seed, n_jobs=THREADS).fit(X).doc_topic_.argmax(axis=1)


def part_number(quick: bool) -> None:
    seeds, size = range(1 if quick else 3), QUICK_DOCUMENTS if quick else MAX_DOCUMENTS
    choices: dict[str, list[ReadingChoice]] = {}
    print("| corpus | seed | chosen | halves of the fits | flat | agreement of the choice | best |")
    print("|---|---|---|---|---|---|---|")
    for name, seed in product(CORPORA, seeds):
        choice = reading_n_topics(load_corpus(name).sample(size, seed).counts, random_state=seed, n_jobs=THREADS)
        choices.setdefault(name, []).append(choice)
        agreement = {row.n_topics: row.agreement for row in choice.rows}
        low, high = choice.interval
        print(
            f"| {name} | {seed} | {choice.chosen} | {low}, {high} | {'yes' if choice.flat else 'no'} | "
            f"{agreement[choice.chosen]:.2f} | {max(agreement.values()):.2f} |",
            flush=True,
        )
    for name, found in choices.items():
        chosen = [choice.chosen for choice in found]
        spread, most = max(chosen) / min(chosen) - 1, SPREAD.get(name, 0.3)
        numbers = ", ".join(map(str, chosen))
        report_figure(f"topics to read, {name}, seed by seed", f"{numbers} (+{spread:.0%})", f"at most +{most:.0%}")
    print("| corpus | seed | chosen | NMI | of the best direct fit | direct | AMI | of the best direct fit | direct |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in CORPORA:
        if load_corpus(name).labels is None:
            continue
        shares = [label_shares(name, size, seed, choice) for seed, choice in zip(seeds, choices[name], strict=True)]
        figures = ", ".join(f"{share:.0%}" for share in shares)
        report_figure(f"NMI of the choice as a share of the best, {name}", figures, "at least 90%")


def label_shares(name: str, n_documents: int, seed: int, choice: ReadingChoice) -> float:
    """Print NMI and AMI with the labels at the chosen number, and return NMI as a share of the best number."""
    corpus, chosen = load_corpus(name).sample(n_documents, seed), choice.chosen
    partitions = {n_topics: fit_topics(corpus.counts, n_topics, seed) for n_topics in {chosen, *NUMBERS}}
    start = reading_topics(corpus.counts, chosen, choice.typical_fit, n_jobs=THREADS, random_state=seed)
    topics = fit_topics(corpus.counts, chosen, seed, (None, start))
    cells, shares = [], []
    for measure in (normalized_mutual_info_score, adjusted_mutual_info_score):
        values = {n_topics: measure(corpus.labels, found) for n_topics, found in partitions.items()}
        best = max(values, key=values.__getitem__)
        value = measure(corpus.labels, topics)
        shares.append(value / values[best])
        cells.append(f"{value:.3f} | {shares[-1]:.2f} ({values[best]:.3f} with {best} topics) | {values[chosen]:.3f}")
    print(f"| {name} | {seed} | {chosen} | {' | '.join(cells)} |", flush=True)
    return shares[0]


def part_planted(quick: bool) -> None:
    cases = [((5, 10, 20)[seed % 3], (overlapping, separated)[seed % 2], seed) for seed in range(4 if quick else 20)]
    found = [reading_n_topics(draw(n_topics, seed), n_jobs=THREADS).chosen for n_topics, draw, seed in cases]
    for number in (5, 10, 20):
        some = [str(chosen) for chosen, (n_topics, *_) in zip(found, cases, strict=True) if n_topics == number]
        print(f"{number} planted topics: {', '.join(some)} chosen", flush=True)
    good = sum(abs(chosen - case[0]) <= 0.2 * case[0] for chosen, case in zip(found, cases, strict=True))
    report_figure("planted numbers of topics to read within 20%", f"{good} of {len(cases)}", "18 of 20")


SHAPES = ((2000, 100), (2000, 10), (300, 60), (80, 60), (1000, 5))
"""Documents and their lengths of corpora without structure."""


def part_unigrams(quick: bool) -> None:
    called = 0
    cases = [(SHAPES[seed % len(SHAPES)], seed) for seed in range(3 if quick else 20)]
    for (n_documents, length), seed in cases:
        X = synthetic_corpus(n_documents, n_topics=1, n_words=2000, length=length, random_state=seed).counts()
        choice = reading_n_topics(X, n_jobs=THREADS)
        called += not choice.structured
        best = max(row.agreement for row in choice.rows)
        what = "structure" if choice.structured else "no structure"
        print(f"{n_documents} documents of {length} tokens: {what}, agreement up to {best:.2f}", flush=True)
    what = "corpora drawn from one distribution that are called unstructured"
    report_figure(what, f"{called} of {len(cases)}", "19 of 20")


def part_cost(quick: bool) -> None:
    for name in CORPORA:
        X = load_corpus(name).counts
        if quick:
            X = X[:QUICK_DOCUMENTS]
        seconds = []
        for work in (
            lambda X=X: reading_n_topics(X, n_jobs=THREADS),
            lambda X=X: PLSA(100, random_state=0, n_jobs=THREADS).fit(X),
        ):
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
        (choice, choice_cpu), (fit, fit_cpu) = seconds
        print(
            f"{name}: choice {choice:.1f} s (CPU {choice_cpu:.1f} s), fit with 100 topics {fit:.1f} s ({fit_cpu:.1f} s)"
        )
        what = f"choice of the number to read, {name}, in fits with 100 topics"
        report_figure(what, f"{choice / fit:.1f}, {choice:.0f} s", "at most 4, or 20 s")


READING, DIRECT = 10, (20, 40, 80, 100)
"""Number of topics of the reading level, and of the fits that levels are compared with."""


def nmi(model: PLSA, labels: np.ndarray) -> float:
    return float(normalized_mutual_info_score(labels, model.doc_topic_.argmax(axis=1)))


def part_levels(quick: bool) -> None:
    corpus = load_corpus("20 Newsgroups")
    X, labels = corpus.sample(2 * QUICK_DOCUMENTS if quick else corpus.counts.shape[0], 0)
    fold = document_folds(X.shape[0], 10, seed=1)[0]
    training, held_out, labels = X[fold.train], X[fold.test], labels[fold.train]
    nesting: dict[int, list[float]] = {}
    gains: dict[int, list[float]] = {}
    behind, ratios = [], []
    for seed in range(1 if quick else 3):
        started = time.process_time()
        reading = PLSA(READING, random_state=seed, n_jobs=THREADS).fit(training)
        fitted = time.process_time() - started
        started = time.process_time()
        rows = np.arange(training.shape[0])
        levels = list(make_levels(reading, training, rows, training, random_state=seed))
        ratios.append((time.process_time() - started) / fitted)
        found = {level.model.n_components: level for level in levels}
        perplexities = {}
        for n_topics in sorted({*DIRECT, *found}):
            line = f"seed {seed}, {n_topics:3d} topics:"
            if n_topics in found:
                level = found[n_topics]
                nested = float((level.nesting * level.model.topic_weights_).sum())
                of_level, finest = nmi(level.model, labels), score_documents(level.model, held_out).perplexity
                line += f" level NMI {of_level:.3f}, perplexity {finest:.1f}, nesting {nested:.3f};"
                nesting.setdefault(n_topics, []).append(nested)
            if n_topics in DIRECT:
                direct = PLSA(n_topics, random_state=seed, n_jobs=THREADS).fit(training)
                perplexities[n_topics] = score_documents(direct, held_out).perplexity
                line += f" direct NMI {nmi(direct, labels):.3f}, perplexity {perplexities[n_topics]:.1f}"
                if n_topics in found:
                    gains.setdefault(n_topics, []).append(of_level - nmi(direct, labels))
            print(line, flush=True)
        behind.append(finest / min(perplexities.values()) - 1)
    what = f"20 Newsgroups, {READING} topics"
    for n_topics, values in nesting.items():
        wanted = "0.70" if n_topics in DIRECT else ""
        report_figure(f"nesting of {n_topics} topics, {what}", f"{min(values):.2f}", wanted)
    for n_topics in (40, 80):
        if n_topics in gains:
            gain = min(gains[n_topics])
            report_figure(
                f"NMI of the level of {n_topics} topics less that of a direct fit, {what}", f"{gain:+.3f}", "0"
            )
    report_figure(
        f"completion perplexity of the finest level beside the best direct fit, {what}", f"{max(behind):+.1%}", "+1%"
    )
    report_figure(f"CPU time of making all levels, times that of the fit, {what}", f"{max(ratios):.1f}")


def part_whole(quick: bool) -> None:
    rows = load_lines(NEWS_TEXTS)[:: 6 if quick else 1]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run = polyseme.fit([row["text"] for row in rows], output=Path(folder) / "run")
        seconds = time.perf_counter() - started
        parts = ", ".join(f"{name} {value:.0f} s" for name, value in run.info.seconds.items())
        print(f"levels of {run.levels} topics; {parts}", flush=True)
        report_figure(f"fit without -k on {len(rows):,} documents, with the page", f"{seconds:.0f} s", "180 s")


PARTS: dict[str, Callable[[bool], None]] = {
    "number": part_number,
    "planted": part_planted,
    "unigrams": part_unigrams,
    "cost": part_cost,
    "levels": part_levels,
    "whole": part_whole,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="smaller corpora, fewer seeds")
    arguments = parser.parse_args()
    describe_machine()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in arguments.parts:
        print(f"\n## {name}", flush=True)
        PARTS[name](arguments.quick)


if __name__ == "__main__":
    main()
