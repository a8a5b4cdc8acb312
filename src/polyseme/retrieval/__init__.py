"""Search in a corpus by common words (tf, tfidf, bm25), LSI and PLSI, with explanations by words and topics."""

from polyseme.retrieval.evaluation import SearchEvaluation, evaluate_search
from polyseme.retrieval.index import SearchIndex
from polyseme.retrieval.queries import Hit, Results, WordScore
from polyseme.retrieval.senses import RelatedWord, Sense

__all__ = ["Hit", "RelatedWord", "Results", "SearchEvaluation", "SearchIndex", "Sense", "WordScore", "evaluate_search"]
