"""Judging models: pure functions of arrays, defined for every case.

What the figures mean, and when they mislead: docs/judging.md.
"""

from polyseme.metrics.clustering import Agreement, hard_labels, label_agreement
from polyseme.metrics.coherence import (
    CoherenceReport,
    Cooccurrence,
    TokenSequences,
    coherence,
    coherence_of,
    cooccurrence_in_documents,
    cooccurrence_in_windows,
    token_sequences,
)
from polyseme.metrics.distances import distances, word_topics
from polyseme.metrics.diversity import Redundancy, exclusivity, frex, topic_diversity, topic_redundancy
from polyseme.metrics.evaluation import Evaluation, evaluate
from polyseme.metrics.fit import FitReport, effective_topics, fit_report, topic_fit
from polyseme.metrics.perplexity import PerplexityReport, perplexity_of, pool_reports, score_tokens
from polyseme.metrics.stability import Stability, bootstrap_stability, stability
from polyseme.metrics.words import distinctive_words, relevance, shown_words, top_words

__all__ = [
    "Agreement",
    "CoherenceReport",
    "Cooccurrence",
    "Evaluation",
    "FitReport",
    "PerplexityReport",
    "Redundancy",
    "Stability",
    "TokenSequences",
    "bootstrap_stability",
    "coherence",
    "coherence_of",
    "cooccurrence_in_documents",
    "cooccurrence_in_windows",
    "distances",
    "distinctive_words",
    "effective_topics",
    "evaluate",
    "exclusivity",
    "fit_report",
    "frex",
    "hard_labels",
    "label_agreement",
    "perplexity_of",
    "pool_reports",
    "relevance",
    "score_tokens",
    "shown_words",
    "stability",
    "token_sequences",
    "top_words",
    "topic_diversity",
    "topic_fit",
    "topic_redundancy",
    "word_topics",
]
