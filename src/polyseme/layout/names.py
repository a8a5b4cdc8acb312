"""Places of the names of topics on a map of documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import gaussian_filter

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.layout.places import LARGEST, Places

CELLS = 192
"""Cells of the grid along each axis."""
KERNEL = 0.4
"""Width of the kernel of densities, in units of the median radius of the topics."""
KERNEL_OF_LARGE_TOPICS = 0.6
"""The same for the topics of the reading level, whose regions have several parts."""
_LEAST_WEIGHT = 0.01
"""Smaller weights of a topic in a document are ignored."""


class TopicPlaces(NamedTuple):
    """Places and sizes of topics on a map."""

    places: Floats
    """Where the name of each topic stands, in the units of the places of documents: topics x 2."""
    radii: Floats
    """Median distance of the documents of each topic from its name, at least a cell."""


def topic_places(places: Places, weights: Array, *, kernel: float = KERNEL) -> TopicPlaces:
    """Return where the names of topics stand: where a topic is dense and has most of the documents.

    With D_z the density of the documents weighted by P(z|d), and D the density of all documents, a name stands at the
    largest D_z^2 / D, moved to the weighted mean of the documents around it. `kernel` is the width of the densities, in
    units of the median radius of the topics; 0.6 suits a level with few, large topics. A topic without documents has
    the middle of the map and the radius 0.
    """
    weights = np.asarray(weights)
    if len(weights) != len(places):
        raise InputError(f"There are {len(places):,} places and {len(weights):,} documents: they must be the same.")
    points, n_topics = places.astype(np.float64), weights.shape[1]
    by_topic = sp.csc_array(np.where(weights >= _LEAST_WEIGHT, weights, 0).astype(np.float64))
    cells = np.minimum((points * (CELLS / (LARGEST + 1))).astype(np.intp), CELLS - 1) @ [1, CELLS]
    width = kernel * _median_radius(points, weights.argmax(axis=1) if n_topics else np.zeros(0, np.intp))
    width = max(width, LARGEST / CELLS)
    everything = _density(cells, np.ones(len(points)), width)
    found = TopicPlaces(np.full((n_topics, 2), (LARGEST + 1) / 2), np.zeros(n_topics))
    for topic in range(n_topics):
        entries = slice(by_topic.indptr[topic], by_topic.indptr[topic + 1])
        documents, shares = by_topic.indices[entries], by_topic.data[entries]
        if not len(documents):
            continue
        density = _density(cells[documents], shares, width)
        best = int(np.divide(density**2, everything, out=np.zeros_like(density), where=everything > 0).argmax())
        peak = (np.array([best % CELLS, best // CELLS]) + 0.5) * ((LARGEST + 1) / CELLS)
        near = shares**2 * np.exp(-((points[documents] - peak) ** 2).sum(axis=1) / (2 * width**2))
        if near.sum() > 0:
            peak = near @ points[documents] / near.sum()
        found.places[topic] = peak
        main = documents[shares >= 0.5 * shares.max()]
        radius = np.median(np.sqrt(((points[main] - peak) ** 2).sum(axis=1)))
        found.radii[topic] = max(radius, LARGEST / CELLS)  # also of a topic with one document
    return found


def _median_radius(points: Floats, main: Array) -> float:
    """Return the median over the main topics of documents of the median distance from the middle of the topic."""
    radii = []
    for topic in np.unique(main):
        own = points[main == topic]
        radii.append(np.median(np.sqrt(((own - np.median(own, axis=0)) ** 2).sum(axis=1))))
    return float(np.median(radii)) if radii else 0.0


def _density(cells: Array, weights: Floats, width: float) -> Floats:
    """Return the sums of weights in the cells of the grid, smoothed by a Gaussian of this width."""
    sums = np.bincount(cells, weights, minlength=CELLS * CELLS).reshape(CELLS, CELLS)
    smooth = gaussian_filter(sums, width * CELLS / (LARGEST + 1), mode="constant", truncate=3.0)
    return np.asarray(smooth).ravel()
