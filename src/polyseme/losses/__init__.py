"""Losses of an approximation Q = W H of data X: what NMF and PLSA minimize.

A line in `LOSSES` adds a loss to the package: `loss=` accepts its name, and model files can contain it. Losses that
have no settings are chosen by name only.
"""

from __future__ import annotations

from polyseme.losses.absolute import Absolute
from polyseme.losses.base import Loss
from polyseme.losses.beta import Beta
from polyseme.losses.chi_square import ChiSquare
from polyseme.losses.entry_weights import HiddenEntries

KULLBACK_LEIBLER = Beta(1.0)
"""The loss whose minimum is the maximum of the likelihood."""
LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (KULLBACK_LEIBLER, Beta(2.0), Beta(0.0), ChiSquare(), Absolute())
}
"""Losses by the name that `loss=` accepts."""

__all__ = ["Beta", "HiddenEntries"]
