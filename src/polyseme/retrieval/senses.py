"""Senses of a word (polysemy) and words with a similar use (synonymy).

The senses of a word are the topics with the largest P(z|w), which is proportional to P(w|z) P(z). The words of a sense
are those shown for its topic (`polyseme.metrics.words`), without the word itself. Related words w' are those with the
largest term p log(p / P(w')) of the divergence between p = sum_z P(w'|z) P(z|w) and the unigram distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyseme.core.fitted import DocumentSums, DocumentWeights, document_sums, posterior_operands
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.model import Background
from polyseme.core.shard import sparse_counts
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.metrics.words import WordAmounts, top_words
from polyseme.retrieval.postings import Postings
from polyseme.retrieval.queries import SparseRow, SparseRows, best_rows
from polyseme.retrieval.spaces import TopicSpace
from polyseme.utils import check_integer, check_share, effective_threads


@dataclass(frozen=True)
class Sense:
    """One sense of a word: a topic in which it is used.

    Attributes
    ----------
    topic : int
        The topic z.
    share : float
        P(z|w), the share of the topic in the uses of the word.
    words : list of str
        Words of the topic.
    documents : list of tuples
        Ids and titles of the documents that use the word most often in this sense.
    """

    topic: int
    share: float
    words: list[str]
    documents: list[tuple[str, str]]


@dataclass(frozen=True)
class RelatedWord:
    """A word that the topics of another word predict.

    Attributes
    ----------
    word : str
        The word.
    weight : float
        Its term of the divergence from the unigram distribution, in nats.
    """

    word: str
    weight: float


class SenseIndices(NamedTuple):
    """A sense with words and documents as indices."""

    topic: int
    share: float
    words: Array
    documents: Array


def word_documents(space: TopicSpace, counts: SparseRows) -> WordAmounts:
    """Return the expected number of documents by topic and word in a space of one model, to rank words."""
    share, topic_word = space.background_shares[0], np.ascontiguousarray(space.topic_word[:].T)
    background = Background(share, space.background_word[:, 0].astype(np.float64)) if share > 0 else None
    total: DocumentSums | None = None
    for rows, block in counts.blocks():
        documents = np.asarray(space.documents[rows])
        totals = documents.sum(axis=1, keepdims=True)
        theta = np.divide(documents, totals, out=np.zeros_like(documents), where=totals > 0)
        weights = DocumentWeights(theta, np.full(len(theta), share), sparse_counts(block, theta.dtype))
        operands = MaximumLikelihood(background=background).operands(weights, topic_word)
        operands = posterior_operands(operands, space.temperatures[0])
        sums = document_sums(weights.counts, operands, theta, n_threads=effective_threads(None))
        total = sums if total is None else total.merge_into(total.word_sums, sums)
    if total is None:
        raise InputError("An index without documents has no senses.")
    return WordAmounts("documents", *total.by_topic(), topic_word)


def find_senses(
    space: TopicSpace,
    word: int,
    amounts: WordAmounts,
    postings: Postings,
    *,
    least: float,
    n_words: int,
    n_documents: int,
) -> list[SenseIndices]:
    """Return the senses of a word in a space of one model, largest first. `word_documents` computes `amounts`."""
    least = check_share("least", least)
    n_words = check_integer("n_words", n_words, least=1)
    n_documents = check_integer("n_documents", n_documents, least=0)
    shares = topic_shares(space, word)
    shown = top_words(amounts, n_words + 1)
    documents, x = postings.row(word)
    tokens = x[:, np.newaxis] * _posteriors(space, word, documents)
    senses = []
    for topic in np.argsort(-shares, kind="stable"):
        if shares[topic] < least or shares[topic] == 0:
            break
        words = np.array([w for w in shown[topic] if w != word and amounts.topic_word[topic, w] > 0][:n_words], int)
        examples = documents[best_rows(tokens[:, topic], n_documents)] if n_documents else documents[:0]
        senses.append(SenseIndices(int(topic), float(shares[topic]), words, examples))
    return senses


def find_related_words(space: TopicSpace, word: int, word_totals: Floats, k: int) -> tuple[Array, Floats]:
    """Return the k words with the largest weights for a word in a space of one model, and the weights."""
    expected = np.einsum("wk,k->w", space.topic_word[:], topic_shares(space, word), dtype=np.float64)
    weights = _divergence_terms(expected, word_totals / max(word_totals.sum(), 1), word)
    best = best_rows(weights, k)
    return best, weights[best]


def topic_shares(space: TopicSpace, word: int) -> Floats:
    """Return P(z|w) for all topics; zeros for a word that the model does not know."""
    joint = space.topic_word[word].astype(np.float64) * space.topic_weights
    return np.asarray(joint / max(joint.sum(), np.finfo(float).tiny))


def topic_tokens(space: TopicSpace, totals: Floats, topic: int) -> Floats:
    """Return n_d P(z|d), the expected number of tokens of a topic in each document, from the lengths n_d."""
    documents = space.documents[:]
    return np.asarray(totals * documents[:, topic] / np.maximum(documents.sum(axis=1), np.finfo(np.float32).tiny))


def word_topic_tokens(space: TopicSpace, row: SparseRow, document: int) -> Floats:
    """Return x_dw P(z|d,w), the expected number of tokens of a document by word and topic (words x K)."""
    weights = space.weights_of(document).astype(np.float64)
    joint = (space.topic_word[row.indices] * weights) ** space.temperatures[0]
    return row.data[:, np.newaxis] * joint / np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _posteriors(space: TopicSpace, word: int, documents: Array) -> Floats:
    """Return P(z|d,w) of one word in several documents (documents x K)."""
    joint = (space.documents[documents].astype(np.float64) * space.topic_word[word]) ** space.temperatures[0]
    return joint / np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _divergence_terms(p: Floats, unigram: Floats, word: int) -> Floats:
    """Return p log(p / unigram); zero for the word itself and for words that do not occur."""
    occurs = (p > 0) & (unigram > 0)
    ratio = np.divide(p, unigram, out=np.ones_like(p), where=occurs)
    terms = p * np.log(ratio)
    terms[word] = 0
    return terms
