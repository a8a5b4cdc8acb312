"""What no model can be made from: each gets its error type and one clear sentence."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from polyseme import PLSA, InputError
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [1, 0, 2, 2]], dtype=np.float64)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
USES = ("transform", "perplexity", "completion_perplexity", "score")


@pytest.fixture(scope="module")
def model():
    return PLSA(2, random_state=0).fit(X)


def spoiled(value, layout):
    """X with one bad entry."""
    data = X.astype(np.result_type(X, type(value)))
    data[1, 0] = value
    return layout(data)


BAD_NUMBERS = pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1.0, "Negative values in data"),
        (np.nan, "NaN"),
        (np.inf, "inf"),
        (-np.inf, "inf"),
        (1j, "Complex data not supported"),
    ],
    ids=["negative", "NaN", "infinite", "minus-infinite", "complex"],
)


@LAYOUTS
@BAD_NUMBERS
def test_numbers_that_are_no_counts_in_fit(layout, value, words):
    with pytest.raises(ValueError, match=words) as error:
        PLSA(2).fit(spoiled(value, layout))
    assert words in sentence(error)


@LAYOUTS
@BAD_NUMBERS
@pytest.mark.parametrize("use", USES)
def test_numbers_that_are_no_counts_later(model, layout, value, words, use):
    with pytest.raises(ValueError, match=words):
        getattr(model, use)(spoiled(value, layout))


@pytest.mark.parametrize(
    "texts",
    [
        [["ant", "bee"], ["cow", "dog"]],
        np.array([["ant", 1], ["cow", 2]], dtype=object),
        ["ant bee", "cow dog"],
        "ant bee",
    ],
    ids=["table-of-texts", "mixed-table", "list-of-texts", "one-text"],
)
def test_text_where_numbers_belong(texts):
    with pytest.raises(ValueError, match=r"(?i)string|array|float|number|text") as error:
        PLSA(2).fit(texts)
    sentence(error)


@LAYOUTS
@pytest.mark.parametrize(("shape", "words"), [((0, 4), "0 sample(s)"), ((4, 0), "0 feature(s)")])
def test_no_documents_and_no_words(layout, shape, words):
    with pytest.raises(ValueError, match="Found array with 0") as error:
        PLSA(2).fit(layout(np.zeros(shape)))
    assert words in sentence(error)


def test_no_documents_to_transform(model):
    with pytest.raises(ValueError, match=r"0 sample\(s\)") as error:
        model.transform(np.zeros((0, 4)))
    sentence(error)


@LAYOUTS
def test_nothing_but_zeros(layout):
    with pytest.raises(InputError, match="nothing to fit: every document is empty") as error:
        PLSA(2).fit(layout(np.zeros((3, 4))))
    sentence(error)


@LAYOUTS
def test_nothing_but_weightless_or_empty_documents(layout):
    data = X.copy()
    data[0] = 0
    with pytest.raises(InputError, match="nothing to fit") as error:
        PLSA(2).fit(layout(data), sample_weight=[1, 0, 0, 0])
    sentence(error)


def test_a_single_list_of_numbers():
    with pytest.raises(ValueError, match="2D"):
        PLSA(2).fit(X[0])


@pytest.mark.parametrize("K", [0, -1, 2.0, 2.5, "3", None, True, float("nan")])
def test_number_of_topics(K):
    with pytest.raises(InputError, match="n_components must be a whole number of at least 1") as error:
        PLSA(K).fit(X)
    assert repr(K) in sentence(error)


@pytest.mark.parametrize("K", [np.int64(2), np.uint8(2)])
def test_numpy_integers_are_numbers_of_topics(K):
    assert PLSA(K).fit(X).components_.shape == (2, 4)


@LAYOUTS
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("n_words", [3, 5])
def test_another_number_of_words(model, layout, use, n_words):
    with pytest.raises(ValueError, match=f"X has {n_words} features, but PLSA is expecting 4") as error:
        getattr(model, use)(layout(np.ones((2, n_words))))
    sentence(error)


@pytest.mark.parametrize("use", [*USES, "perplexity_report", "completion_report"])
def test_an_unfitted_model_has_nothing_to_transform(use):
    with pytest.raises(NotFittedError, match="This PLSA instance is not fitted yet") as error:
        getattr(PLSA(2), use)(X)
    sentence(error)


def test_an_unfitted_model_has_no_topics_and_no_file(tmp_path):
    for use in (PLSA(2).topics, PLSA(2).get_feature_names_out, lambda: PLSA(2).save(tmp_path / "model")):
        with pytest.raises(NotFittedError, match="not fitted yet") as error:
            use()
        sentence(error)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_iter", [0, -1, 1.5, "10", None, True]),
        ("n_init", [0, 1.5, None]),
        ("tol", [-1e-9, np.nan, np.inf, "small", None, True]),
        ("solver", ["newton", 3, None]),
        ("init", ["zeros", 3, None, (X,), (X, X, X), ("ant", "bee")]),
        ("dtype", [int, np.float16, "no such type"]),
        ("n_jobs", ["two", 1.5, 0]),
    ],
)
def test_parameters(name, values):
    for value in values:
        with pytest.raises(InputError, match=rf"^{name}\b") as error:
            PLSA(2, **{name: value}).fit(X)
        if not isinstance(value, tuple):
            sentence(error)


UNIFORM = np.full((4, 2), 0.5), np.full((2, 4), 0.25)


@pytest.mark.parametrize(
    ("theta", "phi", "words"),
    [
        (UNIFORM[0][:3], UNIFORM[1], "shapes"),
        (UNIFORM[0], UNIFORM[1][:, :3], "shapes"),
        (UNIFORM[0][:, :1], UNIFORM[1][:1], "shapes"),
        (-UNIFORM[0], UNIFORM[1], "doc_topic must be finite and non-negative"),
        (UNIFORM[0], UNIFORM[1] * np.nan, "topic_word must be finite and non-negative"),
        (UNIFORM[0], UNIFORM[1] * [[0], [1]], "no row of zeros"),
        (UNIFORM[0] * [[0], [1], [1], [1]], UNIFORM[1], "no row of zeros"),
    ],
)
def test_a_pair_to_start_from(theta, phi, words):
    with pytest.raises(InputError, match=f"^init.*{words}") as error:
        PLSA(2, init=(theta, phi)).fit(X)
    sentence(error)


@LAYOUTS
def test_a_pair_that_gives_a_word_no_probability(layout):
    """EM cannot revive a zero, and the likelihood would be minus infinity for ever."""
    theta, phi = UNIFORM
    with pytest.raises(InputError, match=r"^init") as error:
        PLSA(2, init=(theta, phi * [1, 1, 1, 0])).fit(layout(X))
    sentence(error)


@pytest.mark.parametrize(
    "weights", [[1, 2], [1, 2, -1, 1], [1, np.nan, 1, 1], [1, np.inf, 1, 1], [0] * 4, ["a"] * 4, np.ones((4, 1))]
)
def test_weights(weights):
    with pytest.raises(ValueError, match=r"(?i)sample.weight|could not convert"):
        PLSA(2).fit(X, sample_weight=weights)


@pytest.mark.parametrize("smoothing", [-0.1, 1.1, np.nan, "much", None])
def test_smoothing(model, smoothing):
    with pytest.raises(InputError, match=r"^smoothing must be") as error:
        model.completion_perplexity(X, smoothing)
    sentence(error)


@pytest.mark.parametrize("unseen", [0, 0.0, -0.1, 1.0, 1.1, np.nan, "rare"])
@pytest.mark.parametrize("use", ["perplexity", "completion_perplexity"])
def test_probability_of_unseen_words(model, unseen, use):
    with pytest.raises(InputError, match=r"^unseen must be") as error:
        getattr(model, use)(X, unseen=unseen)
    sentence(error)


@pytest.mark.parametrize("use", ["perplexity", "completion_perplexity"])
def test_unseen_words_cannot_take_more_than_there_is(use):
    """Three unseen words with 0.4 each."""
    data = np.hstack([X, np.zeros((4, 3))])
    with pytest.raises(InputError, match=r"^unseen must be") as error:
        getattr(PLSA(2, random_state=0).fit(data), use)(data, unseen=0.4)
    sentence(error)


@pytest.mark.parametrize(("vocabulary", "n_words"), [(["ant"], 10), (["ant"] * 5, 10), (None, -1), (None, 1.5)])
def test_names_of_the_words(model, vocabulary, n_words):
    with pytest.raises(InputError, match=r"^vocabulary must|^n_words must") as error:
        model.topics(vocabulary, n_words=n_words)
    sentence(error)
