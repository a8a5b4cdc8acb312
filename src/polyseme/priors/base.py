"""Base class of the priors, the sum of several priors, their M-step, and checks that the members share.

The M-step of a row is the distribution f that maximizes Q(f) = sum n log f + beta sum f log f (`row_maximum`). For beta
= 0 it is n, normalized. For beta < 0 (more entropy) Q is concave. For beta > 0 (less entropy; Shashanka, Raj and
Smaragdis 2007) Q has several local maxima, and the closed form with Lambert's W_-1 is undefined where the best f is
above n / beta. The compiled kernel (entropic.hpp) uses the best of several local maxima, no worse than the current f.

References
----------
M. Shashanka, B. Raj and P. Smaragdis (2007). Sparse overcomplete latent variable decomposition of counts data. Advances
in Neural Information Processing Systems 20.
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
from polyseme.kernels import Array, Floats, entropic_rows

Vocabulary = Sequence[str] | Mapping[str, int]
"""The words in the order of the columns, or a mapping from words to columns."""
DOCUMENTS = "P(z|d)"
"""Name of the factor documents x topics."""
TOPICS = "P(w|z)"
"""Name of the factor topics x words."""
_NEGLIGIBLE = 1e-100
"""Entropic weights below this count as zero. For beta > 0, counts below this share of their row, or of one token, are
set to zero, so that zeros become exact."""


class Prior(ABC):
    """Base class of priors on a factor (n x m, rows sum to one). Priors are immutable.

    A subclass defines `neutral`, `monotone`, `row_log_density`, and `pseudo_counts` or `entropic_weight`. The M-step
    follows from them, also for a sum of priors. A prior that overrides `maximize` cannot be part of a list of priors.
    """

    acts_on: ClassVar[tuple[str, ...]] = (DOCUMENTS, TOPICS)
    """Factors that the prior can act on."""
    names_topics: ClassVar[bool] = False
    """Whether the prior says what the topic of a number is about."""
    starts_at_likelihood: ClassVar[bool] = False
    """Whether a fit from a named start first maximizes the likelihood without the prior on P(w|z)."""

    @property
    def parts(self) -> tuple[Prior, ...]:
        """The priors whose sum this prior is; the prior itself if it is not a sum."""
        return (self,)

    @property
    @abstractmethod
    def neutral(self) -> bool:
        """Whether the prior has no effect: the M-step normalizes the counts."""

    @property
    @abstractmethod
    def monotone(self) -> bool:
        """Whether no EM step with this prior lowers the likelihood plus the log density."""

    @property
    def concave(self) -> bool:
        """Whether a row has a single maximum of the likelihood plus the log density while the other factor is fixed."""
        return self.monotone and self.entropic_weight <= 0

    @abstractmethod
    def row_log_density(self, factor: Floats) -> Floats:
        """Return the term of each row in the log density, without constants.

        The result is never +inf or NaN. If a density is unbounded at a zero, that entry is omitted from the sum; if it
        is zero there, the term is -inf. Weights of rows multiply their terms.

        Parameters
        ----------
        factor : ndarray of shape (n, m)
            Rows that sum to one.

        Returns
        -------
        ndarray of shape (n,)
            One term per row.
        """

    def log_density(self, factor: Floats) -> float:
        """Return the log density of the whole factor, without constants.

        Parameters
        ----------
        factor : ndarray of shape (n, m)
            Rows that sum to one.

        Returns
        -------
        float
            Sum of `row_log_density`.
        """
        return float(self.row_log_density(factor).sum())

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        """Return what the M-step adds to the counts: factor * d(log density) / d(factor) at the current factor.

        Parameters
        ----------
        counts : ndarray of shape (n, m)
            Expected counts of the E-step.
        factor : ndarray of shape (n, m)
            Current factor.

        Returns
        -------
        ndarray of shape (n, m)
            Pseudo-counts, of any sign.
        """
        return np.zeros_like(counts)

    @property
    def entropic_weight(self) -> float:
        """Weight beta of the term beta sum f log f of the log density, which is not part of the pseudo-counts."""
        return 0.0

    def support(self, shape: tuple[int, ...]) -> Array | None:
        """Return which entries of the factor may be positive.

        Parameters
        ----------
        shape : tuple of int
            Shape (n, m) of the factor.

        Returns
        -------
        ndarray of bool of shape (n, m), or None
            None if all entries may be positive. Every row has an entry that may be.
        """
        return None

    def maximize(self, counts: Floats, factor: Floats) -> Floats:
        """Return the M-step: rows f that maximize sum counts log f + log density, or one step toward them.

        A row whose counts and pseudo-counts are all at most zero keeps its largest entry. A row without counts does not
        change, unless the prior prefers another row.

        Parameters
        ----------
        counts : ndarray of shape (n, m)
            Expected counts of the E-step in float64, at least zero.
        factor : ndarray of shape (n, m)
            Current factor in float64.

        Returns
        -------
        ndarray of shape (n, m)
            New factor; rows sum to one.
        """
        self.check(counts.shape)
        totals, support = counts + self.pseudo_counts(counts, factor), self.support(counts.shape)
        if support is not None:
            totals = np.where(support, totals, -np.inf)
        return row_maximum(totals, factor, self.entropic_weight)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise InputError if the prior does not fit a factor of this shape.

        Parameters
        ----------
        shape : tuple of int
            Shape (n, m) of the factor.
        """
        return

    def resolve(self, vocabulary: Vocabulary) -> Prior:
        """Return the prior with names of words replaced by columns.

        Parameters
        ----------
        vocabulary : sequence of str or mapping of str to int
            The words in the order of the columns, or the column of each word.

        Returns
        -------
        Prior
            This prior if it does not name words.
        """
        return self

    def adapt_start(self, factor: Floats) -> Floats:
        """Return a start of the factor, adjusted to the terms of the prior for individual rows.

        Parameters
        ----------
        factor : ndarray of shape (n, m)
            Random start; rows sum to one.

        Returns
        -------
        ndarray of shape (n, m)
            Adjusted start; `factor` itself if the prior is the same for all rows.
        """
        return factor

    def restrict(self, factor: Floats) -> Floats:
        """Return a factor that was extrapolated from two others, changed so that the prior allows it.

        Parameters
        ----------
        factor : ndarray of shape (n, m)
            Rows that sum to one.

        Returns
        -------
        ndarray of shape (n, m)
            Rows that sum to one; `factor` itself if the prior allows every factor with its zeros.
        """
        return factor

    def for_new_documents(self) -> Prior | None:
        """Return the prior of a single row, as folding in uses it for each document.

        Returns
        -------
        Prior or None
            None if the prior acts on all rows together only.
        """
        return self

    def with_rows(self, rows: Any) -> Prior:
        """Return the prior of some rows of the factor.

        Parameters
        ----------
        rows : slice or ndarray of int
            The rows, in their new order.

        Returns
        -------
        Prior
            This prior if it is the same for all rows.
        """
        return self

    def for_training_documents(self) -> Prior | None:
        """Return the prior with which the training documents are folded in, if it differs from that of new documents.

        Returns
        -------
        Prior or None
            A prior with terms for the rows of the training documents; None if the prior is the same for all rows.
        """
        return None

    def with_merged_columns(self, groups: Sequence[Sequence[int]]) -> Prior:
        """Return the prior after columns of the factor (topics of P(z|d)) were merged and removed.

        Parameters
        ----------
        groups : sequence of sequence of int
            The old columns that each new column is made of.

        Returns
        -------
        Prior
            The prior in which the pseudo-counts of merged columns are added; this prior if all columns are alike.
        """
        return self

    def with_merged_rows(self, groups: Sequence[Sequence[int]], banned: Sequence[int] = ()) -> Prior | None:
        """Return the prior after rows of the factor (topics of P(w|z)) were merged and removed, and words banned.

        Parameters
        ----------
        groups : sequence of sequence of int
            The old rows that each new row is made of.
        banned : sequence of int, default=()
            Columns that no longer occur.

        Returns
        -------
        Prior or None
            This prior if all rows are alike; None if nothing remains of it.
        """
        return self

    def with_documents(self, n_documents: float) -> Prior:
        """Return the prior of a corpus with this number of documents.

        Parameters
        ----------
        n_documents : float
            Sum of the weights of the documents.

        Returns
        -------
        Prior
            This prior if it does not depend on it.
        """
        return self

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> Prior:
        """Return the prior with the number of tokens and the weight of each row.

        Parameters
        ----------
        totals : ndarray of shape (n,)
            Number of tokens of each row.
        weights : ndarray of shape (n,), default=None
            Weight of each row. None means that all weights are one.

        Returns
        -------
        Prior
            This prior if it does not depend on them.
        """
        return self


@dataclass(frozen=True)
class WeightedPrior(Prior):
    """Prior whose log density is proportional to a strength of at least zero; 0 is neutral."""

    strength: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", check_strength(type(self).__name__, self.strength))

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return self.neutral


@dataclass(frozen=True)
class PriorSum(Prior):
    """Sum of priors on the same factor.

    Log densities, pseudo-counts and entropic weights are added, so that there is one M-step.

    Parameters
    ----------
    priors : sequence of Prior
        The priors to add. None of them may override `maximize`.
    """

    priors: tuple[Prior, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", tuple(self.priors))
        for prior in self.priors:
            if not isinstance(prior, Prior):
                raise InputError(
                    f"A list of priors may contain priors only, got {prior!r}: write a vector as Dirichlet([...])."
                )
            if type(prior).maximize is not Prior.maximize:
                raise InputError(
                    f"{type(prior).__name__} has its own M-step, so it cannot be part of a list: use it alone."
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

    def adapt_start(self, factor: Floats) -> Floats:
        for prior in self.priors:
            factor = prior.adapt_start(factor)
        return factor

    def for_new_documents(self) -> Prior | None:
        return combine(part for prior in self.priors if (part := prior.for_new_documents()) is not None)

    def support(self, shape: tuple[int, ...]) -> Array | None:
        masks = [mask for prior in self.priors if (mask := prior.support(shape)) is not None]
        return None if not masks else np.asarray(np.logical_and.reduce(masks))

    def with_rows(self, rows: Any) -> PriorSum:
        return PriorSum(tuple(prior.with_rows(rows) for prior in self.priors))

    def for_training_documents(self) -> Prior | None:
        known = [prior.for_training_documents() for prior in self.priors]
        if all(prior is None for prior in known):
            return None
        pairs = zip(known, self.priors, strict=True)
        return combine(part for own, prior in pairs if (part := own or prior.for_new_documents()) is not None)

    def with_merged_columns(self, groups: Sequence[Sequence[int]]) -> PriorSum:
        return PriorSum(tuple(prior.with_merged_columns(groups) for prior in self.priors))

    def with_merged_rows(self, groups: Sequence[Sequence[int]], banned: Sequence[int] = ()) -> Prior | None:
        left = (prior.with_merged_rows(groups, banned) for prior in self.priors)
        return combine(prior for prior in left if prior is not None)

    def with_documents(self, n_documents: float) -> PriorSum:
        return PriorSum(tuple(prior.with_documents(n_documents) for prior in self.priors))

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> PriorSum:
        return PriorSum(tuple(prior.with_row_totals(totals, weights) for prior in self.priors))

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        added = np.zeros(counts.shape)
        for prior in self.priors:
            added += prior.pseudo_counts(counts, factor)
        return added

    def row_log_density(self, factor: Floats) -> Floats:
        # Zeros that the sum of the priors prefers are omitted: another prior may not allow positive entries there, or
        # their pseudo-counts may add up to at most zero, so that the density of the sum is not zero there.
        self.check(factor.shape)
        support, density = self.support(factor.shape), np.zeros(factor.shape[0])
        # The terms of a prior that acts row by row are zero at f = 1: log 1, and 1 log 1.
        inside = factor if support is None else np.where(support, factor, 1.0)
        if not self.monotone:
            zeros = (factor == 0) & (self.pseudo_counts(np.zeros(factor.shape), factor) <= 0)
            inside = np.where(zeros, 1.0, inside)
        for prior in self.priors:
            alike = prior.support(factor.shape) is None and prior.for_new_documents() is not None
            density += prior.row_log_density(inside if alike else factor)
        return density


def combine(priors: Iterable[Prior]) -> Prior | None:
    """Return the sum of priors on the same factor: None for no priors, the prior itself for one."""
    total = PriorSum(tuple(priors))
    return total if len(total.priors) > 1 else next(iter(total.priors), None)


def row_maximum(totals: Floats, factor: Floats, entropic_weight: float = 0.0) -> Floats:
    """Return the best rows for n = max(totals, 0), starting from the rows of `factor`.

    Entries whose total is -inf are zero in the result. A row without positive totals keeps its largest entry, among the
    entries with a count or a probability. Without entropic weight, tied entries keep their proportions in `factor`.
    """
    counts = np.maximum(totals, 0)
    if entropic_weight > 0:
        counts[counts < _NEGLIGIBLE * np.maximum(counts.sum(axis=1, keepdims=True), 1)] = 0
    sums = counts.sum(axis=1, keepdims=True)
    filled = sums[:, 0] > 0
    if filled.all():
        return _best_rows(counts, sums, factor, entropic_weight, totals > -np.inf)
    result = np.empty_like(counts)
    inside = totals[filled] > -np.inf
    result[filled] = _best_rows(counts[filled], sums[filled], factor[filled], entropic_weight, inside)
    result[~filled] = _keep_largest(totals[~filled], factor[~filled], entropic_weight)
    return result


def _best_rows(counts: Floats, sums: Floats, factor: Floats, entropic_weight: float, inside: Array) -> Floats:
    """Return the best rows for counts whose sums are positive, with zeros outside `inside` (a mask)."""
    if abs(entropic_weight) < _NEGLIGIBLE:
        return counts / sums
    if entropic_weight > 0 or inside.all():  # less entropy keeps entries without counts at zero
        return entropic_rows(counts, factor, entropic_weight)
    result = np.zeros_like(counts)
    masks, numbers = np.unique(inside, axis=0, return_inverse=True)
    for number, mask in enumerate(masks):
        part = np.ix_(np.flatnonzero(numbers.ravel() == number), np.flatnonzero(mask))
        result[part] = entropic_rows(counts[part], factor[part], entropic_weight)
    return result


def _keep_largest(totals: Floats, factor: Floats, entropic_weight: float) -> Floats:
    """Return the rows for totals without a positive entry."""
    inside = totals > -np.inf
    candidate = ((factor > 0) | (totals > 0)) & inside
    candidate |= inside & ~candidate.any(axis=1, keepdims=True)
    if entropic_weight < 0:
        candidate = inside
    scores = np.where(candidate, totals, -np.inf)
    tied = scores == scores.max(axis=1, keepdims=True)
    if entropic_weight < 0:
        return _shares(tied.astype(np.float64))
    result = np.where(tied, factor, 0)
    result += tied * (result.sum(axis=1, keepdims=True) == 0)
    if entropic_weight > 0:
        result = (result == result.max(axis=1, keepdims=True)).astype(np.float64)
    return _shares(result)


def _shares(rows: Floats) -> Floats:
    """Return the rows divided by their sums."""
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def weighted_logs(weights: Floats, factor: Floats) -> Floats:
    """Return sum weights log f of each row, without zeros that have a negative weight, where the sum is unbounded."""
    logs = xlogy(weights, factor)
    logs[logs == np.inf] = 0
    return np.asarray(logs.sum(axis=1))


def check_finite(owner: str, name: str, value: Any) -> float:
    """Return `value` as a float, or raise InputError if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InputError(f"{owner}: {name} must be a finite number, got {value!r}.")
    return float(value)


def check_strength(owner: str, value: Any) -> float:
    """Return `value` as a float, or raise InputError if it is negative or not a finite number."""
    strength = check_finite(owner, "strength", value)
    if strength < 0:
        raise InputError(f"{owner}: strength must not be negative, got {value!r}.")
    return strength


def check_vector(owner: str, name: str, values: Any) -> tuple[float, ...]:
    """Return `values` as a tuple of floats, or raise InputError if it is not a vector of finite numbers."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        shown = repr(values) if vector.ndim < 2 else f"an array of shape {vector.shape}"
        raise InputError(f"{owner}: {name} must be finite numbers in one dimension, got {shown}.")
    return tuple(vector.tolist())


def check_length(owner: str, name: str, values: Any, shape: tuple[int, ...]) -> None:
    """Raise InputError if `values` is a vector whose length differs from that of a row."""
    if isinstance(values, tuple) and len(values) != shape[1]:
        raise InputError(
            f"{owner}: {name} has {len(values)} entries, but the rows it acts on have {shape[1]}: give one per column."
        )
