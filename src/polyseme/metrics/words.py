"""The words shown for a topic, and words that distinguish labels.

All tables, plots and pages rank the words of a topic by relevance on documents:

    lambda log(n_zw / D_z) + (1 - lambda) log[(n_zw / D_z) / (df_w / D)]

n_zw is the expected number of documents that contain word w and use it in topic z, the sum of P(z|d,w) over the
documents that contain w; D_z = sum_d P(z|d); df_w is the number of documents that contain w, and D that of all
documents. A model without counts of documents (after `partial_fit`) is ranked by the same formula on tokens, with n_zw
= N P(z) P(w|z), D_z = N P(z) and df_w = N P(w).

Sievert, C., and Shirley, K. (2014). LDAvis: a method for visualizing and interpreting topics. ACL workshop on
interactive language learning, visualization, and interfaces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import FittedTopics
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, check_sparse
from polyseme.metrics.clustering import label_numbers

RELEVANCE = 0.5
"""Default of lambda: 1 ranks by frequency in the topic, 0 by the ratio to the frequency in all documents."""
LEAST_AMOUNT = 3.0
"""Words with at least this many expected documents (or tokens) in a topic are shown before rarer words."""
DECIMALS = 4
"""Digits of a relevance that are compared: smaller differences are rounding errors, and the first column wins."""
_TINY = np.finfo(np.float64).tiny


class WordAmounts(NamedTuple):
    """Amounts of words in topics, by which words are ranked."""

    unit: str
    """"documents" or "tokens"; "weights" if a model has neither, and words are ranked by their weight only."""
    amounts: Array
    """n_zw, K x words."""
    topics: Floats
    """D_z, K numbers; their sum is D."""
    words: Floats
    """df_w."""
    topic_word: Array
    """P(w|z); ranks words without an amount, for example in a topic without documents."""


def fitted_topics(model: Any) -> FittedTopics | None:
    """Return the FittedTopics that an estimator holds, or `model` if it is one; None for any other object."""
    found = model if isinstance(model, FittedTopics) else getattr(model, "fitted_", None)
    return found if isinstance(found, FittedTopics) else None


def topic_rows(model: Any) -> Array:
    """Return the topics of a fitted model (K x words): P(w|z), or `components_` of a model of another library."""
    fitted = fitted_topics(model)
    components = getattr(model, "components_", None) if fitted is None else fitted.topic_word
    if components is None:
        raise InputError("The model has no topics yet: call fit first.")
    return np.asarray(components)


def word_amounts(model: Any) -> WordAmounts:
    """Return the amounts by which the words of a fitted model, or of a FittedTopics, are ranked."""
    fitted = fitted_topics(model)
    if fitted is None:
        return token_amounts(topic_rows(model), None, None, None)
    if fitted.word_documents is not None:
        return WordAmounts("documents", *fitted.word_documents, fitted.topic_word)
    return token_amounts(fitted.topic_word, fitted.topic_weights, fitted.unigram, fitted.n_tokens)


def token_amounts(topic_word: Array, weights: Any, unigram: Any, n_tokens: float | None) -> WordAmounts:
    """Return the amounts in tokens of topics with weights P(z), or the weights themselves if an argument is None."""
    if weights is None or unigram is None or n_tokens is None:
        return WordAmounts("weights", topic_word, np.ones(len(topic_word)), np.ones(topic_word.shape[1]), topic_word)
    tokens = n_tokens * np.asarray(weights, dtype=np.float64)
    return WordAmounts(
        "tokens", topic_word * tokens[:, np.newaxis], tokens, n_tokens * np.asarray(unigram), topic_word
    )  # fmt: skip


def relevance(
    amounts: Array, topics: Floats, words: Floats, *, weight: float = RELEVANCE, total: float | None = None
) -> Floats:
    """Return the relevance of each word to each topic (Sievert and Shirley 2014).

    The relevance is lambda log(n_zw / D_z) + (1 - lambda) log[(n_zw / D_z) / (df_w / D)].

    Parameters
    ----------
    amounts : array-like of shape (K, n_words)
        Amounts n_zw of the words in the topics.
    topics : array-like of shape (K,)
        Sizes D_z of the topics.
    words : array-like of shape (n_words,)
        Frequencies df_w of the words.
    weight : float, default=0.5
        Lambda, between 0 and 1.
    total : float, default=None
        Total D. None: the sum of `topics`.

    Returns
    -------
    array of shape (K, n_words)
        Relevances; -inf if a topic has nothing of a word, and for words that do not occur.
    """
    if isinstance(weight, bool) or not 0 <= weight <= 1:
        raise InputError(f"relevance must be a number between 0 and 1, got {weight!r}.")
    n, D_z = np.asarray(amounts, dtype=np.float64), np.asarray(topics, dtype=np.float64)[:, np.newaxis]
    df = np.asarray(words, dtype=np.float64)
    share = np.divide(n, D_z, out=np.zeros_like(n), where=(D_z > 0) & (df > 0))
    common = df / max(float(D_z.sum()) if total is None else total, _TINY)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share) - (1 - weight) * np.log(np.where(common > 0, common, 1.0)))


def shown_words(model: Any, n_words: int = 10, *, relevance: float = RELEVANCE) -> Array:
    """Return the columns of the words shown for each topic, best first.

    Words of at least three documents are ranked by relevance. If a topic has too few of them, rarer words follow, also
    ranked by relevance.

    Parameters
    ----------
    model : estimator or WordAmounts
        A fitted model, or the amounts of words in topics.
    n_words : int, default=10
        Number of words per topic.
    relevance : float, default=0.5
        Weight lambda of the relevance.

    Returns
    -------
    array of int of shape (K, n_words)
        Columns; fewer than `n_words` if the vocabulary is smaller.
    """
    if n_words < 1:
        raise InputError(f"n_words must be at least 1, got {n_words}.")
    found = model if isinstance(model, WordAmounts) else word_amounts(model)
    if found.unit == "weights":
        return top_words(found.topic_word, n_words)
    return np.array([_ranked(found, topic, n_words, relevance) for topic in range(len(found.amounts))])


def _ranked(found: WordAmounts, topic: int, n_words: int, weight: float) -> Array:
    """Return the first `n_words` columns of one topic."""
    amounts = np.where(found.words > 0, np.asarray(found.amounts[topic], dtype=np.float64), 0.0)
    columns = np.flatnonzero(amounts >= LEAST_AMOUNT)
    if columns.size < n_words:
        columns = np.flatnonzero(amounts > 0)
    if columns.size < n_words:
        columns = np.arange(amounts.size)
    n = amounts[columns]
    total = float(found.topics.sum())
    scores = relevance(
        n[np.newaxis], found.topics[[topic]], found.words[columns], weight=weight, total=total
    )[0]  # fmt: skip
    without = np.where(n > 0, 0.0, found.topic_word[topic, columns])
    return np.asarray(columns[np.lexsort((-without, -np.round(scores, DECIMALS), n < LEAST_AMOUNT))[:n_words]])


def top_words(scores: Array, n_words: int = 10) -> Array:
    """Return the columns of the largest numbers in each row, largest first; of equal numbers the first.

    Parameters
    ----------
    scores : array-like of shape (K, n_words)
        Scores of words, such as `components_` or the result of `frex`.
    n_words : int, default=10
        Number of words per topic.

    Returns
    -------
    array of int of shape (K, n_words)
        Columns; fewer than `n_words` if the vocabulary is smaller.
    """
    if n_words < 1:
        raise InputError(f"n_words must be at least 1, got {n_words}.")
    return np.argsort(-np.asarray(scores), axis=1, kind="stable")[:, :n_words]


def distinctive_words(counts: Any, labels: Any, *, prior: float = 0.01) -> tuple[list[Any], Floats]:
    """Return how strongly each word distinguishes the documents of each label from the others.

    The score is the log-odds ratio of a word in the documents of a label and in all others, divided by its standard
    error, so that neither rare nor common words dominate. A word with a score above 2 is unlikely to be there by
    chance. With y the counts of a word, n the tokens, and prior counts a_w = prior * (words seen) * P(w), which sum to
    a, the log odds are log[(y + a_w) / (n + a - y - a_w)], and the standard error of their difference is sqrt(1 / (y_in
    + a_w) + 1 / (y_out + a_w)).

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    labels : sequence
        One label for each document. Documents without a label (None, NaN or "") are ignored.
    prior : float, default=0.01
        Prior count per word that occurs.

    Returns
    -------
    labels : list
        The sorted labels.
    scores : array of shape (n_labels, n_words)
        Scores. Words that do not occur, and a label that is the only one, score zero.

    References
    ----------
    - Monroe, B. L., Colaresi, M. P., and Quinn, K. M. (2008). Fightin' words: lexical feature selection and evaluation
      for identifying the content of political conflict. Political Analysis 16, 372-403.
    """
    if not prior > 0:
        raise InputError(f"prior must be above 0, got {prior}.")
    X = sp.csr_array(check_sparse(counts, "counts"))
    names, numbers = label_numbers(labels, X.shape[0])
    known = np.flatnonzero(numbers >= 0)
    membership = sp.csr_array(
        (np.ones(known.size), (numbers[known], known)), shape=(len(names), X.shape[0]), dtype=np.float64
    )
    inside = np.asarray((membership @ X.astype(np.float64)).toarray())
    totals = inside.sum(axis=0)
    if len(names) < 2 or totals.sum() == 0:
        return names, np.zeros(inside.shape)
    pseudo = prior * np.count_nonzero(totals) * totals / totals.sum()
    outside = totals - inside

    def log_odds(y: Floats) -> Floats:
        whole = (y + pseudo).sum(axis=1, keepdims=True)
        rest = np.maximum(whole - y - pseudo, np.finfo(float).tiny)
        return np.asarray(np.log(np.where(totals > 0, (y + pseudo) / rest, 1.0)))

    seen = np.where(totals > 0, pseudo, 1.0)
    error = np.sqrt(1 / (inside + seen) + 1 / (outside + seen))
    return names, np.asarray((log_odds(inside) - log_odds(outside)) / error)
