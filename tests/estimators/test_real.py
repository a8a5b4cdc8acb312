"""RealTopicModel: scikit-learn's checks, other topic models, recovery of corners, and wrong input."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyseme import LDA, NMF, PLSA, CorrelatedTopicModel, InputError, RealTopicModel, UnsupportedError, load
from polyseme.priors import Dirichlet, Entropic
from polyseme.simplex import SimplexDecomposition, SimplexMap
from solver_problems import LIKELIHOOD

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CORNERS = np.array([[-2.0, 0.0, 1.0, 4.0], [1.0, 3.0, -1.0, 0.0], [1.0, -1.0, 2.0, -3.0]])
WEIGHTS = np.random.default_rng(0).dirichlet([0.5] * 3, 200)
X = WEIGHTS @ CORNERS


def matched(found, true=CORNERS):
    """Return the worst root-mean-square error of matched corners, and the order that matches."""
    gaps = np.sqrt(((true[:, np.newaxis] - found) ** 2).mean(axis=2))
    rows, order = linear_sum_assignment(gaps)
    return gaps[rows, order].max(), order


@parametrize_with_checks([RealTopicModel()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RealTopicModel(PLSA(2)), RealTopicModel(volume="data")])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


# other topic models

MODELS = {
    "Real-PLSA": PLSA(3),
    "Real-Sparse-PLSA": PLSA(3, doc_topic_prior=Entropic(5.0)),
    "with a Dirichlet prior": PLSA(3, doc_topic_prior=Dirichlet(1.1)),
    "symmetric": PLSA(3, solver="plsi"),
    "Real-LDA": LDA(3, random_state=0),
    "Real-CTM": CorrelatedTopicModel(3, random_state=0),
    "NMF": NMF(3),
    "scikit-learn's LDA": LatentDirichletAllocation(3, random_state=0, max_iter=5, doc_topic_prior=0.1),
}


def assert_same_weights(folded, fitted, name):
    """Weights of training points are those of `transform`; a sparse prior has several maxima, close to each other."""
    if "Sparse" in name:
        assert np.abs(folded - fitted).mean() < 0.01
    else:
        np.testing.assert_allclose(folded, fitted, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("volume", ["minimum", "farthest", "data"])
def test_any_topic_model_can_be_used(name, volume):
    X = WEIGHTS[:60] @ CORNERS
    model = RealTopicModel(clone(MODELS[name]), volume=volume).fit(X)
    assert model.components_.shape == (3, 4)
    assert model.components_.min() < 0
    weights = model.transform(X)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    assert_same_weights(weights, model.doc_topic_, name)
    np.testing.assert_allclose(model.inverse_transform(weights), weights @ model.components_, atol=1e-12)
    errors = np.linalg.norm(X - weights @ model.components_, axis=1)
    np.testing.assert_allclose(model.reconstruction_error(X), errors, atol=1e-12)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - model.doc_topic_ @ model.components_))
    assert model.reconstruction_err_ < np.linalg.norm(X - X.mean(axis=0))
    seen = SimplexDecomposition.of(model, X)
    np.testing.assert_allclose(seen.errors, errors, atol=1e-12)
    assert np.array_equal(seen.outside(0.1), model.outside_hull(X, 0.1))


@pytest.mark.parametrize("solver", sorted({*LIKELIHOOD} - {"tempered", "held-out-tempered", "annealed", "online"}))
def test_the_smallest_simplex_finds_the_corners_with_every_solver(solver):
    error, _ = matched(RealTopicModel(PLSA(3, solver=solver), margin=0.0).fit(X).components_)
    assert error < 0.05


def test_corners_and_weights_are_found():
    model = RealTopicModel(PLSA(3), margin=0.0).fit(X)
    error, order = matched(model.components_)
    assert error < 0.03
    assert np.abs(model.doc_topic_[:, order] - WEIGHTS).max() < 0.03


def test_a_larger_total_weakens_a_prior():
    """With few tokens a prior wins: weights of a strong Dirichlet are nearly even."""
    few, many = (
        RealTopicModel(PLSA(3, doc_topic_prior=Dirichlet(3.0)), total=total).fit(X).doc_topic_ for total in (1, 1e4)
    )
    assert few.max() < 0.5
    assert many.max() > 0.95


def test_entropic_prior_makes_weights_sparser():
    def entropy(prior):
        weights = RealTopicModel(PLSA(3, doc_topic_prior=prior), total=100.0).fit(X).doc_topic_
        return -(weights * np.log(np.maximum(weights, 1e-300))).sum()

    assert entropy(Entropic(10.0)) < 0.9 * entropy(None)


def test_the_symmetric_view_is_that_of_the_topic_model():
    model = RealTopicModel(PLSA(3, solver="plsi")).fit(X).model_
    joint = (model.topic_doc_.T * model.topic_weights_) @ model.components_
    asymmetric = (model.doc_topic_ * model.doc_weights_[:, np.newaxis]) @ model.components_
    np.testing.assert_allclose(joint, asymmetric, atol=1e-9)


def test_the_sums_of_rows_matter():
    """Section 4: two spectra of one shape and different energy are one point for PLSA, two for RealTopicModel."""
    spectra = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    mix = np.linspace(0, 1, 30)[:, np.newaxis]
    data = mix * spectra[0] + (1 - mix) * spectra[1]
    plain = PLSA(2, random_state=0).fit(data).doc_topic_
    np.testing.assert_allclose(plain, plain[:1].repeat(30, axis=0), atol=1e-6)
    error, _ = matched(RealTopicModel(PLSA(2), margin=0.0).fit(data).components_, spectra)
    assert error < 0.05


def test_volume_data_uses_the_map_of_the_paper():
    model = RealTopicModel(PLSA(3, random_state=0), volume="data").fit(X)
    assert np.array_equal(model.shift_, SimplexMap.of_paper(X).shift)


# non-negative data

SPIKES = np.exp(-(((np.linspace(0, 1, 40) - np.array([[0.1], [0.5], [0.85]])) / 0.08) ** 2))
SPECTRA = np.maximum(WEIGHTS @ SPIKES + 0.03 * np.random.default_rng(1).normal(size=(200, 40)), 0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("volume", ["minimum", "farthest", "data"])
def test_corners_of_non_negative_data_are_not_negative(name, volume):
    model = RealTopicModel(clone(MODELS[name]), volume=volume).fit(SPECTRA)
    assert model.non_negative_
    assert model.components_.min() >= 0
    weights = model.transform(SPECTRA)
    assert_same_weights(weights, model.doc_topic_, name)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(SPECTRA - model.doc_topic_ @ model.components_))
    new = np.vstack([SPECTRA[:2], -SPECTRA[:2], 100 * SPECTRA[:2]])
    assert model.outside_simplex(new).tolist() == [False] * 2 + [True] * 4
    np.testing.assert_allclose(model.transform(new)[:2], weights[:2], atol=1e-12)


def test_the_constraint_can_be_turned_off_and_improves_the_corners():
    """Noise moves faces to where the true corners are zero. The constraint helps in 8 of these 10 data sets."""
    gains = []
    for seed in range(10):
        data = np.maximum(WEIGHTS[:100] @ SPIKES + 0.06 * np.random.default_rng(seed).normal(size=(100, 40)), 0)
        kept, free = (RealTopicModel(PLSA(3), non_negative=choice).fit(data) for choice in (True, False))
        assert kept.non_negative_
        assert not free.non_negative_
        assert free.components_.min() < 0 <= kept.components_.min()
        gains.append(matched(kept.components_, SPIKES)[0] < matched(free.components_, SPIKES)[0])
    assert np.mean(gains) >= 0.5


def test_one_negative_entry_turns_the_automatic_constraint_off_unless_its_weight_is_zero():
    data = SPECTRA.copy()
    data[0, 0] = -1e-3
    assert not RealTopicModel(PLSA(3)).fit(data).non_negative_
    weights = np.ones(len(data))
    weights[0] = 0
    assert RealTopicModel(PLSA(3)).fit(data, sample_weight=weights).non_negative_
    with pytest.raises(InputError, match=r"without negative entries, got -0\.001: use non_negative=False"):
        RealTopicModel(PLSA(3), non_negative=True).fit(data)


# new points


def test_points_outside_the_simplex_are_flagged_and_handled_independently():
    model = RealTopicModel(PLSA(3), margin=0.0).fit(X)
    assert not model.outside_simplex(X).any()
    far = np.vstack([X[:3], X[3:6] * 50, X[6:9]])
    assert model.outside_simplex(far).tolist() == [False] * 3 + [True] * 3 + [False] * 3
    weights = model.transform(far)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(weights[[0, 1, 2, 6, 7, 8]], model.transform(X[[0, 1, 2, 6, 7, 8]]), atol=1e-12)
    assert model.outside_hull(far, 0.01).tolist() == [False] * 3 + [True] * 3 + [False] * 3
    assert (model.reconstruction_error(far)[3:6] > 1).all()


def test_float32_stays_float32():
    model = RealTopicModel(PLSA(3)).fit(X.astype(np.float32))
    assert model.components_.dtype == model.transform(X.astype(np.float32)).dtype == np.float32
    assert matched(model.components_)[0] < 0.15


def test_a_float32_model_gets_float32_rows():
    model = RealTopicModel(PLSA(3, dtype="float32"), margin=0.0).fit(X)
    assert model.model_.components_.dtype == np.float32
    assert model.components_.dtype == model.transform(X).dtype == np.float64
    assert matched(model.components_)[0] < 0.05


# wrong and degenerate input


def bad(kind):
    data = X.copy()
    data[3, 1] = {"NaN": np.nan, "infinity": np.inf}[kind]
    return data


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (RealTopicModel(), bad("NaN"), "contains NaN: every entry must be a finite number"),
        (RealTopicModel(), bad("infinity"), "contains infinity"),
        (RealTopicModel(), X + 1j, "Complex data not supported"),
        (RealTopicModel(), sp.csr_array(X), "Sparse data was passed"),
        (RealTopicModel(), np.empty((0, 3)), "minimum of 1 is required"),
        (RealTopicModel(volume="large"), X, "volume must be one of 'data', 'farthest', 'minimum', got 'large'"),
        (RealTopicModel(margin=2), X, "margin must be a number between 0 and 1"),
        (RealTopicModel(non_negative=True), X, "non_negative=True needs points without negative entries, got -"),
        (RealTopicModel(non_negative="yes"), X, "non_negative must be True, False or 'auto', got 'yes'"),
        (RealTopicModel(non_negative=None), X, "non_negative must be True, False or 'auto', got None"),
        (RealTopicModel(non_negative=1), X, "non_negative must be True, False or 'auto', got 1"),
        (RealTopicModel(total=0), X, "total must be greater than 0"),
        (RealTopicModel(total="many"), X, "total must be a finite number"),
        (RealTopicModel(PLSA), X, "model must be None or a topic model"),
        (RealTopicModel(PLSA(0)), X, "n_components must be a whole number of at least 1"),
        (RealTopicModel("plsa"), X, "model must be None or a topic model"),
    ],
)
def test_wrong_input_raises_one_sentence(model, data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(data)


def test_weights_that_the_model_does_not_accept_raise():
    with pytest.raises(UnsupportedError, match="takes no sample_weight"):
        RealTopicModel(LatentDirichletAllocation(2)).fit(X, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="at least one non-zero"):
        RealTopicModel(PLSA(2)).fit(X, sample_weight=np.zeros(len(X)))
    with pytest.raises(InputError, match="a column for each of the 3 components"):
        RealTopicModel(PLSA(3)).fit(X).inverse_transform(np.ones((2, 2)))


@pytest.mark.parametrize("volume", ["minimum", "farthest", "data"])
@pytest.mark.parametrize(
    "data",
    [np.zeros((5, 3)), np.full((5, 3), 7.5), X[:1], X[:2], X[:, :1], np.round(X).astype(int), X * 1e-8, X + 1e6],
    ids=["zeros", "constant", "one point", "two points", "one feature", "integers", "tiny", "far away"],
)
@pytest.mark.parametrize("K", [1, 3])
def test_degenerate_data_gives_a_valid_decomposition(data, volume, K):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = RealTopicModel(PLSA(K, random_state=0), volume=volume).fit(data)
    weights = model.transform(data)
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    rounding = 1e-6 * np.abs(data).max() + 1e-12
    if volume == "data":  # as near as PLSA's tolerance gets on the simplex of the paper, from a random start
        rounding = -0.02 * model.shift_.sum() * np.sqrt(len(data))
    assert model.reconstruction_err_ <= np.linalg.norm(data - data.mean(axis=0)) * (1 + 1e-6) + rounding


def test_a_fit_that_fails_does_not_change_the_last_fit():
    model = RealTopicModel(PLSA(3)).fit(X)
    weights = model.doc_topic_
    model.model = PLSA(3, solver="nothing")
    with pytest.raises(InputError, match="solver"):
        model.fit(X[:50])
    assert np.array_equal(model.transform(X), weights)


def test_an_interrupted_fit_stores_the_model():
    def stop(report):
        if report["iteration"] == 2:
            raise KeyboardInterrupt

    model = RealTopicModel(PLSA(3, solver="em", tol=0, callback=stop))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.transform(X).shape == (200, 3)


# files


def test_a_saved_model_is_loaded_unchanged(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = RealTopicModel(PLSA(3, doc_topic_prior=Entropic(2.0), solver="em"), margin=0.1).fit(frame)
    model.save(tmp_path / "real.safetensors")
    loaded = load(tmp_path / "real.safetensors")
    assert np.array_equal(loaded.transform(frame), model.transform(frame))
    assert np.array_equal(loaded.components_, model.components_)
    assert loaded.margin == 0.1
    assert loaded.model.get_params() == model.model.get_params()
    assert loaded.model_.history_["iteration"].tolist() == model.model_.history_["iteration"].tolist()
    assert list(loaded.feature_names_in_) == list("abcd")
    assert not loaded.outside_simplex(frame).any()
    assert loaded.fit(frame).reconstruction_err_ == model.reconstruction_err_


def test_a_saved_model_of_non_negative_data_is_loaded_unchanged(tmp_path):
    model = RealTopicModel(PLSA(3)).fit(SPECTRA)
    model.save(tmp_path / "real.safetensors")
    loaded = load(tmp_path / "real.safetensors")
    assert loaded.non_negative_ is True
    assert loaded.non_negative == "auto"
    assert np.array_equal(loaded.transform(SPECTRA), model.transform(SPECTRA))


def test_saving_with_a_model_of_another_package_raises(tmp_path):
    model = RealTopicModel(LatentDirichletAllocation(2, random_state=0)).fit(X)
    with pytest.raises(UnsupportedError, match="A LatentDirichletAllocation of another library cannot be saved"):
        model.save(tmp_path / "foreign.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("weight", [0.1, 20.0])
def test_the_margin_of_the_smallest_simplex_counts_weights(weight):
    """Of 100 points between 0 and 1 and one at 10, a margin of 5% leaves the last one out if it has less weight."""
    points = np.append(np.linspace(0, 1, 100), 10.0)[:, np.newaxis]
    model = RealTopicModel(PLSA(2, random_state=0, solver="em", max_iter=1), margin=0.05)  # a fit moves the corners
    model.fit(points, sample_weight=np.append(np.ones(100), weight))
    assert (model.components_.max() > 5) == (weight > 5)


@pytest.mark.parametrize(("seed", "shape", "n_topics"), [(0, (40, 10), 10), (56, (23, 10), 10), (3, (30, 12), 9)])
def test_few_points_in_many_dimensions_do_not_make_a_face_infinite(seed, shape, n_topics):
    """A face of which no point uses a corner has no best position: the corner could move to another one."""
    X = np.random.RandomState(seed).uniform(size=shape)
    with np.errstate(all="raise", under="ignore"):
        model = RealTopicModel(PLSA(n_topics, random_state=0, max_iter=20)).fit(X)
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1, rtol=1e-5)
