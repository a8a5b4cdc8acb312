"""Places of documents: neighbors, repulsion, steps and spreading against naive sums, and small and equal documents."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import InputError
from polyseme.layout import _layout, places
from polyseme.layout.places import document_layout, extend_layout

TOOLS = Path(__file__).parents[2] / "tools"


def planted(n_documents, n_topics=4, seed=0):
    """Return topic weights at two levels and counts of documents, each with a main topic that has words of its own."""
    rng = np.random.default_rng(seed)
    main = np.arange(n_documents) % n_topics
    fine = rng.dirichlet(np.full(n_topics, 0.1), n_documents)
    fine = 0.2 * fine + 0.8 * np.eye(n_topics)[main]
    coarse = fine.reshape(n_documents, n_topics // 2, 2).sum(axis=2)
    words = rng.poisson(0.1, (n_documents, 10 * n_topics))
    words[:, :] += rng.poisson(2.0 * np.repeat(np.eye(n_topics)[main], 10, axis=1))
    return [coarse, fine], sp.csr_array(words), main


def naive_neighbors(documents, candidates, allowed):
    """Return the neighbors by their definition; no ties are expected."""
    found = np.empty((documents.n_documents, _layout.N_NEIGHBORS), dtype=int)

    def units(rows):
        values = rows.words.toarray().astype(float)
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        return values / np.where(lengths > 0, lengths, 1)

    products = documents.codes.astype(np.int64) @ candidates.codes.astype(np.int64).T
    scores = products / _layout.ONE**2 + 2 * units(documents) @ units(candidates).T
    for row in range(documents.n_documents):
        usable = np.flatnonzero(allowed[row])
        ranked = usable[np.argsort(-products[row, usable], kind="stable")][:100]
        best = ranked[np.argsort(-scores[row, ranked], kind="stable")][:12]
        far = [ranked[int(np.ceil(len(ranked) * share)) - 1] for share in (0.4, 0.7, 1.0)]
        found[row] = [*np.resize(best, 12), *far]
    return found


def neighbors_of(levels, counts, n_threads=1):
    documents = places._Documents.of(levels, counts)
    groups = places._Groups.of(documents)
    grouped = documents.take(groups.order)
    return (
        grouped,
        groups,
        places._neighbors(grouped, grouped, groups, n_threads, places._Work(None, len(counts.indptr) - 1)),
    )


@pytest.mark.parametrize("n_documents", [2, 3, 14, 300])
def test_neighbors_of_few_documents_are_those_of_all_pairs(n_documents):
    levels, counts, _ = planted(n_documents)
    documents, _, found = neighbors_of(levels, counts)
    np.testing.assert_array_equal(found, naive_neighbors(documents, documents, ~np.eye(n_documents, dtype=bool)))


def test_neighbors_of_many_documents_share_a_main_topic(monkeypatch):
    monkeypatch.setattr(places, "EXACT", 100)
    levels, counts, _ = planted(900, n_topics=6)
    documents, groups, found = neighbors_of(levels, counts)
    main, weights = documents.finest.argmax(axis=1), documents.finest
    assert np.all(np.diff(main) >= 0)
    assert len(groups.starts) == 7
    order = np.argsort(-documents.codes[:, 3:9], axis=1, kind="stable")[:, :3]
    of_topic = np.eye(6, dtype=bool)[main].T  # topic x candidates
    used = np.take_along_axis(weights, order, axis=1) >= places.LEAST_WEIGHT
    used[:, 0] = True
    allowed = np.array([of_topic[topics[kept]].any(axis=0) for topics, kept in zip(order, used, strict=True)])
    np.fill_diagonal(allowed, False)
    np.testing.assert_array_equal(found, naive_neighbors(documents, documents, allowed))


def test_a_rare_topic_takes_candidates_from_other_topics(monkeypatch):
    monkeypatch.setattr(places, "EXACT", 100)
    levels, counts, _ = planted(400)
    for level in levels:
        level[7] = np.eye(level.shape[1])[0]
    levels[1][:, 3] += levels[1][:, 0] * (np.arange(400) != 7)
    levels[1][:, 0] = np.arange(400) == 7  # the only document of its topic
    _, groups, found = neighbors_of(levels, counts)
    row = int(np.flatnonzero(groups.order == 7)[0])
    assert len(set(found[row])) >= 12
    assert row not in found[row]


def test_the_graph_is_symmetric_and_has_weight_one_per_document():
    levels, counts, _ = planted(60)
    graph = places._graph(neighbors_of(levels, counts)[2])
    assert abs(graph - graph.T).max() == 0
    assert graph.sum() == pytest.approx(60, rel=1e-5)
    assert graph.diagonal().max() == 0


def naive_repulsion(points):
    difference = points[:, None].astype(float) - points[None]
    q = 1 / (1 + (difference**2).sum(axis=2))
    return (q[:, :, None] ** 2 * difference).sum(axis=1), q.sum(axis=1) - 1


def repel(points, n_threads=1):
    forces, potentials = np.empty_like(points), np.empty(len(points), dtype=np.float32)
    total = _layout.repel(points, forces, potentials, n_threads)
    return forces, potentials, total


@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0, 120.0])
def test_the_grid_approximates_the_repulsion(scale):
    rng = np.random.default_rng(1)
    points = (scale * rng.normal(size=(700, 2)) * rng.uniform(0.1, 1, (700, 1))).astype(np.float32)
    forces, potentials, total = repel(points)
    exact, sums = naive_repulsion(points)
    assert np.abs(potentials - sums).max() <= 0.02 * (1 + sums.max())
    assert np.abs(forces - exact).max() <= 0.1 * np.abs(exact).max()
    assert total == pytest.approx(potentials.sum(dtype=float), rel=1e-6)


def test_few_points_repel_exactly():
    points = np.random.default_rng(2).normal(size=(90, 2)).astype(np.float32)
    forces, potentials, _ = repel(points)
    exact, sums = naive_repulsion(points)
    np.testing.assert_allclose(forces, exact, atol=1e-4)
    np.testing.assert_allclose(potentials, sums, rtol=1e-4)


def test_a_step_is_the_gradient_of_t_sne():
    levels, counts, _ = planted(60)
    graph = places._graph(neighbors_of(levels, counts)[2])
    points = np.random.default_rng(3).normal(size=(60, 2)).astype(np.float32)
    velocities = np.full_like(points, 0.1)
    forces, sums = naive_repulsion(points)
    difference = points[None] - points[:, None]
    pull = graph.toarray() / (1 + (difference**2).sum(axis=2))
    expected = 0.5 * 0.1 + 4 * (pull[:, :, None] * difference).sum(axis=1) + 60 / sums.sum() * forces
    moved = points.copy()
    _layout.advance(graph.indptr.astype(np.int64), graph.indices, graph.data, 4.0, 0.5, 1, moved, velocities, 1)
    np.testing.assert_allclose(velocities, expected, atol=1e-4)
    np.testing.assert_allclose(moved, points + velocities, atol=1e-5)


def test_threads_do_not_change_bits():
    rng = np.random.default_rng(4)
    points = (25 * rng.normal(size=(70_000, 2))).astype(np.float32)
    for one, two in zip(repel(points), repel(points, 2), strict=True):
        np.testing.assert_array_equal(one, two)
    neighbors = rng.integers(70_000, size=(70_000, 4)).astype(np.int32)
    graph = places._graph(neighbors)
    results = []
    for n_threads in (1, 2):
        moved, velocities = points.copy(), np.zeros_like(points)
        _layout.advance(
            graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data, 4.0, 0.5, 2, moved, velocities,
            n_threads,
        )  # fmt: skip
        _layout.spread(moved, 0, 0.2, 2, n_threads)
        results.append(moved)
    np.testing.assert_array_equal(*results)


def test_threads_do_not_change_places(monkeypatch):
    monkeypatch.setattr(places, "EXACT", 1000)
    levels, counts, _ = planted(1500, n_topics=8)
    np.testing.assert_array_equal(*(document_layout(levels, counts, n_jobs=n_jobs) for n_jobs in (1, 2)))


PLACES_OF_FILE = """
import sys
import numpy as np, scipy.sparse as sp
from polyseme.layout.places import document_layout
stored = np.load(sys.argv[1])
counts = sp.csr_array((stored["data"], stored["indices"], stored["indptr"]), stored["shape"])
np.save(sys.argv[2], document_layout([stored["reading"], stored["finest"]], counts, n_jobs=1))
"""


def test_all_instruction_sets_give_the_same_places(tmp_path):
    """From the same weights, 99% of the places are at most one unit of the 16 bits apart."""
    levels, counts, _ = planted(6000, n_topics=8)
    weights = dict(zip(("reading", "finest"), (levels[0], levels[-1]), strict=True))
    parts = {name: getattr(counts, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "weights.npz", **weights, **parts)
    environments = runpy.run_path(str(TOOLS / "each_instruction_set.py"))["environments"]()
    found = []
    for name, settings in environments.items():
        file = tmp_path / f"{name}.npy"
        command = [sys.executable, "-W", "ignore", "-c", PLACES_OF_FILE, str(tmp_path / "weights.npz"), str(file)]
        subprocess.run(command, check=True, env={**os.environ, **settings}, timeout=300)
        found.append(np.load(file).astype(int))
    for other in found[1:]:
        assert (np.abs(found[0] - other).max(axis=1) <= 1).mean() >= 0.99


def test_spreading_separates_points_and_leaves_the_first_ones():
    points = np.random.default_rng(5).normal(size=(400, 2)).astype(np.float32)
    points[50:90] = points[49]
    distance = 0.3 * np.ptp(points, axis=0).max() / 20
    fixed = points[:30].copy()
    _layout.spread(points, 30, distance, 60, 1)
    np.testing.assert_array_equal(points[:30], fixed)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, 1)
    assert distances[30:].min() > 0.7 * distance


def test_documents_of_a_topic_are_neighbors_on_the_map():
    levels, counts, main = planted(400)
    found = document_layout(levels, counts).astype(float)
    distances = np.linalg.norm(found[:, None] - found[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :10]
    assert (main[nearest] == main[:, None]).mean() > 0.9
    assert np.ptp(found, axis=0).max() == places.LARGEST
    assert distances.min() > 0.1 * places.LARGEST / np.sqrt(400)


@pytest.mark.parametrize("n_documents", [0, 1, 2, 3, 5])
def test_few_documents_have_different_places(n_documents):
    levels, counts, _ = planted(n_documents)
    found = document_layout(levels, counts)
    assert found.shape == (n_documents, 2)
    assert found.dtype == np.uint16
    assert len(np.unique(found, axis=0)) == n_documents


@pytest.mark.parametrize("n_documents", [40, 600])
@pytest.mark.parametrize("case", ["equal", "no words", "one topic", "pairs", "no weights", "no columns"])
def test_equal_and_empty_documents_have_places(case, n_documents):
    levels, counts, _ = planted(n_documents)
    if case in ("equal", "no columns"):
        levels, counts = [np.full((n_documents, 2), 0.5)], counts[[0] * n_documents]
    if case == "no words":
        counts = sp.csr_array(counts.shape)
    if case == "no columns":
        counts = sp.csr_array((n_documents, 0))
    if case == "one topic":
        levels = [np.ones((n_documents, 1))]
    if case == "pairs":
        rows = np.arange(n_documents) // 2
        levels, counts = [level[rows] for level in levels], counts[rows]
    if case == "no weights":
        levels = [np.where(np.arange(n_documents)[:, None] % 3 == 0, 0, level) for level in levels]
    found = document_layout(levels, counts)
    assert len(np.unique(found, axis=0)) > 0.99 * n_documents
    assert np.ptp(found, axis=0).min() > places.LARGEST / 4


def test_a_document_far_from_all_others_starts_inside_the_plane():
    weights = np.tile(np.eye(2)[:1], (200_000, 1))
    weights[7] = [0, 1]
    documents = places._Documents.of([weights], sp.csr_array((200_000, 1)))
    start = places._start(documents)
    assert np.abs(start).max() < 11
    assert np.ptp(start[7:9], axis=0).max() > 9


def test_the_finest_level_with_enough_documents_is_used():
    assert places.layout_level(2000, [5, 10, 20, 40, 80]) == 3
    assert places.layout_level(1999, [5, 10, 20, 40, 80]) == 2
    assert places.layout_level(10, [5, 10]) == 0


def test_progress_ends_at_one():
    seen = []
    levels, counts, _ = planted(30)
    document_layout(levels, counts, progress=lambda done, total, detail: seen.append((done, total, detail)))
    shares = [done / total for done, total, _ in seen]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert any("step 240 of 250" in detail for _, _, detail in seen)


def test_wrong_input_is_refused():
    levels, counts, _ = planted(10)
    with pytest.raises(InputError, match="finite"):
        document_layout([np.full((10, 2), np.nan)], counts)
    with pytest.raises(InputError, match="the same"):
        document_layout(levels, counts[:9])
    with pytest.raises(InputError, match="one level"):
        document_layout([], counts)
    with pytest.raises(InputError, match="fewer"):
        extend_layout(np.zeros((11, 2), np.uint16), levels, counts)


def test_compiled_code_checks_its_arrays():
    points, indptr = np.zeros((3, 2), np.float32), np.array([0, 1, 2, 3])
    weights = np.ones(3, np.float32)
    for indices in ([0, 1, 3], [0, 1, -1]):
        with pytest.raises(ValueError, match="index"):
            _layout.advance(indptr, np.array(indices, np.int32), weights, 1.0, 0.5, 1, points, points.copy(), 1)
    with pytest.raises(ValueError, match="plane"):
        _layout.repel(np.full((3, 2), np.nan, np.float32), points, weights, 1)
    with pytest.raises(ValueError, match="plane"):
        _layout.spread(np.full((3, 2), np.nan, np.float32), 0, 1.0, 1, 1)
    with pytest.raises(ValueError, match="negative"):
        _layout.encode_rows(-np.ones((2, 3), np.float32), np.zeros((2, 8), np.int16))


class TestExtension:
    """New documents on an existing map."""

    def test_new_documents_lie_among_similar_ones(self):
        levels, counts, main = planted(500)
        old = document_layout([level[:400] for level in levels], counts[:400])
        found = extend_layout(old, levels, counts)
        np.testing.assert_array_equal(found[:400], old)
        assert found.dtype == np.uint16
        assert len(found) == 500
        distances = np.linalg.norm(found[400:, None].astype(float) - old[None], axis=2)
        nearest = np.argsort(distances, axis=1)[:, :5]
        assert (main[nearest] == main[400:, None]).mean() > 0.9

    def test_a_copy_lies_near_its_original_and_not_on_it(self):
        levels, counts, _ = planted(300)
        rows = np.r_[np.arange(300), np.arange(0, 300, 10)]
        old = document_layout(levels, counts)
        found = extend_layout(old, [level[rows] for level in levels], counts[rows]).astype(float)
        apart = np.linalg.norm(found[300:] - found[rows[300:]], axis=1)
        assert np.median(apart) < 0.1 * places.LARGEST
        assert len(np.unique(found, axis=0)) == len(found)

    def test_threads_do_not_change_places(self):
        levels, counts, _ = planted(1200)
        old = np.random.default_rng(0).integers(places.LARGEST, size=(600, 2)).astype(np.uint16)
        np.testing.assert_array_equal(*(extend_layout(old, levels, counts, n_jobs=n_jobs) for n_jobs in (1, 2)))

    @pytest.mark.parametrize("n_old", [0, 1, 2])
    def test_few_old_documents(self, n_old):
        levels, counts, _ = planted(8)
        old = document_layout([level[:n_old] for level in levels], counts[:n_old])
        found = extend_layout(old, levels, counts)
        assert len(np.unique(found, axis=0)) == 8
        if n_old == 2:
            np.testing.assert_array_equal(found[:2], old)

    def test_without_new_documents_nothing_changes(self):
        levels, counts, _ = planted(8)
        old = document_layout(levels, counts)
        np.testing.assert_array_equal(extend_layout(old, levels, counts), old)

    def test_equal_new_documents_have_different_places(self):
        levels, counts, _ = planted(300)
        old = document_layout(levels, counts)
        rows = np.r_[np.arange(300), np.zeros(300, int)]
        found = extend_layout(old, [level[rows] for level in levels], counts[rows])
        assert len(np.unique(found, axis=0)) > 590
