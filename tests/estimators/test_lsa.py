"""LSA and angles: known examples, NumPy's decomposition, scikit-learn's checks."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import oracles
import polyseme.estimators.lsa
from polyseme import InputError, load
from polyseme.estimators.lsa import LSA, WEIGHTS, angles, entropy_weights

X = oracles.mixed_counts(0, 60, 45, 4).astype(np.float64)


@parametrize_with_checks([LSA(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([LSA(), LSA(0.8, weights="tf-idf")])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


# the vector space model (thesis, chapter 3)


@given(st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any), st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_a_text_and_repetitions_of_it_have_an_angle_of_0_degrees(counts, copies):
    assert angles([counts], [[copies * count for count in counts]])[0, 0] == pytest.approx(0, abs=1e-12)


def test_equal_texts_have_an_angle_of_exactly_0_degrees():
    assert angles([[3, 1, 2]], [[6, 2, 4]])[0, 0] == 0


def test_texts_without_a_common_word_have_an_angle_of_90_degrees():
    assert angles([[2, 1, 0], [0, 0, 0]], [[0, 0, 3]]).tolist() == [[90], [90]]


def test_angles_equal_the_definition():
    Y = oracles.mixed_counts(1, 8, 45, 3)
    cosines = (X @ Y.T) / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    np.testing.assert_allclose(angles(sp.csr_array(X), Y), np.degrees(np.arccos(cosines)), rtol=1e-10)
    with pytest.raises(InputError, match="45 and 44 entries"):
        angles(X, Y[:, 1:])


def test_small_angles_are_accurate():
    step = 1e-9
    assert angles([[1, 0]], [[1, step]])[0, 0] == pytest.approx(np.degrees(step), rel=1e-6)


# weights


def test_tf_idf_equals_scikit_learn():
    model = LSA(3, weights="tf-idf").fit(X)
    np.testing.assert_allclose(model.word_weights_, TfidfTransformer(norm=None).fit(X).idf_)


def test_entropy_weights_of_known_words():
    """A word of one document weighs 1, one that is spread evenly 0, one of two among four documents 1/2."""
    counts = sp.csr_array(np.array([[5, 1, 2], [0, 1, 2], [0, 1, 0], [0, 1, 0]]))
    np.testing.assert_allclose(entropy_weights(counts), [1, 0, 0.5], atol=1e-15)


# the decomposition


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("small", [True, False])
def test_the_decomposition_equals_that_of_numpy(weights, small, monkeypatch):
    if not small:
        monkeypatch.setattr(polyseme.estimators.lsa, "_DENSE_ENTRIES", 0)
    model = LSA(5, weights=weights).fit(X)
    local = np.log1p(X) if weights == "log-entropy" else X
    A = local * model.word_weights_
    U, S, Vt = np.linalg.svd(A, full_matrices=False)
    np.testing.assert_allclose(model.singular_values_, S[:5], rtol=1e-8)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(Vt[:5]), atol=1e-6)
    np.testing.assert_allclose(np.abs(model.doc_vectors_), np.abs(U[:, :5] * S[:5]), atol=1e-5)
    np.testing.assert_allclose(model.explained_squares_ratio_, S[:5] ** 2 / (A**2).sum(), rtol=1e-8)
    reference = TruncatedSVD(5, algorithm="arpack").fit(A)
    np.testing.assert_allclose(model.explained_variance_, reference.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(model.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=1e-6)
    approximation = model.inverse_transform(model.doc_vectors_)
    np.testing.assert_allclose(approximation, (U[:, :5] * S[:5]) @ Vt[:5], atol=1e-5)
    dots = model.word_vectors_ @ model.word_vectors_.T
    np.testing.assert_allclose(dots, approximation.T @ approximation, atol=1e-4)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_share_gives_the_smallest_sufficient_number_of_components(share, small, monkeypatch):
    if not small:
        monkeypatch.setattr(polyseme.estimators.lsa, "_DENSE_ENTRIES", 0)
        monkeypatch.setattr(polyseme.estimators.lsa, "_FIRST_RANK", 2)
    model = LSA(share).fit(X)
    ratios = model.explained_squares_ratio_
    assert ratios.sum() >= share * (1 - 1e-9)
    assert ratios[:-1].sum() < share
    assert model.n_components_ == len(ratios) == model.doc_vectors_.shape[1]


def test_a_wide_matrix_is_decomposed_by_its_smaller_product(monkeypatch):
    """More words than documents, and most of the singular values wanted."""
    monkeypatch.setattr(polyseme.estimators.lsa, "_DENSE_ENTRIES", 0)
    model = LSA(20, weights="counts").fit(X[:30])
    values, rows = np.linalg.svd(X[:30], full_matrices=False)[1:]
    np.testing.assert_allclose(model.singular_values_, values[:20], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.einsum("kw,kw->k", model.components_, rows[:20])), 1, rtol=1e-6)


def test_duplicate_entries_are_added_up():
    whole = sp.csr_array(X)
    halves = sp.csr_array(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    model = LSA(4).fit(halves)
    assert np.array_equal(model.components_, LSA(4).fit(whole).components_)
    assert np.array_equal(model.transform(halves), model.doc_vectors_)
    assert halves.nnz == 2 * whole.nnz


def test_too_many_components_give_all_that_exist():
    model = LSA(1000).fit(X)
    assert model.n_components_ == min(X.shape)
    assert model.explained_squares_ratio_.sum() == pytest.approx(1)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)


def test_signs_are_fixed_and_nothing_is_random(monkeypatch):
    monkeypatch.setattr(polyseme.estimators.lsa, "_DENSE_ENTRIES", 0)
    one, two = LSA(4).fit(X), LSA(4).fit(sp.csc_array(X))
    assert np.array_equal(one.components_, two.components_)
    largest = np.abs(one.components_).argmax(axis=1)
    assert (one.components_[np.arange(4), largest] > 0).all()


def test_results_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(polyseme.estimators.lsa, "_DENSE_ENTRIES", 0)
    data = oracles.mixed_counts(3, 300, 200, 6)
    fits = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            fits.append(LSA(8).fit(data))
    assert np.array_equal(fits[0].components_, fits[1].components_)
    assert np.array_equal(fits[0].doc_vectors_, fits[1].doc_vectors_)


# folding in, neighbors


def test_doc_vectors_equal_the_transform_of_the_training_documents():
    model = LSA(6)
    assert np.array_equal(model.fit_transform(X), model.transform(sp.csr_matrix(X)))
    assert np.array_equal(model.transform(X[7:8])[0], model.doc_vectors_[7])
    assert LSA(6).fit(X.astype(np.float32)).transform(X.astype(np.float32)).dtype == np.float32


def test_synonyms_are_near_in_the_latent_space():
    """Thesis 3.1: car and auto never occur together, but with the same words; one query finds both documents."""
    words = ["car", "auto", "engine", "wheel", "bread", "butter"]
    documents = np.array([[2, 0, 2, 1, 0, 0], [0, 2, 1, 2, 0, 0], [0, 0, 0, 0, 2, 1], [0, 0, 0, 0, 1, 2]])
    query = [[1, 0, 0, 0, 0, 0]]
    assert angles(query, documents[1:2])[0, 0] == 90
    model = LSA(2, weights="counts").fit(documents)
    degrees = model.angles(query)[0]
    assert degrees[0] < 10
    assert degrees[1] < 10
    assert (degrees[2:] > 80).all()
    numbers, distances = model.nearest(query, n_documents=2)
    assert sorted(numbers[0]) == [0, 1]
    assert distances[0, 0] <= distances[0, 1]
    near, _ = model.nearest_words(words.index("car"), n_words=4)
    assert set(near[0]) == {0, 1, 2, 3}
    assert np.array_equal(model.angles(query, documents), model.angles(query))


# parameters, files


@pytest.mark.parametrize("value", [0, -1, 1.0, 1.5, 0.0, True, "all", None])
def test_wrong_n_components_raise(value):
    with pytest.raises(InputError, match="n_components must be a whole number of at least 1 or a share below 1"):
        LSA(value).fit(X)


def test_wrong_weights_raise():
    with pytest.raises(InputError, match="weights must be one of 'counts', 'tf-idf', 'log-entropy', got 'tfidf'"):
        LSA(2, weights="tfidf").fit(X)


@pytest.mark.parametrize("words", [45, -1, [0, 45], "car", [0.5]])
def test_words_that_are_no_columns_raise(words):
    with pytest.raises(InputError, match="words must be columns from 0 to 44"):
        LSA(3).fit(X).nearest_words(words)


@pytest.mark.parametrize("n_components", [3, 0.7])
def test_a_saved_model_is_loaded_unchanged(tmp_path, n_components):
    model = LSA(n_components, weights="tf-idf").fit(X)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert set(vars(loaded)) == set(vars(model))
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.transform(X), model.doc_vectors_)
    assert np.array_equal(loaded.word_vectors_, model.word_vectors_)
