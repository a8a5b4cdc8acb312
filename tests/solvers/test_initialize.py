"""Starts of a fit from documents that are far apart."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import LDA, NMF, PLSA
from polyseme.data.disk import LocalShards
from polyseme.scale import open_shards, write_shards
from polyseme.solvers import initialize
from polyseme.solvers.initialize import document_topics, random_topics, spectral_topics
from solver_problems import make_corpus

X = oracles.mixed_counts(0, 60, 45, 4).astype(float)


def start(data, n_topics=4, seed=0, weights=None):
    return document_topics(make_corpus(data, weights=weights), n_topics, np.random.default_rng(seed))


def means(data, n_topics=4, seed=0):
    """Return the half of the topics that comes from documents."""
    noise = random_topics(make_corpus(data), n_topics, np.random.default_rng(seed))
    return 2 * start(data, n_topics, seed) - noise


def test_each_topic_is_half_the_mean_of_the_documents_nearest_to_one_and_half_noise():
    data = X[:12] + 0.5
    shares = data / data.sum(axis=1, keepdims=True)
    similarity = np.sqrt(shares) @ np.sqrt(shares).T
    found = means(data, 3)
    assert any(
        np.allclose(found.T, [shares[similarity[:, chosen].argmax(axis=1) == z].mean(axis=0) for z in range(3)])
        for chosen in itertools.permutations(range(12), 3)
    )


def test_a_document_without_a_word_of_the_chosen_ones_is_in_no_group():
    """One topic: its documents have the words of the one that was drawn."""
    data = np.kron(np.eye(2), np.ones((3, 4)))
    for seed in range(5):
        assert sorted(means(data, 1, seed)[:, 0].round(9)) == [0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25]


def test_documents_that_are_equal_to_chosen_ones_are_never_chosen():
    data = np.repeat(np.eye(4)[:3] + 1, 50, axis=0)
    np.testing.assert_allclose(np.unique(means(data, 3).round(9), axis=1).T, np.unique(data, axis=0) / 5, atol=1e-8)
    assert np.isfinite(start(data, 5)).all()  # only three documents differ


@pytest.mark.parametrize("most", [1 << 18, 200])
def test_the_start_depends_on_the_set_of_shares_only(most, monkeypatch, tmp_path):
    monkeypatch.setattr(initialize, "_ENOUGH_NONZEROS", most)
    monkeypatch.setattr(initialize, "_DOCUMENTS_PER_TOPIC", 1)
    rng = np.random.default_rng(1)
    times = rng.integers(1, 4, len(X))
    expected = start(X)
    assert not np.array_equal(expected, start(X, seed=1))
    order = rng.permutation(len(X))
    np.testing.assert_allclose(start(X[order]), expected, rtol=1e-12)
    np.testing.assert_allclose(start(X, weights=times.astype(float)), start(X.repeat(times, axis=0)), rtol=1e-12)
    assert np.array_equal(start(np.vstack([X, X])), expected)
    np.testing.assert_allclose(start(X / 7), expected, rtol=1e-12)
    np.testing.assert_allclose(means(X * times[:, np.newaxis]), means(X), atol=1e-12)
    rounded = np.float32(X / 7)
    np.testing.assert_allclose(start(rounded), start(rounded.astype(float)), rtol=1e-5)
    for size in (7, 60):
        write_shards([X[i : i + size] for i in range(0, 60, size)], tmp_path / f"{size}", shard_nonzeros=300)
        with open_shards(tmp_path / f"{size}").session(np.dtype(np.float64), 1) as corpus:
            assert isinstance(corpus, LocalShards)
            assert np.array_equal(document_topics(corpus, 4, np.random.default_rng(0)), expected)


@pytest.mark.parametrize("make", [PLSA, NMF, LDA], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("n", "blocks"), [(3, 3), (10, 8)])
def test_disjoint_blocks_are_always_found(make, n, blocks):
    """Scikit-learn's test of LDA has three such blocks; from random topics PLSA finds 91 of 100."""
    data = sp.csr_array(np.kron(np.eye(blocks), np.full((n, n), 2.0)))
    for seed in range(100):
        topics = make(blocks, random_state=seed, n_jobs=1).fit(data).components_
        by_block = topics.reshape(blocks, blocks, n).sum(axis=2)
        assert sorted(by_block.argmax(axis=1)) == list(range(blocks)), seed


@pytest.mark.parametrize("n_topics", [6, 9])
@pytest.mark.parametrize("seed", range(3))
def test_the_spectral_start_finds_topics_with_anchor_words_if_there_is_no_noise(n_topics, seed):
    """Of nine topics three are random, because the counts have the rank six."""
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(80, 0.2), 6), rng.dirichlet(np.full(6, 0.3), 200)
    topics[:, :6] = np.diag(rng.uniform(0.05, 0.3, 6))
    topics /= topics.sum(axis=1, keepdims=True)
    corpus = make_corpus(weights @ topics * rng.integers(50, 500, (200, 1)))
    phi = spectral_topics(corpus, n_topics, np.random.default_rng(0))
    found = (phi[:, :6] - initialize._UNIGRAM_SHARE * corpus.unigram[:, np.newaxis]) / (1 - initialize._UNIGRAM_SHARE)
    order = found[:6].argmax(axis=0)
    np.testing.assert_allclose(found[:, np.argsort(order)].T, topics, atol=1e-10)
    np.testing.assert_allclose(phi.sum(axis=0), 1, rtol=1e-12)


def test_the_spectral_start_does_not_depend_on_the_seed_or_on_threads():
    first, *others = (
        PLSA(4, init="spectral", random_state=seed, n_jobs=n_jobs).fit(X) for seed, n_jobs in ((0, 1), (1, 1), (0, 2))
    )
    for other in others:
        assert np.array_equal(other.components_, first.components_)
        assert np.array_equal(other.doc_topic_, first.doc_topic_)
