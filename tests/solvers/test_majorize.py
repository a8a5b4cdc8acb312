"""Solvers of losses without a likelihood: iterates of scikit-learn, monotone losses, requirements, the residual."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.decomposition import non_negative_factorization

import oracles
from polyseme import UnsupportedError
from polyseme.core.model import Model
from polyseme.kernels import gram, least_squares_rows, padded
from polyseme.losses import KULLBACK_LEIBLER, LOSSES, Beta
from polyseme.losses.absolute import Absolute
from polyseme.solvers import EarlyStopping
from polyseme.solvers.base import SOLVERS, FitProblem, check_solver
from polyseme.solvers.majorize import HALS, MajorizeMinimize
from sentences import sentence
from solver_problems import LIKELIHOOD, advanced, make_corpus

K = 4
COUNTS = oracles.mixed_counts(0, 40, 30, K).astype(float)
COUNTS[3], COUNTS[:, 7] = 0, 0
_RNG = np.random.default_rng(1)
POSITIVE = (_RNG.gamma(0.5, 1.0, (40, K)) @ _RNG.gamma(0.5, 1.0, (K, 30)) + 0.01) * _RNG.gamma(5.0, 0.2, (40, 30))
THEIRS = {"squared": 2, "itakura-saito": 0, "kullback-leibler": 1, "beta(0.5)": 0.5, "beta(1.5)": 1.5, "beta(3)": 3}
OTHERS = {
    **{name: loss for name, loss in LOSSES.items() if not loss.is_likelihood},
    **{f"beta {beta}": Beta(beta) for beta in (0.5, 1.5, 3)},
}
EVERY = pytest.mark.parametrize("loss", OTHERS.values(), ids=OTHERS.keys())
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def data_of(loss):
    return POSITIVE if loss.needs_positive else COUNTS


def start_of(X, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 2, (X.shape[0], K)), rng.uniform(0.1, 2, (K, X.shape[1]))


def begin(solver, loss, X, W, H, *, free_scale=True, dtype=np.float64, **source):
    problem = FitProblem(Model(len(H), loss=loss, free_scale=free_scale), make_corpus(X, dtype=dtype, **source))
    if not free_scale:
        W, H = oracles.normalized(W) * X.sum(axis=1, keepdims=True), oracles.normalized(H)
    checked = check_solver(solver, problem, checkpoint=False)
    return checked.begin(problem, padded(W, dtype), padded(H.T, dtype))


def scikit_learn(X, W, H, beta, iterations, solver="mu"):
    return non_negative_factorization(
        X, W.copy(), H.copy(), n_components=len(H), init="custom", solver=solver, beta_loss=beta, tol=0,
        max_iter=iterations,
    )[:2]  # fmt: skip


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@LAYOUTS
@pytest.mark.parametrize("beta", [0, 0.5, 1.5, 2, 3])
def test_plain_iterates_equal_those_of_scikit_learn(beta, layout):
    """Documents first, the same exponents: the same product after every iteration."""
    X = data_of(Beta(beta))
    W, H = start_of(X)
    run = begin(MajorizeMinimize(extrapolate=False), Beta(beta), X, W, H, layout=layout)
    for iterations in (1, 4, 15):
        advanced(run, iterations - {1: 0, 4: 1, 15: 4}[iterations])
        their_W, their_H = scikit_learn(X, W, H, beta, iterations)
        theirs = their_W @ their_H
        np.testing.assert_allclose(run.point.docs @ run.point.words.T, theirs, rtol=1e-6, atol=1e-6 * theirs.max())


@pytest.mark.parametrize("loss", ["kullback-leibler", "squared", "itakura-saito"])
@pytest.mark.parametrize("iterations", [10, 40, 150])
def test_a_fit_is_at_least_as_low_as_that_of_scikit_learn(loss, iterations):
    """From common starts, after the same number of iterations of its multiplicative updates.

    Single starts can end at different local minima, so medians are compared, and no start may be much worse.
    """
    loss, pairs = LOSSES[loss], []
    for seed in range(5):
        X = data_of(loss)
        W, H = start_of(X, seed)
        if loss.is_likelihood:
            W = W * (X.sum(axis=1) / (W @ H).sum(axis=1))[:, np.newaxis]
            problem = FitProblem(Model(K), make_corpus(X))
            theta, phi = oracles.normalized(W * H.sum(axis=1)), oracles.normalized(H)
            run = SOLVERS["auto"]().begin(problem, padded(theta, float), padded(phi.T, float))
            advanced(run, iterations)
            Q = X.sum(axis=1, keepdims=True) * (run.theta @ run.phi.T)
        else:
            run = advanced(begin(SOLVERS["auto"](), loss, X, W, H), iterations)
            Q = run.point.docs @ run.point.words.T
        theirs = np.matmul(*scikit_learn(X, W, H, loss.beta, iterations))
        pairs.append([loss.values(X, np.maximum(product, 1e-300)).sum() for product in (Q, theirs)])
    ours, their_losses = np.transpose(pairs)
    assert np.median(ours) <= np.median(their_losses) * (1 + 1e-6)
    assert (ours <= 1.05 * their_losses).all()


@EVERY
@LAYOUTS
@pytest.mark.parametrize("free_scale", [True, False], ids=["NMF", "PLSA"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_loss_never_rises_and_is_that_of_the_point(loss, layout, free_scale, dtype):
    X = data_of(loss)
    weights = np.random.default_rng(2).uniform(0.5, 2, len(X))
    run = begin(SOLVERS["auto"](), loss, X, *start_of(X), free_scale=free_scale, layout=layout, weights=weights,
                dtype=dtype)  # fmt: skip
    reports = [run.report]
    for _ in range(30):
        advanced(run, 1)
        reports.append(run.report)
    assert all(after.loss <= before.loss for before, after in pairwise(reports))
    assert reports[-1].loss < 0.9 * reports[0].loss
    Q = np.maximum(run.point.docs.astype(float) @ run.point.words.astype(float).T, 1e-12)
    exact = (weights[:, np.newaxis] * loss.values(X, Q)).sum()
    # With beta < 1, the smallest q that the sums allow changes the loss of empty rows and columns a little.
    precise = dtype == np.float64 and loss != Beta(0.5)
    assert run.report.loss == pytest.approx(exact, rel=1e-9 if precise else 1e-3)
    assert run.report.objective == -run.report.loss
    np.testing.assert_allclose(run.phi.sum(axis=0)[:K], 1, rtol=1e-5)
    if not free_scale:
        np.testing.assert_allclose(run.point.words.sum(axis=0)[:K], 1, rtol=1e-5)
        np.testing.assert_allclose(run.point.docs.sum(axis=1), X.sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(run.theta.sum(axis=1), X.sum(axis=1) > 0, atol=1e-5)


@EVERY
@LAYOUTS
def test_integer_weights_are_repeated_rows(loss, layout):
    X = data_of(loss)
    W, H = start_of(X)
    times = np.random.default_rng(3).integers(1, 4, len(X))
    weighted = begin(SOLVERS["auto"](), loss, X, W, H, weights=times.astype(float), layout=layout)
    repeated = begin(SOLVERS["auto"](), loss, X.repeat(times, axis=0), W.repeat(times, axis=0), H, layout=layout)
    for _ in range(5):
        advanced(weighted, 1), advanced(repeated, 1)
        assert weighted.report.loss == pytest.approx(repeated.report.loss, rel=1e-9)
    np.testing.assert_allclose(weighted.point.words, repeated.point.words, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coordinate_descent_converges_to_least_squares(dtype):
    """Every row equals scipy's non-negative least squares, also beside rows that stop at other passes."""
    rng = np.random.default_rng(0)
    B, X = rng.gamma(0.5, 1.0, (30, 5)), rng.gamma(0.5, 1.0, (23, 30))
    words = padded(B, dtype)
    start = padded(np.ones((23, 5)), dtype)
    products = padded(X @ B, np.float64)
    settings = {"passes": 5000, "enough": 1e-14, "n_threads": 2}
    found = least_squares_rows(start, products, gram(words), 5, **settings)
    exact = np.array([nnls(B, x)[0] for x in X])
    np.testing.assert_allclose(found[:, :5], exact, atol=1e-3 if dtype == np.float32 else 1e-6)
    alone = least_squares_rows(start[4:5].copy(), products[4:5].copy(), gram(words), 5, **settings)
    assert np.array_equal(alone[0], found[4])
    assert np.array_equal(start[:, :5], np.ones((23, 5)))


def test_a_component_of_zeros_gets_no_weight():
    words = padded(np.array([[1.0, 0.0], [2.0, 0.0]]), np.float64)
    found = least_squares_rows(
        padded(np.ones((1, 2)), np.float64), padded(np.array([[5.0, 0.0]]), np.float64), gram(words), 2,
        passes=50, enough=1e-15, n_threads=1,
    )  # fmt: skip
    np.testing.assert_allclose(found[0, :2], [1, 0])


def test_a_fit_to_a_loss_ends_by_the_decrease_of_ten_iterations_in_percent():
    run = begin(HALS(extrapolate=False), LOSSES["squared"], COUNTS, *start_of(COUNTS))
    losses = [run.report.loss]
    for _ in range(14):
        run.advance()
        losses.append(run.report.loss)
    values = [-loss for loss in losses]
    assert run.remaining(values) == pytest.approx(100 * (losses[4] - losses[14]) / losses[14])
    assert run.remaining(values[:3]) == pytest.approx(100 * (losses[0] - losses[2]) / losses[2] * 5)


def test_a_fit_to_absolute_errors_continues_with_less_smoothing():
    """A large smoothing stops early; the next stages reach a lower loss."""
    X = POSITIVE
    run = begin(MajorizeMinimize(), Absolute(0.5), X, *start_of(X))
    stages = set()
    for _ in range(400):
        run.advance()
        stages.add(run._problem.model.loss.smoothing)
    single = begin(MajorizeMinimize(), Absolute(1e-7), X, *start_of(X))
    assert len(stages) > 1
    assert run.report.loss < advanced(single, 400).report.loss


# requirements


def problem_of(loss, free_scale):
    return FitProblem(Model(K, loss=loss, free_scale=free_scale), make_corpus(COUNTS))


@pytest.mark.parametrize("name", [name for name in LIKELIHOOD if name != "auto"])
def test_a_solver_of_likelihoods_refuses_other_losses(name):
    with pytest.raises(
        UnsupportedError, match=r"maximizes a likelihood.* Solvers that fit this loss: auto, hals, mm"
    ) as error:
        check_solver(SOLVERS[name](), problem_of(LOSSES["squared"], True), checkpoint=False)
    sentence(error)


@pytest.mark.parametrize("name", ["hals", "mm"])
def test_a_solver_of_other_losses_refuses_likelihoods(name):
    with pytest.raises(UnsupportedError, match=r"fits losses other than 'kullback-leibler'.*: auto, .*em"):
        check_solver(SOLVERS[name](), problem_of(KULLBACK_LEIBLER, False), checkpoint=False)


@pytest.mark.parametrize(
    ("loss", "free_scale", "message"),
    [
        ("chi-square", True, "solver='hals' fits loss='squared' only. Solvers that fit this loss: auto, mm."),
        ("squared", False, "solver='hals' fits NMF only, not the normalized factors of PLSA. Solvers that fit this"),
    ],
)
def test_coordinate_descent_is_for_the_squared_loss_of_nmf(loss, free_scale, message):
    with pytest.raises(UnsupportedError) as error:
        check_solver(HALS(), problem_of(LOSSES[loss], free_scale), checkpoint=False)
    assert sentence(error).startswith(message)


@pytest.mark.parametrize(("loss", "free_scale", "name"), [("squared", True, "hals"), ("squared", False, "mm"),
                                                          ("absolute", True, "mm")])  # fmt: skip
def test_auto_chooses_coordinate_descent_where_it_can(loss, free_scale, name):
    chosen = check_solver(SOLVERS["auto"](), problem_of(LOSSES[loss], free_scale), checkpoint=False)
    assert chosen.name == name


def test_other_losses_have_no_checkpoint_and_no_held_out_words():
    problem = problem_of(LOSSES["squared"], True)
    with pytest.raises(UnsupportedError, match="checkpoint: solver='hals' cannot be resumed"):
        check_solver(SOLVERS["auto"](), problem, checkpoint=True)
    with pytest.raises(UnsupportedError, match="maximizes a likelihood"):
        check_solver(EarlyStopping(), problem, checkpoint=False)


def test_wrong_passes_raise():
    from polyseme import InputError

    with pytest.raises(InputError, match="HALS: passes must be at least 1"):
        check_solver(HALS(0), problem_of(LOSSES["squared"], True), checkpoint=False)
