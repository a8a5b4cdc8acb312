"""Corpora for experiments: docstrings of installed packages, synthetic documents, and 20 Newsgroups."""

from polyseme.datasets.corpora import TextCorpus, docstrings, newsgroups
from polyseme.datasets.synthetic import SyntheticCorpus, synthetic_corpus

__all__ = ["SyntheticCorpus", "TextCorpus", "docstrings", "newsgroups", "synthetic_corpus"]
