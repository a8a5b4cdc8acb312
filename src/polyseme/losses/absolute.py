"""The absolute value as a loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array
from polyseme.losses.base import Loss, Powers, Zeros
from polyseme.losses.beta import Beta

_LEAST = 1e-7
"""Smallest smoothing that a solver uses."""


@dataclass(frozen=True)
class Absolute(Loss):
    """Absolute value of the error, |x - q|.

    Large errors count less than in the squared loss. The fit is a median: if most entries that a topic explains are
    zero, as in counts of words, the best q is near zero, so the loss suits dense data. |x - q| is at most
    (x - q)^2 / (2 e) + e / 2 with the current error e, and equal at the current q. The minimum of this weighted squared
    loss gives the update. At x = 0 the loss is q, so sparse data are used as they are.

    Parameters
    ----------
    smoothing : float, default=0.01
        Errors below this share of x have the weight 1 / e of an error of this size, because otherwise an entry that is
        fitted exactly would never change again. The updates then minimize a loss that differs by at most
        smoothing x / 2 at such entries. A fit that no longer improves continues with a tenth of the smoothing. A fit
        from random topics starts at the fit of the squared loss, because an entry that is fitted exactly holds the
        others back, which leads to high local minima.
    """

    name = "absolute"
    zeros = Zeros.LINEAR
    powers = Powers(1.0, 0.0)
    smoothing: float = 0.01

    def __post_init__(self) -> None:
        number = isinstance(self.smoothing, Real) and not isinstance(self.smoothing, bool)
        if not number or not 0 < float(self.smoothing) <= 1:
            raise InputError(f"Absolute: smoothing must be a number above 0 and at most 1, got {self.smoothing!r}.")
        object.__setattr__(self, "smoothing", float(self.smoothing))

    @property
    def is_convex(self) -> bool:
        return False  # not strictly: medians are not unique

    @property
    def first_stage(self) -> Loss:
        return Beta(2)

    @property
    def next_stage(self) -> Absolute | None:
        return replace(self, smoothing=self.smoothing / 10) if self.smoothing > 2 * _LEAST else None

    def values(self, x: Array, q: Array) -> Array:
        return np.asarray(np.abs(x - q))

    def ratios(self, x: Array, q: Array) -> tuple[Array, Array]:
        error = np.maximum(np.abs(x - q), x.dtype.type(self.smoothing) * x)
        return x / error, q / error
