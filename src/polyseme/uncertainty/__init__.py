"""Intervals for what a fitted model says: topics, their shares, and differences between groups of documents."""

from polyseme.uncertainty.bootstrap import Bootstrap, Shares, bootstrap
from polyseme.uncertainty.groups import GroupComparison, GroupWord
from polyseme.uncertainty.intervals import Differences, Intervals
from polyseme.uncertainty.time import Shrinkage, Timeline

__all__ = [
    "Bootstrap",
    "Differences",
    "GroupComparison",
    "GroupWord",
    "Intervals",
    "Shares",
    "Shrinkage",
    "Timeline",
    "bootstrap",
]
