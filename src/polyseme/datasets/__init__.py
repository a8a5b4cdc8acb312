"""Corpora to try things on: one that every install has, drawn ones, Wikipedia and 20 Newsgroups."""

from polyseme.datasets.corpus import Corpus
from polyseme.datasets.installed import docstrings
from polyseme.datasets.real import newsgroups, wikipedia
from polyseme.datasets.synthetic import SyntheticCorpus, synthetic_corpus

__all__ = ["Corpus", "SyntheticCorpus", "docstrings", "newsgroups", "synthetic_corpus", "wikipedia"]
