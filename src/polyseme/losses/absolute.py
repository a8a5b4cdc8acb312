"""The absolute value as a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyseme.kernels import Array
from polyseme.losses.base import Loss, Powers, Zeros

_LEAST = 1e-7
"""Errors below this share of x have the weight of an error of this size, because the weight 1 / error must be finite."""


@dataclass(frozen=True)
class Absolute(Loss):
    """Absolute value of the error, |x - q|.

    It counts large errors less than the squared loss. Its fit is a median: where most entries that a topic explains are
    zero, as in counts of words, the best q is near zero, so the loss suits dense data. |x - q| is at most
    (x - q)^2 / (2 e) + e / 2 with the current error e, and equal at the current q. The minimum of this weighted squared
    loss gives the update. It never raises the loss, except by less than 1e-7 x / 2 at an entry with an error below
    1e-7 x. At x = 0 the loss is q, so sparse data are used as they are.
    """

    name = "absolute"
    zeros = Zeros.LINEAR
    powers = Powers(1.0, 0.0)

    def values(self, x: Array, q: Array) -> Array:
        return np.asarray(np.abs(x - q))

    def ratios(self, x: Array, q: Array) -> tuple[Array, Array]:
        error = np.maximum(np.abs(x - q), x.dtype.type(_LEAST) * x)
        return x / error, q / error
