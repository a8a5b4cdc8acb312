"""Choosing models by data they were not fitted on."""

from polyseme.selection.cross_validation import CrossValidation, cross_validate
from polyseme.selection.folds import document_folds
from polyseme.selection.scores import DocumentScores, score_documents

__all__ = ["CrossValidation", "DocumentScores", "cross_validate", "document_folds", "score_documents"]
