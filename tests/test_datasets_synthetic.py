"""Corpora that are drawn from known models."""

from itertools import islice

import numpy as np
import pytest

from polyseme import PLSA, InputError
from polyseme.datasets import synthetic_corpus


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
        ({"n_documents": 0}, "n_documents must be a whole number of at least 1"),
        ({"length": 0}, "length must be a finite number above 0"),
        ({"topic_word": [[0.5, 0.6]]}, "rows that sum to one"),
        ({"doc_topic_prior": [0.1, 0.2]}, "doc_topic_prior must be one number or 10 numbers"),
        ({"topic_word_prior": 0}, "topic_word_prior must be finite and greater than 0"),
    ]:
        with pytest.raises(InputError, match=message):
            synthetic_corpus(**arguments)


# topics and weights with Dirichlet distributions


def test_the_seed_determines_the_corpus():
    def drawn(seed):
        corpus = synthetic_corpus(300, topic_word_prior=0.05, random_state=seed)
        return corpus.counts().toarray(), corpus.doc_topic(), corpus.topic_word

    first, again, from_generator, other = map(drawn, (1, 1, np.random.default_rng(0), 2))
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))
    assert not any(map(np.array_equal, first, from_generator))


def test_blocks_add_up_to_the_corpus():
    corpus = synthetic_corpus(1200, n_words=50, n_topics=4, topic_word_prior=0.05)
    thetas, counts = zip(*corpus.blocks(), strict=True)
    assert [len(theta) for theta in thetas] == [512, 512, 176]
    assert np.array_equal(np.vstack([block.toarray() for block in counts]), corpus.counts().toarray())
    assert np.array_equal(np.vstack(thetas), corpus.doc_topic())


def test_lengths_are_poisson():
    corpus = synthetic_corpus(20000, n_words=5, n_topics=2, length=7.0, topic_word_prior=0.05, random_state=4)
    lengths = corpus.counts().sum(axis=1)
    assert lengths.mean() == pytest.approx(7, abs=0.1)
    assert lengths.var() == pytest.approx(7, abs=0.3)
    assert (lengths == 0).mean() == pytest.approx(np.exp(-7), abs=1e-3)


def test_weights_and_topics_are_dirichlet():
    """Mean alpha / sum and variance m (1 - m) / (sum + 1)."""
    alpha, eta = np.array([0.2, 0.5, 1.3]), np.array([0.3, 0.1, 0.6, 1.0])
    theta = synthetic_corpus(20000, n_words=5, n_topics=3, length=1, doc_topic_prior=alpha, random_state=5).doc_topic()
    phi = synthetic_corpus(1, n_words=4, n_topics=20000, topic_word_prior=eta, random_state=5).topic_word
    for drawn, parameters in ((theta, alpha), (phi, eta)):
        mean = parameters / parameters.sum()
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.01)
        np.testing.assert_allclose(drawn.var(axis=0), mean * (1 - mean) / (parameters.sum() + 1), atol=0.01)


def test_words_follow_theta_and_phi():
    """With long documents the counts are the product of the factors."""
    phi = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.25, 0.25, 0.5]])
    corpus = synthetic_corpus(50, length=200000, doc_topic_prior=1.0, topic_word=phi, random_state=6)
    assert np.array_equal(corpus.topic_word, phi)
    counts = corpus.counts().toarray()
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), corpus.doc_topic() @ phi, atol=0.01)


def test_tiny_parameters_make_pure_documents():
    corpus = synthetic_corpus(100, n_words=20, n_topics=3, doc_topic_prior=1e-5, topic_word_prior=1e-5, random_state=7)
    np.testing.assert_allclose(corpus.doc_topic().max(axis=1), 1)
    np.testing.assert_allclose(corpus.topic_word.max(axis=1), 1)
