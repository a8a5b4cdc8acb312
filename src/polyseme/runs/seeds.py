"""Whether topics with seed words are about them, so that they get the names of their seeds.

A topic z gets its name if, over all documents d, the correlation of P(z|d) with "d contains a seed word" is at least
MIN_CORRELATION. The prior of the seed words does not change which documents contain them, so it cannot hide that the
topic has drifted to other documents. If the seed words occur in fewer documents than MIN_SUPPORT times the documents
per topic, they are too rare for a topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats
from polyseme.metrics.words import word_amounts, words_of_amounts
from polyseme.options import named
from polyseme.runs.corpus import RunCorpus
from polyseme.runs.seed_words import SeedColumns

MIN_CORRELATION = 0.4
"""Smallest correlation of a topic with the documents of its seed words, chosen by reading what ``python
benchmarks/seeds.py`` prints."""
MIN_SUPPORT = 0.1
_WORDS_SHOWN = 4


class SeedDocuments(NamedTuple):
    """Documents that contain seed words."""

    of_word: dict[int, int]
    """Number of documents that contain each seed word, by column."""
    of_topic: Array
    """Number of documents that contain a seed word of each topic."""
    correlation: Floats
    """Correlation of each topic with these documents; 0 if all documents, or none, contain a seed word."""


def seed_documents(seeds: Mapping[str, Sequence[int]], doc_topic: Array, corpus: RunCorpus) -> SeedDocuments:
    """Compare the first topics of documents, P(z|d), with where their seed words (columns by name) occur."""
    of_word = dict.fromkeys((column for columns in seeds.values() for column in columns), 0)
    n_seeded, start = len(seeds), 0
    sums = np.zeros((4, n_seeded))  # of P, P^2, documents with a seed word, P in these documents
    for counts in corpus.count_parts():
        weights = np.asarray(doc_topic[start : start + counts.shape[0], :n_seeded], dtype=np.float64)
        start += counts.shape[0]
        present = np.zeros(weights.shape)
        for topic, columns in enumerate(seeds.values()):
            found = (counts[:, list(columns)] > 0).toarray()
            present[:, topic] = found.any(axis=1)
            for column, number in zip(columns, found.sum(axis=0).tolist(), strict=True):
                of_word[column] += number
        sums += [weights.sum(axis=0), (weights**2).sum(axis=0), present.sum(axis=0), (weights * present).sum(axis=0)]
    P, squares, with_seed, both = sums / start
    spread = np.sqrt(np.maximum(squares - P**2, 0) * with_seed * (1 - with_seed))
    correlation = np.divide(both - P * with_seed, spread, out=np.zeros(n_seeded), where=spread > 0)
    return SeedDocuments(of_word, np.rint(with_seed * start).astype(np.int64), correlation)


def drifted_topics(model: Any, seeds: SeedColumns, corpus: RunCorpus, vocabulary: Sequence[str]) -> dict[int, str]:
    """Return a sentence about each topic with seed words that should not get the name of its seeds."""
    doc_topic, notes = model._training.doc_topic, dict[int, str]()
    found = seed_documents(seeds.columns, doc_topic, corpus)
    n_documents, n_topics = doc_topic.shape
    for topic, (name, columns) in enumerate(seeds.columns.items()):
        if found.correlation[topic] >= MIN_CORRELATION:
            continue
        shown = ", ".join(words_of_amounts(word_amounts(model), vocabulary, _WORDS_SHOWN)[topic])
        listed = ", ".join(f"{vocabulary[column]} {found.of_word[column]:,}" for column in columns)
        support = f"{found.of_topic[topic]:,} of {n_documents:,} documents ({listed})"
        if found.of_topic[topic] < MIN_SUPPORT * n_documents / n_topics:
            why = f"its seed words occur in only {support}, too few for a topic: give more frequent words"
        else:
            why = (
                f"it has drifted from its seed words, which occur in {support}; its correlation with these documents "
                f"is {found.correlation[topic]:.2f}, below {MIN_CORRELATION}: give other words, or a larger "
                f"{named('n_topics')}"
            )
        notes[topic] = f"{named('seeds')}: topic {topic} ({shown}) does not get the name {name!r}: {why}."
    return notes
