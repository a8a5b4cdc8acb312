"""Choosing models by data they were not fitted on."""

from polyseme.selection.cross_validation import CrossValidation, cross_validate
from polyseme.selection.folds import document_folds
from polyseme.selection.masked import MaskedFit, fit_masked
from polyseme.selection.number import Row, Selection, choose_n_topics, select_n_topics, spread_values
from polyseme.selection.scores import DocumentScores, score_documents
from polyseme.selection.suggestions import Merge, Split, suggest_merges, suggest_splits

__all__ = [
    "CrossValidation",
    "DocumentScores",
    "MaskedFit",
    "Merge",
    "Row",
    "Selection",
    "Split",
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
