"""Places of documents in the plane: t-SNE on a graph of documents with similar topics and words.

Documents with similar topics are candidates, and the candidates with the most similar words are neighbors. All sums
over topics and words are sums of integers, and the compiled code uses one instruction set, so the same weights and
counts give the same places for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.kernels.threads import single_threaded_blas
from polyseme.layout import _layout
from polyseme.progress import ProgressUpdate
from polyseme.utils import effective_threads

Places = NDArray[np.uint16]
"""Coordinates of documents (documents x 2)."""

LARGEST = 65535
"""Largest coordinate."""
DOCUMENTS_PER_TOPIC = 50
"""Mean number of documents per topic of the finest level that is used."""
EXACT = 5_000
"""With fewer documents, all of them are compared with each other."""
LEAST_WEIGHT = 0.02
"""Weight of the second and third topic of a document whose documents are compared with it."""
WORD_UNIT = 64
"""Words have integer weights, tf-idf times this."""
STEPS = ((60, 4.0, 0.5), (190, 1.25, 0.9))
"""Number of steps, factor of the attraction, and momentum of the two phases of t-SNE."""
SPREAD_PASSES = 40
SPREAD_DISTANCE = 0.3
"""Distance to which documents are pushed apart, in units of extent / sqrt(number of documents)."""
_JITTER = 0.01
"""Size of random numbers that are added to the start, whose standard deviation is 1: equal documents must differ."""
_FARTHEST = 10.0
"""Largest coordinate of the start."""
_ROWS_PER_CALL, _STEPS_PER_CALL = 4096, 10
"""Work between two updates of the progress."""
_SHIFTS = 10
"""Iterations that move a new document towards the main group of its neighbors."""
_NEAR = 0.02
"""Neighbors of a new document that are farther apart than this share of the extent form different groups."""


def document_layout(
    levels: Sequence[Array],
    counts: Any,
    *,
    n_jobs: int | None = None,
    progress: ProgressUpdate | None = None,
) -> Places:
    """Return the places of documents on a map, on which documents with similar topics and words are close.

    levels : P(z|d) at the levels of a model, the reading level first; the finest one with at least 50 documents per
    topic is used, too. The result has coordinates from 0 to 65535, in the same unit, which do not depend on `n_jobs`.
    """
    documents = _Documents.of(levels, counts)
    n_documents, n_threads = documents.n_documents, effective_threads(n_jobs)
    if n_documents < 2:
        return np.full((n_documents, 2), (LARGEST + 1) // 2, dtype=np.uint16)
    groups = _Groups.of(documents)
    grouped = documents.take(groups.order)
    work = _Work(progress, n_documents)
    graph = _graph(_neighbors(grouped, grouped, groups, n_threads, work))
    points = _start(grouped)
    _advance(graph, points, n_threads, work)
    # The extent grows while documents are pushed apart, so the distance is set after a first half.
    for _ in range(2):
        _layout.spread(points, 0, _spread_distance(points), SPREAD_PASSES // 2, n_threads)
    work.done()
    places = np.empty((n_documents, 2), dtype=np.uint16)
    places[groups.order] = _to_places(points)
    return places


def extend_layout(
    places: Places,
    levels: Sequence[Array],
    counts: Any,
    *,
    n_jobs: int | None = None,
    progress: ProgressUpdate | None = None,
) -> Places:
    """Return the places of old and new documents, without moving the old ones, the first rows of all arguments.

    A new document is placed among those old documents that would be its neighbors in `document_layout`; if they lie in
    several groups, in the largest group.
    """
    documents, n_old, n_threads = _Documents.of(levels, counts), len(places), effective_threads(n_jobs)
    n_documents = documents.n_documents
    if n_documents < n_old:
        raise InputError(f"There are {n_documents:,} documents, fewer than the {n_old:,} with a place.")
    if n_old < 2:
        return document_layout(levels, counts, n_jobs=n_jobs, progress=progress)
    if n_documents == n_old:
        return places.copy()
    old, new = documents.take(np.arange(n_old)), documents.take(np.arange(n_old, n_documents))
    groups = _Groups.of(old)
    work = _Work(progress, new.n_documents)
    neighbors = groups.order[_neighbors(new, old.take(groups.order), groups, n_threads, work)[:, : _layout.N_BEST]]
    fixed = places.astype(np.float32)
    points = np.concatenate([fixed, _among(fixed[neighbors])])
    _layout.spread(points, n_old, _spread_distance(points), SPREAD_PASSES, n_threads)
    work.done()
    return np.concatenate([places, np.clip(np.rint(points[n_old:]), 0, LARGEST).astype(np.uint16)])


def layout_level(n_documents: int, levels: Sequence[int]) -> int:
    """Return the position of the level, given by numbers of topics, that a map shows in detail.

    This is the finest level with at least 50 documents per topic, or the first one.
    """
    enough = [number for number, n_topics in enumerate(levels) if n_topics * DOCUMENTS_PER_TOPIC <= n_documents]
    return max(enough, key=lambda number: levels[number], default=0)


@dataclass(frozen=True)
class _Documents:
    """Topic weights and words of documents."""

    weights: NDArray[np.float32]
    """Weights of the topics of the reading level and of the finest level, side by side."""
    n_topics: int
    """Number of topics of the finest level."""
    words: sp.csr_array
    """Rounded tf-idf weights, int16."""

    @classmethod
    def of(cls, levels: Sequence[Array], counts: Any) -> _Documents:
        if not levels:
            raise InputError("levels: give the topic weights of at least one level.")
        counts = sp.csr_array(counts)
        finest = layout_level(counts.shape[0], [level.shape[1] for level in levels])
        used = [levels[0]] if finest == 0 else [levels[0], levels[finest]]
        if any(level.shape[0] != counts.shape[0] for level in used):
            numbers = " and ".join(f"{level.shape[0]:,}" for level in used)
            raise InputError(f"levels have {numbers} documents, counts {counts.shape[0]:,}: they must be the same.")
        weights = np.concatenate([np.asarray(level, dtype=np.float32) for level in used], axis=1)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InputError("levels: topic weights must be finite and not negative.")
        return cls(weights, used[-1].shape[1], _word_weights(counts))

    @property
    def n_documents(self) -> int:
        return len(self.weights)

    @property
    def finest(self) -> NDArray[np.float32]:
        """Weights of the topics of the finest level."""
        return self.weights[:, -self.n_topics :]

    def take(self, rows: Array) -> _Documents:
        return _Documents(np.ascontiguousarray(self.weights[rows]), self.n_topics, self.words[rows])

    @cached_property
    def codes(self) -> NDArray[np.int16]:
        """Unit vectors along the square roots of the weights, times ONE, with zeros up to a multiple of ROW_STEP."""
        n_documents, size = self.weights.shape
        codes = np.zeros((n_documents, -(-size // _layout.ROW_STEP) * _layout.ROW_STEP), dtype=np.int16)
        _layout.encode_rows(self.weights, codes)
        return codes

    @cached_property
    def rows(self) -> Any:
        """The arrays of the compiled code."""
        words = self.words
        rows = np.repeat(np.arange(self.n_documents), np.diff(words.indptr))
        squares = np.bincount(rows, words.data.astype(np.float64) ** 2, minlength=self.n_documents)
        inverse = np.divide(1.0, np.sqrt(squares), out=np.zeros(self.n_documents), where=squares > 0)
        indptr, indices = words.indptr.astype(np.int64), words.indices.astype(np.int32)
        return _layout.Rows(self.codes, indptr, indices, words.data, inverse, words.shape[1])


def _word_weights(counts: sp.csr_array) -> sp.csr_array:
    """Return (1 + ln count) (1 + ln documents / document frequency) as integers, in units of 1 / WORD_UNIT."""
    if not counts.has_canonical_format:
        counts = counts.copy()
        counts.sum_duplicates()
    present = counts.data > 0
    frequency = np.bincount(counts.indices[present], minlength=counts.shape[1])
    rarity = 1 + np.log(max(counts.shape[0], 1) / np.maximum(frequency, 1))
    values = (1 + np.log(np.maximum(counts.data, 1.0))) * rarity[counts.indices] * present
    values = np.minimum(np.rint(WORD_UNIT * values), np.iinfo(np.int16).max).astype(np.int16)
    return sp.csr_array((values, counts.indices, counts.indptr), counts.shape)


@dataclass(frozen=True)
class _Groups:
    """Groups of documents by main topic, in which the neighbors of a document are searched."""

    order: NDArray[np.intp]
    """The documents, group by group."""
    starts: NDArray[np.int64]
    """Place of the first document of each group in `order`, and the number of documents."""
    first_code: int
    """Column of the codes with the weights of the first group."""

    @classmethod
    def of(cls, documents: _Documents) -> _Groups:
        main = documents.finest.argmax(axis=1)
        order = np.argsort(main, kind="stable")
        if documents.n_documents < EXACT:
            return cls(order, np.array([0, documents.n_documents], dtype=np.int64), 0)
        sizes = np.bincount(main, minlength=documents.n_topics)
        first = documents.weights.shape[1] - documents.n_topics
        return cls(order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), first)


class _Work:
    """Progress: finding the neighbors of all documents counts as much as all steps."""

    def __init__(self, progress: ProgressUpdate | None, n_rows: int) -> None:
        self._progress, self._n_rows, self._n_steps = progress, n_rows, sum(steps for steps, _, _ in STEPS)

    def _show(self, share: float, detail: str) -> None:
        if self._progress is not None:
            self._progress(share, 1.0, detail)

    def neighbors(self, rows: int) -> None:
        self._show(0.5 * rows / self._n_rows, f"neighbors of {rows:,} of {self._n_rows:,} documents")

    def steps(self, steps: int) -> None:
        self._show(0.5 + 0.5 * steps / self._n_steps, f"step {steps} of {self._n_steps}")

    def done(self) -> None:
        self._show(1.0, "")


def _neighbors(
    documents: _Documents, candidates: _Documents, groups: _Groups, n_threads: int, work: _Work
) -> NDArray[np.int32]:
    """Return the neighbors of documents among the candidates, which are in the order of the groups.

    The best N_BEST come first; a document that has too few has its neighbors several times.
    """
    n_documents, n_levels = documents.n_documents, 1 if documents.weights.shape[1] == documents.n_topics else 2
    neighbors = np.empty((n_documents, _layout.N_NEIGHBORS), dtype=np.int32)
    least = int(_layout.ONE * np.sqrt(LEAST_WEIGHT / n_levels))
    for first in range(0, n_documents, _ROWS_PER_CALL):
        work.neighbors(first)
        _layout.find_neighbors(
            documents.rows,
            first,
            candidates.rows,
            documents is candidates,
            groups.starts,
            groups.first_code,
            least,
            neighbors[first : first + _ROWS_PER_CALL],
            n_threads,
        )
    return neighbors


def _graph(neighbors: NDArray[np.int32]) -> sp.csr_array:
    """Return the mean of the graph of the neighbors, with equal weights of sum 1, and its transpose."""
    n_documents, size = neighbors.shape
    weights = np.full(neighbors.size, 0.5 / size, dtype=np.float32)
    rows = np.repeat(np.arange(n_documents, dtype=np.int32), size)
    directed = sp.csr_array((weights, (rows, neighbors.ravel())), shape=(n_documents, n_documents))
    graph = sp.csr_array(directed + directed.T)
    graph.sort_indices()
    return graph


def _start(documents: _Documents) -> NDArray[np.float32]:
    """Return the mean place of the topics of each document; the topics are placed by classical scaling."""
    units = documents.codes[:, : documents.weights.shape[1]] / np.float64(_layout.ONE)
    weights = sp.csr_array(documents.finest.astype(np.float64))
    profiles = weights.T @ units
    lengths = np.sqrt((profiles**2).sum(axis=1, keepdims=True))
    profiles = np.divide(profiles, lengths, out=np.zeros_like(profiles), where=lengths > 0)
    centered = profiles - profiles.mean(axis=0)
    with single_threaded_blas():
        values, vectors = np.linalg.eigh(centered @ centered.T)
    axes = vectors[:, ::-1][:, :2] * np.sqrt(np.where(values > 1e-9, values, 0)[::-1][:2])
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    points = np.zeros((documents.n_documents, 2))
    points[:, : axes.shape[1]] = weights @ axes
    points -= points.mean(axis=0)
    deviation = float(points.std())
    if deviation > 0:  # a document far from all others would start outside of the plane
        points = np.clip(points / deviation, -_FARTHEST, _FARTHEST)
    # BLAS rounds differently on different machines; t-SNE would enlarge the differences.
    points = np.rint(points * 4096) / 4096 + _JITTER * np.random.default_rng(0).uniform(-1, 1, points.shape)
    return points.astype(np.float32)


def _advance(graph: sp.csr_array, points: NDArray[np.float32], n_threads: int, work: _Work) -> None:
    """Move the points by the steps of t-SNE."""
    arrays = graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data
    velocities, done = np.zeros_like(points), 0
    for steps, attraction, momentum in STEPS:
        for count in _parts(steps, _STEPS_PER_CALL):
            work.steps(done)
            _layout.advance(*arrays, attraction, momentum, count, points, velocities, n_threads)
            done += count


def _parts(total: int, largest: int) -> Iterator[int]:
    """Divide a number into numbers of at most `largest`."""
    yield from (min(largest, total - first) for first in range(0, total, largest))


def _extent(points: Floats) -> float:
    return float(np.ptp(points, axis=0).max())


def _spread_distance(points: Any) -> float:
    """Return the distance to which points are pushed apart."""
    return SPREAD_DISTANCE * max(_extent(points), 1e-3) / float(np.sqrt(len(points)))


def _to_places(points: Any) -> Places:
    """Scale points to the square of places, with the same unit on both axes."""
    points = points.astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    scaled = (points - (low + high) / 2) * (LARGEST / max(_extent(points), 1e-9)) + LARGEST / 2
    return np.clip(np.rint(scaled), 0, LARGEST).astype(np.uint16)


def _among(neighbors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a point among the neighbors of each document (documents x neighbors x 2), in their largest group.

    From the median on, it moves to the mean with weights 1 / (1 + squared distance).
    """
    unit = _NEAR * LARGEST
    points = np.median(neighbors, axis=1)
    for _ in range(_SHIFTS):
        squares = (((neighbors - points[:, None]) / unit) ** 2).sum(axis=2)
        weights = 1 / (1 + squares)
        points = (weights[:, :, None] * neighbors).sum(axis=1) / weights.sum(axis=1, keepdims=True)
    return np.asarray(points, dtype=np.float32)
