"""Comparison of groups of documents: how much of each topic they have, and which words they use within it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import FittedTopics
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.kernels import Array, Floats, SparseCounts, padded
from polyseme.metrics.words import frame
from polyseme.uncertainty.intervals import differences_of
from polyseme.uncertainty.shares import Shares

SIGNIFICANT = 0.05
"""False discovery rate at which a difference is marked."""
_LEAST_TOKENS = 10
"""Expected number of tokens of a word in a topic from which its use is compared."""
_LEAST_DOCUMENTS = 5
"""Effective number of documents with the word, (sum of tokens)^2 / sum of squares, from which the variance between
documents is known, on the side that uses it more."""
_PSEUDO = 0.5
"""Tokens that are added to those of a word on each side, so that no ratio is infinite."""


class GroupWord(NamedTuple):
    """A word that a group uses more, or less, than the other groups when it writes about a topic.

    Attributes
    ----------
    group : int
        Number of the group.
    topic : int
        The topic.
    word : int
        Column of the word.
    log_ratio : float
        Natural logarithm of P(w|z) in the group over P(w|z) in the other groups.
    error : float
        Its standard error, from the variation between documents.
    q_value : float
        False discovery rate over all words, topics and groups.
    """

    group: int
    topic: int
    word: int
    log_ratio: float
    error: float
    q_value: float


@dataclass(frozen=True, eq=False, repr=False)
class GroupComparison:
    """Topics in groups of documents.

    Attributes
    ----------
    by : str
        What the groups are, such as "label".
    groups : Shares
        Shares of the topics in each group and in all other documents, with intervals; `groups.compare` compares two
        groups.
    differences : Differences of shape (n_groups, K)
        Share in each group minus share in all other documents, with p-values and false discovery rates over all of
        them.
    words : list of GroupWord
        Words that groups use differently within a topic, the most certain ones first; at most those with a false
        discovery rate of 0.05.
    topic_names : list of str
        Name of each topic.
    vocabulary : sequence of str
        The word of each column.
    returned : array of shape (K,)
        Share of the resamples in which each topic came back.
    notes : list of str
        What makes the intervals too short, one sentence each; empty if nothing does.
    left_out : int
        Number of documents of groups that are not compared, and without a group.
    """

    by: str
    groups: Shares
    differences: Any
    words: list[GroupWord]
    topic_names: list[str]
    vocabulary: Sequence[str]
    returned: Floats
    notes: list[str]
    left_out: int = 0

    def to_dict(self) -> dict[str, list[Any]]:
        """Return a row for each group and topic, as columns by name.

        Returns
        -------
        dict
            Columns group, documents, topic, name, share, low, high, others (share in all other documents), difference,
            difference_low, difference_high, ratio (share / others), p_value and q_value.
        """
        n_groups, K = self.differences.estimate.shape
        shares, others = self.groups.shares, self.groups.others
        ratios = np.divide(
            shares.estimate, others.estimate, out=np.full((n_groups, K), np.nan), where=others.estimate > 0
        )
        flat = {
            "share": shares.estimate, "low": shares.low, "high": shares.high, "others": others.estimate,
            "difference": self.differences.estimate, "difference_low": self.differences.low,
            "difference_high": self.differences.high, "ratio": ratios, "p_value": self.differences.p_values,
            "q_value": self.differences.q_values,
        }  # fmt: skip
        return {
            "group": [name for name in self.groups.names for _ in range(K)],
            "documents": np.repeat(self.groups.documents, K).tolist(),
            "topic": list(range(K)) * n_groups,
            "name": self.topic_names * n_groups,
            **{name: values.ravel().tolist() for name, values in flat.items()},
        }

    def to_polars(self) -> Any:
        """Return the rows of `to_dict` as a polars data frame.

        Returns
        -------
        polars.DataFrame
            The rows.
        """
        return frame(self.to_dict())

    def cell(self, group: int, topic: int, separator: str = " ") -> str:
        """Return the share of a topic in a group as text, with its interval.

        Parameters
        ----------
        group : int
            Number of the group.
        topic : int
            The topic.
        separator : str, default=" "
            Text between the share and the interval.

        Returns
        -------
        str
            Such as "12.1% + 10.4-13.9". + and - mark groups that have more or less of the topic than all other
            documents, at a false discovery rate of 0.05.
        """
        mark = " "
        if self.differences.q_values[group, topic] < SIGNIFICANT:
            mark = "+" if self.differences.estimate[group, topic] > 0 else "-"
        share = self.groups.shares[group, topic]
        return f"{share.estimate:.1%} {mark}{separator}{100 * share.low:.1f}-{100 * share.high:.1f}"

    @property
    def order(self) -> list[int]:
        """Topics by decreasing mean share."""
        return np.argsort(-self.groups.shares.estimate.mean(axis=0), kind="stable").tolist()

    def __repr__(self) -> str:
        groups = range(len(self.groups.names))
        lines = [" ".join([f"{'topic':<30}", *(f"{str(name)[:22]:>22}" for name in self.groups.names)])]
        for k in self.order:
            lines.append(
                " ".join([f"{k:>3} {self.topic_names[k][:26]:<26}", *(f"{self.cell(g, k):>22}" for g in groups)])
            )
        return "\n".join([*lines, *self.notes])


def tokens_of_topics(counts: SparseCounts, fitted: FittedTopics) -> Iterator[sp.csr_array]:
    """Yield the expected number of tokens of each topic for every document and word, x P(z|d,w), topic by topic."""
    weights = MaximumLikelihood().weights(counts, fitted.topic_word, None, n_threads=1)
    A, B = padded(weights.doc_topic, counts.dtype), padded(fitted.topic_word.T, counts.dtype)
    counts = weights.counts
    q = counts.products(A, B, n_threads=1)
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    ratios = np.divide(counts.values, q, out=np.zeros(q.size), where=q > 0)
    for topic in range(fitted.n_topics):
        tokens = ratios * A[rows, topic] * B[counts.indices, topic]
        yield sp.csr_array((tokens, counts.indices, counts.indptr), shape=(counts.n_docs, counts.n_words))


def compare_words(
    counts: SparseCounts, fitted: FittedTopics, membership: sp.csr_array, clusters: Array | None, level: float
) -> list[GroupWord]:
    """Return the words that groups (groups x documents, 0 or 1) use differently within a topic.

    The tokens of a document are divided between the topics by P(z|d,w), with the topics fixed. The logarithm of the
    share of a word in the tokens of a topic has a variance from the differences between documents, or between clusters
    (a number for each document), and at least that of a Poisson count, so that a word that one document repeats is not
    found.
    """
    inside = membership.toarray() > 0
    both = np.concatenate([inside, inside.any(axis=0) & ~inside])
    if clusters is not None:
        numbers = sp.csr_array((np.ones(len(clusters)), (clusters, np.arange(len(clusters)))))
    n_groups, found = membership.shape[0], []
    for topic, expected in enumerate(tokens_of_topics(counts, fitted)):
        sums, variances = [], []
        for side in range(2 * n_groups):
            own = np.flatnonzero(both[side])
            part = expected[own] if clusters is None else sp.csr_array(numbers[:, own] @ expected[own])
            totals = np.asarray(part.sum(axis=1)).ravel()
            word_sums = np.asarray(part.sum(axis=0)).ravel() + _PSEUDO
            shares = word_sums / (totals.sum() + _PSEUDO)
            squares = np.asarray(part.power(2).sum(axis=0)).ravel()
            crossed = np.asarray(totals @ part).ravel()
            spread = squares - 2 * shares * crossed + shares**2 * (totals**2).sum()
            variances.append(np.maximum(spread, word_sums) / word_sums**2)
            effective = np.divide(word_sums**2, squares, out=np.zeros(squares.size), where=squares > 0)
            sums.append((word_sums, shares, effective))
        for group in range(n_groups):
            (inside_tokens, share, effective), (outside_tokens, other, others) = sums[group], sums[n_groups + group]
            enough = inside_tokens + outside_tokens > _LEAST_TOKENS
            with_more = np.where(share > other, effective, others)
            tested = np.flatnonzero(enough & (with_more > _LEAST_DOCUMENTS))
            log_ratio = np.log(share[tested] / other[tested])
            error = np.sqrt(variances[group][tested] + variances[n_groups + group][tested])
            found += list(zip([group] * tested.size, [topic] * tested.size, tested, log_ratio, error, strict=True))
    if not found:
        return []
    groups, topics, words, log_ratio, error = (np.array(values) for values in zip(*found, strict=True))
    tests = differences_of(
        log_ratio, error, level, (counts.n_docs if clusters is None else len(np.unique(clusters))) - 1
    )
    columns = zip(groups, topics, words, log_ratio, error, tests.q_values, strict=True)
    every = [GroupWord(int(g), int(k), int(w), float(ratio), float(e), float(q)) for g, k, w, ratio, e, q in columns]
    return sorted(
        (word for word in every if word.q_value < SIGNIFICANT), key=lambda word: -abs(word.log_ratio / word.error)
    )
