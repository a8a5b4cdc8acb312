"""Intervals for what a fitted model says: topics, their shares, differences between groups, and effects of metadata."""

from polyseme.uncertainty.bootstrap import bootstrap
from polyseme.uncertainty.effects import effects

__all__ = ["bootstrap", "effects"]
