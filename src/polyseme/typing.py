"""Classes of results, for annotations.

Functions and methods return these objects. Their attributes and methods are public; their constructors are not, and may
change.
"""

from polyseme.cells import Cells
from polyseme.core.fitted import DocumentWeights
from polyseme.data.disk import DiskCorpus
from polyseme.datasets import SyntheticCorpus, TextCorpus
from polyseme.explore.page_data import PageData
from polyseme.metrics.clustering import Agreement
from polyseme.metrics.coherence import CoherenceReport
from polyseme.metrics.deviance import ExplainedDeviance
from polyseme.metrics.distinctive import DistinctiveWords
from polyseme.metrics.evaluation import Evaluation, PerplexityReport
from polyseme.metrics.topics import FitReport, Redundancy, Stability
from polyseme.metrics.words import Topic, TopicTable
from polyseme.retrieval.evaluation import SearchComparison, SearchEvaluation
from polyseme.retrieval.queries import Hit, Results, UnknownWord, WordScore
from polyseme.retrieval.senses import RelatedWord, Sense
from polyseme.selection.consensus import Consensus, ConsensusTopics
from polyseme.selection.cross_validation import CrossValidation
from polyseme.selection.n_topics import Selection, SelectionRow
from polyseme.selection.reading import ReadingChoice, ReadingRow
from polyseme.selection.suggestions import MergeSuggestion, SplitSuggestion
from polyseme.signatures import Exposures, Match, Spectra
from polyseme.simplex.scattering import Scattering
from polyseme.text.readers import Problem, Problems, Reader
from polyseme.text.vectorizer import TopicPipeline
from polyseme.uncertainty.bootstrap import Bootstrap
from polyseme.uncertainty.effects import Effects, Predictions
from polyseme.uncertainty.groups import GroupComparison, GroupWord
from polyseme.uncertainty.intervals import Differences, Intervals
from polyseme.uncertainty.residuals import ResidualTest
from polyseme.uncertainty.shares import Shares
from polyseme.uncertainty.time import Shrinkage, Timeline
from polyseme.uncertainty.words import WordContrasts

__all__ = [
    "Agreement",
    "Bootstrap",
    "Cells",
    "CoherenceReport",
    "Consensus",
    "ConsensusTopics",
    "CrossValidation",
    "Differences",
    "DiskCorpus",
    "DistinctiveWords",
    "DocumentWeights",
    "Effects",
    "Evaluation",
    "ExplainedDeviance",
    "Exposures",
    "FitReport",
    "GroupComparison",
    "GroupWord",
    "Hit",
    "Intervals",
    "Match",
    "MergeSuggestion",
    "PageData",
    "PerplexityReport",
    "Predictions",
    "Problem",
    "Problems",
    "Reader",
    "ReadingChoice",
    "ReadingRow",
    "Redundancy",
    "RelatedWord",
    "ResidualTest",
    "Results",
    "Scattering",
    "SearchComparison",
    "SearchEvaluation",
    "Selection",
    "SelectionRow",
    "Sense",
    "Shares",
    "Shrinkage",
    "Spectra",
    "SplitSuggestion",
    "Stability",
    "SyntheticCorpus",
    "TextCorpus",
    "Timeline",
    "Topic",
    "TopicPipeline",
    "TopicTable",
    "UnknownWord",
    "WordContrasts",
    "WordScore",
]
