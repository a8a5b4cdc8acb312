"""Choosing models by data that they were not fitted to: cross-validation, the number of topics, merges and splits."""

from polyseme.selection.consensus import consensus
from polyseme.selection.cross_validation import cross_validate
from polyseme.selection.n_topics import select_n_topics
from polyseme.selection.reading import reading_n_topics, reading_topics
from polyseme.selection.suggestions import suggest_merges, suggest_splits

__all__ = [
    "consensus",
    "cross_validate",
    "reading_n_topics",
    "reading_topics",
    "select_n_topics",
    "suggest_merges",
    "suggest_splits",
]
