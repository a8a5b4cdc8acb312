"""Differences between topics: diversity, redundancy and exclusivity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.metrics.words import top_words


def topic_diversity(topic_words: Array) -> float:
    """Return the share of different words among the top words of all topics.

    Parameters
    ----------
    topic_words : array-like of int of shape (K, n)
        Columns of the top words of each topic (see `top_words`).

    Returns
    -------
    float
        1 if no word occurs in two topics, and if there are no topics.

    References
    ----------
    - Dieng, A. B., Ruiz, F. J. R., and Blei, D. M. (2020). Topic modeling in embedding spaces. TACL 8, 439-453.
    """
    topic_words = np.asarray(topic_words)
    return float(np.unique(topic_words).size / topic_words.size) if topic_words.size else 1.0


class Redundancy(NamedTuple):
    """Words that topics share with another topic.

    Attributes
    ----------
    topics : array of shape (K,)
        Largest share of the top words of each topic that one other topic has among its own; 0 for a single topic.
    twins : array of int of shape (K,)
        That other topic; -1 for none.
    """

    topics: Floats
    twins: Array


def topic_redundancy(topic_words: Array) -> Redundancy:
    """Return how many top words of each topic another topic repeats, and which topic.

    Parameters
    ----------
    topic_words : array-like of int of shape (K, n)
        Columns of the top words of each topic (see `top_words`).

    Returns
    -------
    Redundancy
        Shares and topics.
    """
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
    """Return FREX, the harmonic mean of the ranks of a word by frequency and by exclusivity.

    With phi = P(w|z), E = phi_kw / sum_j phi_jw (0 for a word that no topic has), and F(x) the share of the words of
    the topic whose value is at most x:

        FREX = 1 / (weight / F(E) + (1 - weight) / F(phi))

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    weight : float, default=0.7
        Weight of exclusivity.

    Returns
    -------
    array of shape (K, n_words)
        Values between 0 and 1.

    References
    ----------
    - Bischof, J. M., and Airoldi, E. M. (2012). Summarizing topical content with word frequency and exclusivity. ICML.
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
    """Return the mean FREX of the most probable words of each topic.

    Parameters
    ----------
    topic_word : array-like of shape (K, n_words)
        P(w|z).
    n_words : int, default=10
        Number of words per topic.
    weight : float, default=0.7
        Weight of exclusivity in FREX.

    Returns
    -------
    array of shape (K,)
        Near 1 if the words are frequent in the topic and rare in the others.
    """
    scores = frex(topic_word, weight=weight)
    return np.asarray(np.take_along_axis(scores, top_words(topic_word, n_words), axis=1).mean(axis=1))
