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
from polyseme.metrics.distances import distances, word_topics
from polyseme.metrics.diversity import Redundancy, exclusivity, frex, topic_diversity, topic_redundancy
from polyseme.metrics.evaluation import Evaluation, evaluate
from polyseme.metrics.fit import FitReport, effective_topics, fit_report, topic_fit
from polyseme.metrics.perplexity import PerplexityReport, pool_reports
from polyseme.metrics.stability import Stability, bootstrap_stability, stability
from polyseme.metrics.words import distinctive_words, relevance, shown_words, top_words

__all__ = [
    "Agreement",
    "CoherenceReport",
    "Evaluation",
    "FitReport",
    "PerplexityReport",
    "Redundancy",
    "Stability",
    "TokenSequences",
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
    "shown_words",
    "stability",
    "token_sequences",
    "top_words",
    "topic_diversity",
    "topic_fit",
    "topic_redundancy",
    "word_topics",
]
