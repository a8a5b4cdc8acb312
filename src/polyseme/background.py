"""A fixed background language model beside the topics (Zhai; Hong 2012, section 6).

A share lambda of every document is written by the background P(w|B), which is not fitted: the words that are everywhere
go there and leave the topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Floats


@dataclass(frozen=True)
class Background:
    """P(w|d) = share P(w|B) + (1 - share) sum_z P(w|z) P(z|d): every document has the same share of background.

    (Hong's eq. 39 leaves P(d) out of the first term, which then does not sum to one.)

    share : lambda, at least 0 and below 1.
    distribution : P(w|B), one number a word; None takes the unigram of the training documents.
    """

    joint: ClassVar[bool] = False
    """whether the documents' own shares are free"""
    share: float
    distribution: Sequence[float] | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.share, Real) and not isinstance(self.share, bool)
        if not number or not 0 <= float(self.share) < 1:
            raise InputError(f"background must be a number of at least 0 and below 1, got {self.share!r}.")
        object.__setattr__(self, "share", float(self.share))

    def probabilities(self, unigram: Floats) -> Floats:
        """P(w|B) for a vocabulary with this unigram, checked."""
        if self.distribution is None:
            return unigram
        try:
            given = np.asarray(self.distribution, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != unigram.shape:
            raise InputError(f"background: distribution must have one number for each of the {unigram.size} words.")
        if not np.isfinite(given).all() or (given < 0).any():
            raise InputError("background: distribution must be finite and non-negative.")
        missing = np.flatnonzero((given == 0) & (unigram > 0))
        if missing.size:
            raise InputError(
                f"background: distribution gives probability 0 to {missing.size} of the words that occur (such as "
                f"column {missing[0]}): give each of them a little."
            )
        return np.asarray(given / given.sum())


@dataclass(frozen=True)
class JointBackground(Background):
    """Hong's formulation 2: P(d,w) = share P(d) P(w|B) + (1 - share) sum_z P(z) P(d|z) P(w|z), with P(d|z) free.

    Not the same model: only over all documents together is the share as given. Document d has the share
    share / (share + (1 - share) s_d), with s_d = sum_z P(z) P(d|z) / P(d); the mean of s_d is one.
    """

    joint: ClassVar[bool] = True


def as_background(value: Any) -> Background | None:
    """A number (lambda), a Background, or None; no background at all is None."""
    background = value if isinstance(value, Background) else Background(0.0 if value is None else value)
    return background if background.share > 0 else None
