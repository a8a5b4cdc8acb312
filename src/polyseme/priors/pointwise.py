"""Priors whose rows know nothing of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr

from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.priors.base import Prior, check_length, finite_number, strength_of, vector_of, weighted_logs


@dataclass(frozen=True)
class Dirichlet(Prior):
    """Log density sum (alpha - 1) log f; alpha is one number, or one for each column. 1 is neutral.

    The M-step is max(counts + alpha - 1, 0), normalised. alpha < 1 makes rows sparse: the density has no bound at
    zeros, so it is summed over the entries above zero, and the objective falls when an entry reaches zero.
    """

    alpha: float | Sequence[float]

    def __post_init__(self) -> None:
        if np.ndim(self.alpha) == 0:
            alpha: float | tuple[float, ...] = finite_number("Dirichlet", "alpha", self.alpha)
        else:
            alpha = vector_of("Dirichlet", "alpha", self.alpha)
        if np.min(alpha) <= 0:
            raise InputError(f"Dirichlet: alpha must be greater than zero, got {np.min(alpha):g}.")
        object.__setattr__(self, "alpha", alpha)

    @property
    def _excess(self) -> Floats:
        return np.asarray(self.alpha, dtype=np.float64) - 1

    @property
    def neutral(self) -> bool:
        return not self._excess.any()

    @property
    def monotone(self) -> bool:
        return bool((self._excess >= 0).all())

    def check(self, shape: tuple[int, ...]) -> None:
        check_length("Dirichlet", "alpha", self.alpha, shape)

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        return np.broadcast_to(self._excess, counts.shape)

    def row_log_density(self, factor: Floats) -> Floats:
        self.check(factor.shape)
        return weighted_logs(self._excess, factor)


@dataclass(frozen=True)
class _Target(Prior):
    """strength pseudo-counts, spread over a row as `target` says: Vorontsov and Potapenko (2015)."""

    _sign: ClassVar[int]
    """1 where rows are drawn to the target, -1 where they are pushed away"""
    strength: float
    target: Sequence[float] | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "strength", strength_of(name, self.strength))
        if self.target is not None:
            target = vector_of(name, "target", self.target)
            if min(target) < 0 or sum(target) == 0:
                raise InputError(f"{name}: target must have no negative entry and a positive sum.")
            object.__setattr__(self, "target", target)

    @property
    def _shares(self) -> Floats | None:
        return None if self.target is None else np.asarray(self.target) / sum(self.target)

    def _spread(self, n_columns: int) -> Floats:
        shares = np.full(n_columns, 1 / n_columns) if self._shares is None else self._shares
        return self._sign * self.strength * shares

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return self._sign > 0 or self.neutral

    def check(self, shape: tuple[int, ...]) -> None:
        check_length(type(self).__name__, "target", self.target, shape)

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        return np.broadcast_to(self._spread(counts.shape[1]), counts.shape)

    def row_log_density(self, factor: Floats) -> Floats:
        self.check(factor.shape)
        return weighted_logs(self._spread(factor.shape[1]), factor)


@dataclass(frozen=True)
class Smoothing(_Target):
    """Log density strength sum target log f: rows are drawn to `target` (a distribution; None: uniform).

    Minus strength times the Kullback-Leibler divergence from the target to the row, that is `strength` tokens seen
    with the target's frequencies. 0 is neutral.
    """

    _sign: ClassVar[int] = 1


@dataclass(frozen=True)
class Sparsing(_Target):
    """Log density -strength sum target log f: rows are pushed away from `target` (None: uniform), down to zeros.

    The opposite of `Smoothing`. Zeros are treated as by `Dirichlet` with alpha < 1. 0 is neutral.
    """

    _sign: ClassVar[int] = -1


@dataclass(frozen=True)
class Entropic(Prior):
    """Log density beta sum f log f, minus beta times the entropy: Sparse-PLSA of Shashanka, Raj and Smaragdis (2007).

    beta > 0 makes rows sparse, beta < 0 makes them flat; 0 is neutral. It weighs against a row's number of tokens.
    """

    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", finite_number("Entropic", "beta", self.beta))

    @property
    def neutral(self) -> bool:
        return self.beta == 0

    @property
    def monotone(self) -> bool:
        return True

    @property
    def entropic_weight(self) -> float:
        return self.beta

    def row_log_density(self, factor: Floats) -> Floats:
        return np.asarray(-self.beta * entr(factor).sum(axis=1))
