"""Simplex decompositions of real-valued data (Shashanka 2009): map to the simplex, corners, hulls.

References
----------
M. Shashanka (2009). Simplex decompositions for real-valued datasets. IEEE International Workshop on Machine Learning
for Signal Processing.
"""

from polyseme.simplex.hull import Hull, SimplexDecomposition, farthest_corners, minimum_volume_corners
from polyseme.simplex.maps import SimplexMap, lift, lower, orthonormal_basis, project_to_simplex

__all__ = [
    "Hull",
    "SimplexDecomposition",
    "SimplexMap",
    "farthest_corners",
    "lift",
    "lower",
    "minimum_volume_corners",
    "orthonormal_basis",
    "project_to_simplex",
]
