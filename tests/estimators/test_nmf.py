"""NMF as an estimator: scikit-learn's checks and iterates, files, and wrong input."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.decomposition import non_negative_factorization
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
import polyseme
from polyseme import LDA, NMF, PLSA, InputError, UnsupportedError
from polyseme.core.model import Model
from polyseme.kernels import padded
from polyseme.losses import LOSSES, Beta
from polyseme.solvers.base import FitProblem
from polyseme.solvers.coordinate import Unnormalized
from polyseme.solvers.multiplicative import MultiplicativeNMF, MultiplicativeRun, NormalizedNMF
from sentences import sentence
from solver_problems import LIKELIHOOD, fit, make_corpus

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 25, 3)
WITH_GAPS = X.copy()
WITH_GAPS[5] = 0
WITH_GAPS[:, 7] = 0
EVERY_LOSS = pytest.mark.parametrize("loss", [name for name in LOSSES if name != "itakura-saito"])
"""Losses of counts that have zeros; tests/estimators/test_nmf_losses.py has more."""
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


@parametrize_with_checks([NMF(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([NMF()])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


def kl(X, P):
    """Return sum x log(x / p) - x + p."""
    present = X > 0
    return float((X[present] * np.log(X[present] / P[present])).sum() - X.sum() + P.sum())


# scikit-learn's multiplicative updates


def random_start(seed, shape, K):
    """Return positive W and H of any scale."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 2, (shape[0], K)), rng.uniform(0.1, 2, (K, shape[1]))


def scikit_learn(X, W, H, iterations):
    W, H, _ = non_negative_factorization(
        X, W.copy(), H.copy(), n_components=len(H), init="custom", solver="mu", beta_loss="kullback-leibler",
        tol=0, max_iter=iterations,
    )  # fmt: skip
    return W, H


PROBLEMS = {
    "dense": lambda: np.random.default_rng(1).uniform(0.1, 3, (30, 20)),
    "counts": lambda: oracles.random_counts(2, 30, 20, 0.6),
    "themes": lambda: X,
}


@LAYOUTS
@pytest.mark.parametrize("iterations", [1, 5, 50])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_iterates_equal_those_of_scikit_learn(problem, iterations, layout):
    """Documents first, from the same W and H: the same W and H, number by number."""
    data = PROBLEMS[problem]()
    W, H = random_start(3, data.shape, 4)
    run = MultiplicativeRun(
        FitProblem(Model(4), make_corpus(data, layout=layout)),
        Unnormalized(padded(W, np.float64), padded(H.T, np.float64)),
        "documents-first",
        False,
    )
    for _ in range(iterations):
        run.advance()
    their_W, their_H = scikit_learn(data, W, H, iterations)
    np.testing.assert_allclose(run.point.docs[:, :4], their_W, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(run.point.words[:, :4].T, their_H, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("solver", [MultiplicativeNMF("documents-first"), NormalizedNMF("documents-first")], ids=repr)
@pytest.mark.parametrize("iterations", [1, 5, 50])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_solver_from_plsa_factors_equals_scikit_learn_up_to_scale(problem, iterations, solver):
    """theta and phi of any W and H: the same product after every iteration, and the same factors in PLSA's scale.

    The documents' first update does not depend on their scale, so starting from W's rows normalized changes nothing.
    """
    data = PROBLEMS[problem]()
    W, H = random_start(4, data.shape, 4)
    theta, phi = oracles.normalized(W * H.sum(axis=1)), oracles.normalized(H)
    ours = fit(solver, data, (theta, phi), max_iter=iterations).run.point
    their_W, their_H = scikit_learn(data, W, H, iterations)
    np.testing.assert_allclose(ours.docs @ ours.words.T, their_W @ their_H, rtol=1e-10, atol=1e-10)
    scale = their_H.sum(axis=1)
    np.testing.assert_allclose(ours.words[:, :4].T / ours.words[:, :4].sum(axis=0)[:, np.newaxis],
                               their_H / scale[:, np.newaxis], rtol=1e-10, atol=1e-10)  # fmt: skip
    np.testing.assert_allclose(
        ours.docs[:, :4] * ours.words[:, :4].sum(axis=0), their_W * scale, rtol=1e-10, atol=1e-10
    )
    naive = W, H
    for _ in range(iterations):
        naive = oracles.nmf_step(data, *naive)
    np.testing.assert_allclose(naive[0] @ naive[1], their_W @ their_H, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("iterations", [1, 5, 50])
def test_the_estimator_accepts_the_start_of_scikit_learn(iterations):
    W, H = random_start(5, X.shape, 3)
    model = NMF(
        3, solver=MultiplicativeNMF("documents-first"), init=(W, H), tol=0, max_iter=iterations, dtype=np.float64
    ).fit(X)
    their_W, their_H = scikit_learn(X, W, H, iterations)
    np.testing.assert_allclose(model.components_, their_H / their_H.sum(axis=1, keepdims=True), rtol=1e-10, atol=1e-12)
    divergence = kl(X, their_W @ their_H)
    assert model.reconstruction_err_ <= divergence + 1e-6  # its W is folded in: no worse
    objective = model.history_["objective"][-1] * X.sum()
    totals = X.sum(axis=1)
    constant = (X[X > 0] * np.log(X[X > 0])).sum() - totals @ np.log(totals)
    assert constant - objective == pytest.approx(divergence, rel=1e-10)


def test_the_final_error_is_no_higher_than_that_of_scikit_learn():
    theirs = SklearnNMF(3, solver="mu", beta_loss="kullback-leibler", init="nndsvda", max_iter=1000, tol=1e-10).fit(X)
    ours = NMF(3, n_init=5, max_iter=1000, tol=1e-8, random_state=0, dtype=np.float64).fit(X)
    their_divergence = kl(X, theirs.transform(X) @ theirs.components_)
    assert ours.reconstruction_err_ <= their_divergence * 1.001


# KL


@LAYOUTS
@pytest.mark.parametrize("solver", LIKELIHOOD)
def test_every_solver_fits_nmf(solver, layout):
    model = NMF(3, solver=solver, random_state=0, max_iter=15).fit(layout(WITH_GAPS))
    assert model.doc_factor_.shape == (40, 3)
    assert min(model.doc_factor_.min(), model.components_.min()) >= 0
    assert not model.doc_factor_[5].any()
    assert np.isfinite(model.reconstruction_err_)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(model.doc_factor_.sum(axis=1), WITH_GAPS.sum(axis=1), rtol=1e-5)


@LAYOUTS
def test_the_error_is_the_divergence(layout):
    model = NMF(3, random_state=0, dtype=np.float64).fit(layout(WITH_GAPS))
    P = model.doc_factor_ @ model.components_
    assert model.reconstruction_err_ == pytest.approx(kl(WITH_GAPS, P), rel=1e-9)
    assert model.log_likelihood_ == pytest.approx(
        oracles.log_likelihood(WITH_GAPS, oracles.normalized(model.doc_factor_), model.components_) / X_TOKENS
    )


X_TOKENS = WITH_GAPS.sum()


@EVERY_LOSS
def test_inverse_transform_is_the_product(loss):
    model = NMF(3, loss=loss, random_state=0).fit(WITH_GAPS)
    np.testing.assert_allclose(model.inverse_transform(model.doc_factor_), model.doc_factor_ @ model.components_)


def test_transform_minimizes_the_divergence():
    """With H fixed, W H is as close to the counts as possible."""
    model = NMF(3, random_state=0, dtype=np.float64).fit(X)
    new = oracles.mixed_counts(1, 10, 25, 3) * model.components_.any(axis=0)
    W = model.transform(new)
    best = oracles.fold_in(new, model.components_) * new.sum(axis=1, keepdims=True)
    assert kl(new, W @ model.components_) <= kl(new, best @ model.components_) + 1e-3 * new.sum()


@pytest.mark.parametrize("loss", ["kullback-leibler", "squared", "absolute", "chi-square"])
def test_transform_of_a_document_of_one_token_is_that_of_more_in_proportion(loss):
    model = NMF(3, loss=loss, random_state=0, dtype=np.float64).fit(X)
    one = np.eye(X.shape[1])[model.components_.any(axis=0)]
    np.testing.assert_allclose(model.transform(one), model.transform(8 * one) / 8, rtol=1e-6, atol=1e-9)


def test_words_that_no_component_has_are_ignored():
    """H is zero there, so no W can reproduce them: the best W is that of the other words."""
    model = NMF(3, random_state=0, dtype=np.float64).fit(WITH_GAPS)
    new = oracles.mixed_counts(1, 10, 25, 3)
    new[:, 7] = 0
    with_unknown = new.copy()
    with_unknown[:, 7] = 9
    np.testing.assert_allclose(model.transform(with_unknown), model.transform(new), rtol=1e-12)


@LAYOUTS
@EVERY_LOSS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_preserved(dtype, loss, layout):
    model = NMF(3, loss=loss, random_state=0, max_iter=20).fit(layout(X.astype(dtype)))
    assert model.components_.dtype == model.doc_factor_.dtype == dtype
    assert model.transform(layout(X.astype(dtype))).dtype == dtype


@EVERY_LOSS
def test_the_parameter_dtype_overrides_that_of_the_data(loss):
    model = NMF(3, loss=loss, dtype=np.float32, random_state=0, max_iter=20).fit(X)
    assert model.components_.dtype == np.float32
    assert model.transform(X).dtype == np.float32


def test_feature_names_out_are_numbered():
    model = NMF(3, random_state=0, max_iter=10).fit(X)
    assert model.get_feature_names_out().tolist() == ["nmf0", "nmf1", "nmf2"]


# files


def test_a_converted_model_can_be_saved(tmp_path):
    plsa = PLSA(3, random_state=0, max_iter=20).fit(X)
    plsa.to_nmf().save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert np.array_equal(loaded.to_plsa().components_, plsa.components_)


def test_a_model_from_a_given_start_can_be_saved(tmp_path):
    model = NMF(3, init=random_start(1, X.shape, 3), max_iter=5).fit(X)
    model.save(tmp_path / "model")
    assert np.array_equal(polyseme.load(tmp_path / "model").transform(X), model.transform(X))


# wrong input


@pytest.mark.parametrize("kind", [NMF, PLSA])
@pytest.mark.parametrize("loss", ["frobenius", "KL", "", None, 1, ["squared"], Beta], ids=repr)
def test_an_unknown_loss_raises(loss, kind):
    with pytest.raises(InputError, match="loss must be one of 'kullback-leibler', 'squared', 'itakura-saito'") as error:
        kind(2, loss=loss).fit(X)
    sentence(error)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NMF(2, solver="mu"), r"'mu' \(instead write 'em', or 'mm' for other losses than Kullback-Leibler\)\.$"),
        (PLSA(2, solver="cd"), r"'cd' \(instead write 'scd', or 'hals' for the squared loss\)\.$"),
        (NMF(2, loss="frobenius"), r"'frobenius' \(instead write 'squared'\)\.$"),
        (NMF(2, init="nndsvda"), r"'nndsvda' \(instead write 'nndsvd'\)\.$"),
        (NMF(2, init="custom"), r"'custom' \(instead write the pair itself\)\.$"),
        (LDA(2, solver="batch"), r"'batch' \(instead write 'variational'\)\.$"),
    ],
)
def test_names_of_scikit_learn_are_answered_with_ours(model, message):
    with pytest.raises(InputError, match=message):
        model.fit(X)


BAD_PAIRS = {
    "too few documents": (np.ones((39, 3)), np.ones((3, 25))),
    "too few words": (np.ones((40, 3)), np.ones((3, 24))),
    "another number of components": (np.ones((40, 4)), np.ones((4, 25))),
    "W and H of different sizes": (np.ones((40, 3)), np.ones((2, 25))),
    "transposed": (np.ones((3, 40)), np.ones((25, 3))),
    "flat": (np.ones(40), np.ones(25)),
    "negative": (np.full((40, 3), -1.0), np.ones((3, 25))),
    "not a number": (np.full((40, 3), np.nan), np.ones((3, 25))),
    "one of two": (np.ones((40, 3)),),
    "text": ("ab", "cd"),
    "a number": 5,
}


@EVERY_LOSS
@pytest.mark.parametrize("pair", BAD_PAIRS)
def test_a_wrong_pair_to_start_from_raises(pair, loss):
    with pytest.raises(InputError, match="init") as error:
        NMF(3, loss=loss, init=BAD_PAIRS[pair]).fit(X)
    sentence(error)


ONES = np.ones((40, 3)), np.ones((3, 25))


@EVERY_LOSS
@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((ONES[0][:39], ONES[1]), r"W and H must have shapes \(40, 3\) and \(3, 25\), got shapes \(39, 3\) and"),
        ((ONES[0], ONES[1][:2]), "W has 3 columns and H has 2 rows, but n_components is 3"),
        ((ONES[0][:, :2], ONES[1][:2]), "W has 2 columns and H has 2 rows, but n_components is 3"),
        ((ONES[0], -ONES[1]), "H must be finite and non-negative"),
        ((ONES[0] * (np.arange(40) != 7)[:, np.newaxis], ONES[1]), "W must have no row of zeros, such as row 7"),
        ((ONES[0], ONES[1] * [[1], [0], [1]]), "H must have no row of zeros, such as row 1"),
        ((ONES[0], ONES[1] * (np.arange(25) != 2)), r"H is zero in 1 columns .* \(such as column 2\)"),
        ((None, ONES[1][:2]), r"H must be an array of shape \(3, 25\), got shape \(2, 25\)"),
        ((None, -ONES[1]), "H must be an array of finite, non-negative numbers"),
        ((None, 0 * ONES[1]), "H must have no row of zeros, such as row 0"),
    ],
)
def test_messages_about_a_pair_speak_of_w_and_h(pair, message, loss):
    with pytest.raises(InputError, match=f"^init: {message}") as error:
        NMF(3, loss=loss, init=pair).fit(X)
    sentence(error)


@pytest.mark.parametrize("loss", ["kullback-leibler", "squared"])
def test_a_fit_starts_from_the_factors_of_another_one_with_empty_documents(loss):
    data = X.copy()
    data[5] = 0
    first = NMF(3, loss=loss, random_state=0).fit(data)
    assert not first.doc_factor_[5].any()
    again = NMF(3, loss=loss, init=(first.doc_factor_, first.components_)).fit(data)
    assert not again.doc_factor_[5].any()
    assert again.reconstruction_err_ <= first.reconstruction_err_ * (1 + 1e-6)


@EVERY_LOSS
@pytest.mark.parametrize(
    ("name", "value"), [("init", "kmeans"), ("n_components", 0), ("n_components", 2.5), ("max_iter", 0)]
)
def test_wrong_parameters_raise(name, value, loss):
    with pytest.raises(InputError, match=f"{name}|starts from") as error:
        NMF(**{"n_components": 2, "loss": loss, name: value}).fit(X)
    sentence(error)


@LAYOUTS
@EVERY_LOSS
def test_negative_numbers_raise(loss, layout):
    data = X.copy()
    data[0, 0] = -1
    with pytest.raises(ValueError, match="Negative values in data"):
        NMF(2, loss=loss).fit(layout(data))


@EVERY_LOSS
def test_empty_data_raises(loss):
    with pytest.raises(InputError, match="nothing to fit"):
        NMF(2, loss=loss).fit(np.zeros((4, 5)))


def test_an_unfitted_model_raises():
    for use in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(NMF(2), use)(X)
    with pytest.raises(NotFittedError):
        NMF(2).to_plsa()


def test_the_error_of_an_exact_fit_is_not_negative():
    """scikit-learn's test of a true reconstruction: components without common words or documents."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        W = np.zeros((15, 5))
        W[range(5), range(5)] = rng.exponential(size=5)
        H = np.zeros((5, 10))
        H[np.arange(10) % 5, range(10)] = rng.exponential(size=10)
        assert NMF(5, random_state=0).fit(W @ H).reconstruction_err_ >= 0


# partial_fit

PARTS = np.split(oracles.mixed_counts(3, 600, 40, 4), 6)


def streamed(model):
    for part in PARTS:
        model.partial_fit(part)
    return model


def test_a_stream_gives_the_components_of_plsa(tmp_path):
    model = streamed(NMF(4, random_state=0))
    assert np.array_equal(model.components_, streamed(PLSA(4, random_state=0)).components_)
    W = model.transform(PARTS[0])
    np.testing.assert_allclose(W.sum(axis=1), PARTS[0].sum(axis=1), rtol=1e-5)
    for name in ("doc_factor_", "reconstruction_err_", "history_"):
        assert not hasattr(model, name)
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert np.array_equal(loaded.partial_fit(PARTS[0]).components_, model.partial_fit(PARTS[0]).components_)


def test_three_passes_of_a_stream_come_near_the_fit():
    """The losses are 3 to 6% larger for eleven seeds."""
    whole, model = np.vstack(PARTS), NMF(4, random_state=0)
    for _ in range(3):
        streamed(model)
    loss = kl(whole, model.transform(whole) @ model.components_)
    assert loss < 1.15 * NMF(4, random_state=0).fit(whole).reconstruction_err_


def test_a_stream_continues_a_fit_and_gets_documents():
    model = NMF(4, random_state=0).fit(np.vstack(PARTS)).partial_fit(PARTS[0])
    assert not hasattr(model, "reconstruction_err_")
    again = model.with_documents(PARTS[0])
    assert again.reconstruction_err_ == pytest.approx(kl(PARTS[0], again.doc_factor_ @ again.components_), rel=1e-5)


def test_streams_of_other_losses_are_refused():
    for parameters in ({"loss": "squared"}, {"alpha_W": 0.1}, {"init": "nndsvd"}):
        assert not hasattr(NMF(4, **parameters), "partial_fit")
    with pytest.raises(InputError, match="init: H must be an array of shape"):
        NMF(4, init=(None, np.ones((2, 3)))).partial_fit(PARTS[0])
    for start in (NMF(4, loss="squared", random_state=0), PLSA(4, loss="squared", random_state=0)):
        other = start.fit(PARTS[0]).set_params(loss="kullback-leibler")
        with pytest.raises(UnsupportedError, match="fit with another loss cannot be continued"):
            other.partial_fit(PARTS[0])
