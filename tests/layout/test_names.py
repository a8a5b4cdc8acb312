"""Places of the names of topics on a map."""

import numpy as np
import pytest

from polyseme import InputError
from polyseme.layout import places
from polyseme.layout.names import CELLS, topic_places

MIDDLE = 32768


def clusters(centers, n_documents=60, width=1500, seed=0):
    """Return documents around each of the centers."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(center, width, (n_documents, 2)) for center in centers])
    return np.clip(points, 0, places.LARGEST).astype(np.uint16)


def test_a_name_stands_in_its_cluster():
    centers = np.array([[10_000, 10_000], [50_000, 20_000], [30_000, 55_000]])
    found = topic_places(clusters(centers), np.repeat(np.eye(3), 60, axis=0))
    assert np.abs(found.places - centers).max() < 1500
    assert np.all((found.radii > 500) & (found.radii < 3000))


def test_a_topic_of_two_parts_has_its_name_in_one_of_them():
    """Its mean position is in the cluster of another topic."""
    centers = np.array([[10_000, 30_000], [30_000, 30_000], [50_000, 30_000]])
    weights = np.repeat(np.eye(2)[[0, 1, 0]], 60, axis=0)
    found = topic_places(clusters(centers), weights).places
    assert min(abs(found[0, 0] - 10_000), abs(found[0, 0] - 50_000)) < 2000
    assert abs(found[1, 0] - 30_000) < 2000


def test_a_name_avoids_the_region_of_a_larger_topic():
    """A topic is densest where it is a small part of many documents; its name stands where it is the main topic."""
    points = np.concatenate([clusters([[15_000, 15_000]], 400), clusters([[50_000, 50_000]], 40)])
    weights = np.concatenate([np.tile([0.8, 0.2], (400, 1)), np.tile([0.05, 0.95], (40, 1))])
    found = topic_places(points, weights).places
    assert np.abs(found[1] - 50_000).max() < 2500


def test_topics_without_documents_stand_in_the_middle():
    points = clusters([[10_000, 10_000]])
    found = topic_places(points, np.tile([1.0, 0.0], (60, 1)))
    np.testing.assert_array_equal(found.places[1], [MIDDLE, MIDDLE])
    assert found.radii[1] == 0


def test_the_region_of_a_single_document_has_a_size():
    points = np.concatenate([clusters([[10_000, 10_000]]), [[50_000, 40_000]]]).astype(np.uint16)
    found = topic_places(points, np.eye(2)[[0] * 60 + [1]])
    np.testing.assert_allclose(found.places[1], points[-1])
    assert found.radii[1] == places.LARGEST / CELLS


@pytest.mark.parametrize("n_documents", [0, 1, 2])
def test_few_documents(n_documents):
    points = clusters([[20_000, 40_000]], n_documents)
    found = topic_places(points, np.full((n_documents, 2), 0.5))
    assert np.isfinite(found.places).all()
    if n_documents == 1:
        np.testing.assert_allclose(found.places, points.repeat(2, axis=0), atol=1)


def test_numbers_of_documents_must_agree():
    with pytest.raises(InputError, match="the same"):
        topic_places(np.zeros((3, 2), np.uint16), np.ones((2, 1)))
