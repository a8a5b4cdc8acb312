"""The beta divergences, with the Kullback-Leibler divergence, the squared loss and Itakura-Saito as members."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats, ReciprocalSums
from polyseme.losses.base import Loss, Powers, Zeros

_NAMES = {0.0: "itakura-saito", 1.0: "kullback-leibler", 2.0: "squared"}


@dataclass(frozen=True)
class Beta(Loss):
    """Beta divergence.

    (x^beta + (beta - 1) q^beta - beta x q^(beta - 1)) / (beta (beta - 1)), with the limits ::

        beta = 2   (x - q)^2 / 2                 "squared"
        beta = 1   x log(x / q) - x + q          "kullback-leibler", generalized to sums other than one
        beta = 0   x / q - log(x / q) - 1        "itakura-saito"

    The loss is multiplied by c^beta if x and q are multiplied by c: the smaller beta is, the more small entries count.
    For beta <= 0 all data must be positive. The multiplicative update never raises the loss, with the exponent
    1 / (2 - beta) for beta < 1, 1 for 1 <= beta <= 2 and 1 / (beta - 1) for beta > 2. Sparse data are used as they are
    for beta = 1 and 2; for other values of beta blocks of rows become dense.

    Parameters
    ----------
    beta : float
        The parameter, a finite number.

    References
    ----------
    Fevotte, C., and Idier, J. (2011). Algorithms for nonnegative matrix factorization with the beta-divergence. Neural
    Computation 23, 2421-2456.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.losses import Beta
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(2, loss=Beta(1.5), random_state=0, tol=0.1).fit(X)
    >>> model.solver_
    'mm'
    """

    beta: float

    def __post_init__(self) -> None:
        number = isinstance(self.beta, Real) and not isinstance(self.beta, bool)
        if not number or not np.isfinite(float(self.beta)):
            raise InputError(f"Beta: beta must be a finite number, got {self.beta!r}.")
        object.__setattr__(self, "beta", float(self.beta))
        object.__setattr__(self, "is_likelihood", self.beta == 1)
        object.__setattr__(self, "weighs_entries", self.beta in (1, 2))

    @property
    def name(self) -> str:
        return _NAMES.get(self.beta, f"beta({self.beta:g})")

    @property
    def zeros(self) -> Zeros:
        return {1.0: Zeros.LINEAR, 2.0: Zeros.SQUARED}.get(self.beta, Zeros.DENSE)

    @property
    def powers(self) -> Powers:
        return Powers(max(self.beta - 1, 0.0), max(2 - self.beta, 0.0))

    @property
    def is_convex(self) -> bool:
        return 1 <= self.beta <= 2

    @property
    def needs_positive(self) -> bool:
        return self.beta <= 0

    @property
    def compiled(self) -> type[ReciprocalSums] | None:
        return ReciprocalSums if self.beta == 0 else None

    def values(self, x: Array, q: Array) -> Array:
        beta = self.beta
        if beta == 2:
            return np.asarray((x - q) ** 2 / 2)
        if beta == 1:
            logs = np.log(x / q, out=np.zeros_like(q), where=x > 0)
            return np.asarray(x * logs - x + q)
        if beta == 0:
            ratio = x / q
            return np.asarray(ratio - np.log(ratio) - 1)
        power = q ** (beta - 1)
        return np.asarray((x**beta + ((beta - 1) * q - beta * x) * power) / (beta * (beta - 1)))

    def ratios(self, x: Array, q: Array) -> tuple[Array, Array]:
        if self.beta == 2:
            return x, q
        if self.beta == 1:
            return x / q, np.ones_like(q)
        power = q ** (self.beta - 1)
        numerator = x * power
        return np.divide(numerator, q, out=numerator), power

    def row_constants(self, x: Array) -> Floats | None:
        return None if self.beta in _NAMES else np.asarray((x.astype(np.float64) ** self.beta).sum(axis=1))

    def row_values(self, x: Array, q: Array, denominators: Array, constants: Floats | None) -> Floats:
        if constants is None:
            return super().row_values(x, q, denominators, constants)
        # with q^(beta - 1), which the update needs too, and x^beta summed once
        beta = self.beta
        own, cross = (np.einsum("dw,dw->d", factor, denominators, dtype=np.float64) for factor in (q, x))
        return np.maximum((constants + (beta - 1) * own - beta * cross) / (beta * (beta - 1)), 0)
