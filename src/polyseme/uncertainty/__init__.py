"""Intervals for what a fitted model says: topics, their shares, and differences between groups of documents."""

from polyseme.uncertainty.bootstrap import bootstrap

__all__ = ["bootstrap"]
