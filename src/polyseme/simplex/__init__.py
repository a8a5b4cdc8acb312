"""Simplex decompositions of real-valued data (Shashanka 2009): map to the simplex, corners, hulls, identifiability.

Reference: M. Shashanka (2009). Simplex decompositions for real-valued datasets. IEEE International Workshop on Machine
Learning for Signal Processing.
"""

from polyseme.simplex.hull import Hull, SimplexDecomposition
from polyseme.simplex.maps import SimplexMap
from polyseme.simplex.scattering import scattering

__all__ = ["Hull", "SimplexDecomposition", "SimplexMap", "scattering"]
