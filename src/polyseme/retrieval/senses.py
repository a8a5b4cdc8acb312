"""Polysemy and synonymy: the topics a word lives in, and the words its topics expect beside it.

A word's senses are the topics with the largest P(z|w) ∝ P(w|z) P(z). The words of a sense are those shown for its
topic (`polyseme.metrics.words`), without the word itself. The neighbors of a word are those with the largest share
p log(p / P(w')) of the divergence of p from the unigram, p = sum_z P(w'|z) P(z|w).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyseme.core.model import FixedBackground, Model
from polyseme.core.shard import sparse_counts
from polyseme.core.statistics import document_sums
from polyseme.kernels import Array, Floats
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.words import WordAmounts, shown_words, tempered, topic_words
from polyseme.retrieval.queries import QueryRow, best_rows
from polyseme.retrieval.scores import TopicSpace
from polyseme.utils import check_share, check_whole_number


@dataclass(frozen=True)
class Sense:
    """One of the topics that a word lives in."""

    topic: int
    share: float
    """P(z|w)"""
    words: list[str]
    """what stands beside it in this sense"""
    documents: list[tuple[str, str]]
    """(id, title) of those that use it most in this sense"""


@dataclass(frozen=True)
class RelatedWord:
    """A word near another one."""

    word: str
    weight: float
    """its share, in nats, of what the other word's topics say"""


class FoundSense(NamedTuple):
    """A sense in numbers: rows of words and documents."""

    topic: int
    share: float
    words: Array
    documents: Array


def word_documents(space: TopicSpace, counts: Any) -> WordAmounts:
    """Expected documents of the index by topic and word in a space of one model, which words are ranked by."""
    documents = np.asarray(space.documents).T
    sums = documents.sum(axis=1, keepdims=True)
    theta = np.divide(documents, sums, out=np.zeros_like(documents), where=sums > 0)
    check_share, topic_word = space.background_shares[0], np.ascontiguousarray(space.topic_word.T)
    background = (
        FixedBackground(check_share, space.background_word[:, 0].astype(np.float64), False) if check_share > 0 else None
    )
    model = Model(theta.shape[1], background=background)
    operands = tempered(
        model.token_operands(theta, topic_word, np.full(len(theta), check_share)), space.temperatures[0]
    )
    found = document_sums(sparse_counts(counts, theta.dtype), operands, theta, n_threads=effective_threads(None))
    return WordAmounts("documents", topic_words(found, theta.shape[1]), found.topics, found.words, topic_word)


def senses(
    space: TopicSpace,
    word: int,
    amounts: WordAmounts,
    postings: Any,
    *,
    least: float,
    n_words: int,
    n_documents: int,
) -> list[FoundSense]:
    """The senses of a word in a space of one model, largest first. amounts : `word_documents` of the space."""
    least = check_share("least", least)
    n_words, n_documents = (
        check_whole_number("n_words", n_words, least=1),
        check_whole_number("n_documents", n_documents, least=0),
    )
    shares = topics_of(space, word)
    shown = shown_words(amounts, n_words + 1)
    start, end = postings.indptr[word : word + 2]
    documents, x = postings.indices[start:end], postings.data[start:end]
    tokens = x[:, np.newaxis] * _posteriors(space, word, documents)
    found = []
    for topic in np.argsort(-shares, kind="stable"):
        if shares[topic] < least or shares[topic] == 0:
            break
        words = np.array([w for w in shown[topic] if w != word and amounts.topic_word[topic, w] > 0][:n_words], int)
        examples = documents[best_rows(tokens[:, topic], n_documents)] if n_documents else documents[:0]
        found.append(FoundSense(int(topic), float(shares[topic]), words, examples))
    return found


def related_words(space: TopicSpace, word: int, counts: Any, k: int) -> tuple[Array, Floats]:
    """The k words nearest to a word in a space of one model, and their weights."""
    expected = np.einsum("wk,k->w", space.topic_word, topics_of(space, word), dtype=np.float64)
    telling = _telling(expected, _unigram(counts), word)
    best = best_rows(telling, k)
    return best, telling[best]


def topics_of(space: TopicSpace, word: int) -> Floats:
    """P(z|w): sums to one; zeros for a word that the model has not seen."""
    joint = space.topic_word[word].astype(np.float64) * space.topic_weights
    return np.asarray(joint / max(joint.sum(), np.finfo(float).tiny))


def tokens_of_topic(space: TopicSpace, counts: Any, topic: int) -> Floats:
    """Expected tokens of a topic in each document: n_d P(z|d)."""
    sums = np.maximum(space.documents.sum(axis=0), np.finfo(np.float32).tiny)
    return np.asarray(counts.sum(axis=1)).ravel() * space.documents[topic] / sums


def topic_tokens(space: TopicSpace, row: QueryRow, document: int) -> Floats:
    """Expected tokens of each of a document's words in each topic (words x K): n P(z|d,w)."""
    weights = space.weights_of(document).astype(np.float64)
    joint = (space.topic_word[row.indices] * weights) ** space.temperatures[0]
    return row.data[:, np.newaxis] * joint / np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _posteriors(space: TopicSpace, word: int, documents: Array) -> Floats:
    """P(z|d,w) of one word in several documents (documents x K)."""
    joint = (space.documents[:, documents].T.astype(np.float64) * space.topic_word[word]) ** space.temperatures[0]
    return joint / np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _unigram(counts: Any) -> Floats:
    totals = np.bincount(counts.indices, counts.data, minlength=counts.shape[1])
    return totals / max(totals.sum(), 1)


def _telling(p: Floats, unigram: Floats, word: int) -> Floats:
    """p log(p / unigram), zero for the word itself and for words that do not occur."""
    occurs = (p > 0) & (unigram > 0)
    ratio = np.divide(p, unigram, out=np.ones_like(p), where=occurs)
    telling = p * np.log(ratio)
    telling[word] = 0
    return telling
