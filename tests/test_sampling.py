"""Corpora drawn from LDA."""

import numpy as np
import pytest

from polyseme import InputError
from polyseme.sampling import sample_chunks, sample_corpus


def same(one, other):
    return (one.counts != other.counts).nnz == 0 and np.array_equal(one.doc_topic, other.doc_topic)


def test_the_seed_decides():
    assert same(sample_corpus(300, seed=1), sample_corpus(300, seed=1))
    assert not same(sample_corpus(300, seed=1), sample_corpus(300, seed=2))


def test_chunks_are_the_corpus():
    whole = sample_corpus(2500, 50, 4, seed=3)
    chunks = list(sample_chunks(2500, 50, 4, seed=3))
    assert [chunk.counts.shape[0] for chunk in chunks] == [1024, 1024, 452]
    assert np.array_equal(np.vstack([chunk.counts.toarray() for chunk in chunks]), whole.counts.toarray())
    first = next(sample_chunks(10**9, 50, 4, seed=3))
    assert same(first, chunks[0])


def test_shapes_and_sums():
    corpus = sample_corpus(200, 70, 5, doc_length=40, seed=0)
    assert corpus.counts.shape == (200, 70)
    assert corpus.counts.dtype == np.int64
    assert corpus.counts.has_canonical_format
    assert corpus.counts.data.min() >= 1
    np.testing.assert_allclose(corpus.doc_topic.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(corpus.topic_word.sum(axis=1), 1, rtol=1e-12)


def test_lengths_are_poisson():
    lengths = sample_corpus(20000, 5, 2, doc_length=7.0, seed=4).counts.sum(axis=1)
    assert lengths.mean() == pytest.approx(7, abs=0.1)
    assert lengths.var() == pytest.approx(7, abs=0.3)
    assert (lengths == 0).mean() == pytest.approx(np.exp(-7), abs=1e-3)


def test_weights_are_dirichlet():
    """Mean alpha / sum and variance m (1 - m) / (sum + 1)."""
    alpha = np.array([0.2, 0.5, 1.3])
    theta = sample_corpus(20000, 5, 3, doc_length=1, doc_topic_prior=alpha, seed=5).doc_topic
    mean = alpha / alpha.sum()
    np.testing.assert_allclose(theta.mean(axis=0), mean, atol=0.01)
    np.testing.assert_allclose(theta.var(axis=0), mean * (1 - mean) / (alpha.sum() + 1), atol=0.01)


def test_words_follow_theta_and_phi():
    """With long documents the counts are the product of the factors."""
    phi = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.25, 0.25, 0.5]])
    corpus = sample_corpus(50, doc_length=200000, doc_topic_prior=1.0, topic_word=phi, seed=6)
    assert np.array_equal(corpus.topic_word, phi)
    shares = corpus.counts.toarray() / corpus.counts.sum(axis=1)[:, np.newaxis]
    np.testing.assert_allclose(shares, corpus.doc_topic @ phi, atol=0.01)


def test_tiny_parameters_make_pure_documents():
    corpus = sample_corpus(100, 20, 3, doc_topic_prior=1e-5, topic_word_prior=1e-5, seed=7)
    np.testing.assert_allclose(corpus.doc_topic.max(axis=1), 1)
    assert np.isfinite(corpus.topic_word).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_docs": 0}, "n_docs must be at least 1"),
        ({"n_docs": 5, "doc_length": -1}, "doc_length must be"),
        ({"n_docs": 5, "doc_topic_prior": [0.1, 0.2]}, "doc_topic_prior must be one number, or 10 of them"),
        ({"n_docs": 5, "topic_word_prior": 0}, "topic_word_prior must be finite and greater than 0"),
        ({"n_docs": 5, "topic_word": [[0.5, 0.6]]}, "topic_word must be K x words"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        sample_corpus(**arguments)
