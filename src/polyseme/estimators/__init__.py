"""Thin scikit-learn classes: parameters in, fitted attributes out."""

from polyseme.estimators.nmf import NMF
from polyseme.estimators.plsa import PLSA

__all__ = ["NMF", "PLSA"]
