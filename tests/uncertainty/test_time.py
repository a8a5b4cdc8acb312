"""Words of topics by period: the linear system, and the shrinkage chosen by held-out documents."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import PLSA
from polyseme.core.shard import sparse_counts
from polyseme.uncertainty.time import Shrinkage, period_tokens, shrunk

RNG = np.random.default_rng(0)
TOPIC = RNG.dirichlet(np.ones(8))


def test_shrunk_words_are_the_fixed_point_of_the_m_step():
    tokens = RNG.integers(0, 40, (5, 8)).astype(float)
    tokens[2] = 0
    s, share = 30.0, 0.6
    found = shrunk(tokens, TOPIC, Shrinkage(s, share, 0.0))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found > 0).all()
    for t in range(5):
        near = np.mean([found[n] for n in (t - 1, t + 1) if 0 <= n < 5], axis=0)
        expected = (tokens[t] + s * ((1 - share) * TOPIC + share * near)) / (tokens[t].sum() + s)
        np.testing.assert_allclose(found[t], expected)


def test_strong_and_infinite_shrinkage_give_the_topic():
    tokens = RNG.integers(0, 40, (3, 8)).astype(float)
    np.testing.assert_allclose(shrunk(tokens, TOPIC, Shrinkage(1e9, 0.5, 0.0)), np.tile(TOPIC, (3, 1)), atol=1e-6)
    np.testing.assert_array_equal(shrunk(tokens, TOPIC, Shrinkage(np.inf, 0.0, 0.0)), np.tile(TOPIC, (3, 1)))
    np.testing.assert_allclose(shrunk(tokens[:1], TOPIC, Shrinkage(10.0, 0.9, 0.0)).sum(), 1)


def corpus(change, n_docs=600, n_periods=6):
    """Return counts, and the period of each document: the words of both topics move linearly to other distributions."""
    topics = np.random.default_rng(1).dirichlet(np.full(40, 0.3), 4)
    numbers = np.arange(n_docs) % n_periods
    rows = []
    for d in range(n_docs):
        at = change * numbers[d] / (n_periods - 1)
        now = (1 - at) * topics[:2] + at * topics[2:]
        rows.append(RNG.multinomial(50, RNG.dirichlet([0.3, 0.3]) @ now))
    return sp.csr_array(np.array(rows)), numbers, topics


@pytest.mark.parametrize("change", [0.0, 0.5])
def test_held_out_documents_show_whether_words_change(change):
    X, numbers, topics = corpus(change)
    model = PLSA(2, init=(None, topics[:2] + 0.3 * topics[2:]), n_jobs=1)
    model.set_params(init=(None, model.init[1] / model.init[1].sum(axis=1, keepdims=True)))
    fitted = model.fit(X)._fitted
    tokens, shrinkage = period_tokens(sparse_counts(X, np.dtype(np.float32)), fitted, numbers, 6, 0)
    assert sum(part.sum() for part in tokens) == pytest.approx(X.sum(), rel=1e-4)
    if change == 0:
        assert shrinkage.gain < 0.002
        return
    assert shrinkage.gain > 0.01
    assert shrinkage.strength < 1e5
    own = shrunk(tokens[0].toarray(), fitted.topic_word[0], shrinkage)
    truth = [(1 - change * t / 5) * topics[0] + change * t / 5 * topics[2] for t in range(6)]
    still = np.abs(fitted.topic_word[0] - truth).sum(axis=1)
    assert (np.abs(own - truth).sum(axis=1)[[0, 5]] < 0.7 * still[[0, 5]]).all()


def test_documents_without_a_period_are_ignored():
    X, numbers, topics = corpus(0.0, 60)
    fitted = PLSA(2, init=(None, topics[:2]), n_jobs=1).fit(X)._fitted
    numbers = np.where(numbers == 3, -1, numbers)
    tokens, _ = period_tokens(sparse_counts(X, np.dtype(np.float32)), fitted, numbers, 6, 0)
    assert sum(part.sum() for part in tokens) == pytest.approx(X.toarray()[numbers >= 0].sum(), rel=1e-4)
    assert tokens[0][[3]].sum() == 0
