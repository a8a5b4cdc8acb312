"""Corpora that are drawn from known models."""

from itertools import islice

import numpy as np
import pytest

from polyseme import PLSA, InputError
from polyseme.datasets import sample_chunks, sample_corpus, synthetic_corpus


@pytest.mark.parametrize("model", ["lda", "plsa"])
class TestModels:
    def test_counts_follow_the_known_model(self, model):
        corpus = synthetic_corpus(2000, n_topics=5, n_words=400, model=model, random_state=3)
        theta, counts = corpus.doc_topic(), corpus.counts()
        assert theta.shape == (2000, 5)
        assert counts.shape == (2000, 400)
        assert counts.dtype == np.int32
        np.testing.assert_allclose(theta.sum(axis=1), 1.0)
        np.testing.assert_allclose(corpus.topic_word.sum(axis=1), 1.0)
        lengths = counts.sum(axis=1)
        assert abs(lengths.mean() - 100) < 4
        expected = (lengths @ theta) @ corpus.topic_word
        observed = counts.sum(axis=0)
        common = expected > 5
        chi_squared = np.sum((observed - expected)[common] ** 2 / expected[common])
        assert chi_squared < common.sum() + 5 * np.sqrt(2 * common.sum())

    def test_texts_and_counts_are_the_same_documents(self, model):
        corpus = synthetic_corpus(700, n_words=50, length=20, model=model, random_state=1)
        number = {word: place for place, word in enumerate(corpus.words)}
        counts = np.zeros((700, 50), dtype=int)
        documents = list(corpus)
        for row, document in zip(counts, documents, strict=True):
            np.add.at(row, [number[word] for word in document.text.split()], 1)
        np.testing.assert_array_equal(counts, corpus.counts().toarray())
        assert [document.id for document in documents] == [str(i) for i in range(700)]
        assert list(corpus) == documents

    def test_a_longer_corpus_begins_like_a_shorter_one(self, model):
        longer = synthetic_corpus(10**9, n_words=50, length=20, model=model)
        assert list(islice(longer, 600)) == list(synthetic_corpus(600, n_words=50, length=20, model=model))
        assert len(longer) == 10**9
        other = synthetic_corpus(600, n_words=50, length=20, model=model, random_state=1)
        assert list(other) != list(islice(longer, 600))


def test_words_follow_zipfs_law():
    corpus = synthetic_corpus(3000, n_topics=50, n_words=2000, length=200)
    frequencies = np.sort(corpus.counts().sum(axis=0))[::-1].astype(float)
    ranks = np.arange(10, 1000)
    slope = np.polyfit(np.log(ranks), np.log(frequencies[ranks]), 1)[0]
    assert -1.25 < slope < -0.8
    assert len(set(corpus.words)) == 2000
    assert {len(word) for word in corpus.words} == {4}
    assert len(set(synthetic_corpus(1, n_words=5000).words)) == 5000


def test_plsa_finds_the_known_topics():
    corpus = synthetic_corpus(1500, n_topics=4, n_words=200, length=150, model="plsa", random_state=2)
    model = PLSA(n_components=4, n_init=3, random_state=0).fit(corpus.counts())
    overlap = np.minimum(model.components_[:, None], corpus.topic_word[None]).sum(axis=2)
    assert overlap.max(axis=1).min() > 0.9
    drawn = synthetic_corpus(10, topic_word=model.components_, length=50)
    assert drawn.counts().shape == (10, 200)


def test_wrong_arguments_of_synthetic_corpus_raise():
    for arguments, message in [
        ({"model": "nmf"}, "model must be 'lda' or 'plsa', got 'nmf'"),
        ({"n_documents": 0}, "n_documents must be at least 1"),
        ({"length": 0}, "length must be above 0"),
        ({"topic_word": [[0.5, 0.6]]}, "rows that sum to one"),
    ]:
        with pytest.raises(InputError, match=message):
            synthetic_corpus(**arguments)


# corpora drawn from LDA


def same(one, other):
    return (one.counts != other.counts).nnz == 0 and np.array_equal(one.doc_topic, other.doc_topic)


def test_the_seed_determines_the_corpus():
    assert same(sample_corpus(300, seed=1), sample_corpus(300, seed=1))
    assert not same(sample_corpus(300, seed=1), sample_corpus(300, seed=2))


def test_chunks_add_up_to_the_corpus():
    whole = sample_corpus(2500, 50, 4, seed=3)
    chunks = list(sample_chunks(2500, 50, 4, seed=3))
    assert [chunk.counts.shape[0] for chunk in chunks] == [1024, 1024, 452]
    assert np.array_equal(np.vstack([chunk.counts.toarray() for chunk in chunks]), whole.counts.toarray())
    first = next(sample_chunks(10**9, 50, 4, seed=3))
    assert same(first, chunks[0])


def test_shapes_and_sums_are_correct():
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
        ({"n_docs": 5, "doc_topic_prior": [0.1, 0.2]}, "doc_topic_prior must be one number or 10 numbers"),
        ({"n_docs": 5, "topic_word_prior": 0}, "topic_word_prior must be finite and greater than 0"),
        ({"n_docs": 5, "topic_word": [[0.5, 0.6]]}, "topic_word must be topics x words"),
    ],
)
def test_wrong_arguments_of_sample_corpus_raise(arguments, message):
    with pytest.raises(InputError, match=message):
        sample_corpus(**arguments)
