"""New topics: held-out topics, EM beside fixed topics, the permutation test, and planted corpora."""

from itertools import combinations

import numpy as np
import pytest

from polyseme import PLSA
from polyseme.core.shard import sparse_counts
from polyseme.datasets import synthetic_corpus
from polyseme.selection import new_topics as module
from polyseme.selection.new_topics import (
    Reference,
    find_new_topics,
    fit_beside,
    fit_new_topics,
    given_topics,
    held_out_topics,
)

N_TOPICS = 5
PLANTED = synthetic_corpus(1, n_topics=N_TOPICS + 2, n_words=400, random_state=0).topic_word


def counts_of(topics: list[int], n_documents: int, seed: int, prior: float | list[float] = 0.15):
    corpus = synthetic_corpus(n_documents, topic_word=PLANTED[topics], doc_topic_prior=prior, random_state=seed)
    return sparse_counts(corpus.counts(), np.dtype(np.float32))


OLD = counts_of(list(range(N_TOPICS)), 500, 1)
MODEL = PLSA(N_TOPICS, random_state=0).fit(OLD.matrix())


def reference(rows: np.ndarray) -> Reference:
    tokens = (MODEL.doc_topic_ * OLD.totals[:, np.newaxis]).sum(axis=0)
    trained = np.ones((rows.size, N_TOPICS), dtype=bool)
    known, documents = OLD.take(rows), MODEL._training.take(rows)
    topics = held_out_topics(MODEL._fitted, documents, known, tokens, trained, n_threads=1)
    return Reference(topics, MODEL._fitted.inference, known)


REFERENCE = reference(np.arange(0, 500, 5))


def test_held_out_topics_are_those_of_the_other_documents() -> None:
    rows = np.arange(0, 500, 5)
    X, theta, phi = (
        OLD.matrix().toarray().astype(float),
        MODEL.doc_topic_.astype(float),
        MODEL.components_.astype(float),
    )
    q = theta @ phi
    posterior = theta[rows, :, np.newaxis] * phi / np.maximum(q[rows, np.newaxis, :], 1e-300)
    left = phi * (theta * X.sum(axis=1, keepdims=True)).sum(axis=0)[:, np.newaxis]
    left = np.maximum(left - (X[rows, np.newaxis, :] * posterior).sum(axis=0), 0)
    expected = 0.99 * left / left.sum(axis=1, keepdims=True) + 0.01 * MODEL.unigram_
    np.testing.assert_allclose(REFERENCE.topic_word, expected, rtol=1e-3, atol=1e-7)


def test_topics_that_were_not_fitted_to_the_documents_stay() -> None:
    rows, trained = np.arange(20), np.zeros((20, N_TOPICS), dtype=bool)
    trained[:10, 0] = True
    tokens = (MODEL.doc_topic_ * OLD.totals[:, np.newaxis]).sum(axis=0)
    topics = held_out_topics(MODEL._fitted, MODEL._training.take(rows), OLD.take(rows), tokens, trained, n_threads=1)
    smoothed = 0.99 * MODEL.components_ + 0.01 * MODEL.unigram_
    np.testing.assert_allclose(topics[1:], smoothed[1:], rtol=1e-5)
    assert np.abs(topics[0] - smoothed[0]).sum() > 1e-3


def test_em_beside_fixed_topics_is_em(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_ITER", 4)
    monkeypatch.setattr(module, "_MOVED", -1.0)
    new = counts_of([0, 1, 5], 60, 2)
    start = np.random.default_rng(0).dirichlet(np.ones(400), size=2)
    found = fit_beside(REFERENCE, new, start, n_threads=2)
    X = new.matrix().toarray().astype(float)
    old = REFERENCE.inference.weights(new, REFERENCE.topic_word, None, n_threads=1).doc_topic
    theta = np.hstack([0.9 * old, np.full((60, 2), 0.05)])
    phi = np.vstack([REFERENCE.topic_word, 0.99 * start + 0.01 * X.sum(axis=0) / X.sum()]).astype(float)
    logs = []
    for _ in range(4):
        q = theta @ phi
        logs.append((X * np.log(np.where(X > 0, q, 1))).sum())
        ratio = np.divide(X, q, out=np.zeros_like(X), where=X > 0)
        expected = phi * (theta.T @ ratio)
        theta *= ratio @ phi.T
        theta /= theta.sum(axis=1, keepdims=True)
        phi[N_TOPICS:] = (expected / expected.sum(axis=1, keepdims=True))[N_TOPICS:]
    np.testing.assert_allclose(found, phi[N_TOPICS:], rtol=2e-3, atol=1e-6)
    assert (np.diff(logs) > 0).all()


def test_the_p_value_is_that_of_all_permutations() -> None:
    rng = np.random.default_rng(0)
    new, old = rng.exponential(2, size=5), rng.exponential(1, size=6)
    values = np.concatenate([new, old])
    sums = [values[list(chosen)].sum() for chosen in combinations(range(11), 5)]
    exact = np.mean(np.array(sums) >= new.sum() - 1e-9)
    found = module._p_value(new, np.zeros(5, int), old, np.zeros(6, int), np.random.default_rng(1))
    assert abs(found - exact) < 0.02


def test_a_main_topic_with_documents_of_one_kind_is_no_evidence() -> None:
    rng = np.random.default_rng(0)
    assert module._p_value(np.full(5, 9.0), np.zeros(5, int), np.zeros(5), np.ones(5, int), rng) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_topic_is_found(seed: int) -> None:
    new = counts_of([0, 1, 2, 3, 5], 150, 10 + seed)
    found = find_new_topics(REFERENCE, new, random_state=seed, n_threads=1)
    assert found is not None
    assert found.p_value <= module.FALSE_ALARMS
    assert found.new.sum() == 1
    topics = fit_new_topics(MODEL._fitted, REFERENCE, new, found.start, n_threads=1)
    distances = np.abs(PLANTED - topics[found.new][0]).sum(axis=1) / 2
    assert distances.argmin() == 5
    assert distances[5] < 0.35  # at most 0.29 for ten other seeds


def test_a_fit_without_fixed_topics_starts_what_is_more_frequent() -> None:
    first, second = counts_of([0, 1, 2, 3, 5], 100, 60), counts_of([0, 1, 2, 3, 5], 100, 61)
    search = module._Search(REFERENCE, REFERENCE.counts, first, second, np.random.default_rng(0), 1)
    topics = search.more_frequent(0)
    distances = np.abs(PLANTED[:, np.newaxis] - topics).sum(axis=2) / 2
    assert 5 in distances.argmin(axis=0)
    assert len(topics) < N_TOPICS + module._FREE


@pytest.mark.parametrize("prior", [[0.15] * 5, [0.45, 0.001, 0.15, 0.15, 0.15]])
def test_topics_that_only_grow_and_fade_are_not_new(prior: list[float]) -> None:
    new = counts_of(list(range(N_TOPICS)), 150, 20, prior)
    found = find_new_topics(REFERENCE, new, random_state=0, n_threads=1)
    assert found is not None
    assert found.p_value > 0.05
    assert not found.new.any()


def test_a_given_number_of_topics_is_fitted() -> None:
    new = counts_of([0, 1, 5, 6], 200, 30)
    topics = given_topics(REFERENCE, new, 2, random_state=0, n_threads=1)
    distances = np.abs(PLANTED[:, np.newaxis] - topics).sum(axis=2) / 2
    assert sorted(distances.argmin(axis=0)) == [5, 6]


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    new = counts_of([0, 1, 2, 3, 5], 150, 40)
    one, two = (find_new_topics(REFERENCE, new, random_state=0, n_threads=n) for n in (1, 2))
    assert one is not None
    assert two is not None
    assert one.p_value == two.p_value
    assert np.array_equal(one.start, two.start)


def test_too_few_documents_are_not_tested() -> None:
    assert find_new_topics(REFERENCE, counts_of([0, 5], 19, 50), random_state=0, n_threads=1) is None
