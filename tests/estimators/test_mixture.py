"""`MultinomialMixture`: the steps of a naive EM, the posterior of a document, planted topics of short texts."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimator_cases import X_WITH_GAPS, X
from polyseme import PLSA, InputError, MultinomialMixture

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks([MultinomialMixture()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def naive_step(data, weights, phi, shares, beta):
    """Return the objective at a point and the step of EM from it, document by document."""
    K, n_words = phi.shape
    counts, documents = np.full((K, n_words), beta), np.ones(K)
    objective = beta * np.log(phi).sum() + np.log(shares).sum()
    for row, weight in zip(data, weights, strict=True):
        if not row.any():
            continue
        logs = np.array([np.log(shares[k]) + sum(x * np.log(p) for x, p in zip(row, phi[k])) for k in range(K)])  # noqa: B905
        objective += weight * logsumexp(logs)
        posterior = np.exp(logs - logsumexp(logs))
        counts += weight * posterior[:, np.newaxis] * row
        documents += weight * posterior
    return objective, counts / counts.sum(axis=1, keepdims=True), documents / documents.sum()


def short_texts(seed):
    rng = np.random.default_rng(seed)
    topics, labels = rng.dirichlet(np.full(150, 0.2), 5), rng.integers(0, 5, 400)
    return np.array([rng.multinomial(4, topics[label]) for label in labels]), labels


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_iterations_are_those_of_naive_em(layout):
    data = short_texts(0)[0][:80, :60]  # some documents have no words
    rng = np.random.default_rng(0)
    start, weights = rng.dirichlet(np.ones(60), 3), rng.uniform(0.5, 2, 80)
    _, phi, shares = naive_step(data, weights, start, np.full(3, 1 / 3), 0.3)  # a start has no zeros
    expected = []
    for _ in range(6):
        found = phi, shares
        objective, phi, shares = naive_step(data, weights, *found, 0.3)
        expected.append(objective / (weights @ data.sum(axis=1)))
    model = MultinomialMixture(3, pseudo_counts=0.3, init=(None, start), max_iter=5, tol=0, dtype="float64")
    model.fit(layout(data), sample_weight=weights)
    np.testing.assert_allclose(model.history_["bound"], expected, rtol=1e-12)
    np.testing.assert_allclose(model.components_, found[0], rtol=1e-9)
    np.testing.assert_allclose(model.topic_shares_, found[1], rtol=1e-9)


@pytest.mark.parametrize("init", ["annealed", "random"])
def test_the_objective_never_decreases(init):
    model = MultinomialMixture(4, init=init, random_state=1, tol=0, max_iter=40).fit(short_texts(1)[0])
    assert model.n_iter_ > 5
    assert np.diff(model.history_["bound"]).min() > -1e-13


def test_the_weights_of_a_document_are_the_posterior_of_its_topic():
    model = MultinomialMixture(3, random_state=0, dtype="float64").fit(X_WITH_GAPS)
    logs = X_WITH_GAPS @ np.log(model.components_.T) + np.log(model.topic_shares_)
    np.testing.assert_allclose(
        model.transform(X_WITH_GAPS), np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), atol=1e-12
    )
    np.testing.assert_allclose(model.log_evidence_, logsumexp(logs, axis=1).sum(), rtol=1e-12)
    np.testing.assert_allclose(model.doc_topic_[0], model.topic_shares_)  # no words


def test_n_init_returns_the_best_start():
    data, heard = short_texts(2)[0], []
    model = MultinomialMixture(5, init="random", n_init=4, max_iter=3, tol=0, random_state=0, callback=heard.append)
    model.fit(data)
    ends = [entry["bound"] for entry in heard if entry["iteration"] == 3]
    assert len(set(ends)) == 4
    assert model.history_["bound"][-1] == max(ends)


def test_planted_topics_of_short_texts_are_found_better_than_by_plsa():
    data, labels = short_texts(0)
    mixture, plsa = (
        adjusted_mutual_info_score(labels, model.fit(data).doc_topic_.argmax(axis=1))
        for model in (MultinomialMixture(5, random_state=0), PLSA(5, init="random", random_state=0))
    )
    assert mixture > 0.7 > 0.5 > plsa


def test_held_out_halves_of_short_texts_are_predicted_better_than_by_plsa():
    data, _ = short_texts(0)
    mixture, plsa = (make(5, random_state=0).fit(data[::2]).score(data[1::2]) for make in (MultinomialMixture, PLSA))
    assert mixture > plsa + 0.1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"pseudo_counts": 0}, "pseudo_counts must be above 0"),
        ({"pseudo_counts": -1}, "pseudo_counts"),
        ({"init": "plsa"}, "init must be one of 'annealed', 'random' or (None, topic_word)"),
        ({"init": (X, X)}, "init must be one of 'annealed', 'random' or (None, topic_word), got tuple."),
        ({"init": (None, np.ones((3, 2)))}, "topic_word must be an array of shape"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_wrong_parameters_raise(parameters, words):
    with pytest.raises(InputError) as error:
        MultinomialMixture(**parameters).fit(X)
    assert words in str(error.value)
