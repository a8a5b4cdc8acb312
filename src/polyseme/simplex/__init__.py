"""Simplex decompositions of real-valued data (Shashanka 2009): map to the simplex, corners, hulls.

| module | contents |
|---|---|
| maps.py | map of real data to the standard simplex and back |
| hull.py | barycentric coordinates, nearest weights and distances of points and the hull of corners |
| corners.py | corners of a cloud of points: farthest points, smallest enclosing simplex |

References
----------
M. Shashanka (2009). Simplex decompositions for real-valued datasets. IEEE International Workshop on Machine Learning
for Signal Processing.
"""

from polyseme.simplex.corners import farthest_corners, minimum_volume_corners
from polyseme.simplex.hull import Hull, SimplexDecomposition
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
