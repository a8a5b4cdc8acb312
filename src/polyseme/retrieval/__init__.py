"""Search: an index over a corpus, asked in words, by term matching, LSI and PLSI."""

from polyseme.retrieval.evaluation import Evaluation, evaluate
from polyseme.retrieval.index import SearchIndex
from polyseme.retrieval.results import Hit, Reason, Results
from polyseme.retrieval.senses import Neighbour, Sense

__all__ = ["Evaluation", "Hit", "Neighbour", "Reason", "Results", "SearchIndex", "Sense", "evaluate"]
