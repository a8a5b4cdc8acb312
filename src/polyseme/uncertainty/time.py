"""Topics over time: shares by calendar period with bands, and how the words of a topic change.

The tokens of a topic in a period are few, so P(w|z,t) is the maximum of a posterior: with the expected counts n_tw of a
topic in period t, N_t their sum, and neighbors t - 1 and t + 1,

    P(w|z,t) = (n_tw + s [(1 - l) P(w|z) + l mean of P(w|z,t-1) and P(w|z,t+1)]) / (N_t + s)

which is a linear system of as many equations as there are periods. The strength s and the share l of the neighbors
maximize the probability of the tokens of held-out documents: the documents are divided into two halves, and each half
is predicted from the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.core.fitted import FittedTopics
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.metrics.words import frame
from polyseme.uncertainty.groups import SIGNIFICANT, GroupWord, tokens_of_topics
from polyseme.uncertainty.intervals import Differences, Intervals

_STRENGTHS = (30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5)
_NEIGHBORS = (0.0, 0.5, 0.9)
"""Strengths s and shares l of the neighbors that are tried."""
_SMOOTHING = 1e-9
"""Probability that is added to that of a held-out word."""


class Shrinkage(NamedTuple):
    """How strongly the words of a topic in a period are drawn to those of the topic and of the neighboring periods.

    Attributes
    ----------
    strength : float
        Number of tokens s; infinite if held-out documents do not show that words change.
    neighbors : float
        Share l of the neighboring periods.
    gain : float
        Gain of held-out tokens over words that do not change, in nats per token.
    """

    strength: float
    neighbors: float
    gain: float


@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """Topics over time.

    Attributes
    ----------
    every : str
        Length of the periods, such as "month".
    level : float
        Level of the intervals.
    periods : list of str
        Names of all periods from the first to the last one with documents.
    documents : array of int of shape (n_periods,)
        Number of documents with words in each period.
    shares : Intervals of shape (n_periods, K)
        Mean of P(z|d) over the documents of each period; NaN in periods without documents.
    earlier : Intervals of shape (K,)
        The same for the earlier half of the documents.
    later : Intervals of shape (K,)
        The same for the later half.
    trend : Differences of shape (K,)
        Share in the later half minus share in the earlier half, with false discovery rates over the topics.
    words : list of GroupWord
        Words that a topic uses more (positive ratio) or less in the later half, the most certain ones first; at most
        those with a false discovery rate of 0.05.
    shrinkage : Shrinkage
        Strength of the prior of P(w|z,t), chosen by held-out documents.
    topic_names : list of str
        Name of each topic.
    vocabulary : sequence of str
        The word of each column.
    left_out : int
        Number of documents without a time.
    notes : list of str
        What makes the intervals too short, one sentence each; empty if nothing does.
    topic_word : array of shape (K, n_words)
        P(w|z).
    tokens : list of sparse arrays of shape (n_periods, n_words)
        Expected number of tokens of each topic, by period and word.
    """

    every: str
    level: float
    periods: list[str]
    documents: Array
    shares: Intervals
    earlier: Intervals
    later: Intervals
    trend: Differences
    words: list[GroupWord]
    shrinkage: Shrinkage
    topic_names: list[str]
    vocabulary: Sequence[str]
    left_out: int
    notes: list[str]
    topic_word: Array
    tokens: list[sp.csr_array]

    def word_shares(self, topic: int) -> Floats:
        """Return P(w|z,t) of a topic.

        Parameters
        ----------
        topic : int
            The topic.

        Returns
        -------
        array of shape (n_periods, n_words)
            Rows sum to one. In periods without documents they follow from the neighboring periods.
        """
        return shrunk(self.tokens[topic].toarray(), self.topic_word[topic], self.shrinkage)

    def topic_words(self, topic: int, n_words: int = 10) -> list[list[str]]:
        """Return the most probable words of a topic in each period.

        Parameters
        ----------
        topic : int
            The topic.
        n_words : int, default=10
            Number of words.

        Returns
        -------
        list of lists of str
            Words by P(w|z,t), for each period.
        """
        order = np.argsort(-self.word_shares(topic), axis=1, kind="stable")[:, :n_words]
        return [[self.vocabulary[word] for word in row] for row in order.tolist()]

    def changing_words(self, topic: int, n_words: int = 5) -> tuple[list[str], list[str]]:
        """Return the words that rise and those that fall within a topic.

        Parameters
        ----------
        topic : int
            The topic.
        n_words : int, default=5
            Largest number of words of each kind.

        Returns
        -------
        rising : list of str
            Words that the later half of the documents uses more, the most certain ones first.
        falling : list of str
            Words that it uses less.
        """
        own = [word for word in self.words if word.topic == topic]
        rising, falling = ([one for one in own if (one.log_ratio > 0) == up][:n_words] for up in (True, False))
        return [self.vocabulary[one.word] for one in rising], [self.vocabulary[one.word] for one in falling]

    def mark(self, topic: int) -> str:
        """Return "+" or "-" for a topic that the later half has more or less of, else a space.

        Parameters
        ----------
        topic : int
            The topic.

        Returns
        -------
        str
            A character. The false discovery rate is 0.05.
        """
        if not self.trend.q_values[topic] < SIGNIFICANT:
            return " "
        return "+" if self.trend.estimate[topic] > 0 else "-"

    @property
    def order(self) -> list[int]:
        """Topics by decreasing share of all documents."""
        mean = self.earlier.estimate + self.later.estimate
        return np.argsort(-mean, kind="stable").tolist()

    def to_dict(self) -> dict[str, list[Any]]:
        """Return a row for each period and topic, as columns by name.

        Returns
        -------
        dict
            Columns period, documents, topic, name, share, low and high; the last three are NaN in periods without
            documents.
        """
        n_periods, K = self.shares.estimate.shape
        return {
            "period": [name for name in self.periods for _ in range(K)],
            "documents": np.repeat(self.documents, K).tolist(),
            "topic": list(range(K)) * n_periods,
            "name": self.topic_names * n_periods,
            "share": self.shares.estimate.ravel().tolist(),
            "low": self.shares.low.ravel().tolist(),
            "high": self.shares.high.ravel().tolist(),
        }

    def to_polars(self) -> Any:
        """Return the rows of `to_dict` as a polars data frame.

        Returns
        -------
        polars.DataFrame
            The rows.
        """
        return frame(self.to_dict())

    def __repr__(self) -> str:
        lines = [f"{len(self.periods)} periods ({self.every}), {self.periods[0]} to {self.periods[-1]}"]
        for k in self.order:
            change = f"{self.earlier.estimate[k]:>6.1%} to {self.later.estimate[k]:>6.1%} {self.mark(k)}"
            lines.append(f"{k:>3} {self.topic_names[k][:30]:<30} {change}")
        return "\n".join([*lines, *self.notes])


def shrunk(tokens: Floats, topic: Array, shrinkage: Shrinkage) -> Floats:
    """Return P(w|z,t) from the expected tokens of a topic (periods x words)."""
    if np.isinf(shrinkage.strength):
        return np.tile(np.asarray(topic, dtype=np.float64), (len(tokens), 1))
    n_periods, (s, share, _) = len(tokens), shrinkage
    near = np.eye(n_periods, k=1) + np.eye(n_periods, k=-1)
    near /= np.maximum(near.sum(axis=1, keepdims=True), 1)
    if n_periods == 1:
        share = 0.0
    system = np.diag(tokens.sum(axis=1) + s) - s * share * near
    return np.asarray(np.linalg.solve(system, tokens + s * (1 - share) * np.asarray(topic, dtype=np.float64)))


def period_tokens(
    counts: SparseCounts, fitted: FittedTopics, numbers: Array, n_periods: int, random_state: int
) -> tuple[list[sp.csr_array], Shrinkage]:
    """Return the expected tokens of each topic by period and word, and the shrinkage that held-out documents choose.

    `numbers` is the period of each document, -1 for none.
    """
    known = np.flatnonzero(numbers >= 0)
    half = np.random.default_rng([random_state, 2]).random(len(numbers)) < 0.5
    shape = (n_periods, len(numbers))
    halves = known[half[known]], known[~half[known]]
    members = [sp.csr_array((np.ones(rows.size), (numbers[rows], rows)), shape=shape) for rows in halves]
    tried = [Shrinkage(s, share, 0.0) for s in _STRENGTHS for share in _NEIGHBORS]
    sums, still, total, n_tokens = [], 0.0, np.zeros(len(tried)), 0.0
    for topic, expected in enumerate(tokens_of_topics(counts, fitted)):
        parts = [sp.csr_array(rows @ expected) for rows in members]
        sums.append(sp.csr_array(parts[0] + parts[1]))
        for seen, scored in (parts, parts[::-1]):
            dense, held = seen.toarray(), scored.tocoo()
            whole = dense.sum(axis=0)
            base = whole / whole.sum() if whole.sum() > 0 else np.asarray(fitted.topic_word[topic], dtype=np.float64)
            rows, columns = held.coords
            still += (held.data * np.log(base[columns] + _SMOOTHING)).sum()
            n_tokens += held.data.sum()
            for place, shrinkage in enumerate(tried):
                found = shrunk(dense, base, shrinkage)[rows, columns]
                total[place] += (held.data * np.log(found + _SMOOTHING)).sum()
    best = int(total.argmax())
    gain = (total[best] - still) / max(n_tokens, 1)
    return sums, tried[best]._replace(gain=float(gain)) if gain > 0 else Shrinkage(np.inf, 0.0, 0.0)
