"""Senses of words and related words."""

import pytest

import retrieval_corpus
from polyseme import PLSA, InputError
from retrieval_corpus import THEMES


@pytest.fixture(scope="module")
def index():
    return retrieval_corpus.full_index()


@pytest.fixture(scope="module")
def model(index):
    return PLSA(3, random_state=0, n_init=5, n_jobs=1, tol=1e-3).fit(index.counts)


def test_a_word_of_two_meanings_has_two_senses(index):
    senses = index.senses("jaguar", n_words=4)
    assert len(senses) == 2
    themes = []
    for sense in senses:
        theme = next(name for name, words in THEMES.items() if set(sense.words) <= {*words, *retrieval_corpus.COMMON})
        themes.append(theme)
        assert "jaguar" not in sense.words
        assert len(sense.documents) == 3
        for name, title in sense.documents:
            assert retrieval_corpus.theme_of(name.removeprefix("d")) == theme
            assert title == f"Title {name.removeprefix('d')}"
            assert index.counts[index.row_of(name), index.column_of("jaguar")] > 0
    assert sorted(themes) == ["animal", "car"]


def test_a_word_of_one_meaning_has_one_sense(index):
    assert len(index.senses("loan")) == 1
    assert index.senses("loan")[0].share == pytest.approx(1, abs=1e-3)


def test_shares_are_those_of_the_model(index, model):
    column = index.column_of("jaguar")
    expected = model.components_[:, column] * model.topic_weights_
    expected = expected / expected.sum()
    for sense in index.senses("jaguar", least=0.0, n_documents=0):
        assert sense.share == pytest.approx(expected[sense.topic], abs=1e-5)
        assert sense.documents == []


def test_words_of_a_sense_are_those_of_its_topic(index, model):
    topics = model.topics(index.vocabulary, n_words=6)
    for sense in index.senses("jaguar", n_words=5):
        assert sense.words == [word for word in topics[sense.topic].words if word != "jaguar"][:5]


def test_a_word_that_does_not_occur_has_no_senses(index):
    assert index.senses("neverseen") == []
    assert index.related_words("neverseen") == []


def test_related_words_have_the_same_theme_even_if_they_never_occur_together(index):
    found = [related.word for related in index.related_words("car", 7)]
    assert set(found) <= {*THEMES["car"], *retrieval_corpus.COMMON}
    assert "automobile" in found
    assert "car" not in found
    weights = [related.weight for related in index.related_words("car", 7)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0


def test_the_largest_fitted_model_is_used_if_no_model_is_set():
    index = retrieval_corpus.index().fit_models((2, 3), random_state=0, n_jobs=1)
    assert len(index.senses("jaguar")) == 2
    assert index.topic_documents(2)
    with pytest.raises(InputError, match="from 0 to 2"):
        index.topic_documents(3)
