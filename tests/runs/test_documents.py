"""Documents of topics, compared with a naive implementation."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import PLSA
from polyseme.core.fitted import FittedTopics, TrainingDocuments, symmetric_view
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.metrics.topics import topic_fit
from polyseme.runs.documents import Labels
from polyseme.runs.typical import topic_documents

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

K = 6


def corpus(seed=0):
    """Return documents of very different lengths; the last ten are copies of the first ten."""
    rng = np.random.default_rng(seed)
    theta, phi = rng.dirichlet(np.full(K, 0.3), 200), rng.dirichlet(np.full(80, 0.1), K)
    X = np.array([rng.multinomial(size, p) for size, p in zip(rng.geometric(1 / 40, 200), theta @ phi, strict=True)])
    X[[3, 50]] = 0
    return np.vstack([X, X[:10]]).astype(np.float64)


def naive(model, X, n, ranked=10, most_topics=3):
    """Return the documents of each topic and all scores, computed without blocks."""
    background = model.background_
    scores = oracles.explained_nats(
        X, model.doc_topic_, model.components_, model.unigram_, model.doc_background_, background
    )  # fmt: skip
    lengths = X.sum(axis=1)
    known, first = {}, []
    for d, row in enumerate(X):
        first.append(known.setdefault(row.tobytes(), d) == d)
    usable = np.array(first) & (lengths >= np.median(lengths[lengths > 0]) / 2)
    pairs = sorted((-scores[d, z], z, d) for d in np.flatnonzero(usable) for z in range(K) if scores[d, z] > 0)
    lists, taken = [[] for _ in range(K)], dict.fromkeys(range(len(X)), 0)
    for _, z, d in pairs:
        if len(lists[z]) < ranked and taken[d] < most_topics:
            lists[z].append(int(d))
            taken[d] += 1
    return [rows[:n] for rows in lists], scores


def made_by_hand(topic_word, unigram, doc_topic, lengths):
    """Return a fitted model without a background, and documents of these lengths."""
    doc_weights = lengths / lengths.sum()
    fitted = FittedTopics(
        topic_word, doc_weights @ doc_topic, unigram, np.ones(len(topic_word), dtype=bool), float(lengths.sum()),
        float(len(lengths)), MaximumLikelihood(),
    )  # fmt: skip
    return fitted, TrainingDocuments(doc_weights, doc_topic, np.zeros(len(lengths)))


@pytest.mark.parametrize("at_once", [1, 1 << 22])
@pytest.mark.parametrize("background", [0.0, 0.3])
def test_the_documents_of_a_topic_are_those_it_explains_best(at_once, background, monkeypatch):
    monkeypatch.setattr("polyseme.runs.typical._NUMBERS_PER_BLOCK", at_once)
    X = corpus()
    model = PLSA(K, background=background, random_state=0, dtype="float64", max_iter=50).fit(X)
    parts = [sp.csr_array(X[:70]), sp.csr_array(X[70:])]
    found = topic_documents(model._fitted, model._training, parts, 4)
    expected, scores = naive(model, X, 4)
    assert found.documents == expected
    for topic, rows in enumerate(expected):
        np.testing.assert_allclose(found.scores[topic], scores[rows, topic], rtol=1e-8)
        assert len(rows) == 4


def test_a_document_of_words_that_no_other_has_is_not_the_typical_one():
    """Documents 0 to 29 share the words of topic 0, which occur elsewhere as well; document 30 has its own words."""
    X = np.zeros((61, 30))
    X[:30, :10], X[30, 10:20], X[31:, 20:], X[31:, :10] = 3, 3, 3, 1
    theta = np.repeat([[1.0, 0.0], [0.0, 1.0]], [31, 30], axis=0)
    phi = theta.T @ X
    model = made_by_hand(phi / phi.sum(axis=1, keepdims=True), X.sum(axis=0) / X.sum(), theta, X.sum(axis=1))
    found = topic_documents(*model, [sp.csr_array(X)], 3)
    assert found.documents[0][0] == 0


def test_a_shorter_list_is_the_beginning_of_a_longer_one():
    X = corpus()
    model = PLSA(K, random_state=0).fit(X)
    longer, shorter = (topic_documents(model._fitted, model._training, [sp.csr_array(X)], n).documents for n in (10, 2))
    assert [rows[:2] for rows in longer] == shorter
    assert topic_documents(model._fitted, model._training, [sp.csr_array(X)], 0).documents == [[]] * K


def test_a_document_is_listed_for_at_most_three_topics_and_a_copy_for_none():
    rng = np.random.default_rng(1)
    n_docs = 30
    theta = np.full((n_docs, K), 1 / K)
    phi = rng.dirichlet(np.ones(40), K)
    X = np.tile(rng.integers(1, 5, 40), (n_docs, 1)).astype(float)
    X[:5] += np.eye(40)[:5]  # five documents and 25 copies of one more
    found = topic_documents(*made_by_hand(phi, X.sum(axis=0) / X.sum(), theta, X.sum(axis=1)), [sp.csr_array(X)], 10)
    rows = [row for documents in found.documents for row in documents]
    assert set(rows) <= set(range(6))
    assert max(rows.count(row) for row in rows) == 3


def test_a_document_of_exactly_half_the_median_length_is_listed():
    """The lengths are stored as P(d), whose rounding must not decide."""
    for n_docs in range(5, 60):
        lengths = np.array([2, *[3] * n_docs, *[5] * (n_docs + 1)])  # the median is 4
        X = np.zeros((len(lengths), 2))
        X[0, 0], X[1:, 1] = lengths[0], lengths[1:]
        doc_topic = np.where(np.arange(len(lengths))[:, np.newaxis] == 0, [1.0, 0.0], [0.0, 1.0])
        fitted = made_by_hand(np.array([[0.9, 0.1], [0.1, 0.9]]), np.full(2, 0.5), doc_topic, lengths)
        assert topic_documents(*fitted, [sp.csr_array(X)], 3).documents[0] == [0]


def test_a_topic_without_documents_has_none():
    X = corpus()
    model = PLSA(K, random_state=0).fit(X)
    model.doc_topic_[:, 2] = 0
    found = topic_documents(model._fitted, model._training, [sp.csr_array(X)], 3)
    assert found.documents[2] == []
    assert found.fit[2] == 0


@pytest.mark.parametrize("at_once", [1, 1 << 22])
def test_fit_and_labels_block_by_block(at_once, monkeypatch):
    monkeypatch.setattr("polyseme.runs.typical._NUMBERS_PER_BLOCK", at_once)
    rng = np.random.default_rng(0)
    theta = rng.dirichlet(np.ones(4), 300)
    theta[:, 2] = 0
    theta /= theta.sum(axis=1, keepdims=True)
    lengths = rng.integers(1, 50, 300).astype(float)
    labels = [str(value) if value else None for value in rng.integers(0, 3, 300)]
    model = made_by_hand(rng.dirichlet(np.ones(9), 4), np.full(9, 1 / 9), theta, lengths)
    found = topic_documents(*model, [], 0, Labels.of([label or "" for label in labels], np.arange(300)))
    view = symmetric_view(theta, lengths / lengths.sum())
    np.testing.assert_allclose(found.fit, topic_fit(theta, view.topic_doc) * (view.topic_weights > 0), atol=1e-15)
    for topic in range(4):
        for number, name in enumerate(["", "1", "2"]):
            mine = [row for row, label in enumerate(labels) if (label or "") == name]
            assert found.shares[topic, number] == pytest.approx(view.topic_doc[topic, mine].sum())
