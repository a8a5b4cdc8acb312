"""Corpora to try things on: one that every install has, drawn ones, Wikipedia and 20 Newsgroups."""

from polyseme.datasets.corpora import TextCorpus, docstrings, newsgroups, wikipedia
from polyseme.datasets.synthetic import SyntheticCorpus, synthetic_corpus

__all__ = ["SyntheticCorpus", "TextCorpus", "docstrings", "newsgroups", "synthetic_corpus", "wikipedia"]
