"""Colors of topics: twelve that can be told apart, also by color-blind readers, assigned so that neighbors differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyseme.kernels import Array, Floats

LIGHT = (
    "#82cbff", "#df7c00", "#c64149", "#800062", "#0d8398", "#4620b2",
    "#1560f0", "#f9b700", "#76dca8", "#8791f0", "#8f2200", "#6bad99",
)  # fmt: skip
"""Colors on a light background."""
DARK = (
    "#b0e4fe", "#fd9c24", "#eb6b63", "#b14190", "#55a8b0", "#6957e3",
    "#6293fe", "#ffdb16", "#b0f6b2", "#99baff", "#be4c27", "#99cea4",
)  # fmt: skip
"""The same colors on a dark background, with about the same hues."""


class Palette(NamedTuple):
    """Colors of a picture of topics."""

    colors: Sequence[str]
    """Colors of topics, `LIGHT` or `DARK`."""
    none: str
    """Color of a topic without a color of its own."""
    ground: str
    ink: str


LIGHT_PALETTE = Palette(LIGHT, "#a9a49b", "#faf9f6", "#23221f")
DARK_PALETTE = Palette(DARK, "#75726c", "#16171a", "#e9e6e1")

_VIEWS = (
    ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
)
"""Linear RGB as seen with normal vision, protanopia and deuteranopia (Machado, Oliveira and Fernandes 2009)."""
_TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
"""Matrices of OKLab (Ottosson 2020)."""


def assign_colors(places: Array) -> list[int]:
    """Return the number of a color for each topic, so that topics that are close on the map have different colors.

    The numbers are those in `LIGHT` and `DARK`. With more topics than colors, each color is used about as often as
    every other.
    """
    places = np.asarray(places, dtype=np.float64).reshape(-1, 2)
    n_topics, n_colors = len(places), len(LIGHT)
    rows = -(-max(n_topics, n_colors) // n_colors)
    colors = np.tile(np.arange(n_colors), rows)  # entries beyond the topics are free to be exchanged
    squares = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    scale = np.median(np.sort(squares, axis=1)[:, 1]) if n_topics > 1 else 1.0
    closeness = np.zeros((len(colors), len(colors)))
    closeness[:n_topics, :n_topics] = 1 / (1 + squares / max(float(scale), 1e-12)) ** 2
    np.fill_diagonal(closeness, 0)
    likeness = 1 / (0.02 + color_distances()) ** 2
    while True:
        # Change of the sum over pairs, closeness x likeness, if topics i and j exchange their colors.
        sums = closeness @ likeness[colors]
        own = sums[np.arange(len(colors)), colors]
        swapped = sums[:, colors]
        pair = likeness[colors][:, colors]
        same = likeness[colors, colors]
        gain = own[:, None] + own[None] - swapped - swapped.T
        gain -= closeness * (2 * pair - same[:, None] - same[None])
        first, second = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[first, second] <= 1e-9 * max(1.0, float(own.sum())):
            return [int(color) for color in colors[:n_topics]]
        colors[[first, second]] = colors[[second, first]]


def color_distances() -> Floats:
    """Return the smallest distance of each pair of colors in OKLab: light or dark, seen by any reader."""
    return np.min([distances(oklab(colors, view)) for colors in (LIGHT, DARK) for view in range(len(_VIEWS))], axis=0)


def distances(points: Floats) -> Floats:
    """Return the distances of all pairs."""
    return np.asarray(np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)))


def rgb(colors: Sequence[str]) -> Floats:
    """Return red, green and blue of colors such as "#1f77b4", between 0 and 1 (colors x 3)."""
    return np.array([[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in colors]) / 255


def oklab(colors: Sequence[str], view: int = 0) -> Floats:
    """Return colors such as "#1f77b4" in OKLab (colors x 3); view 1 and 2: as seen with protanopia, deuteranopia."""
    values = rgb(colors)
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(_VIEWS[view]).T, 0, 1)
    return np.asarray(np.cbrt(seen @ np.array(_TO_CONES).T) @ np.array(_TO_LAB).T)
