"""PLSA as an estimator: scikit-learn's checks, containers, input, and what does not change a fit."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from estimator_cases import X_WITH_GAPS, X, same_fit
from estimator_cases import fitted_plsa as fitted
from polyseme import PLSA
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.solvers.initialize import STARTS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks([PLSA(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([PLSA()])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def model():
    return PLSA(4, random_state=0, max_iter=50).fit(X_WITH_GAPS)


# containers

TEXTS = ["ant bee ant", "bee ant cow", "iron zinc", "zinc iron gold zinc", "ant cow cow", "gold iron"] * 4


def test_it_works_in_a_pipeline_with_a_vectorizer():
    pipeline = make_pipeline(CountVectorizer(), PLSA(2, random_state=1))
    theta = pipeline.fit_transform(TEXTS)
    assert theta.shape == (24, 2)
    animals, metals = theta[0].argmax(), theta[2].argmax()
    assert animals != metals
    assert pipeline.transform(["cow bee", "zinc", "unheard of"])[:2].argmax(axis=1).tolist() == [animals, metals]
    assert list(pipeline.get_feature_names_out()) == ["plsa0", "plsa1"]


def test_grid_search_prefers_the_number_of_themes():
    pipeline = make_pipeline(CountVectorizer(), PLSA(random_state=1))
    search = GridSearchCV(pipeline, {"plsa__n_components": [1, 2]}, cv=3, error_score="raise").fit(TEXTS)
    assert search.best_params_ == {"plsa__n_components": 2}
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


def test_clone_copies_only_the_parameters(model):
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "components_")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_and_pickles_are_complete(model, duplicate):
    twin = duplicate(model)
    assert same_fit(twin, model)
    assert np.array_equal(twin.transform(X), model.transform(X))
    assert twin.score(X) == model.score(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_gives_data_frames(library):
    pytest.importorskip(library)
    frames = PLSA(3, random_state=0).set_output(transform=library)
    frame = frames.fit_transform(X)
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == ["plsa0", "plsa1", "plsa2"]
    assert np.array_equal(frame.to_numpy(), frames.doc_topic_)
    assert np.array_equal(frames.transform(X).to_numpy(), frames.doc_topic_)


def test_feature_names_are_stored_and_checked():
    pandas = pytest.importorskip("pandas")
    names = [f"word{w}" for w in range(X.shape[1])]
    model = fitted(pandas.DataFrame(X, columns=names))
    assert list(model.feature_names_in_) == names
    assert model.topics().columns[0] == "id"
    assert "word" in model.topics(n_words=1)["words"][0]
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(pandas.DataFrame(X, columns=names[::-1]))


# weights of documents


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_documents_of_weight_zero_are_folded_in_like_any_other(layout):
    """Also one whose words occur nowhere else, so that no topic knows them."""
    data = np.array([[4, 3, 0, 0, 0], [5, 2, 0, 1, 0], [0, 0, 3, 4, 0], [0, 0, 0, 0, 7], [0, 1, 0, 0, 7.0]])
    weights = np.array([1.0, 1, 1, 0, 0])
    model = fitted(layout(data), n_components=2, sample_weight=weights)
    without = fitted(layout(data[:3]), n_components=2)
    np.testing.assert_allclose(model.components_, without.components_, atol=1e-12)
    np.testing.assert_allclose(model.history_["log_likelihood"], without.history_["log_likelihood"], rtol=1e-12)
    assert np.array_equal(model.transform(layout(data)), model.doc_topic_)
    assert np.array_equal(model.doc_topic_[3], model.topic_weights_)


def test_empty_documents_get_the_topic_weights(model):
    assert np.array_equal(model.doc_topic_[17], model.topic_weights_)
    assert np.array_equal(model.transform(np.zeros((2, 45))), np.tile(model.topic_weights_, (2, 1)))


def test_unseen_words_are_ignored_in_transform(model):
    only_seen = X.copy()
    only_seen[:, [3, 44]] = 0
    assert not np.array_equal(X, only_seen)
    assert np.array_equal(model.transform(X), model.transform(only_seen))
    nothing_seen = np.zeros((1, 45))
    nothing_seen[0, 3] = 5
    assert np.array_equal(model.transform(nothing_seen)[0], model.topic_weights_)


def test_a_model_can_be_fitted_again_with_another_number_of_topics():
    model = fitted(X_WITH_GAPS, n_components=3)
    model.set_params(n_components=2).fit(X_WITH_GAPS)
    assert same_fit(model, fitted(X_WITH_GAPS, n_components=2))


# input


def test_every_kind_of_matrix_gives_the_same_fit():
    counts = sp.coo_array(X)
    wide = sp.csr_array(X)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    kinds = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.lil_array]
    model = fitted(sp.csr_array(X))
    for other in [kind(counts) for kind in kinds] + [wide]:
        assert same_fit(fitted(other), model)
        assert np.array_equal(model.transform(other), model.doc_topic_)
    dense = fitted(X)
    np.testing.assert_allclose(dense.components_, model.components_, atol=1e-9)
    assert same_fit(fitted(np.asfortranarray(X)), dense)
    assert same_fit(fitted(X.tolist()), dense)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("data_dtype", "parameter", "expected"),
    [
        (np.int64, None, np.float32),
        (np.int32, None, np.float32),
        (np.uint8, None, np.float32),
        (np.bool_, None, np.float32),
        (np.float32, None, np.float32),
        (np.float64, None, np.float64),
        (np.int64, np.float64, np.float64),
        (np.float64, "float32", np.float32),
    ],
)
def test_the_dtype_of_the_factors_follows_data_and_parameter(layout, data_dtype, parameter, expected):
    data = layout(X.astype(data_dtype))
    model = fitted(data, dtype=parameter)
    for array in (model.components_, model.doc_topic_, model.transform(data)):
        assert array.dtype == expected
    assert np.array_equal(model.transform(data), model.doc_topic_)


def test_integers_are_fitted_as_float32():
    assert same_fit(fitted(sp.csr_array(X.astype(np.int64))), fitted(sp.csr_array(X.astype(np.float32))))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_the_data_is_not_modified(layout):
    data = layout(X_WITH_GAPS)
    before = data.copy()
    fitted(data).completion_perplexity(data)
    assert (abs(data - before)).sum() == 0


# reproducibility


def test_the_seed_determines_the_fit():
    assert same_fit(fitted(random_state=3), fitted(random_state=3))
    assert same_fit(
        fitted(random_state=np.random.RandomState(3)),
        fitted(random_state=np.random.RandomState(3)),
    )
    assert not same_fit(fitted(random_state=3), fitted(random_state=4))


@pytest.mark.parametrize("name", ["documents", "random", "nndsvd", "correspondence", "lsa", "spectral"])
@pytest.mark.parametrize("K", [3, 30])
def test_starts_do_not_depend_on_the_order_or_number_of_rows(name, K):
    """K = 30 takes the exact eigenvectors, K = 3 the iterative ones."""
    order = np.random.default_rng(2).permutation(len(X))
    twice = np.vstack([X[order], X])

    def start(data):
        return STARTS[name](MemoryCorpus(as_counts(data, np.dtype(np.float64))), K, np.random.default_rng(3))

    first = start(sp.csr_array(X))
    np.testing.assert_allclose(first.sum(axis=0), 1, rtol=1e-12)
    assert np.array_equal(first > 0, np.tile(X.any(axis=0), (K, 1)).T)
    np.testing.assert_allclose(start(X[order]), first, atol=1e-8)
    np.testing.assert_allclose(start(sp.csr_array(twice)), first, atol=1e-8)


@pytest.mark.parametrize("name", ["documents", "random", "nndsvd", "correspondence", "lsa", "spectral"])
@pytest.mark.parametrize("K", [3, 30])
def test_starts_treat_weights_as_repeated_rows(name, K):
    times = np.random.default_rng(6).integers(0, 3, len(X)).astype(np.float64)

    def start(data, weights):
        source = MemoryCorpus(as_counts(data, np.dtype(np.float64)), weights)
        return STARTS[name](source, K, np.random.default_rng(3))

    repeated = start(sp.csr_array(X.repeat(times.astype(int), axis=0)), None)
    np.testing.assert_allclose(start(sp.csr_array(X), times), repeated, atol=1e-8)


@pytest.mark.parametrize("init", ["documents", "random", "nndsvd", "correspondence", "lsa", "spectral"])
def test_a_fit_does_not_depend_on_the_order_of_rows(init):
    order = np.random.default_rng(4).permutation(len(X))
    one, other = fitted(init=init, max_iter=15), fitted(X[order], init=init, max_iter=15)
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-8)
    np.testing.assert_allclose(other.log_likelihood_, one.log_likelihood_, rtol=1e-8)


def test_the_fit_starts_from_a_given_pair():
    theta, phi = oracles.random_factors(5, *X.shape, 3)
    model = fitted(init=(theta * 7, phi * 3), max_iter=2, solver="em")
    start = oracles.log_likelihood(X, theta, phi) / X.sum()
    np.testing.assert_allclose(model.history_["log_likelihood"][0], start, rtol=1e-12)
    for _ in range(2):
        theta, phi = oracles.em_step(X, theta, phi)
    np.testing.assert_allclose(model.components_, phi, atol=1e-12)
