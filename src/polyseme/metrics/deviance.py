"""How much of documents and words the topics explain.

With expected counts mu_dw = n_d P(w|d), the deviance of the counts is 2 sum_dw [x log(x / mu) - x + mu]: zero for the
saturated model, which repeats the counts. R2 is the share of the unigram's deviance that the topics remove. A word that
follows a Poisson distribution around mu has the variance mu; its dispersion is the ratio of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from polyseme.core.fitted import DocumentWeights, FittedTopics
from polyseme.kernels import Array, Floats, SparseCounts


@dataclass(frozen=True, eq=False)
class ExplainedDeviance:
    """Share of the deviance that the topics explain.

    Attributes
    ----------
    least_tokens : int
        Number of tokens from which documents and words are judged: 20.
    total : float
        R2 of all counts: 0 for the unigram, 1 for the saturated model.
    documents : array of shape (n_documents,)
        R2 of each document; NaN for a document without words. Documents below zero are explained worse than by the
        unigram.
    words : array of shape (n_words,)
        R2 of each word; NaN for a word that does not occur.
    dispersion : array of shape (n_words,)
        Variance of the counts of each word around their expectations, divided by that of Poisson counts. Above 1, the
        word comes in bursts that the topics do not explain.
    median_dispersion : float
        Median of the dispersion over words with at least 20 expected tokens; NaN without such words.
    document_tokens : array of shape (n_documents,)
        Number of tokens of each document.
    word_tokens : array of shape (n_words,)
        Number of tokens of each word.
    """

    least_tokens: ClassVar[int] = 20
    total: float
    documents: Floats
    words: Floats
    dispersion: Floats
    median_dispersion: float
    document_tokens: Floats
    word_tokens: Floats

    def worst_documents(self, n_documents: int = 5) -> Array:
        """Return the documents that the topics explain worst, of those with at least 20 tokens.

        Parameters
        ----------
        n_documents : int, default=5
            Largest number of documents.

        Returns
        -------
        array of int
            Their rows, the worst first.
        """
        return _worst(self.documents, self.document_tokens, n_documents)

    def worst_words(self, n_words: int = 10) -> Array:
        """Return the words that the topics explain worst, of those with at least 20 tokens.

        Parameters
        ----------
        n_words : int, default=10
            Largest number of words.

        Returns
        -------
        array of int
            Their columns, the worst first.
        """
        return _worst(self.words, self.word_tokens, n_words)


def _worst(shares: Floats, tokens: Floats, n: int) -> Array:
    long = np.flatnonzero((tokens >= ExplainedDeviance.least_tokens) & ~np.isnan(shares))
    return long[np.argsort(shares[long], kind="stable")[:n]]


def explained_deviance(fitted: FittedTopics, weights: DocumentWeights) -> ExplainedDeviance:
    """Return how much of documents that were folded in the topics explain."""
    counts = weights.counts
    tokens, word_tokens = counts.sums_by_row(counts.values.astype(np.float64)), counts.word_totals(None)
    unigram = word_tokens / max(word_tokens.sum(), 1)
    rows, x = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr)), counts.values.astype(np.float64)
    mu = tokens[rows] * fitted.token_probabilities(weights, counts).astype(np.float64)
    base = tokens[rows] * unigram[counts.indices]
    A, B = (np.asarray(side, dtype=np.float64) for side in fitted.inference.operands(weights, fitted.topic_word))
    expected = B @ (tokens @ A)
    entries = [xlogy(x, np.divide(x, center, out=np.ones(x.size), where=x > 0)) for center in (mu, base)]
    by_document = [2 * counts.sums_by_row(values) for values in entries]
    by_word = [np.bincount(counts.indices, 2 * values, counts.n_words).astype(np.float64) for values in entries]
    by_word[0] = by_word[0] + 2 * (expected - word_tokens)
    squares = np.bincount(counts.indices, x**2 - 2 * x * mu, counts.n_words)
    variance = squares + np.einsum("wk,wk->w", B @ ((A * tokens[:, np.newaxis] ** 2).T @ A), B)
    dispersion = np.divide(variance, expected, out=np.full(expected.size, np.nan), where=expected > 0)
    known = expected >= ExplainedDeviance.least_tokens
    return ExplainedDeviance(
        float(_explained(by_document[0].sum(), by_document[1].sum())),
        _explained(*by_document),
        _explained(*by_word),
        dispersion,
        float(np.median(dispersion[known])) if known.any() else np.nan,
        tokens,
        word_tokens,
    )


def _explained(deviance: Any, base: Any) -> Any:
    """Return 1 - deviance / base; NaN where base is zero."""
    return 1 - np.divide(deviance, base, out=np.full(np.shape(base), np.nan), where=np.asarray(base) > 1e-9)


def residual_covariance(counts: SparseCounts, A: Floats, B: Floats, columns: Any) -> Floats:
    """Return sums over documents of r r^T / n_d without the diagonal, r = x - mu, scaled by the expected tokens.

    Words are those in `columns`. The diagonal has the bursts of words, which are no sign of a missing topic.
    """
    tokens = np.asarray(counts.totals, dtype=np.float64)
    inverse = np.divide(1, tokens, out=np.zeros(tokens.size), where=tokens > 0)
    X, own = sp.csr_array(counts.matrix()[:, columns]).astype(np.float64), B[columns]
    crossed = (X.T @ A) @ own.T
    covariance = (X.T @ sp.csr_array(X * inverse[:, np.newaxis])).toarray() - crossed - crossed.T
    covariance += own @ ((A * tokens[:, np.newaxis]).T @ A) @ own.T
    root = np.sqrt(np.maximum(own @ A.sum(axis=0), 1e-12))
    covariance /= np.outer(root, root)
    np.fill_diagonal(covariance, 0)
    return np.asarray(covariance)
