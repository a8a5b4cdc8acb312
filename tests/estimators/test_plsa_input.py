"""Data, parameters, priors and backgrounds that PLSA does not accept: each raises its error with one clear sentence."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from polyseme import LSA, PLSA, Background, InputError, JointBackground
from polyseme.metrics import distinctive_words, evaluate
from polyseme.priors import Decorrelation, Dirichlet, SeedWords, Smoothing, Sparsing, TopicSelection
from polyseme.scale import write_shards
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [1, 0, 2, 2]], dtype=np.float64)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
USES = ("transform", "perplexity", "completion_perplexity", "score")


@pytest.fixture(scope="module")
def model():
    return PLSA(2, random_state=0).fit(X)


def spoiled(value, layout):
    """Return X with one bad entry."""
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


def is_missing(value, layout):
    """Return whether fit and transform treat the number as a missing entry: NaN in dense data."""
    return value != value and layout is np.asarray


@LAYOUTS
@BAD_NUMBERS
def test_fit_of_numbers_that_are_not_counts_raises(layout, value, words):
    if is_missing(value, layout):
        assert np.isfinite(PLSA(2, random_state=0).fit(spoiled(value, layout)).components_).all()
        return
    with pytest.raises(ValueError, match=words) as error:
        PLSA(2).fit(spoiled(value, layout))
    assert words in sentence(error)


@LAYOUTS
@BAD_NUMBERS
@pytest.mark.parametrize("use", USES)
def test_transform_of_numbers_that_are_not_counts_raises(model, layout, value, words, use):
    if use == "transform" and is_missing(value, layout):
        assert np.isfinite(model.transform(spoiled(value, layout))).all()
        return
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
def test_text_instead_of_numbers_raises(texts):
    with pytest.raises(ValueError, match=r"(?i)string|array|float|number|text") as error:
        PLSA(2).fit(texts)
    sentence(error)


@LAYOUTS
@pytest.mark.parametrize(("shape", "words"), [((0, 4), "0 sample(s)"), ((4, 0), "0 feature(s)")])
def test_data_without_documents_or_words_raises(layout, shape, words):
    with pytest.raises(ValueError, match="Found array with 0") as error:
        PLSA(2).fit(layout(np.zeros(shape)))
    assert words in sentence(error)


def test_transform_of_no_documents_raises(model):
    with pytest.raises(ValueError, match=r"0 sample\(s\)") as error:
        model.transform(np.zeros((0, 4)))
    sentence(error)


@LAYOUTS
def test_data_of_zeros_raises(layout):
    with pytest.raises(InputError, match="nothing to fit: every document is empty") as error:
        PLSA(2).fit(layout(np.zeros((3, 4))))
    sentence(error)


@LAYOUTS
def test_only_empty_documents_or_weights_of_zero_raise(layout):
    data = X.copy()
    data[0] = 0
    with pytest.raises(InputError, match="nothing to fit") as error:
        PLSA(2).fit(layout(data), sample_weight=[1, 0, 0, 0])
    sentence(error)


def test_one_dimensional_data_raises():
    with pytest.raises(ValueError, match="2D"):
        PLSA(2).fit(X[0])


@pytest.mark.parametrize("K", [0, -1, 2.0, 2.5, "3", None, True, float("nan")])
def test_a_wrong_number_of_topics_raises(K):
    with pytest.raises(InputError, match="n_components must be a whole number of at least 1") as error:
        PLSA(K).fit(X)
    assert repr(K) in sentence(error)


@pytest.mark.parametrize("K", [np.int64(2), np.uint8(2)])
def test_numpy_integers_are_accepted_as_number_of_topics(K):
    assert PLSA(K).fit(X).components_.shape == (2, 4)


@LAYOUTS
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("n_words", [3, 5])
def test_another_number_of_words_raises(model, layout, use, n_words):
    with pytest.raises(ValueError, match=f"X has {n_words} features, but PLSA is expecting 4") as error:
        getattr(model, use)(layout(np.ones((2, n_words))))
    sentence(error)


@pytest.mark.parametrize("use", [*USES, "perplexity_report", "completion_report"])
def test_transform_of_an_unfitted_model_raises(use):
    with pytest.raises(NotFittedError, match="This PLSA instance is not fitted yet") as error:
        getattr(PLSA(2), use)(X)
    sentence(error)


def test_topics_and_save_of_an_unfitted_model_raise(tmp_path):
    for use in (PLSA(2).topics, PLSA(2).get_feature_names_out, lambda: PLSA(2).save(tmp_path / "model")):
        with pytest.raises(NotFittedError, match="not fitted yet") as error:
            use()
        sentence(error)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_iter", [0, -1, 1.5, "10", True]),
        ("n_init", [0, 1.5, None]),
        ("tol", [-1e-9, np.nan, np.inf, "small", True]),
        ("solver", ["newton", 3, None]),
        ("init", ["zeros", 3, None, (X,), (X, X, X), ("ant", "bee")]),
        ("dtype", [int, np.float16, "no such type"]),
        ("n_jobs", ["two", 1.5, 0]),
    ],
)
def test_wrong_parameters_raise(name, values):
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
        (UNIFORM[0], UNIFORM[1] * [[0], [1]], "topic_word must have no row of zeros, such as row 0"),
        (UNIFORM[0] * [[1], [0], [1], [1]], UNIFORM[1], "doc_topic must have no row of zeros, such as row 1"),
    ],
)
def test_a_wrong_pair_to_start_from_raises(theta, phi, words):
    with pytest.raises(InputError, match=f"^init.*{words}") as error:
        PLSA(2, init=(theta, phi)).fit(X)
    sentence(error)


@LAYOUTS
def test_a_pair_without_probability_for_a_word_raises(layout):
    """EM cannot make a zero positive, so the likelihood would stay minus infinity."""
    theta, phi = UNIFORM
    with pytest.raises(InputError, match=r"^init") as error:
        PLSA(2, init=(theta, phi * [1, 1, 1, 0])).fit(layout(X))
    sentence(error)


@pytest.mark.parametrize(
    "weights", [[1, 2], [1, 2, -1, 1], [1, np.nan, 1, 1], [1, np.inf, 1, 1], [0] * 4, ["a"] * 4, np.ones((4, 1))]
)
def test_wrong_weights_raise(weights):
    with pytest.raises(ValueError, match=r"(?i)sample.weight|could not convert"):
        PLSA(2).fit(X, sample_weight=weights)


@pytest.mark.parametrize("smoothing", [-0.1, 1.1, np.nan, "much", None])
def test_wrong_smoothing_raises(model, smoothing):
    with pytest.raises(InputError, match=r"^smoothing must be") as error:
        model.completion_perplexity(X, smoothing)
    sentence(error)


@pytest.mark.parametrize("unseen", [0, 0.0, -0.1, 1.0, 1.1, np.nan, "rare"])
@pytest.mark.parametrize("use", ["perplexity", "completion_perplexity"])
def test_a_wrong_probability_of_unseen_words_raises(model, unseen, use):
    with pytest.raises(InputError, match=r"^unseen must be") as error:
        getattr(model, use)(X, unseen=unseen)
    sentence(error)


@pytest.mark.parametrize("use", ["perplexity", "completion_perplexity"])
def test_probabilities_of_unseen_words_must_sum_to_less_than_one(use):
    """Three unseen words with 0.4 each."""
    data = np.hstack([X, np.zeros((4, 3))])
    with pytest.raises(InputError, match=r"^unseen must be") as error:
        getattr(PLSA(2, random_state=0).fit(data), use)(data, unseen=0.4)
    sentence(error)


@pytest.mark.parametrize(("vocabulary", "n_words"), [(["ant"], 10), (["ant"] * 5, 10), (None, -1), (None, 1.5)])
def test_wrong_names_of_words_raise(model, vocabulary, n_words):
    with pytest.raises(InputError, match=r"^vocabulary must|^n_words must") as error:
        model.topics(vocabulary, n_words=n_words)
    sentence(error)


# priors and backgrounds that do not fit

WORDS = ["ant", "bee", "iron", "zinc"]
GOOD = [0.3, 0.3, 0.2, 0.2]


def error_message(data=X, /, **parameters):
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
def test_a_prior_of_the_wrong_length_raises(side, prior, length, wanted):
    message = error_message(**{side: prior})
    assert message.startswith(f"{side}: ")
    assert f"has {length} entries" in message
    assert f"have {wanted}" in message


@pytest.mark.parametrize("value", ["sparse", [0.9, 0.9], {"alpha": 1}, True, np.array([1.0, 2.0])])
@pytest.mark.parametrize("side", ["doc_topic_prior", "topic_word_prior"])
def test_an_object_that_is_not_a_prior_raises(side, value):
    assert error_message(**{side: value}).startswith(f"{side}: A ")


def test_an_array_as_a_prior_raises_with_its_shape():
    assert "got an array of shape (2, 4): write a vector" in error_message(topic_word_prior=np.ones((2, 4)))


@pytest.mark.parametrize("value", [0.0, -1, np.nan, np.inf])
def test_a_number_that_is_not_a_valid_alpha_raises(value):
    assert error_message(doc_topic_prior=value).startswith("doc_topic_prior: Dirichlet: alpha must be")


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
def test_a_prior_for_the_other_factor_raises(side, prior, factor):
    assert f"acts on {factor} only" in error_message(**{side: prior})


@pytest.mark.parametrize("share", [1, 1.0, 1.5, -0.1, np.nan, np.inf, "0.2", True, [0.2]])
def test_a_background_weight_outside_its_range_raises(share):
    assert "at least 0 and below 1" in error_message(background=share)
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
def test_a_background_that_does_not_fit_the_data_raises(kind, distribution, words):
    assert words in error_message(background=kind(0.2, distribution))


def test_a_background_may_lack_a_word_that_never_occurs():
    data = X.copy()
    data[:, 1] = 0
    PLSA(2, random_state=0, background=Background(0.2, [0.4, 0, 0.3, 0.3])).fit(data)


class TestSeedWords:
    def test_words_outside_the_vocabulary_raise(self):
        message = error_message(frame(), topic_word_prior=SeedWords({0: ["ant", "unicorn"], 1: ["gold"]}))
        assert "does not have 'unicorn', 'gold'" in message

    def test_words_outside_the_vocabulary_raise_in_a_list_of_priors(self):
        assert "'gold'" in error_message(frame(), topic_word_prior=[Dirichlet(1.1), SeedWords({1: ["gold"]})])

    def test_names_without_a_vocabulary_raise(self):
        assert "needs the vocabulary" in error_message(topic_word_prior=SeedWords({0: ["ant"]}))

    def test_a_topic_that_does_not_exist_raises(self):
        assert "topics end at 1" in error_message(topic_word_prior=SeedWords({2: [0]}))

    def test_a_column_that_does_not_exist_raises(self):
        assert "columns end at 3" in error_message(topic_word_prior=SeedWords({0: [4]}))

    def test_names_are_found_in_a_frame_or_given_a_vocabulary(self):
        by_frame = PLSA(2, random_state=0, topic_word_prior=SeedWords({1: ["ant"], 0: ["zinc"]})).fit(frame())
        given = SeedWords({1: ["ant"], 0: ["zinc"]}, WORDS)
        by_list = PLSA(2, random_state=0, topic_word_prior=given).fit(X)
        assert np.array_equal(by_frame.components_, by_list.components_)
        assert by_frame.components_[:, [3, 0]].argmax(axis=0).tolist() == [0, 1]
        assert by_frame.get_params()["topic_word_prior"] == SeedWords({1: ["ant"], 0: ["zinc"]})


def test_an_earlier_fit_is_unchanged_after_an_error():
    model = PLSA(2, random_state=0).fit(X)
    before = model.components_.copy()
    for parameters in ({"background": 2}, {"background": 0, "topic_word_prior": Dirichlet([1, 2])}):
        with pytest.raises(InputError):
            model.set_params(**parameters).fit(X)
    assert np.array_equal(model.components_, before)
    assert model.transform(X).shape == (4, 2)


class View(sp.csr_matrix):
    """View like those of anndata: a matrix with another constructor, defined in a module of anndata."""

    __module__ = "anndata._core.views"

    def __init__(self, parent):
        super().__init__(parent)
        self.parent = parent


class ArrayView(np.ndarray):
    __module__ = "anndata._core.views"


@pytest.mark.parametrize("kind", [sp.csr_matrix, View, ArrayView], ids=["plain", "matrix", "array"])
def test_views_are_accepted_everywhere(kind, tmp_path):
    counts = np.random.default_rng(0).poisson(0.7, (30, 12))
    view = counts.view(ArrayView) if kind is ArrayView else kind(sp.csr_matrix(counts))
    model, expected = (PLSA(3, random_state=0).fit(data) for data in (view, counts))
    assert np.array_equal(model.components_, expected.components_)
    assert np.array_equal(model.transform(view), expected.transform(counts))
    assert model.perplexity(view) == expected.perplexity(counts)
    assert LSA(2).fit(view).doc_vectors_.shape == (30, 2)
    assert write_shards([view], tmp_path / "shards").shape == (30, 12)
    assert evaluate(model, view).perplexity.perplexity == evaluate(model, counts).perplexity.perplexity
    labels = np.arange(30) % 2
    np.testing.assert_array_equal(distinctive_words(view, labels).scores, distinctive_words(counts, labels).scores)


def test_a_view_of_anndata_is_accepted():
    anndata = pytest.importorskip("anndata")
    counts = np.random.default_rng(0).poisson(0.7, (30, 12)).astype(np.float32)
    for matrix in (counts, sp.csr_matrix(counts), sp.csr_array(counts)):
        view = anndata.AnnData(matrix)[:, np.arange(12) % 3 > 0].X
        assert np.array_equal(PLSA(2, random_state=0).fit(view).components_.shape, (2, 8))
