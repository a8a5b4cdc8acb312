"""Intervals for topics, their shares, differences and effects of metadata, and a test of what topics leave out."""

from polyseme.uncertainty.bootstrap import bootstrap
from polyseme.uncertainty.effects import effects
from polyseme.uncertainty.residuals import residual_test
from polyseme.uncertainty.words import word_contrasts

__all__ = ["bootstrap", "effects", "residual_test", "word_contrasts"]
