"""Diversity, exclusivity, fit, stability, distances and distinctive words of labels, against plain loops."""

import math
import warnings
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import oracles
from polyseme import PLSA, InputError
from polyseme.metrics import (
    align,
    bootstrap_stability,
    distances,
    exclusivity,
    frex,
    stability,
    top_words,
    topic_diversity,
)
from polyseme.metrics.topics import effective_topics, fit_report, topic_fit, topic_redundancy, word_topics

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
METRICS = ("hellinger", "cosine", "symmetric-kl")


def test_top_words_are_the_largest_and_of_equal_ones_the_first():
    scores = np.array([[0.1, 0.4, 0.4, 0.1], [0.0, 0.0, 0.0, 1.0]])
    assert top_words(scores, 3).tolist() == [[1, 2, 0], [3, 0, 1]]
    assert top_words(scores, 9).shape == (2, 4)
    with pytest.raises(InputError, match="n_words must be a whole number of at least 1, got 0"):
        top_words(scores, 0)


# diversity and redundancy


def test_diversity_is_the_share_of_different_words():
    assert topic_diversity(np.array([[0, 1, 2], [2, 3, 4]])) == pytest.approx(5 / 6)
    assert topic_diversity(np.array([[0, 1], [0, 1]])) == 0.5
    assert topic_diversity(np.array([[0, 1]])) == 1
    assert topic_diversity(np.zeros((0, 10), dtype=int)) == 1


def test_redundancy_is_the_largest_share_that_one_other_topic_repeats():
    found = topic_redundancy(np.array([[0, 1, 2, 3], [3, 4, 5, 6], [2, 3, 0, 7], [8, 9, 10, 11]]))
    np.testing.assert_allclose(found.topics, [3 / 4, 1 / 4, 3 / 4, 0])
    assert found.twins.tolist() == [2, 0, 0, -1]


def test_a_single_topic_has_no_redundancy():
    found = topic_redundancy(np.array([[0, 1, 2]]))
    assert (found.topics.tolist(), found.twins.tolist()) == ([0], [-1])


# exclusivity


def naive_frex(phi, weight):
    K, V = phi.shape
    result = np.zeros((K, V))
    exclusive = [[phi[k, w] / sum(phi[:, w]) if sum(phi[:, w]) > 0 else 0 for w in range(V)] for k in range(K)]
    for k in range(K):
        for w in range(V):
            by_frequency = sum(phi[k, v] <= phi[k, w] for v in range(V)) / V
            by_exclusivity = sum(exclusive[k][v] <= exclusive[k][w] for v in range(V)) / V
            result[k, w] = 1 / (weight / by_exclusivity + (1 - weight) / by_frequency)
    return result


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.7, 1.0])
def test_frex_equals_naive_loops(weight):
    phi = oracles.random_factors(0, 1, 30, 4)[1]
    phi[:, 3] = 0
    phi[1, 5:9] = 0
    np.testing.assert_allclose(frex(phi, weight=weight), naive_frex(phi, weight), rtol=1e-13)


def test_exclusivity_is_the_mean_frex_of_the_top_words():
    phi = oracles.random_factors(1, 1, 30, 4)[1]
    top = top_words(phi, 5)
    wanted = [np.mean([naive_frex(phi, 0.7)[k, w] for w in top[k]]) for k in range(4)]
    np.testing.assert_allclose(exclusivity(phi, 5), wanted, rtol=1e-13)


def test_topics_without_shared_words_are_exclusive():
    phi = np.zeros((2, 40))
    phi[0, :20], phi[1, 20:] = np.arange(1, 21), np.arange(1, 21)
    shared = np.tile(np.arange(1.0, 41), (2, 1))
    assert exclusivity(phi / 210).min() > 0.9
    assert np.isfinite(exclusivity(shared / 820)).all()
    assert np.isfinite(exclusivity(shared[:1] / 820)).all()
    with pytest.raises(InputError, match="weight must be between 0 and 1, got 2"):
        frex(phi, weight=2)


# fit


def test_fit_report_ranks_and_counts_the_fitting_topics():
    doc_topic = np.array([[0.9, 0.1, 0.0, 0.0], [0.8, 0.2, 0.0, 0.0], [0.0, 0.4, 0.6, 0.0], [0.0, 0.4, 0.6, 0.0]])
    doc_weights = np.full(4, 0.25)
    report = fit_report(doc_topic, doc_weights)
    wanted = [(0.9**2 + 0.8**2) / 1.7, (0.1**2 + 0.2**2 + 2 * 0.4**2) / 1.1, 0.6, 0.0]
    np.testing.assert_allclose(report.fit, wanted, rtol=1e-14)
    np.testing.assert_allclose(report.carried, [1, 0, 1, 0])
    assert report.ranking.tolist() == [0, 2, 1, 3]
    assert (report.threshold, report.n_fitting) == (0.5, 2)
    assert report.fitting_weight == pytest.approx((1.7 + 1.2) / 4)
    assert fit_report(doc_topic, doc_weights, threshold=0.7).n_fitting == 1
    with pytest.raises(InputError, match=r"threshold must be between 0 and 1, got 1\.5"):
        fit_report(doc_topic, doc_weights, threshold=1.5)


def test_fit_report_of_a_model_is_its_topic_fit():
    model = PLSA(4, random_state=0, max_iter=50).fit(oracles.mixed_counts(2, 60, 40, 4))
    report = fit_report(model.doc_topic_, model.doc_weights_)
    np.testing.assert_allclose(report.fit, topic_fit(model.doc_topic_, model.topic_doc_), rtol=1e-12)


def test_effective_topics_are_exp_of_the_entropy():
    theta = np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.7, 0.2, 0.1]])
    last = math.exp(-sum(p * math.log(p) for p in (0.7, 0.2, 0.1)))
    np.testing.assert_allclose(effective_topics(theta), [1, 3, 2, last], rtol=1e-14)


# stability


def test_the_same_topics_in_another_order_are_stable():
    phi = oracles.random_factors(3, 1, 50, 6)[1]
    order = np.random.default_rng(4).permutation(6)
    found = stability(phi, [phi[order], phi])
    np.testing.assert_allclose(found.topics, 1)
    np.testing.assert_allclose(found.words, 1)
    assert np.array_equal(order[found.partners[0]], np.arange(6))
    assert found.mean == pytest.approx(1)


def test_stability_has_a_value_for_each_topic():
    phi = np.eye(4, 20)
    other = phi.copy()
    other[2] = 0
    other[2, 10:] = 0.1
    found = stability(phi, [phi, other[[3, 2, 1, 0]]], n_words=3)
    np.testing.assert_allclose(found.topics, [1, 1, 0.5, 1])
    np.testing.assert_allclose(found.runs[1], [1, 1, 0, 1])
    assert found.words[2] < found.words[0] == 1


def test_matching_is_optimal():
    """All other assignments are tried, and none is better."""
    from itertools import permutations

    phi, other = oracles.random_factors(5, 1, 12, 5)[1], oracles.random_factors(6, 1, 12, 5)[1]
    best = max(
        np.mean([1 - 0.5 * np.abs(phi[k] - other[j]).sum() for k, j in enumerate(order)])
        for order in permutations(range(5))
    )
    assert stability(phi, [other]).mean == pytest.approx(best, rel=1e-12)


def test_runs_with_fewer_topics_leave_some_without_a_partner():
    phi = oracles.random_factors(7, 1, 30, 4)[1]
    found = stability(phi, [phi[:2]])
    np.testing.assert_allclose(found.topics, [1, 1, 0, 0])
    np.testing.assert_allclose(found.words, [1, 1, 0, 0])
    assert found.partners.tolist() == [[0, 1, -1, -1]]
    assert stability(phi[:2], [phi]).mean == pytest.approx(1)


def test_planted_topics_are_stable_in_bootstrap_samples_and_noise_is_not():
    rng = np.random.default_rng(8)
    phi = np.kron(np.eye(3), np.ones(10)) / 10
    X = np.array([rng.multinomial(60, p) for p in rng.dirichlet(np.full(3, 0.2), 150) @ phi])
    noise = rng.multinomial(60, np.full(30, 1 / 30), size=150)
    planted, none = (
        bootstrap_stability(PLSA(3, random_state=0).fit(data), sp.csr_array(data), n_samples=3) for data in (X, noise)
    )
    assert planted.runs.shape == (3, 3)
    assert planted.topics.min() > 0.85
    assert planted.words.min() > 0.85
    assert none.mean < planted.topics.min() - 0.1
    assert none.words.mean() < 0.7
    calls = []
    fitted = PLSA(3, random_state=0).fit(X)
    again = bootstrap_stability(fitted, X, n_samples=3, progress=lambda done, of: calls.append((done, of)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert np.array_equal(again.topics, planted.topics)


def test_stability_without_runs_or_a_fit_raises():
    phi = oracles.random_factors(9, 1, 30, 4)[1]
    with pytest.raises(InputError, match="needs at least one other run"):
        stability(phi, [])
    with pytest.raises(InputError, match="over the same 30 words"):
        stability(phi, [phi[:, :20]])
    with pytest.raises(InputError, match="n_samples must be at least 1, got 0"):
        bootstrap_stability(PLSA(2).fit(np.ones((4, 3))), np.ones((4, 3)), n_samples=0)
    with pytest.raises(InputError, match="call fit first"):
        bootstrap_stability(PLSA(2), np.ones((4, 3)))


# distances


def naive_distance(p, q, metric, smoothing):
    if metric == "hellinger":
        return math.sqrt(max(0.0, 0.5 * sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in zip(p, q, strict=True))))
    if metric == "cosine":
        lengths = math.sqrt(sum(a * a for a in p) * sum(b * b for b in q))
        return 1 - sum(a * b for a, b in zip(p, q, strict=True)) / lengths
    p, q = ([(1 - smoothing) * a + smoothing / len(p) for a in row] for row in (p, q))
    total = 0.0
    for a, b in zip(p, q, strict=True):
        if (a == 0) != (b == 0):
            return math.inf
        total += (a - b) * math.log(a / b) if a > 0 else 0.0
    return total


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_distances_equal_naive_loops(metric, smoothing, form):
    X = oracles.random_counts(10, 9, 12, density=0.4, empty_rows=[2])
    Y = oracles.random_counts(11, 5, 12, density=0.9)
    X[3], X[4] = 2 * Y[1], X[5]
    P, Q = X.copy(), Y.copy()
    P[2] = 1
    P, Q = P / P.sum(axis=1, keepdims=True), Q / Q.sum(axis=1, keepdims=True)
    wanted = [[naive_distance(p, q, metric, smoothing) for q in Q] for p in P]
    np.testing.assert_allclose(distances(form(X), form(Y), metric, smoothing=smoothing), wanted, rtol=1e-7, atol=2e-8)
    wanted = [[naive_distance(p, q, metric, smoothing) for q in P] for p in P]
    among = distances(form(X), metric=metric, smoothing=smoothing)
    np.testing.assert_allclose(among, wanted, rtol=1e-7, atol=2e-8)
    assert np.array_equal(np.diag(among), np.zeros(9))


@pytest.mark.parametrize("metric", METRICS)
def test_distances_of_a_model_have_no_nan(metric):
    X = oracles.random_counts(12, 30, 20, empty_rows=[0], empty_words=[4])
    model = PLSA(1, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, model.doc_topic_, model.components_, word_topics(model.components_, model.topic_weights_)):
            assert np.isfinite(distances(rows, metric=metric)).all()


def test_word_topics_follow_from_bayes_rule():
    phi, weights = oracles.random_factors(13, 1, 8, 3)[1], np.array([0.5, 0.3, 0.2])
    phi[:, 5] = 0
    found = word_topics(phi, weights)
    for w in range(8):
        total = sum(weights[k] * phi[k, w] for k in range(3))
        wanted = [weights[k] * phi[k, w] / total if total else 0 for k in range(3)]
        np.testing.assert_allclose(found[w], wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((np.ones((2, 3)),), {"metric": "kl"}, "metric must be one of symmetric-kl, hellinger, cosine, got 'kl'"),
        ((np.ones((2, 3)), np.ones((2, 4))), {}, "same number of columns, got 3 and 4"),
        ((-np.ones((2, 3)),), {}, "finite and non-negative"),
        ((sp.csr_array([[np.nan, 1.0]]),), {}, "finite and non-negative"),
        ((np.ones(3),), {}, "rows of a matrix, got 1 dimensions"),
        ((np.ones((2, 3)),), {"smoothing": 1.0}, "smoothing must be at least 0 and below 1"),
    ],
)
def test_distances_of_wrong_arguments_raise(arguments, options, sentence):
    with pytest.raises(InputError, match=sentence):
        distances(*arguments, **options)


# words of labels


class Recorder(BaseEstimator):
    """An estimator that records the documents that it is fitted to."""

    fits: ClassVar[list[np.ndarray]] = []

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X):
        self.fits.append(np.asarray(X))
        self.components_ = np.ones((1, X.shape[1])) / X.shape[1]
        return self


def test_bootstrap_samples_are_drawn_with_replacement():
    Recorder.fits.clear()
    X = np.diag(np.arange(1.0, 101))  # rows are different
    bootstrap_stability(Recorder().fit(X), X, n_samples=20)
    drawn = [sample.sum(axis=1).astype(int) for sample in Recorder.fits[1:]]
    assert all(len(rows) == 100 for rows in drawn)
    shares = [len(set(rows)) / 100 for rows in drawn]
    assert np.mean(shares) == pytest.approx(1 - (1 - 1 / 100) ** 100, abs=0.03)  # 0.634, with an error below 0.007
    assert len({tuple(rows) for rows in drawn}) == 20


def test_topics_are_matched_by_any_metric():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(20, 0.2), 5)
    others = topics[[3, 0, 4, 1]] + 0.001
    expected = np.array([1, 3, -1, 0, 2])
    for metric in ("total-variation", "cosine", "hellinger", "symmetric-kl"):
        order, distance = align(topics, others, metric)
        assert np.array_equal(order, expected), metric
        assert distance[2] == (np.inf if metric == "symmetric-kl" else 1)
        assert distance[[0, 1, 3, 4]].max() < 0.3
    p, q = topics[0], others[1]
    cosine = 1 - p @ q / np.sqrt((p @ p) * (q @ q))
    assert align(topics, others, "cosine")[1][0] == pytest.approx(cosine, abs=1e-9)
