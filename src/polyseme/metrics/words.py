"""The words shown for a topic, and words that set labels apart.

All tables, plots and pages show the words of a topic by relevance (Sievert and Shirley 2014) on documents:

    lambda log(n_zw / D_z) + (1 - lambda) log[(n_zw / D_z) / (df_w / D)]

n_zw is the expected number of documents that contain the word w and use it in the topic z, the sum of P(z|d,w) over the
documents that contain w; D_z = sum_d P(z|d); df_w is the number of documents that contain w, and D that of all.
A model that has no document counts (after `partial_fit`) is ranked by the same formula on tokens: n_zw = N P(z) P(w|z),
D_z = N P(z), df_w = N P(w).

Expected numbers of documents by topic and word, which the words shown for a topic are ranked by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.statistics import DocumentSums, document_sums
from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, SparseCounts, checked_sparse
from polyseme.metrics.clustering import label_numbers

RELEVANCE = 0.5
"""lambda: 1 ranks by frequency in the topic, 0 by the ratio to the frequency in all documents"""
LEAST_AMOUNT = 3.0
"""expected documents (or tokens) from which on a word is shown before all rarer ones"""
DECIMALS = 4
"""of a relevance: smaller differences are rounding errors of the fit, and the first column goes first"""
_TINY = np.finfo(np.float64).tiny


class WordAmounts(NamedTuple):
    """How much of each word every topic has."""

    unit: str
    """"documents" or "tokens"; "weights" where a model knows neither, and words are ranked by their weight alone"""
    amounts: Array
    """n_zw, K x words"""
    topics: Floats
    """D_z, K numbers; their sum is D"""
    words: Floats
    """df_w"""
    topic_word: Array
    """P(w|z): ranks the words of which the topic has no amount, such as those of a topic without documents"""


def word_amounts(model: Any) -> WordAmounts:
    """What the words of a fitted model's topics are ranked by."""
    topic_word = np.asarray(model.components_)
    documents = getattr(model, "word_documents_", None)
    if documents is not None:
        frequency = np.asarray(model.document_frequency_)
        return WordAmounts("documents", documents, np.asarray(model.topic_documents_), frequency, topic_word)
    return token_amounts(
        topic_word, getattr(model, "topic_weights_", None), getattr(model, "unigram_", None),
        getattr(model, "n_tokens_", None),
    )  # fmt: skip


def token_amounts(topic_word: Array, weights: Any, unigram: Any, n_tokens: float | None) -> WordAmounts:
    """The amounts in tokens of topics with weights P(z); "weights" where P(z), P(w) or the number of tokens is None."""
    if weights is None or unigram is None or n_tokens is None:
        return WordAmounts("weights", topic_word, np.ones(len(topic_word)), np.ones(topic_word.shape[1]), topic_word)
    tokens = n_tokens * np.asarray(weights, dtype=np.float64)
    return WordAmounts(
        "tokens", topic_word * tokens[:, np.newaxis], tokens, n_tokens * np.asarray(unigram), topic_word
    )  # fmt: skip


def relevance(
    amounts: Array, topics: Floats, words: Floats, *, weight: float = RELEVANCE, total: float | None = None
) -> Floats:
    """The relevance of each word to each topic (see the top of this module), K x words.

    -inf where the topic has nothing of the word, and for words that do not occur.

    amounts : n_zw, K x words. topics : D_z, K numbers. words : df_w. weight : lambda. total : D, by default the sum of
    `topics`.
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
    """The columns of the words shown for each topic, K x n_words (fewer if there are fewer words), best first.

    model : a fitted model, or WordAmounts. relevance : lambda. Words of at least three documents are ranked by
    relevance; where a topic has too few of them the rarer ones follow, also by relevance.
    """
    if n_words < 1:
        raise InputError(f"n_words must be at least 1, got {n_words}.")
    found = model if isinstance(model, WordAmounts) else word_amounts(model)
    if found.unit == "weights":
        return top_words(found.topic_word, n_words)
    return np.array([_ranked(found, topic, n_words, relevance) for topic in range(len(found.amounts))])


def _ranked(found: WordAmounts, topic: int, n_words: int, weight: float) -> Array:
    """The first n_words columns of one topic."""
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
    """The columns of the n_words largest numbers in each row, largest first; of equal ones the first.

    `scores` is topics x words (such as `components_`, or what `frex` gives); returns topics x n_words, fewer if there
    are fewer words.
    """
    if n_words < 1:
        raise InputError(f"n_words must be at least 1, got {n_words}.")
    return np.argsort(-np.asarray(scores), axis=1, kind="stable")[:, :n_words]


def distinctive_words(counts: Any, labels: Any, *, prior: float = 0.01) -> tuple[list[Any], Floats]:
    """How much each word sets each label apart from the other documents: the labels, and labels x words scores.

    The score is the log of the ratio between the word's odds in the label's documents and its odds in all the others,
    divided by its standard error (Monroe, Colaresi and Quinn 2008), so that neither rare words nor common ones crowd
    the top: above 2 a word is unlikely to be there by chance. With y the counts of a word, n the tokens, and prior
    counts a_w = prior * (words seen) * P(w), which sum to a:
    log[(y + a_w) / (n + a - y - a_w)], inside minus outside, over sqrt(1 / (y_in + a_w) + 1 / (y_out + a_w)).

    Documents without a label (None, NaN or "") are left out. Words that never occur, and a label that is the only
    one, score zero.
    """
    if not prior > 0:
        raise InputError(f"prior must be above 0, got {prior}.")
    X = sp.csr_array(checked_sparse(counts, "counts"))
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


class WordDocuments:
    """Adds up `document_sums` over batches of the training documents, in their order."""

    def __init__(self, weights: Floats | None, n_threads: int) -> None:
        self._weights, self._n_threads = weights, n_threads
        self._rows = 0
        self._sums: DocumentSums | None = None

    def add(self, counts: SparseCounts, operands: tuple[Array, Array], doc_topic: Array) -> None:
        """operands : A and B, of which A_dz B_wz / (A_d . B_w) is P(z|d,w). doc_topic : P(z|d)."""
        rows = slice(self._rows, self._rows + counts.n_docs)
        weights = None if self._weights is None else self._weights[rows]
        more = document_sums(counts, operands, doc_topic, weights, n_threads=self._n_threads)
        self._sums = more if self._sums is None else self._sums.merge_into(self._sums.word_sums, more)
        self._rows = rows.stop

    def topic_words(self, n_topics: int) -> Array:
        """n_zw, topics x words, as float32, which is precise enough to rank words."""
        assert self._sums is not None
        return topic_words(self._sums, n_topics)

    def keep_in(self, estimator: Any) -> None:
        assert self._sums is not None
        keep_word_documents(estimator, self._sums)


def keep_word_documents(estimator: Any, sums: DocumentSums) -> None:
    """Sets word_documents_, topic_documents_ and document_frequency_."""
    estimator.word_documents_ = topic_words(sums, len(sums.topics))
    estimator.topic_documents_ = sums.topics
    estimator.document_frequency_ = sums.words


def topic_words(sums: DocumentSums, n_topics: int) -> Array:
    return np.ascontiguousarray(sums.word_sums[:, :n_topics].T, dtype=np.float32)


def tempered(operands: tuple[Array, Array], temperature: float) -> tuple[Array, Array]:
    """Operands of P(z|d,w) in a model of this temperature, from those of P(w|d)."""
    A, B = operands
    return (A, B) if temperature == 1.0 else (A**temperature, B**temperature)
