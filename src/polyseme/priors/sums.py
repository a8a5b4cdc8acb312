"""Several priors at once, and what estimators accept as a prior."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.priors.base import Prior, Vocabulary
from polyseme.priors.pointwise import Dirichlet


@dataclass(frozen=True)
class Sum(Prior):
    """Priors on the same factor: log densities, pseudo-counts and entropic weights add up, in one M-step."""

    priors: tuple[Prior, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", tuple(self.priors))
        for prior in self.priors:
            if not isinstance(prior, Prior):
                raise InputError(f"A list of priors holds priors only, got {prior!r}: a vector is Dirichlet([...]).")
            if type(prior).maximise is not Prior.maximise:
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

    def resolve(self, vocabulary: Vocabulary) -> Sum:
        return Sum(tuple(prior.resolve(vocabulary) for prior in self.priors))

    def shaped(self, factor: Floats) -> Floats:
        for prior in self.priors:
            factor = prior.shaped(factor)
        return factor

    def row_by_row(self) -> Prior | None:
        return combine(part for prior in self.priors if (part := prior.row_by_row()) is not None)

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> Sum:
        return Sum(tuple(prior.with_row_totals(totals, weights) for prior in self.priors))

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
    total = Sum(tuple(priors))
    return total if len(total.priors) > 1 else next(iter(total.priors), None)


def as_prior(value: Any) -> Prior | None:
    """None, a number (Dirichlet alpha), a Prior, or a list of Priors, as one Prior or None."""
    if value is None or isinstance(value, Prior):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        return Dirichlet(float(value))
    if isinstance(value, list | tuple):
        return combine(value)
    raise InputError(f"A prior must be None, a number (Dirichlet alpha), a Prior or a list of Priors, got {value!r}.")
