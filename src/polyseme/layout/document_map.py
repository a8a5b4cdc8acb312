"""The map of documents: every document is a point in the plane, and regions have the names of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyseme.kernels import Array, Floats
from polyseme.layout.colors import Palette, assign_colors, rgb
from polyseme.layout.names import KERNEL, KERNEL_OF_LARGE_TOPICS, topic_places
from polyseme.layout.places import LARGEST, Places, document_layout
from polyseme.utils import sample_rows

MAX_POINTS = 100_000
"""Documents on a map; of more documents a random sample is shown."""


@dataclass(frozen=True)
class RegionName:
    """Name of a topic on the map, with its place and the radius of its region as shares of the map's side."""

    level: int
    """Number of topics of its level."""
    topic: int
    top: int
    """The topic of the reading level above it, or itself."""
    name: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class DocumentMap:
    """Places of documents in the plane, names of regions, and colors of topics."""

    places: Array
    """Coordinates, documents x 2, uint16; both axes have the same scale."""
    names: Sequence[RegionName]
    """Coarse levels first; of a level, the largest regions first."""
    colors: Sequence[int]
    """Number of the color of each topic of the reading level."""
    documents: Array | None = None
    """Rows of the documents on the map; None if all are there."""
    gray: frozenset[int] = frozenset()
    """Topics of the reading level that are drawn without a color: junk and hidden ones."""

    def topic_colors(self, palette: Palette) -> list[str]:
        """Return the color of each topic of the reading level."""
        return [
            palette.none if topic in self.gray else palette.colors[color] for topic, color in enumerate(self.colors)
        ]

    def mixed_colors(self, weights: Array, palette: Palette) -> Floats:
        """Return red, green and blue of documents, between 0 and 1: a mixture of the colors of their topics.

        weights : P(z|d) of the documents on the map; their squares are the shares of the colors.
        """
        squares = np.asarray(weights, dtype=np.float64) ** 2
        return np.asarray(
            squares @ rgb(self.topic_colors(palette)) / np.maximum(squares.sum(axis=1, keepdims=True), 1e-300)
        )

    @classmethod
    def of(
        cls,
        levels: Sequence[MapLevel],
        counts: Any,
        places: Places | None = None,
        *,
        gray: frozenset[int] = frozenset(),
        unnamed: frozenset[int] = frozenset(),
    ) -> Self:
        """Return the map of documents.

        levels : topics of the reading level and of the finer ones. counts : counts of the words. places : places of all
        documents, if they are known. gray, unnamed : topics of the reading level without a color, and without a name.
        """
        rows, n_documents = None, len(levels[0].weights)
        if n_documents > MAX_POINTS:
            rows = sample_rows(n_documents, MAX_POINTS, 0)
        chosen = slice(None) if rows is None else rows
        weights = [np.asarray(level.weights[chosen]) for level in levels]
        if places is None:
            places = document_layout(weights, counts if rows is None else counts[rows])
        elif rows is not None:
            places = places[rows]
        names, colors = list[RegionName](), list[int]()
        for level, shares in zip(levels, weights, strict=True):
            top = level is levels[0]
            found = topic_places(places, shares, kernel=KERNEL_OF_LARGE_TOPICS if top else KERNEL)
            if top:
                colors = assign_colors(found.places)
            scaled, radii = found.places / LARGEST, found.radii / LARGEST
            names += [
                RegionName(
                    shares.shape[1], topic, level.tops[topic], level.names[topic], float(scaled[topic, 0]),
                    float(scaled[topic, 1]), float(radii[topic]),
                )
                for topic in np.argsort(-shares.sum(axis=0), kind="stable").tolist()
                if radii[topic] > 0 and level.tops[topic] not in unnamed
            ]  # fmt: skip
        return cls(places, names, colors, rows, gray)


@dataclass(frozen=True)
class MapLevel:
    """Topics of a level of a map."""

    weights: Array
    """P(z|d)."""
    names: Sequence[str]
    tops: Sequence[int]
    """The topic of the reading level above each topic, or itself."""
