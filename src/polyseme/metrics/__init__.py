"""Measures of topic models, as functions of arrays: perplexity, coherence, diversity, stability, agreement with labels.

docs/judging.md explains what the numbers mean and when they mislead.
"""

from polyseme.metrics.clustering import label_agreement
from polyseme.metrics.coherence import (
    coherence,
)
from polyseme.metrics.distinctive import distinctive_words
from polyseme.metrics.evaluation import evaluate
from polyseme.metrics.topics import (
    align,
    bootstrap_stability,
    distances,
    exclusivity,
    frex,
    stability,
    topic_diversity,
)
from polyseme.metrics.words import relevance, top_words

__all__ = [
    "align",
    "bootstrap_stability",
    "coherence",
    "distances",
    "distinctive_words",
    "evaluate",
    "exclusivity",
    "frex",
    "label_agreement",
    "relevance",
    "stability",
    "top_words",
    "topic_diversity",
]
