"""Simplex decompositions for real-valued data (Shashanka 2009): the map to the simplex, corners, hulls.

| file | what |
|---|---|
| basis.py | T of Appendix A, by its structure |
| map.py | data to the standard simplex and back |
| hull.py | points and the hull of corners: barycentric coordinates, nearest weights, distance |
| volume.py | the smallest simplex around points, with a soft margin |
| corners.py | the plane of the data, farthest points, corners of the smallest simplex in that plane |
| decomposition.py | what all these models have in common: points, corners, weights |
"""

from polyseme.simplex.corners import farthest_corners, minimum_volume_corners
from polyseme.simplex.hull import Hull, SimplexDecomposition
from polyseme.simplex.maps import SimplexMap, lift, lower, onto_simplex, orthonormal_basis

__all__ = [
    "Hull",
    "SimplexDecomposition",
    "SimplexMap",
    "farthest_corners",
    "lift",
    "lower",
    "minimum_volume_corners",
    "onto_simplex",
    "orthonormal_basis",
]
