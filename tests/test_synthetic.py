"""Corpora that are drawn from known models, and the real ones behind a door."""

from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from polyseme import PLSA
from polyseme.datasets import newsgroups, synthetic_corpus, wikipedia
from polyseme.errors import InputError
from test_wiki import PAGES, dump


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


def test_bad_arguments_are_refused():
    for arguments, message in [
        ({"model": "nmf"}, "There is no model 'nmf'"),
        ({"n_documents": 0}, "n_documents must be at least 1"),
        ({"length": 0}, "length must be above 0"),
        ({"topic_word": [[0.5, 0.6]]}, "rows are distributions"),
    ]:
        with pytest.raises(InputError, match=message):
            synthetic_corpus(**arguments)


def test_wikipedia_reads_a_dump_by_any_name(tmp_path):
    (tmp_path / "dump").write_text(dump(*PAGES), encoding="utf-8")
    assert [d.title for d in wikipedia(tmp_path / "dump")] == ["Gatto", "Cane"]
    assert [d.title for d in wikipedia(tmp_path / "dump", categories=["felini"])] == ["Gatto"]


def test_newsgroups_come_from_scikit_learn(monkeypatch):
    bunch = SimpleNamespace(data=["x", "y"], filenames=["/a/sci.space/1", "/a/rec.autos/2"], target=[1, 0])
    bunch.target_names = ["rec.autos", "sci.space"]
    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", lambda **_: bunch)
    corpus = newsgroups()
    assert (corpus.texts, corpus.titles) == (["x", "y"], ["sci.space/1", "rec.autos/2"])
    assert corpus.labels == ["sci.space", "rec.autos"]

    def offline(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", offline)
    with pytest.raises(InputError, match="connect to the network, once"):
        newsgroups()
