"""Choosing models by data they were not fitted on."""

from polyseme.selection.cross_validation import (
    CrossValidation,
    DocumentScores,
    MaskedFit,
    cross_validate,
    document_folds,
    fit_masked,
    score_documents,
)
from polyseme.selection.n_topics import Selection, SelectionRow, choose_n_topics, select_n_topics, spread_values
from polyseme.selection.suggestions import MergeSuggestion, SplitSuggestion, suggest_merges, suggest_splits

__all__ = [
    "CrossValidation",
    "DocumentScores",
    "MaskedFit",
    "MergeSuggestion",
    "Selection",
    "SelectionRow",
    "SplitSuggestion",
    "choose_n_topics",
    "cross_validate",
    "document_folds",
    "fit_masked",
    "score_documents",
    "select_n_topics",
    "spread_values",
    "suggest_merges",
    "suggest_splits",
]
