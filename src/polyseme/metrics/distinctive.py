"""Words that distinguish the documents of a label from all others, with a test that allows for bursts of words.

The text of one document repeats its words, so counts vary much more from document to document than independent tokens
would. The test therefore compares documents: e_dw = x_dw - n_d P(w) is how much more often document d of n_d tokens has
the word than expected, and T the sum of e over the m documents of a label. If labels were given to the N documents at
random, T would have the mean zero and, with the moments of e over all documents,

    variance             m (N - m) / (N - 1) mean(e^2)
    third moment         m (N - m) (N - 2m) / ((N - 1) (N - 2)) mean(e^3)

The distribution of z = T / sqrt(variance) with skewness g is approximated by that of Pearson's type III, and this by
the cube-root transformation of Wilson and Hilferty to a standard normal score, 6/g [(1 + g z / 2)^(1/3) - 1] + g/6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import false_discovery_control, norm

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, check_sparse
from polyseme.metrics.clustering import label_numbers
from polyseme.utils import word_names

MIN_DOCUMENTS = 5
"""Number of documents below which a word is not tested."""
_SMALL = 1e-4
"""Skewness below which the transformation to a normal score is replaced by the first terms of its series."""
_ROUNDING = 1e-12
"""Largest variance, relative to the sum of squares, that is a rounding error."""


@dataclass(frozen=True, repr=False)
class DistinctiveWords:
    """Words that distinguish the documents of each label, from `distinctive_words`.

    Attributes
    ----------
    labels : list
        The sorted labels, one for each row of the arrays.
    scores : array of shape (n_labels, n_words)
        Standard normal scores of the words if labels were random: positive for words that are more frequent with the
        label than without. Words that were not tested have score zero.
    ratios : array of shape (n_labels, n_words)
        Effect size: how many times as frequent a word is with the label as without it.
    p_values : array of shape (n_labels, n_words)
        Two-sided p-values. Words that were not tested have 1.
    q_values : array of shape (n_labels, n_words)
        The p-values of each label, adjusted by Benjamini and Hochberg: of the words with q at most 0.05, an expected
        share of at most 5% differs only by chance.
    """

    labels: list[Any]
    scores: Floats
    ratios: Floats
    p_values: Floats
    q_values: Floats

    def words(self, vocabulary: Any, n_words: int = 10, *, max_q: float = 0.05) -> dict[Any, list[str]]:
        """Return the words that are more frequent with each label, highest score first.

        Parameters
        ----------
        vocabulary : sequence of str or fitted vectorizer
            The word of each column.
        n_words : int, default=10
            Largest number of words of a label.
        max_q : float, default=0.05
            Largest adjusted p-value of a word.

        Returns
        -------
        dict of lists of str
            Words of each label.
        """
        names = word_names("vocabulary", vocabulary, self.scores.shape[1])
        found = {}
        for label, scores, q in zip(self.labels, self.scores, self.q_values, strict=True):
            best = np.argsort(-scores, kind="stable")
            found[label] = [str(names[w]) for w in best[(scores[best] > 0) & (q[best] <= max_q)][:n_words]]
        return found

    def __repr__(self) -> str:
        numbers: Sequence[int] = ((self.scores > 0) & (self.q_values <= 0.05)).sum(axis=1).tolist()
        listed = ", ".join(f"{label} {number:,}" for label, number in zip(self.labels, numbers, strict=True))
        return f"DistinctiveWords: words more frequent with a label (q at most 0.05): {listed}"


def distinctive_words(
    counts: Any, labels: Any, *, min_documents: int = MIN_DOCUMENTS, prior: float = 0.01
) -> DistinctiveWords:
    """Return which words distinguish the documents of each label from all other documents, and how certain that is.

    The test compares documents and not tokens, because one document can repeat a word often. With labels at random, 5%
    of the p-values are below 0.05, for frequent and for rare words.

    Parameters
    ----------
    counts : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.
    labels : sequence
        One label for each document. Documents without a label (None, NaN or "") are ignored.
    min_documents : int, default=5
        Number of documents of a word below which it is not tested.
    prior : float, default=0.01
        Mean prior count of a word, proportional to P(w), that is added to the counts in `ratios`.

    Returns
    -------
    DistinctiveWords
        Scores, effect sizes and p-values of all words for each label.

    References
    ----------
    - Mielke, P. W., and Berry, K. J. (2007). Permutation methods: a distance function approach. Springer.
    - Benjamini, Y., and Hochberg, Y. (1995). Controlling the false discovery rate. Journal of the Royal Statistical
      Society B 57, 289-300.

    Examples
    --------
    >>> from polyseme.metrics import distinctive_words
    >>> counts = [[3, 0], [2, 1], [4, 0], [3, 1], [2, 0], [0, 2], [1, 3], [0, 1], [1, 2], [0, 4]]
    >>> found = distinctive_words(counts, ["sea"] * 5 + ["land"] * 5)
    >>> found.words(["ship", "farm"])
    {'land': ['farm'], 'sea': ['ship']}
    """
    if not prior > 0:
        raise InputError(f"prior must be above 0, got {prior}.")
    X = sp.csr_array(check_sparse(counts, "counts")).astype(np.float64)
    names, numbers = label_numbers(labels, X.shape[0])
    known = np.flatnonzero(numbers >= 0)
    X, numbers = X[known], numbers[known]
    X.eliminate_zeros()
    groups = sp.csr_array((np.ones(len(known)), (numbers, np.arange(len(known)))), shape=(len(names), len(known)))
    inside = np.asarray((groups @ X).toarray())
    totals, lengths = inside.sum(axis=0), np.asarray(X.sum(axis=1)).ravel()
    if len(names) < 2 or totals.sum() == 0:
        ones = np.ones(inside.shape)
        return DistinctiveWords(names, np.zeros(inside.shape), ones, ones.copy(), ones.copy())
    tokens = groups @ lengths
    excess = inside - np.outer(tokens, totals / totals.sum())
    tested = np.bincount(X.indices, minlength=X.shape[1]) >= min_documents
    z, skewness = _standardized(excess, np.asarray(groups.sum(axis=1)), *_moments(X, lengths, totals))
    z[:, ~tested] = 0.0
    p = np.where(z == 0, 1.0, _tail(np.abs(z), skewness) + _tail(np.abs(z), -skewness))
    p = np.clip(p, np.finfo(np.float64).tiny, 1.0)
    q = np.ones_like(p)
    if tested.any():
        q[:, tested] = false_discovery_control(p[:, tested], axis=1)
    pseudo = prior * np.count_nonzero(totals) * totals / totals.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = (inside + pseudo) / (tokens[:, np.newaxis] + pseudo.sum())
        others = (totals - inside + pseudo) / (totals.sum() - tokens[:, np.newaxis] + pseudo.sum())
        ratios = np.where(totals > 0, rates / others, 1.0)
    return DistinctiveWords(names, np.where(z == 0, 0.0, _normal_score(z, skewness)), ratios, p, q)


def _moments(X: Any, lengths: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Return the means over documents of e^2 and e^3, e = x - n_d P(w), without an array of documents x words."""
    share, n = totals / totals.sum(), len(lengths)
    squares = X.multiply(X)
    sums, cubes = np.asarray(squares.sum(axis=0)), np.asarray(squares.multiply(X).sum(axis=0))
    second = sums - 2 * share * (lengths @ X) + share**2 * (lengths @ lengths)
    third = cubes - 3 * share * (lengths @ squares) + 3 * share**2 * (lengths**2 @ X) - share**3 * (lengths**3).sum()
    second = np.where(second > _ROUNDING * sums, second, 0.0)
    return second / n, np.where(second > 0, third, 0.0) / n


def _standardized(excess: Floats, sizes: Floats, second: Floats, third: Floats) -> tuple[Floats, Floats]:
    """Return z and the skewness of its distribution for each label and word; zeros where e does not vary."""
    n, m = float(sizes.sum()), sizes[:, np.newaxis]
    if n < 3:
        return np.zeros_like(excess), np.zeros_like(excess)
    variance = m * (n - m) / (n - 1) * second
    varies = variance > 0
    deviation = np.sqrt(np.where(varies, variance, 1.0))
    moment = m * (n - m) * (n - 2 * m) / ((n - 1) * (n - 2)) * third
    return np.where(varies, excess / deviation, 0.0), np.where(varies, moment / deviation**3, 0.0)


def _normal_score(z: Array, skewness: Array) -> Floats:
    """Return the standard normal score of z under a distribution of Pearson's type III with this skewness."""
    g = np.where(np.abs(skewness) < _SMALL, 1.0, skewness)
    root = np.cbrt(np.maximum(1 + g * z / 2, 0.0))
    return np.where(np.abs(skewness) < _SMALL, z - skewness / 6 * (z**2 - 1), 6 / g * (root - 1) + g / 6)


def _tail(z: Floats, skewness: Floats) -> Floats:
    """Return the probability of more than z."""
    return np.where(1 + skewness * z / 2 > 0, norm.sf(_normal_score(z, skewness)), 0.0)
