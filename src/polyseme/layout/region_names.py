"""Names of regions on a picture of a map, which are those that the explorer page shows in a window of its size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from polyseme.layout.document_map import RegionName

_SIZES = ((21.0, math.inf), (14.5, 2.7), (12.0, 3.4))
"""Size of the names of each level, and their largest width in radii of the region."""
_LINE_HEIGHT = 1.14
_SHIFTS = (
    (0, 0), (0, -0.6), (0, 0.6), (0, -1.2), (0, 1.2), (-0.3, 0), (0.3, 0), (-0.3, -0.7), (0.3, -0.7), (-0.3, 0.7),
    (0.3, 0.7),
)  # fmt: skip
_GAP, _EDGE = 3, 2
_CROWD, _CROWD_GAP, _CROWD_SIZE = 60, 9, 0.62
"""Names of the first level above which they are short where regions are small, and their distance and size."""


class PlacedName(NamedTuple):
    """A name with its lines and its middle and size in pixels."""

    name: RegionName
    lines: list[str]
    rank: int
    x: float
    y: float
    size: float


def place_names(
    names: Sequence[RegionName],
    on_screen: Callable[[RegionName], tuple[float, float, float]],
    width_of: Callable[[str], float],
    width: float,
    height: float,
) -> list[PlacedName]:
    """Return the names that fit, as `placeNames` of the page does, whose documentation has the rules.

    on_screen : x, y and radius of a region in pixels. width_of : width of a text of size 1. width, height : the window.
    """
    levels = sorted({name.level for name in names})
    crowd = sum(name.level == levels[0] for name in names) > _CROWD if levels else False
    gap = _CROWD_GAP if crowd else _GAP
    small = _CROWD_SIZE if crowd else min(1.0, max(0.72, width / 900))
    taken, placed = list[tuple[float, float, float, float]](), list[PlacedName]()
    for name in names:
        rank = min(levels.index(name.level), len(_SIZES) - 1)
        x, y, radius = on_screen(name)
        if not (0 <= x <= width and 0 <= y <= height) or any(other.name.name == name.name for other in placed):
            continue
        size = _SIZES[rank][0] * (small if rank == 0 else max(0.85, small))
        lines = name_lines(name.name)
        wide = size * max(map(width_of, lines))
        if crowd and rank == 0 and wide > _SIZES[1][1] * radius:
            lines = [name.name.split(",")[0]]
            wide = size * width_of(lines[0])
            if any(other.lines[0] == lines[0] for other in placed):
                continue
        if wide > _SIZES[rank][1] * radius:
            continue
        tall = len(lines) * size * _LINE_HEIGHT
        for right, down in _SHIFTS:
            at = _inside(x + right * wide, wide, width), _inside(y + down * tall, tall, height)
            box = at[0] - wide / 2, at[1] - tall / 2, at[0] + wide / 2, at[1] + tall / 2
            if box[2] <= width and not any(_overlap(box, other, gap) for other in taken):
                taken.append(box)
                placed.append(PlacedName(name, lines, rank, *at, size))
                break
    return placed


def name_lines(name: str) -> list[str]:
    """Break a name into lines of similar width; a line that ends with a comma does not cut a phrase."""
    words = name.split(" ")
    cuts = [[" ".join(words[:i]), " ".join(words[i:])] for i in range(1, len(words))] if len(name) >= 14 else []
    return min(cuts, key=lambda lines: max(map(len, lines)) + 4 * (not lines[0].endswith(",")), default=[name])


def _inside(at: float, size: float, length: float) -> float:
    """Return the middle of a name of this size that is nearest to `at` and in the window."""
    return max(size / 2 + _EDGE, min(length - size / 2 - _EDGE, at))


def _overlap(a: Sequence[float], b: Sequence[float], gap: float) -> bool:
    return a[0] < b[2] + gap and b[0] < a[2] + gap and a[1] < b[3] + gap and b[1] < a[3] + gap
