"""NMF with every loss: scikit-learn's checks, errors and weights that agree with the loss, and wrong input."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, nnls
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
import polyseme
from polyseme import NMF, PLSA, InputError, UnsupportedError
from polyseme.core.model import as_loss
from polyseme.estimators.nmf import nmf_to_plsa
from polyseme.explore.page_data import page_data
from polyseme.losses import LOSSES, Beta
from polyseme.losses.absolute import Absolute
from polyseme.retrieval import SearchIndex
from polyseme.solvers import EarlyStopping
from polyseme.solvers.ascent import EM
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 25, 3).astype(float)
POSITIVE = X + 0.2
OF_COUNTS = ["squared", "chi-square", "absolute", Beta(0.5), Beta(1.5), Beta(3)]
OTHERS = [*OF_COUNTS, "itakura-saito", Beta(-0.5)]
EVERY = pytest.mark.parametrize("loss", OTHERS, ids=str)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def weights_of_the_fit(estimator):
    """Return the checks that `fit_transform` equals `transform`, if the weights of documents have several minima."""
    names = ("check_transformer_general", "check_transformer_data_not_an_array")
    reason = "the weights of the fit continue from those of its last iteration"
    return {} if as_loss(estimator.loss).is_convex else dict.fromkeys(names, reason)


@pytest.mark.slow
@parametrize_with_checks([NMF(3, loss=loss) for loss in OF_COUNTS], expected_failed_checks=weights_of_the_fit)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data_of(loss):
    return POSITIVE if as_loss(loss).needs_positive else X


def total(loss, X, Q):
    return float(as_loss(loss).values(X, np.maximum(Q, 1e-15)).sum())


@EVERY
@LAYOUTS
def test_the_error_is_the_loss_of_the_factors(loss, layout):
    data = data_of(loss)
    model = NMF(3, loss=loss, random_state=0).fit(layout(data))
    # With beta < 1, the smallest q that the sums allow changes the loss of zeros a little.
    found = total(loss, data, model.doc_factor_ @ model.components_)
    assert model.reconstruction_err_ == pytest.approx(found, rel=1e-4 if loss == Beta(0.5) else 1e-6)
    assert model.reconstruction_err_ <= model.history_["loss"][-1] * (1 + 1e-6)  # W is at its minimum
    assert model.loss_ == as_loss(loss).name
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-6)
    if as_loss(loss).is_convex:  # otherwise W starts from that of the fit
        assert np.array_equal(model.doc_factor_, model.transform(layout(data)))
    assert not hasattr(model, "log_likelihood_")
    assert model.solver_ == ("hals" if loss == "squared" else "mm")


@pytest.mark.parametrize("kind", [NMF, PLSA])
def test_a_fit_of_a_loss_that_is_not_convex_returns_its_best_point(kind, tmp_path):
    """From uniform weights, documents would reach another minimum, which is often higher."""
    loss, data = Beta(-1), np.random.default_rng(0).gamma(1, 2, (60, 25)) + 0.05
    weights = np.r_[np.zeros(5), np.ones(55)]
    for seed in range(3):
        model = kind(4, loss=loss, random_state=seed, max_iter=300).fit(data, sample_weight=weights)
        W = model.doc_factor_ if kind is NMF else model.doc_topic_ * data.sum(axis=1, keepdims=True)
        found = total(loss, data[5:], W[5:] @ model.components_)
        assert found <= model.history_["loss"].min() * (1 + 1e-6)
        model.save(tmp_path / "model")
        again = polyseme.load(tmp_path / "model")
        if kind is NMF:
            assert again.reconstruction_err_ == model.reconstruction_err_ == pytest.approx(found, rel=1e-6)
            assert np.array_equal(again.doc_factor_, model.doc_factor_)
        else:
            assert np.array_equal(again.doc_topic_, model.doc_topic_)


@EVERY
def test_transform_is_a_minimum(loss):
    """No random neighbor of W is better by more than a small share of the loss."""
    model = NMF(3, loss=loss, random_state=0).fit(data_of(loss))
    new = oracles.mixed_counts(1, 12, 25, 3) * model.components_.any(axis=0) + (data_of(loss) is POSITIVE) * 0.2
    W, H = model.transform(new), model.components_
    found = total(loss, new, W @ H)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(200):
            neighbor = np.maximum(W + size * W.mean() * rng.standard_normal(W.shape), 0)
            assert found <= total(loss, new, neighbor @ H) * (1 + 1e-3)


def test_least_squares_equal_those_of_scipy():
    model = NMF(3, loss="squared", random_state=0).fit(X)
    exact = np.array([nnls(model.components_.T, x)[0] for x in X])
    np.testing.assert_allclose(model.transform(X), exact, atol=1e-5 * exact.max())


def test_absolute_errors_are_near_those_of_linear_programming():
    model = NMF(3, loss="absolute", random_state=0).fit(POSITIVE)
    H, (n_words, K) = model.components_, model.components_.T.shape
    cost = np.r_[np.zeros(K), np.ones(n_words)]
    bounds = np.block([[H.T, -np.eye(n_words)], [-H.T, -np.eye(n_words)]])
    exact = sum(linprog(cost, A_ub=bounds, b_ub=np.r_[x, -x]).fun for x in POSITIVE)
    assert exact <= model.reconstruction_err_ + 1e-6
    assert model.reconstruction_err_ <= exact * 1.005


@pytest.mark.parametrize(("loss", "beta"), [("squared", "frobenius"), ("itakura-saito", "itakura-saito")])
def test_a_fit_is_about_as_good_as_that_of_scikit_learn(loss, beta):
    data = data_of(loss)
    solver = "cd" if loss == "squared" else "mu"
    theirs = SklearnNMF(3, solver=solver, beta_loss=beta, init="nndsvda", max_iter=2000, tol=1e-8).fit(data)
    ours = NMF(3, loss=loss, n_init=5, max_iter=2000, tol=1e-6, random_state=0).fit(data)
    assert ours.reconstruction_err_ <= total(loss, data, theirs.transform(data) @ theirs.components_) * 1.001


_RNG = np.random.default_rng(0)
LOW_RANK = np.maximum(
    _RNG.uniform(0, 1, (60, 4)) @ _RNG.uniform(0, 1, (4, 40)) + 0.03 * _RNG.normal(size=(60, 40)), 0.01
)


@pytest.mark.parametrize("beta", [-0.5, 0, 0.5, 1.5, 3])
def test_a_fit_with_default_settings_is_at_most_one_percent_above_scikit_learn(beta):
    loss, pairs = Beta(beta), []
    for seed in range(3):
        theirs = SklearnNMF(4, solver="mu", beta_loss=beta, init="random", random_state=seed)
        Q = theirs.fit_transform(LOW_RANK) @ theirs.components_
        ours = NMF(4, loss=loss, random_state=seed).fit(LOW_RANK)
        pairs.append((ours.reconstruction_err_, total(loss, LOW_RANK, Q)))
    ours, theirs = np.median(pairs, axis=0)
    assert ours <= 1.01 * theirs


def test_absolute_errors_are_below_those_of_the_squared_fit():
    for seed in range(5):
        squared = NMF(4, loss="squared", random_state=seed).fit(LOW_RANK)
        error = np.abs(LOW_RANK - squared.doc_factor_ @ squared.components_).sum()
        assert NMF(4, loss="absolute", random_state=seed).fit(LOW_RANK).reconstruction_err_ <= error


@pytest.mark.parametrize("loss", ["squared", "chi-square", Beta(1.5)], ids=str)
def test_the_start_keeps_its_scale(loss):
    """With the exact factors as a start, the loss is zero."""
    rng = np.random.default_rng(0)
    W, H = rng.gamma(1.0, 5.0, (20, 3)), rng.gamma(1.0, 5.0, (3, 10))
    model = NMF(3, loss=loss, init=(W, H), max_iter=1).fit(W @ H)
    assert model.history_["loss"][0] <= 1e-9 * (W @ H).sum()


@pytest.mark.parametrize("init", ["random", "nndsvd", "correspondence", "lsa", "spectral"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_every_start_works(init, loss):
    model = NMF(3, loss=loss, init=init, random_state=0).fit(X)
    assert model.history_["loss"][-1] < model.history_["loss"][0]


def test_tol_and_n_init_change_the_fit():
    loose, tight = (NMF(3, loss="squared", tol=tol, random_state=0, max_iter=1000).fit(X) for tol in (1, 1e-6))
    assert loose.converged_
    assert tight.converged_
    assert loose.n_iter_ < tight.n_iter_
    assert tight.history_["loss"][-1] < loose.history_["loss"][-1]


def test_documents_of_weight_zero_do_not_change_the_topics():
    weights = np.ones(len(X))
    weights[::3] = 0
    kept = NMF(3, loss="squared", random_state=0).fit(X[weights > 0])
    weighted = NMF(3, loss="squared", random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(weighted.components_, kept.components_, atol=1e-9)
    assert weighted.doc_factor_.shape == (40, 3)
    assert weighted.reconstruction_err_ == pytest.approx(kept.reconstruction_err_, rel=1e-6)


@EVERY
def test_a_model_is_saved_and_loaded(loss, tmp_path):
    data = data_of(loss)
    model = NMF(3, loss=loss, random_state=0, max_iter=20).fit(data)
    model.save(tmp_path / "model")
    again = polyseme.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.transform(data), model.transform(data))
    assert np.array_equal(again.doc_factor_, model.doc_factor_)
    assert again._fitted.inference.loss == as_loss(loss)


def test_a_file_whose_loss_is_another_object_is_refused(tmp_path, monkeypatch):
    model = NMF(2, loss="squared", random_state=0, max_iter=3).fit(X)
    solver = EM()
    object.__setattr__(model._fitted.inference, "loss", solver)
    model.save(tmp_path / "model")
    with pytest.raises(polyseme.ModelFileError, match="loss is not a loss"):
        polyseme.load(tmp_path / "model")


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_search_and_pages_use_the_model(loss):
    words = [f"w{column}" for column in range(25)]
    model = NMF(3, loss=loss, random_state=0).fit(X, feature_names=words)
    index = SearchIndex(sp.csr_array(X), words)
    index.set_model(model)
    assert index.search("w1 w2", method="plsi-u").hits
    data = page_data(model, sp.csr_array(X), words)
    assert np.array_equal(data.doc_topic, model._training.doc_topic)


def test_the_factors_can_be_rescaled_to_distributions():
    model = NMF(3, loss="squared", random_state=0).fit(X)
    parameters = nmf_to_plsa(model.doc_factor_, model.components_)
    assert parameters.topic_weights.sum() == pytest.approx(1)
    with pytest.raises(UnsupportedError, match=r"nmf_to_plsa, or fit PLSA with this loss") as error:
        model.to_plsa()
    sentence(error)


# wrong input


@pytest.mark.parametrize("kind", [NMF, PLSA])
@pytest.mark.parametrize("loss", ["itakura-saito", Beta(-1)], ids=str)
@LAYOUTS
def test_zeros_raise_where_the_loss_is_infinite(loss, kind, layout):
    with pytest.raises(InputError, match="is infinite where X is zero: add a small number to X") as error:
        kind(2, loss=loss).fit(layout(X))
    sentence(error)
    model = kind(2, loss=loss, random_state=0, max_iter=5).fit(layout(POSITIVE))
    with pytest.raises(InputError, match="is infinite where X is zero"):
        model.transform(layout(X))


@pytest.mark.parametrize(
    "parameter", [{"solver": "scd"}, {"solver": "em"}, {"early_stopping": EarlyStopping()}], ids=str
)
@pytest.mark.parametrize("kind", [NMF, PLSA])
def test_solvers_of_likelihoods_raise(parameter, kind):
    with pytest.raises(UnsupportedError, match=r"maximizes a likelihood.*kullback-leibler") as error:
        kind(2, loss="squared", **parameter).fit(X)
    sentence(error)


def test_an_overflow_is_not_silent():
    with pytest.raises(InputError, match=r"loss='beta\(200\)' of this data is not finite"):
        NMF(2, loss=Beta(200), random_state=0).fit(X * 100)


def test_every_name_has_a_loss():
    assert set(LOSSES) == {"kullback-leibler", "squared", "itakura-saito", "chi-square", "absolute"}
    assert isinstance(LOSSES["absolute"], Absolute)


@pytest.mark.parametrize("beta", [0.5, 0.9, 1, 1.1, 1.5, 2])
def test_the_loss_hardly_depends_on_dtype_and_layout(beta):
    rng = np.random.default_rng(5)
    counts = rng.poisson(2 * rng.gamma(1.0, 1.0, (60, 5)) @ rng.gamma(1.0, 1.0, (5, 40))).astype(np.float64)
    losses = [
        NMF(5, loss=Beta(beta), random_state=0, max_iter=2000).fit(data).reconstruction_err_
        for data in (counts, counts.astype(np.float32), sp.csr_array(counts))
    ]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-3)
