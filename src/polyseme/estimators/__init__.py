"""Thin scikit-learn classes: parameters in, fitted attributes out."""

from polyseme.estimators.lda import LDA
from polyseme.estimators.nmf import NMF
from polyseme.estimators.plsa import PLSA

__all__ = ["LDA", "NMF", "PLSA"]
