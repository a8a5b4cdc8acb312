"""What every prior offers, and the checks that several share.

Several priors at once, and what estimators accept as a prior.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.priors.row_maximum import row_maximum

Vocabulary = Sequence[str] | Mapping[str, int]
"""The words in the order of the columns, or the column of each word."""
DOCUMENTS = "P(z|d)"
"""the factor documents x topics"""

TOPICS = "P(w|z)"
"""the factor topics x words"""


class Prior(ABC):
    """A prior on a factor (n x m, rows sum to one), immutable. Small: a subclass says what it adds to the counts.

    A new prior defines `neutral`, `monotone`, `row_log_density`, and `pseudo_counts` or `entropic_weight`; the M-step
    follows from them, also when priors are added up. One that defines `maximize` itself cannot stand in a list.
    """

    acts_on: ClassVar[tuple[str, ...]] = (DOCUMENTS, TOPICS)
    """the factors that it can act on"""

    @property
    def parts(self) -> tuple[Prior, ...]:
        """The priors that it is the sum of."""
        return (self,)

    @property
    @abstractmethod
    def neutral(self) -> bool:
        """Whether it changes nothing at all: the M-step is counts normalized."""

    @property
    @abstractmethod
    def monotone(self) -> bool:
        """Whether EM with it never lowers the likelihood plus the log density."""

    @abstractmethod
    def row_log_density(self, factor: Floats) -> Floats:
        """The share of each row in the log density, without constants (n numbers; weights of rows multiply them).

        Never +inf or NaN: where a density grows without bound at a zero, the zero is left out of the sum. -inf for a
        zero that the density forbids.
        """

    def log_density(self, factor: Floats) -> float:
        """The log density of the whole factor, without constants: the sum of `row_log_density`."""
        return float(self.row_log_density(factor).sum())

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        """What the M-step adds to the counts: factor * d(log density)/d(factor) at the current factor."""
        return np.zeros_like(counts)

    @property
    def entropic_weight(self) -> float:
        """beta of a term beta sum f log f in the log density, which the pseudo-counts then leave out."""
        return 0.0

    def maximize(self, counts: Floats, factor: Floats) -> Floats:
        """The M-step: rows that maximize sum counts log f + log density, or one step toward them from `factor`.

        Both are n x m, float64; counts >= 0. A row where all is clipped away keeps its largest entry, and one without
        counts stays as it is, unless the prior prefers another.
        """
        self.check(counts.shape)
        return row_maximum(counts + self.pseudo_counts(counts, factor), factor, self.entropic_weight)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raises InputError if the prior does not fit a factor of this shape."""
        return

    def resolve(self, vocabulary: Vocabulary) -> Prior:
        """The same prior with the words that it names turned into columns."""
        return self

    def shaped(self, factor: Floats) -> Floats:
        """A start of the factor that knows what the prior wants of single rows."""
        return factor

    def row_by_row(self) -> Prior | None:
        """What it says of rows that come one at a time, knowing nothing of each other: folding in takes this."""
        return self

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> Prior:
        """The same prior, told how many tokens each row has and, if they differ, how often each row counts."""
        return self


def weighted_logs(weights: Floats, factor: Floats) -> Floats:
    """sum weights log f of each row, without the zeros whose weight is negative (there it has no bound)."""
    logs = xlogy(weights, factor)
    logs[logs == np.inf] = 0
    return np.asarray(logs.sum(axis=1))


def finite_number(owner: str, name: str, value: Any) -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InputError(f"{owner}: {name} must be a finite number, got {value!r}.")
    return float(value)


def strength_of(owner: str, value: Any) -> float:
    """`value` as a finite float that is not negative."""
    strength = finite_number(owner, "strength", value)
    if strength < 0:
        raise InputError(f"{owner}: strength must not be negative, got {value!r}.")
    return strength


def vector_of(owner: str, name: str, values: Any) -> tuple[float, ...]:
    """`values` as a tuple of finite floats."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise InputError(f"{owner}: {name} must be finite numbers in one dimension, got {values!r}.")
    return tuple(vector.tolist())


def check_length(owner: str, name: str, values: Any, shape: tuple[int, ...]) -> None:
    """Raises InputError if `values` is a vector and not as long as a row."""
    if isinstance(values, tuple) and len(values) != shape[1]:
        raise InputError(
            f"{owner}: {name} has {len(values)} entries, but the rows it acts on have {shape[1]}: give one for each."
        )


@dataclass(frozen=True)
class PriorSum(Prior):
    """Priors on the same factor: log densities, pseudo-counts and entropic weights add up, in one M-step."""

    priors: tuple[Prior, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", tuple(self.priors))
        for prior in self.priors:
            if not isinstance(prior, Prior):
                raise InputError(f"A list of priors holds priors only, got {prior!r}: a vector is Dirichlet([...]).")
            if type(prior).maximize is not Prior.maximize:
                raise InputError(
                    f"{type(prior).__name__} has an M-step of its own, so it cannot stand in a list: give it alone."
                )

    @property
    def parts(self) -> tuple[Prior, ...]:
        return tuple(part for prior in self.priors for part in prior.parts)

    @property
    def neutral(self) -> bool:
        return all(prior.neutral for prior in self.priors)

    @property
    def monotone(self) -> bool:
        return all(prior.monotone for prior in self.priors)

    @property
    def entropic_weight(self) -> float:
        return float(sum(prior.entropic_weight for prior in self.priors))

    def check(self, shape: tuple[int, ...]) -> None:
        for prior in self.priors:
            prior.check(shape)

    def resolve(self, vocabulary: Vocabulary) -> PriorSum:
        return PriorSum(tuple(prior.resolve(vocabulary) for prior in self.priors))

    def shaped(self, factor: Floats) -> Floats:
        for prior in self.priors:
            factor = prior.shaped(factor)
        return factor

    def row_by_row(self) -> Prior | None:
        return combine(part for prior in self.priors if (part := prior.row_by_row()) is not None)

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> PriorSum:
        return PriorSum(tuple(prior.with_row_totals(totals, weights) for prior in self.priors))

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        added = np.zeros(counts.shape)
        for prior in self.priors:
            added += prior.pseudo_counts(counts, factor)
        return added

    def row_log_density(self, factor: Floats) -> Floats:
        density = np.zeros(factor.shape[0])
        for prior in self.priors:
            density += prior.row_log_density(factor)
        return density


def combine(priors: Iterable[Prior]) -> Prior | None:
    """The sum of the priors; None for none, and a single one as it is."""
    total = PriorSum(tuple(priors))
    return total if len(total.priors) > 1 else next(iter(total.priors), None)
