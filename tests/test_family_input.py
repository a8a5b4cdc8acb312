"""Priors and backgrounds that do not fit: each gets its error type and one clear sentence, and no fit is lost."""

import numpy as np
import pytest

from polyseme import PLSA, Background, InputError, JointBackground
from polyseme.priors import Decorrelation, Dirichlet, SeedWords, Smoothing, Sparsing, TopicSelection
from sentences import sentence

X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [1, 0, 2, 2]], dtype=np.float64)
WORDS = ["ant", "bee", "iron", "zinc"]
GOOD = [0.3, 0.3, 0.2, 0.2]


def refused(data=X, /, **parameters):
    with pytest.raises(InputError) as error:
        PLSA(2, random_state=0, **parameters).fit(data)
    return sentence(error)


def frame():
    return pytest.importorskip("pandas").DataFrame(X, columns=WORDS)


@pytest.mark.parametrize(
    ("side", "prior", "length", "wanted"),
    [
        ("doc_topic_prior", Dirichlet([1.1] * 3), 3, 2),
        ("doc_topic_prior", Smoothing(5, GOOD), 4, 2),
        ("doc_topic_prior", [Dirichlet(1.1), Sparsing(5, GOOD)], 4, 2),
        ("topic_word_prior", Dirichlet([1.1] * 2), 2, 4),
        ("topic_word_prior", Smoothing(5, [0.5, 0.5]), 2, 4),
    ],
)
def test_a_prior_of_the_wrong_length(side, prior, length, wanted):
    message = refused(**{side: prior})
    assert f"has {length} entries" in message
    assert f"have {wanted}" in message


@pytest.mark.parametrize("value", ["sparse", [0.9, 0.9], {"alpha": 1}, True, np.array([1.0, 2.0])])
@pytest.mark.parametrize("side", ["doc_topic_prior", "topic_word_prior"])
def test_what_is_no_prior(side, value):
    assert "rior" in refused(**{side: value})


@pytest.mark.parametrize("value", [0.0, -1, np.nan, np.inf])
def test_a_number_that_is_no_alpha(value):
    assert "alpha must be" in refused(doc_topic_prior=value)


@pytest.mark.parametrize(
    ("side", "prior", "factor"),
    [
        ("doc_topic_prior", Decorrelation(1), "P(w|z)"),
        ("doc_topic_prior", SeedWords({0: [1]}), "P(w|z)"),
        ("doc_topic_prior", [Dirichlet(1.1), SeedWords({0: [1]})], "P(w|z)"),
        ("topic_word_prior", TopicSelection(1), "P(z|d)"),
        ("topic_word_prior", [Decorrelation(1), TopicSelection(1)], "P(z|d)"),
    ],
)
def test_a_prior_for_the_other_factor(side, prior, factor):
    assert f"acts on {factor} only" in refused(**{side: prior})


@pytest.mark.parametrize("share", [1, 1.0, 1.5, -0.1, np.nan, np.inf, "0.2", True, [0.2]])
def test_lambda_outside_its_range(share):
    assert "at least 0 and below 1" in refused(background=share)
    with pytest.raises(InputError, match="at least 0 and below 1"):
        JointBackground(share)


@pytest.mark.parametrize("kind", [Background, JointBackground])
@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        ([0.5, 0.5, 0, 0], "probability 0 to 2 of the words that occur (such as column 2)"),
        ([0.0] * 4, "probability 0 to 4"),
        ([0.5, 0.5], "one number for each of the 4 words"),
        ([GOOD], "one number for each of the 4 words"),
        (0.5, "one number for each of the 4 words"),
        ("corpus", "one number for each of the 4 words"),
        ([0.3, 0.3, np.nan, 0.4], "finite and non-negative"),
        ([0.3, 0.3, np.inf, 0.4], "finite and non-negative"),
        ([0.5, 0.6, -0.1, 0.2], "finite and non-negative"),
    ],
)
def test_a_background_that_does_not_fit(kind, distribution, words):
    assert words in refused(background=kind(0.2, distribution))


def test_a_background_may_leave_out_a_word_that_never_occurs():
    data = X.copy()
    data[:, 1] = 0
    PLSA(2, random_state=0, background=Background(0.2, [0.4, 0, 0.3, 0.3])).fit(data)


class TestSeedWords:
    def test_words_that_the_vocabulary_lacks(self):
        message = refused(frame(), topic_word_prior=SeedWords({0: ["ant", "unicorn"], 1: ["gold"]}))
        assert "does not have 'unicorn', 'gold'" in message

    def test_in_a_list_too(self):
        assert "'gold'" in refused(frame(), topic_word_prior=[Dirichlet(1.1), SeedWords({1: ["gold"]})])

    def test_names_without_a_vocabulary(self):
        assert "needs the vocabulary" in refused(topic_word_prior=SeedWords({0: ["ant"]}))

    def test_a_topic_that_is_not_there(self):
        assert "topics end at 1" in refused(topic_word_prior=SeedWords({2: [0]}))

    def test_a_column_that_is_not_there(self):
        assert "columns end at 3" in refused(topic_word_prior=SeedWords({0: [4]}))

    def test_names_are_found_in_a_frame_or_given_a_vocabulary(self):
        by_frame = PLSA(2, random_state=0, topic_word_prior=SeedWords({1: ["ant"], 0: ["zinc"]})).fit(frame())
        given = SeedWords({1: ["ant"], 0: ["zinc"]}, WORDS)
        by_list = PLSA(2, random_state=0, topic_word_prior=given).fit(X)
        assert np.array_equal(by_frame.components_, by_list.components_)
        assert by_frame.components_[:, [3, 0]].argmax(axis=0).tolist() == [0, 1]
        assert by_frame.get_params()["topic_word_prior"] == SeedWords({1: ["ant"], 0: ["zinc"]})


def test_an_earlier_fit_survives_a_refusal():
    model = PLSA(2, random_state=0).fit(X)
    before = model.components_.copy()
    for parameters in ({"background": 2}, {"background": 0, "topic_word_prior": Dirichlet([1, 2])}):
        with pytest.raises(InputError):
            model.set_params(**parameters).fit(X)
    assert np.array_equal(model.components_, before)
    assert model.transform(X).shape == (4, 2)
