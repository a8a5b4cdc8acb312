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

from polyseme.simplex.basis import lift, lower, orthonormal_basis
from polyseme.simplex.corners import farthest_corners, minimum_volume_corners
from polyseme.simplex.decomposition import SimplexDecomposition
from polyseme.simplex.hull import Hull
from polyseme.simplex.map import SimplexMap, onto_simplex

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
