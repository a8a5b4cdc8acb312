"""How different the topics are from each other: diversity, redundancy, exclusivity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.metrics.words import top_words


def topic_diversity(topic_words: Array) -> float:
    """The share of different words among the top words of all topics: 1 if no word is shared (Dieng et al. 2020).

    `topic_words` is topics x n word numbers, from `top_words`. 1 without topics.
    """
    topic_words = np.asarray(topic_words)
    return float(np.unique(topic_words).size / topic_words.size) if topic_words.size else 1.0


class Redundancy(NamedTuple):
    """Of each topic."""

    topics: Floats
    """the largest share of its top words that one other topic has among its own; 0 for a topic alone"""
    twins: Array
    """that other topic; -1 for none"""


def topic_redundancy(topic_words: Array) -> Redundancy:
    """How much of each topic's top words (topics x n, from `top_words`) another topic repeats, and which one."""
    topic_words = np.asarray(topic_words)
    n_topics, n_words = topic_words.shape
    if n_topics < 2 or n_words == 0:
        return Redundancy(np.zeros(n_topics), np.full(n_topics, -1))
    words, columns = np.unique(topic_words, return_inverse=True)
    rows = np.repeat(np.arange(n_topics), n_words)
    has = sp.csr_array((np.ones(rows.size), (rows, columns.ravel())), shape=(n_topics, words.size))
    has.data[:] = 1
    shared = (has @ has.T).toarray()
    own = np.diag(shared).copy()
    np.fill_diagonal(shared, -1)
    twins = shared.argmax(axis=1)
    share = shared[np.arange(n_topics), twins] / own
    return Redundancy(np.asarray(share), np.where(share > 0, twins, -1))


def frex(topic_word: Array, *, weight: float = 0.7) -> Floats:
    """FREX (topics x words): the harmonic mean of a word's ranks by frequency and by exclusivity in a topic.

    With phi = P(w|z), E = phi_kw / sum_j phi_jw (0 for a word of no topic) and the share F of the topic's words whose
    number is at most the word's: 1 / (weight / F(E) + (1 - weight) / F(phi)) (Bischof and Airoldi 2012; the weight is
    that of exclusivity, 0.7 as usual). Between 0 and 1.
    """
    if not 0 <= weight <= 1:
        raise InputError(f"weight must be between 0 and 1, got {weight}.")
    phi = np.asarray(topic_word, dtype=np.float64)
    sums = phi.sum(axis=0)
    exclusive = np.divide(phi, sums, out=np.zeros_like(phi), where=sums > 0)
    by_frequency = rankdata(phi, method="max", axis=1) / phi.shape[1]
    by_exclusivity = rankdata(exclusive, method="max", axis=1) / phi.shape[1]
    return np.asarray(1.0 / (weight / by_exclusivity + (1.0 - weight) / by_frequency))


def exclusivity(topic_word: Array, n_words: int = 10, *, weight: float = 0.7) -> Floats:
    """The mean FREX of each topic's n_words most probable words: near 1 if they are frequent and the topic's own."""
    scores = frex(topic_word, weight=weight)
    return np.asarray(np.take_along_axis(scores, top_words(topic_word, n_words), axis=1).mean(axis=1))
