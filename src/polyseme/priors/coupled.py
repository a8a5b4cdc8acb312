"""Priors that look at all rows together: Vorontsov and Potapenko (2015), with the M-step of BigARTM."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Floats, weighted_sum
from polyseme.priors.base import DOCUMENTS, TOPICS, Prior, strength_of


@dataclass(frozen=True)
class Decorrelation(Prior):
    """Log density -strength sum over pairs of rows f_k . f_l: topics that share no words. For topics x words.

    The M-step is max(counts - strength f_k sum over l != k of f_l, 0), normalised: one step of a fixed-point
    iteration, which can overshoot, so that the objective may fall. 0 is neutral.
    """

    acts_on: ClassVar[tuple[str, ...]] = (TOPICS,)
    strength: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", strength_of("Decorrelation", self.strength))

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return self.neutral

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        others = np.maximum(factor.sum(axis=0) - factor, 0)
        return -self.strength * factor * others

    def row_log_density(self, factor: Floats) -> Floats:
        """Half of every pair goes to each of its rows."""
        others = np.maximum(factor.sum(axis=0) - factor, 0)
        return np.asarray(-self.strength / 2 * (factor * others).sum(axis=1))


@dataclass(frozen=True)
class TopicSelection(Prior):
    """Log density -strength (N / K) sum_t log p(t): small topics are switched off. For documents x topics.

    p(t) = sum_d n_d f_dt / N is a topic's share of all N tokens. A topic loses strength / (K p(t)) of a document's
    tokens in it: with less than strength / K of all tokens no document can consist of it, and at strengths above 1 at
    most K / strength topics stay. 0 is neutral. A topic that is off is left out of the log density.

    The M-step, max(counts - strength n_d f_dt / (K p(t)), 0), normalised, is one step of a fixed-point iteration; the
    objective may fall. n_d are `row_totals` (see `with_row_totals`), or else the sums of the counts.
    """

    acts_on: ClassVar[tuple[str, ...]] = (DOCUMENTS,)
    strength: float
    row_totals: Floats | None = field(default=None, repr=False, compare=False)
    row_weights: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", strength_of("TopicSelection", self.strength))

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return self.neutral

    def row_by_row(self) -> None:
        """Nothing: which topics are on was decided by all documents together."""
        return None

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> TopicSelection:
        return replace(self, row_totals=totals, row_weights=weights)

    def check(self, shape: tuple[int, ...]) -> None:
        if self.row_totals is not None and len(self.row_totals) != shape[0]:
            raise InputError(
                f"TopicSelection: there are {len(self.row_totals)} row totals, but {shape[0]} rows: give one for each."
            )

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        totals = counts.sum(axis=1) if self.row_totals is None else self.row_totals
        tokens = self._counted(totals)
        topic_tokens = weighted_sum(tokens, factor)
        parts = np.zeros(counts.shape)
        np.divide(totals[:, np.newaxis] * factor, topic_tokens, out=parts, where=topic_tokens > 0)
        return -self.strength * tokens.sum() / counts.shape[1] * parts

    def row_log_density(self, factor: Floats) -> Floats:
        """Each document has a part in proportion to its tokens."""
        self.check(factor.shape)
        if self.row_totals is None:
            raise InputError("TopicSelection needs the documents' lengths for its log density: use with_row_totals.")
        tokens = self._counted(self.row_totals)
        topic_tokens = weighted_sum(tokens, factor)
        logs = np.log(topic_tokens[topic_tokens > 0]) - np.log(max(tokens.sum(), np.finfo(np.float64).tiny))
        return np.asarray(-self.strength / factor.shape[1] * logs.sum() * self.row_totals)

    def _counted(self, totals: Floats) -> Floats:
        """A document's tokens, as often as it counts."""
        return totals if self.row_weights is None else totals * self.row_weights
