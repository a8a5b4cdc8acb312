"""Consensus of fits: planted topics are found, copies of topics are matched, outlying ones are set aside."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

from polyseme import InputError
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import align
from polyseme.selection import consensus
from polyseme.selection.consensus import match_topics


@pytest.fixture(scope="module")
def planted():
    return synthetic_corpus(150, n_topics=3, n_words=60, length=60, random_state=1)


@pytest.fixture(scope="module")
def found(planted):
    return consensus(planted.counts(), [2, 3, 4], n_fits=8, n_jobs=2)


def test_the_planted_topics_and_their_number_are_found(planted, found):
    assert found.chosen == 3
    assert found.best.stable
    assert not found.solutions[4].stable
    _, distances = align(planted.topic_word, found.model.components_)
    assert distances.max() < 0.15
    assert (found.best.reproducibility == 1).all()
    assert (np.diff(found.model.topic_weights_) <= 0.01).all()  # largest first, up to the last iteration


def test_the_number_of_threads_does_not_change_the_result(planted, found):
    again = consensus(planted.counts(), 3, n_fits=8, n_jobs=1)
    np.testing.assert_array_equal(again.model.components_, found.model.components_)
    np.testing.assert_array_equal(again.best.topic_stability, found.best.topic_stability)
    assert again.best.unexplained == found.best.unexplained


@pytest.mark.parametrize("resample", ["counts", "none"])
def test_other_resamples(planted, resample):
    found = consensus(planted.counts(), 3, n_fits=5, resample=resample, n_jobs=1)
    assert found.best.stable
    _, distances = align(planted.topic_word, found.model.components_)
    assert distances.max() < 0.15


def test_the_unexplained_share_is_that_of_the_deviance(planted, found):
    X = planted.counts().toarray().astype(float)
    model = found.model
    P = model.doc_topic_ @ model.components_
    unigram = X.sum(axis=1, keepdims=True) * X.sum(axis=0) / X.sum()

    def deviance(expected):
        return np.sum(X[X > 0] * np.log(X[X > 0] / expected[X > 0]))

    share = deviance(X.sum(axis=1, keepdims=True) * P) / deviance(unigram)
    assert found.best.unexplained == pytest.approx(share, rel=1e-4)


def copies(n_fits, n_topics=4, n_words=30, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.2), n_topics)
    fits = np.array([(1 - noise) * topics + noise * rng.dirichlet(np.ones(n_words), n_topics) for _ in range(n_fits)])
    orders = np.array([rng.permutation(n_topics) for _ in range(n_fits)])
    return fits, np.take_along_axis(fits, orders[..., np.newaxis], axis=1)


def test_copies_are_matched_in_any_order():
    fits, permuted = copies(6)
    matched = match_topics(permuted)
    order, _ = align(matched.topics[0], fits[0])
    np.testing.assert_array_equal(matched.topics, fits[:, order])
    np.testing.assert_array_equal(np.take_along_axis(permuted, matched.order[..., np.newaxis], axis=1), matched.topics)


def test_silhouettes_are_those_of_scikit_learn():
    _, permuted = copies(5, noise=0.8)
    matched = match_topics(permuted)
    roots = np.sqrt(matched.topics).reshape(20, -1)
    distances = np.maximum(1 - roots @ roots.T, 0)
    np.fill_diagonal(distances, 0)
    expected = silhouette_samples(distances, np.tile(np.arange(4), 5), metric="precomputed")
    np.testing.assert_allclose(matched.silhouette.ravel(), expected, atol=1e-10)


def test_a_topic_of_chance_does_not_come_back():
    fits, _ = copies(8, noise=0.1)
    rng = np.random.default_rng(5)
    fits[:, 3] = rng.dirichlet(np.full(30, 0.1), 8)
    matched = match_topics(fits)
    back = (matched.affinity >= 0.85).mean(axis=0)
    assert sorted(back)[0] < 0.5
    assert sorted(back)[1] == 1


def test_the_table_has_a_row_for_each_topic(found):
    table = found.best.table.to_dict(as_series=False)
    assert table["topic"] == [0, 1, 2]
    assert table["least"] == pytest.approx([8 / (8 + 1.959964**2)] * 3)  # Wilson's lower limit of 8 of 8
    assert found.table["n_topics"].to_list() == [2, 3, 4]
    assert "3 topics" in found.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_topics": []}, "n_topics is empty"),
        ({"n_topics": 61}, "n_topics must be at most 60"),
        ({"n_topics": 3, "n_fits": 1}, "n_fits must be a whole number of at least 2"),
        ({"n_topics": 3, "resample": "words"}, "resample must be 'documents', 'counts' or 'none'"),
    ],
)
def test_wrong_arguments(planted, arguments, message):
    with pytest.raises(InputError, match=message):
        consensus(planted.counts(), **arguments)
