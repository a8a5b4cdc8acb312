"""Penalties of NMF: scikit-learn's objective, never worse than its minimum, and each part against a plain oracle."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq, minimize_scalar
from sklearn import decomposition
from sklearn.decomposition._nmf import _beta_divergence
from sklearn.exceptions import ConvergenceWarning

import polyseme
from polyseme import NMF, InputError, UnsupportedError
from polyseme.losses import Beta
from polyseme.losses.base import Powers
from polyseme.losses.penalized import Penalized, Penalty
from polyseme.losses.updates import Terms, multiplied
from polyseme.scale import write_shards
from polyseme.solvers import EarlyStopping

RNG = np.random.default_rng([4, 4])
X = RNG.gamma(1.0, 1.0, (30, 4)) @ RNG.gamma(1.0, 1.0, (4, 20)) + 0.1 * RNG.random((30, 20))
BETAS = (0, 0.5, 1, 1.5, 2, 2.5)
STRENGTHS = ((0.01, "same"), (0.001, 0.02))


def penalties(X, W, H, alpha_W, alpha_H, l1_ratio):
    """Return the penalties of scikit-learn's objective, by its formula."""
    n_samples, n_features = X.shape
    return sum(
        alpha * size * (l1_ratio * F.sum() + (1 - l1_ratio) * (F**2).sum() / 2)
        for alpha, size, F in ((alpha_W, n_features, W), (alpha_H, n_samples, H))
    )


def objective(X, W, H, beta, alpha_W, alpha_H, l1_ratio):
    alpha_H = alpha_W if alpha_H == "same" else alpha_H
    W, H = W.astype(np.float64), H.astype(np.float64)
    return _beta_divergence(X, W, H, beta) + penalties(X, W, H, alpha_W, alpha_H, l1_ratio)


@pytest.mark.parametrize("l1_ratio", [0, 0.5, 1])
@pytest.mark.parametrize("strengths", STRENGTHS, ids=["same", "two"])
@pytest.mark.parametrize("beta", BETAS)
def test_the_minimum_is_at_least_as_good_as_that_of_scikit_learn(beta, strengths, l1_ratio):
    settings = dict(zip(("alpha_W", "alpha_H"), strengths, strict=True), l1_ratio=l1_ratio)
    solver = "cd" if beta == 2 else "mu"
    theirs = decomposition.NMF(4, solver=solver, beta_loss=float(beta), init="random", random_state=0, tol=1e-6,
                               max_iter=3000, **settings)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W, H = theirs.fit_transform(X), theirs.components_
    start = (np.maximum(W, 1e-9), np.maximum(H, 1e-9))
    model = NMF(4, loss=Beta(beta), init=start, tol=1e-5, max_iter=5000, **settings).fit(X)
    found = objective(X, model.doc_factor_, model.components_, beta, *strengths, l1_ratio)
    assert found <= objective(X, W, H, beta, *strengths, l1_ratio) * (1 + 1e-5)
    history = model.history_["loss"]
    assert model.converged_
    assert (np.diff(history) <= 1e-12 * history[:-1]).all()
    # the last value of the history is the objective; inference of W ends a little above its minimum
    assert found == pytest.approx(history[-1], rel=1e-3)
    np.testing.assert_array_equal(model.doc_factor_, model.transform(X) if 1 <= beta <= 2 else model.doc_factor_)
    assert model.reconstruction_err_ == pytest.approx(
        _beta_divergence(X, model.doc_factor_, model.components_, beta), rel=1e-6
    )


@pytest.mark.parametrize("l1_ratio", [0, 0.5, 1])
def test_the_factors_of_the_squared_loss_are_those_of_scikit_learn(l1_ratio):
    settings = {"alpha_W": 0.02, "alpha_H": 0.01, "l1_ratio": l1_ratio}
    theirs = decomposition.NMF(4, init="nndsvda", tol=1e-12, max_iter=20000, **settings)
    W, H = theirs.fit_transform(X), theirs.components_
    start = (np.maximum(W, 1e-6), np.maximum(H, 1e-6))
    model = NMF(4, loss="squared", init=start, tol=1e-10, max_iter=20000, **settings).fit(X)
    np.testing.assert_allclose(model.doc_factor_, W, atol=1e-4 * W.max())
    np.testing.assert_allclose(model.components_, H, atol=1e-4 * H.max())
    np.testing.assert_allclose(model.inverse_transform(model.doc_factor_), W @ H, atol=1e-3)
    np.testing.assert_allclose(model.transform(X[:5]), theirs.transform(X[:5]), atol=1e-3 * W.max())


def test_absolute_values_make_entries_zero():
    sparse = [
        NMF(4, loss="squared", alpha_W=0.02, l1_ratio=ratio, tol=1e-4, random_state=0, max_iter=2000).fit(X)
        for ratio in (0.0, 1.0)
    ]
    zeros = [np.count_nonzero(model.components_ == 0) + np.count_nonzero(model.doc_factor_ == 0) for model in sparse]
    assert zeros[1] > zeros[0] + 10


def test_a_result_with_topics_that_penalties_made_zero_is_a_start():
    settings = {"loss": "squared", "alpha_W": 0.5, "l1_ratio": 1.0, "dtype": "float64", "random_state": 0}
    first = NMF(6, **settings).fit(X)
    W, H = first.doc_factor_, first.components_
    assert (H.sum(axis=1) == 0).any()
    again = NMF(6, **settings, init=(W, H)).fit(X)
    found = [objective(X, m.doc_factor_, m.components_, 2, 0.5, "same", 1.0) for m in (first, again)]
    assert found[1] <= found[0] * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["squared", "kullback-leibler", Beta(1.5), "chi-square"])
def test_strong_penalties_shrink_the_product(loss):
    model = NMF(3, loss=loss, alpha_W=100.0, l1_ratio=1.0, random_state=0, max_iter=3000, tol=1e-6).fit(X)
    product = model.doc_factor_ @ model.components_
    assert product.max() < X.mean() / 3
    assert (product == 0).all() == (loss in ("squared", Beta(1.5)))  # the other losses of zero are infinite
    np.testing.assert_array_equal(model.transform(X[:3]) @ model.components_, product[:3])


@pytest.mark.parametrize("powers", [Powers(0, 2), Powers(0, 1.5), Powers(0, 1), Powers(0.5, 0.5), Powers(1, 0),
                                    Powers(1.5, 0), Powers(1, 1)])  # fmt: skip
@pytest.mark.parametrize("l2", [0.0, 0.7])
@pytest.mark.parametrize("l1", [0.0, 0.4])
def test_an_update_is_the_root_of_the_slope(powers, l1, l2):
    rng = np.random.default_rng(3)
    factor, N, D = (rng.gamma(1.0, 1.0, (20, 3)) for _ in range(3))
    scales = (1.0, 0.5, 2.0)
    new = multiplied(factor, Terms(N, D), powers, penalty=Penalty(l1, l2, scales))
    for (row, column), f in np.ndenumerate(factor):
        a, b = l1 / scales[column], l2 / scales[column] ** 2

        def slope(t, f=f, n=N[row, column], d=D[row, column], a=a, b=b):
            return d * t**powers.rise - n * t**-powers.fall + a + b * f * t

        least = 0.1 if powers.fall == 0 else 1e-12
        expected = least if slope(least) >= 0 else brentq(slope, least, 1e6, xtol=1e-15)
        assert new[row, column] == pytest.approx(f * expected, rel=1e-9)


def test_factors_have_the_scale_with_the_smallest_penalties():
    rng = np.random.default_rng(1)
    W, H, weights = rng.random((9, 4)), rng.random((7, 4)), rng.random(9)
    W[:, 3] = 0
    for l1, l2 in ((0.3, 0.2), (0.5, 0.0), (0.0, 0.5)):
        loss = Penalized(Beta(2.0), Penalty(l1, l2), Penalty(2 * l1, 0.1 * l2))
        scale = loss.best_scales(W, H, weights)
        assert scale[3] == 0
        for k in range(3):

            def value(u, k=k, loss=loss):
                return loss.value(W[:, [k]] * np.exp(u), H[:, [k]] / np.exp(u), weights)

            assert value(np.log(scale[k])) <= minimize_scalar(value, bounds=(-9, 9), method="bounded").fun + 1e-12


@pytest.mark.parametrize("loss", ["squared", "kullback-leibler", "itakura-saito"])
def test_sparse_and_weighted_data_and_files(loss, tmp_path):
    settings = {"loss": loss, "alpha_W": 0.01, "l1_ratio": 0.5, "random_state": 0, "max_iter": 40, "tol": 0.0}
    with pytest.warns(ConvergenceWarning):
        model = NMF(3, **settings).fit(X)
    with pytest.warns(ConvergenceWarning):
        threads = NMF(3, n_jobs=2, **settings).fit(X)
    np.testing.assert_array_equal(threads.components_, model.components_)
    with pytest.warns(ConvergenceWarning):
        by_rows = NMF(3, **settings).fit(sp.csr_array(X))
    np.testing.assert_allclose(by_rows.components_, model.components_, rtol=1e-6, atol=1e-9)
    with pytest.warns(ConvergenceWarning):
        single = NMF(3, dtype=np.float32, **settings).fit(X)
    assert single.components_.dtype == single.doc_factor_.dtype == np.float32
    np.testing.assert_allclose(single.components_, model.components_, atol=2e-2 * model.components_.max())
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.doc_factor_, model.doc_factor_)
    np.testing.assert_array_equal(loaded.transform(X[:7]), model.transform(X[:7]))
    assert loaded.get_params()["l1_ratio"] == 0.5


def test_a_fit_continues_from_a_document_that_its_penalties_made_zero():
    counts = X.copy()
    counts[4] = 1e-4
    settings = {"loss": "squared", "alpha_W": 0.05, "l1_ratio": 1.0, "tol": 1e-6, "max_iter": 2000}
    model = NMF(3, random_state=0, **settings).fit(counts)
    assert not model.doc_factor_[4].any()
    again = NMF(3, init=(model.doc_factor_, model.components_), **settings).fit(counts)
    np.testing.assert_allclose(again.components_, model.components_, rtol=1e-3, atol=1e-5)
    moved = NMF(3, init=(model.doc_factor_, model.components_), **settings).fit(X)  # it must not stay at zero
    start = model.doc_factor_ + np.eye(30)[:, [4]], model.components_
    positive = NMF(3, init=start, **settings).fit(X)
    assert moved.history_["loss"][-1] == pytest.approx(positive.history_["loss"][-1], rel=1e-3)


def test_integer_weights_are_repeated_rows():
    weights = np.arange(30) % 3 + 1
    start = RNG.random((30, 3)), RNG.random((3, 20))
    settings = {"loss": "squared", "alpha_W": 0.01, "l1_ratio": 0.5, "tol": 1e-9, "max_iter": 5000}
    weighted = NMF(3, init=start, **settings).fit(X, sample_weight=weights)
    rows = np.repeat(np.arange(30), weights)
    repeated = NMF(3, init=(start[0][rows], start[1]), **settings).fit(X[rows])
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-3, atol=1e-5)


def test_one_penalty_alone_has_no_minimum():
    """scikit-learn accepts it: the longer its fit, the smaller W."""
    settings = {"alpha_W": 0.05, "alpha_H": 0.0, "l1_ratio": 1.0, "init": "random", "random_state": 0, "tol": 0}
    sums = [decomposition.NMF(4, max_iter=n, **settings).fit_transform(X).sum() for n in (200, 2000)]
    assert sums[1] < 0.2 * sums[0]


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_only_the_product_of_equal_kinds_of_penalties_matters(l1_ratio):
    settings = {"loss": "squared", "l1_ratio": l1_ratio, "random_state": 0, "tol": 1e-6, "max_iter": 5000}
    one, two = (NMF(2, alpha_W=a, alpha_H=b, **settings).fit(X) for a, b in ((0.02, 0.02), (0.2, 0.002)))
    np.testing.assert_allclose(
        one.doc_factor_ @ one.components_, two.doc_factor_ @ two.components_, rtol=1e-3, atol=1e-3
    )


def test_settings_that_do_not_fit_raise(tmp_path):
    with pytest.raises(InputError, match="alpha_W and alpha_H must both be zero or both be positive"):
        NMF(2, alpha_W=0.1, alpha_H=0.0).fit(X)
    with pytest.raises(InputError, match="alpha_W must"):
        NMF(2, alpha_W=-0.1).fit(X)
    with pytest.raises(InputError, match="alpha_H must"):
        NMF(2, alpha_W=0.1, alpha_H="other").fit(X)
    with pytest.raises(InputError, match="l1_ratio must"):
        NMF(2, alpha_W=0.1, l1_ratio=1.5).fit(X)
    with pytest.raises(UnsupportedError, match="early_stopping needs a likelihood"):
        NMF(2, alpha_W=0.1, early_stopping=EarlyStopping()).fit(X)
    with pytest.raises(UnsupportedError, match=r"solver='scd' maximizes a likelihood, .* without penalties only"):
        NMF(2, alpha_W=0.1, solver="scd").fit(X)
    with pytest.raises(UnsupportedError, match="penalties takes no entry_weight"):
        NMF(2, alpha_W=0.1).fit(X, entry_weight=X < 5)
    model = NMF(2, alpha_W=0.1, random_state=0, tol=1.0).fit(X)
    with pytest.raises(UnsupportedError, match="penalties takes no entry_weight"):
        model.transform(X, entry_weight=X < 5)
    with pytest.raises(UnsupportedError, match="A model with penalties has no likelihood"):
        model.to_plsa()
    shards = write_shards([sp.csr_array(np.ceil(X))], tmp_path / "shards")
    with pytest.raises(UnsupportedError, match="NMF with alpha_W and alpha_H takes no shards"):
        NMF(2, alpha_W=0.1).fit(shards)
