"""Measures of topic models, as functions of arrays: perplexity, coherence, diversity, stability, agreement with labels.

docs/judging.md explains what the numbers mean and when they mislead.
"""

from polyseme.metrics.clustering import Agreement, hard_labels, label_agreement
from polyseme.metrics.coherence import (
    CoherenceReport,
    TokenSequences,
    coherence,
    token_sequences,
)
from polyseme.metrics.distinctive import DistinctiveWords, distinctive_words
from polyseme.metrics.evaluation import Evaluation, PerplexityReport, evaluate, pool_reports
from polyseme.metrics.topics import (
    FitReport,
    Redundancy,
    Stability,
    align,
    bootstrap_stability,
    distances,
    effective_topics,
    exclusivity,
    fit_report,
    frex,
    stability,
    topic_diversity,
    topic_fit,
    topic_redundancy,
    word_topics,
)
from polyseme.metrics.words import relevance, top_words

__all__ = [
    "Agreement",
    "CoherenceReport",
    "DistinctiveWords",
    "Evaluation",
    "FitReport",
    "PerplexityReport",
    "Redundancy",
    "Stability",
    "TokenSequences",
    "align",
    "bootstrap_stability",
    "coherence",
    "distances",
    "distinctive_words",
    "effective_topics",
    "evaluate",
    "exclusivity",
    "fit_report",
    "frex",
    "hard_labels",
    "label_agreement",
    "pool_reports",
    "relevance",
    "stability",
    "token_sequences",
    "top_words",
    "topic_diversity",
    "topic_fit",
    "topic_redundancy",
    "word_topics",
]
