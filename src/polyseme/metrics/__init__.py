"""Judging models: pure functions of arrays."""

from polyseme.metrics.fit import topic_fit
from polyseme.metrics.perplexity import PerplexityReport, perplexity_of, score_tokens

__all__ = ["PerplexityReport", "perplexity_of", "score_tokens", "topic_fit"]
