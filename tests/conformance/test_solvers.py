"""Properties of every solver in SOLVERS: objective, factors, weights, threads, optimum, residual."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import NMF, PLSA
from polyseme.core.model import Model
from polyseme.core.shard import split_tokens
from polyseme.kernels import padded
from polyseme.solvers import HeldOutTempered
from polyseme.solvers.base import SOLVERS, FitProblem
from solver_problems import (
    EVERY,
    EVERY_PLAIN,
    FILLED,
    HOLDING_OUT,
    LIKELIHOOD,
    START,
    TEMPERED,
    K,
    X,
    advanced,
    begin,
    begin_problem,
    blocks,
    factorable,
    factors,
    fit,
    make_corpus,
    mean_log_likelihood,
    multipliers,
    path,
    saturated,
    worst_fall,
)

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])


PROBLEMS = {
    "topics": lambda: (X, START),
    "noise": lambda: (oracles.random_counts(1, 30, 20, 0.2), oracles.random_factors(2, 30, 20, 5)),
    "large counts": lambda: (oracles.random_counts(3, 20, 15) * 1e7, oracles.random_factors(4, 20, 15, 3)),
    "fractions": lambda: (oracles.random_counts(5, 20, 15) * 0.037, oracles.random_factors(6, 20, 15, 3)),
    "one document": lambda: (oracles.random_counts(7, 1, 15, 0.8), oracles.random_factors(8, 1, 15, 3)),
    "more topics than words": lambda: (oracles.random_counts(9, 20, 6, 0.7), oracles.random_factors(10, 20, 6, 9)),
}


# the objective


@EVERY
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_objective_never_decreases(name, problem):
    data, start = PROBLEMS[problem]()
    run = begin(SOLVERS[name](), data, start)
    seen = path(run, 120)
    assert np.isfinite([report.objective for _, report in seen]).all()
    if run.exhausted and name in HOLDING_OUT:
        seen = seen[:-1]  # the last step returns to the point with the best held-out score
    assert worst_fall(seen) <= 1e-12


@EVERY_PLAIN
def test_only_the_tempered_solvers_change_the_temperature(name):
    assert {beta for beta, _ in path(begin(SOLVERS[name](), X, START), 5)} == {1.0}


@EVERY
@pytest.mark.parametrize("weighted", [False, True])
def test_the_report_describes_the_point(name, weighted):
    weights = np.random.default_rng(3).uniform(0.5, 2, len(X)) if weighted else None
    run = begin(SOLVERS[name](), X, START, weights=weights)
    data = X
    if name in HOLDING_OUT:  # the report describes the tokens that are fitted
        counts = make_corpus(X).by_doc
        data = np.zeros_like(X)
        data[np.nonzero(X)] = split_tokens(counts, HeldOutTempered().random_state, HeldOutTempered().held_out)[0]
    for _ in range(12):
        theta, phi = factors(run)
        assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(data, theta, phi, weights), abs=1e-11)
        beta = run.model.temperature
        if name in TEMPERED:
            free_energy = mean_log_likelihood(data, theta**beta, phi**beta, weights) / beta
            assert run.report.objective == pytest.approx(free_energy, abs=1e-11)
        else:  # the Poisson objective is at most the likelihood, and equal if s_d = n_d
            assert run.report.objective <= run.report.log_likelihood + 1e-12
        run.advance()


@EVERY
def test_the_objective_converges_to_the_likelihood_at_beta_one(name):
    run = begin(SOLVERS[name](), X, START)
    while run.model.temperature != 1.0 and name != "tempered":
        run.advance()
    if name != "tempered":
        advanced(run, 30)
    if run.model.temperature == 1.0:
        assert run.report.objective == pytest.approx(run.report.log_likelihood, abs=1e-4)


# the factors


@EVERY
@DTYPES
def test_factors_are_distributions(name, dtype):
    run = begin(SOLVERS[name](), X, START, dtype=dtype)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for _ in range(25):
        if run.exhausted:
            break
        run.advance()
        theta, phi = factors(run)
        assert theta.dtype == phi.dtype == dtype
        assert min(theta.min(), phi.min()) >= 0
        np.testing.assert_allclose(theta[FILLED].sum(axis=1), 1, atol=tolerance)
        np.testing.assert_allclose(phi.sum(axis=1), 1, atol=tolerance)
        assert not phi[:, 3].any()
        assert ((theta @ phi)[X > 0] > 0).all()


@EVERY
def test_the_padding_stays_zero(name):
    run = advanced(begin(SOLVERS[name](), X, START), 5)
    assert not run.theta[:, K:].any()
    assert not run.phi[:, K:].any()


@EVERY
def test_a_solver_does_not_change_its_start(name):
    theta, phi = padded(START[0], np.float64), padded(START[1].T, np.float64)
    before = theta.copy(), phi.copy()
    advanced(begin_problem(SOLVERS[name](), FitProblem(Model(K), make_corpus(X)), theta, phi), 5)
    assert np.array_equal(theta, before[0])
    assert np.array_equal(phi, before[1])


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_topics_without_documents_are_still_distributions(name):
    """Rows of components_ sum to one, also for topics that lose all documents."""
    for seed in range(5):
        data = oracles.random_counts(seed, 6, 7, 0.5)
        model = PLSA(13, solver=name, random_state=seed, max_iter=30, dtype=np.float64).fit(data)
        np.testing.assert_allclose(model.components_.sum(axis=1), 1, atol=1e-12)


# dense and sparse, weights, threads


@EVERY
@pytest.mark.parametrize("weighted", [False, True])
def test_dense_and_sparse_counts_give_the_same_fit(name, weighted):
    weights = np.random.default_rng(4).uniform(0.5, 2, len(X)) if weighted else None
    sparse, dense = (
        advanced(begin(SOLVERS[name](), X, START, layout=layout, weights=weights), 15)
        for layout in (sp.csr_array, np.asarray)
    )
    assert dense.report.objective == pytest.approx(sparse.report.objective, abs=1e-12)
    for ours, theirs in zip(factors(dense), factors(sparse), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@EVERY
@pytest.mark.parametrize("least", [1, 0], ids=["positive", "some-weightless"])
@pytest.mark.parametrize("seed", [0, 2, 5])
def test_weights_are_repeated_rows(name, least, seed):
    repeats = np.random.default_rng(seed).integers(least, 4, len(X))
    theta, phi = oracles.random_factors(seed, *X.shape, K)
    weighted = begin(SOLVERS[name](), X, (theta, phi), weights=repeats.astype(np.float64))
    repeated = begin(SOLVERS[name](), np.repeat(X, repeats, axis=0), (np.repeat(theta, repeats, axis=0), phi))
    for _ in range(15):
        assert weighted.report.objective == pytest.approx(repeated.report.objective, abs=1e-10)
        np.testing.assert_allclose(weighted.phi, repeated.phi, atol=1e-9)
        np.testing.assert_allclose(np.repeat(weighted.theta, repeats, axis=0), repeated.theta, atol=1e-9)
        weighted.advance()
        repeated.advance()


@EVERY
def test_equal_weights_change_nothing(name):
    plain = advanced(begin(SOLVERS[name](), X, START), 10)
    weighted = advanced(begin(SOLVERS[name](), X, START, weights=np.full(len(X), 3.0)), 10)
    assert weighted.report.objective == pytest.approx(plain.report.objective, abs=1e-11)
    np.testing.assert_allclose(weighted.phi, plain.phi, atol=1e-9)


@EVERY
@DTYPES
@pytest.mark.parametrize("layout", [sp.csr_array, np.asarray], ids=["sparse", "dense"])
def test_threads_do_not_change_a_bit(name, dtype, layout, monkeypatch):
    monkeypatch.setattr("polyseme.kernels.counts.NUMBERS_AT_ONCE", 20_000)
    data = oracles.random_counts(11, 700, 300, 0.03)
    start = oracles.random_factors(12, *data.shape, 5)
    weights = np.random.default_rng(13).uniform(0.5, 2, len(data))
    one, *others = (
        advanced(begin(SOLVERS[name](), data, start, n_threads=n, dtype=dtype, layout=layout, weights=weights), 4)
        for n in (1, 2, 3)
    )
    for other in others:
        assert other.report == one.report
        assert np.array_equal(other.theta, one.theta)
        assert np.array_equal(other.phi, one.phi)


# the optimum


def optimum(name, data, start):
    end = fit(SOLVERS[name](), data, start, max_iter=2000, tol=1e-14)
    assert end.converged or end.run.exhausted
    return end.run


@EVERY
def test_one_topic_is_the_unigram(name):
    data = oracles.random_counts(20, 15, 12)
    run = optimum(name, data, oracles.random_factors(21, 15, 12, 1))
    if name in HOLDING_OUT:
        np.testing.assert_allclose(run.theta[:, :1], 1)
        return
    np.testing.assert_allclose(factors(run)[1][0], data.sum(axis=0) / data.sum(), atol=1e-12)


@EVERY
def test_two_topics_without_a_common_word_are_found_exactly(name):
    """In the only optimum every document has one topic."""
    data = blocks()
    run = optimum(name, data, oracles.random_factors(1, *data.shape, 2))
    theta, phi = factors(run)
    half = len(data) // 2
    if name not in HOLDING_OUT:
        assert saturated(data) - mean_log_likelihood(data, theta, phi) < 1e-9
        np.testing.assert_allclose(np.sort(theta, axis=1), np.tile([0.0, 1.0], (len(data), 1)), atol=1e-4)
    assert len(set(theta[:half].argmax(axis=1))) == len(set(theta[half:].argmax(axis=1))) == 1
    assert theta[0].argmax() != theta[-1].argmax()


@EVERY_PLAIN
@pytest.mark.parametrize("seed", range(3))
def test_exactly_factorable_counts_are_reproduced(name, seed):
    """The product at KL = 0 is unique: all solvers reach it, to 1e-8 nats per token."""
    data, _ = factorable(seed, 15, 12, 2)
    run = optimum(name, data, oracles.random_factors(1, *data.shape, 2))
    theta, phi = factors(run)
    assert saturated(data) - run.report.log_likelihood < 1e-8
    np.testing.assert_allclose(data.sum(axis=1, keepdims=True) * (theta @ phi), data, rtol=1e-3)


@EVERY_PLAIN
@pytest.mark.parametrize("seed", [3, 4, 6])
def test_all_solvers_reach_the_same_optimum_on_two_mixed_topics(name, seed):
    """All solvers end within 1e-8 nats per token of each other.

    With these seeds all reach the same optimum; with others they end in different ones.
    """
    data = oracles.mixed_counts(seed, 25, 15, 2, tokens=200)
    start = oracles.random_factors(1, *data.shape, 2)
    best = optimum("em", data, start).report.log_likelihood
    assert optimum(name, data, start).report.log_likelihood == pytest.approx(best, abs=1e-8)


# the residual


@EVERY_PLAIN
@pytest.mark.parametrize("iterations", [1, 5, 30])
def test_the_residual_bounds_the_gain_from_either_factor(name, iterations):
    data = oracles.mixed_counts(2, 20, 15, 3)
    run = advanced(begin(SOLVERS[name](), data, oracles.random_factors(3, 20, 15, 3)), iterations)
    theta, phi = factors(run)
    now = run.report.log_likelihood
    better_docs = mean_log_likelihood(data, oracles.fold_in(data, phi, steps=800), phi) - now
    lifted = oracles.normalized(np.maximum(phi, 1e-9))
    better_words = mean_log_likelihood(data, theta, oracles.refit_words(data, theta, lifted, steps=800)) - now
    assert max(better_docs, better_words) <= run.report.residual + 1e-9


@EVERY_PLAIN
@pytest.mark.parametrize("problem", ["topics", "blocks", "factorable", "one topic"])
def test_the_residual_is_small_at_the_optimum(name, problem):
    data = {
        "topics": lambda: oracles.mixed_counts(3, 25, 15, 2, tokens=200),
        "blocks": blocks,
        "factorable": lambda: factorable(0, 15, 12, 2)[0],
        "one topic": lambda: oracles.random_counts(20, 15, 12),
    }[problem]()
    run = optimum(name, data, oracles.random_factors(1, *data.shape, 1 if problem == "one topic" else 2))
    assert run.report.residual < 1e-6
    for steepest in multipliers(data, *factors(run)):
        assert steepest.max() < 1 + 1e-4


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_stops_at_tol(name):
    loose, tight = (
        PLSA(3, solver=name, random_state=0, tol=tol, max_iter=400, dtype=np.float64).fit(X) for tol in (0.01, 1e-4)
    )
    assert loose.n_iter_ <= tight.n_iter_
    if name not in HOLDING_OUT:
        assert loose.history_["remaining"][-1] < 0.01
        assert (loose.history_["remaining"][:-1] >= 0.01).all()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_has_converged_only_if_its_criterion_holds(name):
    """In float32 rounding ends some of these fits."""
    for seed, n_docs, n_words, n_topics in ((2, 30, 20, 3), (4, 40, 30, 4), (8, 30, 20, 3), (11, 60, 40, 5)):
        data = oracles.mixed_counts(seed, n_docs, n_words, n_topics)
        for tol in (1e-2, 1e-6):
            settings = {"solver": name, "tol": tol, "max_iter": 150, "random_state": 0, "dtype": np.float32}
            estimator = PLSA if name in LIKELIHOOD else partial(NMF, loss="squared")
            model = estimator(n_topics, **settings).fit(data)
            met = model.history_["remaining"][-1] < tol
            assert model.converged_ == (met or name in HOLDING_OUT), (seed, tol)
            assert model.converged_ or model.n_iter_ == 150 or name in ("auto", "scd"), (seed, tol)
