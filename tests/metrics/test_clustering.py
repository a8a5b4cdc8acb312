"""Agreement of topics with labels, against scikit-learn's figures and against drawn topics."""

import warnings
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import oracles
from polyseme import PLSA, InputError
from polyseme.metrics import label_agreement
from polyseme.metrics.clustering import hard_labels


def weights_and_labels(seed, n=200, K=5, n_labels=4, sharpness=0.3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_labels, size=n)
    alpha = np.full((n, K), sharpness) + 2 * (np.arange(K) == labels[:, np.newaxis] % K)
    return np.array([rng.dirichlet(a) for a in alpha]), labels


@pytest.mark.parametrize("seed", range(4))
def test_hard_measures_equal_scikit_learn(seed):
    theta, labels = weights_and_labels(seed, K=3 + seed)
    found, chosen = label_agreement(theta, labels), hard_labels(theta)
    assert found.nmi == pytest.approx(normalized_mutual_info_score(labels, chosen), rel=1e-12)
    assert found.ari == pytest.approx(adjusted_rand_score(labels, chosen), rel=1e-12)
    majority = sum(np.bincount(labels[chosen == k]).max() for k in set(chosen))
    assert found.purity == pytest.approx(majority / len(labels))
    assert (found.n_documents, found.n_labels) == (200, 4)


@pytest.mark.parametrize(
    ("chosen", "labels"),
    [
        ([0, 0, 0], [0, 0, 0]),
        ([0, 0, 0], [0, 1, 2]),
        ([0, 1, 2], [0, 0, 0]),
        ([0, 1, 2], [2, 0, 1]),
        ([0], [0]),
        ([0, 1, 0, 1], [0, 0, 1, 1]),
        ([0, 0, 1, 1], [0, 1, 2, 2]),
    ],
)
def test_edge_cases_equal_scikit_learn(chosen, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = label_agreement(np.eye(3)[chosen], labels)
        assert found.nmi == pytest.approx(normalized_mutual_info_score(labels, chosen), abs=1e-12)
        assert found.ari == pytest.approx(adjusted_rand_score(labels, chosen), abs=1e-12)
    assert (found.soft_nmi, found.soft_ari, found.soft_purity) == pytest.approx((found.nmi, found.ari, found.purity))


def test_soft_measures_of_one_hot_weights_equal_the_hard_ones():
    theta, labels = weights_and_labels(5)
    found = label_agreement(np.eye(5)[hard_labels(theta)], labels)
    assert (found.soft_nmi, found.soft_ari, found.soft_purity) == pytest.approx((found.nmi, found.ari, found.purity))


def test_soft_measures_equal_the_mean_over_drawn_topics():
    """The pairs behind the soft ARI are the mean over draws of every document's topic."""
    theta, labels = weights_and_labels(6, n=60)
    rng = np.random.default_rng(7)
    same_label = labels[:, np.newaxis] == labels
    both = together = 0.0
    n_draws = 3000
    for _ in range(n_draws):
        drawn = (theta.cumsum(axis=1) < rng.random((60, 1))).sum(axis=1)
        same_topic = drawn[:, np.newaxis] == drawn
        both += (np.triu(same_topic & same_label, 1)).sum() / n_draws
        together += np.triu(same_topic, 1).sum() / n_draws
    by_label = np.triu(same_label, 1).sum()
    chance = by_label * together / (60 * 59 / 2)
    found = label_agreement(theta, labels)
    assert found.soft_ari == pytest.approx((both - chance) / ((by_label + together) / 2 - chance), abs=0.01)
    joint = np.array([theta[labels == label].sum(axis=0) for label in range(4)]) / 60
    assert found.soft_purity == pytest.approx(joint.max(axis=0).sum())
    entropy = lambda p: -sum(x * np.log(x) for x in p.ravel() if x > 0)  # noqa: E731
    entropies = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1))
    assert found.soft_nmi == pytest.approx(2 * (entropies - entropy(joint)) / entropies, rel=1e-12)


def test_documents_without_a_label_are_ignored():
    theta, labels = weights_and_labels(8)
    some = [None if d % 3 == 0 else f"label {label}" for d, label in enumerate(labels)]
    known = np.arange(200) % 3 > 0
    assert label_agreement(theta, some) == label_agreement(theta[known], labels[known])
    nothing = label_agreement(theta, [""] * 200)
    assert (nothing.n_documents, nothing.n_labels, nothing.nmi, nothing.soft_purity) == (0, 0, 1, 1)


def test_labels_may_have_any_type():
    theta, labels = weights_and_labels(9)
    wanted = label_agreement(theta, labels)
    for other in (
        labels.astype(float),
        labels.astype(str),
        tuple(labels),
        ["one" if x == 0 else int(x) for x in labels],
    ):
        assert asdict(label_agreement(theta, other)) == pytest.approx(asdict(wanted), rel=1e-12)


def test_labels_of_the_wrong_length_raise():
    theta, labels = weights_and_labels(10)
    with pytest.raises(InputError, match=r"labels must have one entry for each of the 200 documents, got 199\."):
        label_agreement(theta, labels[1:])
    with pytest.raises(InputError, match="got the string 'sport'"):
        label_agreement(theta, "sport")


def test_hard_labels_are_the_first_of_equal_weights():
    assert hard_labels(np.array([[0.4, 0.4, 0.2], [0.2, 0.2, 0.6]])).tolist() == [0, 2]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_topics_find_planted_classes():
    rng = np.random.default_rng(11)
    labels = np.repeat([0, 1, 2], 50)
    phi = oracles.random_factors(12, 1, 60, 3)[1] ** 3
    phi /= phi.sum(axis=1, keepdims=True)
    X = np.array([rng.multinomial(80, phi[label]) for label in labels])
    found = label_agreement(PLSA(3, random_state=0).fit(X).doc_topic_, labels)
    assert min(found.nmi, found.ari, found.purity) > 0.95
    assert found.soft_nmi > 0.8
