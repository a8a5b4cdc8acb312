"""Thin scikit-learn classes: parameters in, fitted attributes out."""

from polyseme.estimators.plsa import PLSA

__all__ = ["PLSA"]
