"""EM compared with its formulas: iterates, both formulations, the bound, the likelihood, the residual."""

import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from polyseme.core.model import Model, Report
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.solvers.ascent import EM, AcceleratedEM, Ascent, EvaluatedPoint
from polyseme.solvers.base import FitProblem


def em_run(X, theta, phi, *, layout=np.asarray, dtype=np.float64, weights=None, temperature=1.0):
    """Return a run of EM from theta and phi (K x words)."""
    corpus = MemoryCorpus(as_counts(layout(X), np.dtype(dtype)), weights)
    model = Model(len(phi), temperature)
    return EM().begin(FitProblem(model, corpus), padded(theta, dtype), padded(phi.T, dtype))


def factors(run):
    """Return theta and phi (K x words) of a run, without the padding."""
    K = run.model.n_topics
    return run.theta[:, :K], run.phi[:, :K].T


def close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


@LAYOUTS
@pytest.mark.parametrize("weighted", [False, True])
def test_iterates_are_those_of_the_formulas(layout, weighted):
    X = oracles.random_counts(0, 30, 25, empty_words=(7,))
    weights = np.random.default_rng(1).exponential(size=30) if weighted else None
    theta, phi = oracles.random_factors(2, 30, 25, 4)
    run = em_run(X, theta, phi, layout=layout, weights=weights)
    tokens = X.sum() if weights is None else weights @ X.sum(axis=1)
    for _ in range(40):
        close(run.report.log_likelihood, oracles.log_likelihood(X, theta, phi, weights) / tokens)
        assert run.report.objective == run.report.log_likelihood
        run.advance()
        theta, phi = oracles.em_step(X, theta, phi, weights)
        close(factors(run)[0], theta)
        close(factors(run)[1], phi)


def test_both_formulations_have_the_same_iterates():
    X = oracles.random_counts(3, 20, 15)
    doc_weights = X.sum(axis=1) / X.sum()
    theta, phi = oracles.random_factors(4, 20, 15, 3)
    symmetric = oracles.symmetric_of(theta, phi, doc_weights)
    run = em_run(X, theta, phi, layout=sp.csr_array)
    for _ in range(40):
        run.advance()
        symmetric = oracles.symmetric_em_step(X, *symmetric)
        theta, phi = factors(run)
        for ours, theirs in zip(oracles.symmetric_of(theta, phi, doc_weights), symmetric, strict=True):
            close(ours, theirs)
        topic_weights, topic_doc, topic_word = symmetric
        joint = topic_doc.T @ (topic_weights[:, np.newaxis] * topic_word)
        close(doc_weights[:, np.newaxis] * (theta @ phi), joint)
        close(joint.sum(), 1)


def test_em_per_token_equals_em_per_count():
    X = oracles.random_counts(5, 8, 10)
    theta, phi = oracles.random_factors(6, 8, 10, 3)
    run = em_run(X, theta, phi)
    for _ in range(10):
        run.advance()
        theta, phi = oracles.token_em_step(X, theta, phi)
        close(factors(run)[0], theta)
        close(factors(run)[1], phi)


def test_the_bound_is_tight_at_the_posterior_and_lower_elsewhere():
    X = oracles.random_counts(7, 6, 8, density=0.6)
    rng = np.random.default_rng(8)
    for seed in range(10):
        theta, phi = oracles.random_factors(seed, 6, 8, 3)
        report = em_run(X, theta, phi).report
        value = report.log_likelihood * X.sum()
        q = oracles.posterior(theta, phi)
        close(oracles.bound(X, theta, phi, q), value)
        for _ in range(10):
            other = rng.dirichlet(np.ones(3), q.shape[:2])
            divergence = np.einsum("dw,dwk->", X, other * np.log(other / q))
            assert divergence > 0
            close(oracles.bound(X, theta, phi, other), value - divergence)


def test_the_m_step_maximizes_the_bound():
    X = oracles.random_counts(9, 6, 8, density=0.6)
    theta, phi = oracles.random_factors(10, 6, 8, 3)
    q = oracles.posterior(theta, phi)
    run = em_run(X, theta, phi)
    run.advance()
    best = oracles.bound(X, *factors(run), q)
    for seed in range(100):
        share = 10.0 ** -(seed % 4)
        neighbor = [
            (1 - share) * here + share * there
            for here, there in zip(factors(run), oracles.random_factors(seed, 6, 8, 3), strict=True)
        ]
        assert oracles.bound(X, *neighbor, q) < best


@pytest.mark.parametrize("beta", [0.5, 0.9])
def test_tempered_iterates_increase_the_free_energy(beta):
    X = oracles.random_counts(11, 20, 15)
    theta, phi = oracles.random_factors(12, 20, 15, 3)
    run = em_run(X, theta, phi, layout=sp.csr_array, temperature=beta)
    last = -np.inf
    for _ in range(30):
        close(run.report.log_likelihood * X.sum(), oracles.log_likelihood(X, theta, phi))
        close(run.report.objective * X.sum(), oracles.log_likelihood(X, theta**beta, phi**beta) / beta)
        assert run.report.objective >= last - 1e-12 * abs(last)
        last = run.report.objective
        run.advance()
        theta, phi = oracles.tempered_step(X, theta, phi, beta)
        close(factors(run)[0], theta)
        close(factors(run)[1], phi)


@st.composite
def problems(draw):
    """Return counts and a start: zero rows and columns, K = 1, K > words, counts up to 1e9, integers or not."""
    n_docs, n_words = draw(st.integers(1, 15)), draw(st.integers(1, 15))
    K = draw(st.one_of(st.just(1), st.integers(2, 6), st.integers(n_words + 1, n_words + 20)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = oracles.random_counts(
        rng.integers(2**32),
        n_docs,
        n_words,
        draw(st.sampled_from([0.1, 0.5, 1.0])),
        empty_rows=draw(st.lists(st.integers(0, n_docs - 1), max_size=3)),
        empty_words=draw(st.lists(st.integers(0, n_words - 1), max_size=3)),
    )
    X = X * draw(st.sampled_from(["small", "wide", "fractions"]).map(SCALES.get))(rng, X.shape)
    if not X.any():
        X[0, 0] = 1
    return X, oracles.random_factors(rng.integers(2**32), n_docs, n_words, K), draw(st.booleans())


SCALES = {
    "small": lambda rng, shape: 1.0,
    "wide": lambda rng, shape: np.floor(10.0 ** rng.uniform(0, 8.04, shape)),
    "fractions": lambda rng, shape: 10.0 ** rng.uniform(-6, 3, shape),
}


@settings(max_examples=500, deadline=None, derandomize=True)
@given(problems())
def test_the_likelihood_never_decreases(problem):
    X, (theta, phi), is_sparse = problem
    run = em_run(X, theta, phi, layout=sp.csr_array if is_sparse else np.asarray)
    values = [run.report.log_likelihood]
    for _ in range(25):
        run.advance()
        values.append(run.report.log_likelihood)
        assert run.report.residual >= 0
    theta, phi = factors(run)
    close(phi.sum(axis=1), 1)
    close(theta.sum(axis=1), X.any(axis=1))
    assert not phi[:, ~X.any(axis=0)].any()
    assert np.isfinite(values).all()
    # With a single word P(w|d) is 1 up to rounding, so its log is 0 up to rounding.
    last_bits = 16 * np.finfo(np.float64).eps
    assert np.min(np.diff(values) + 1e-12 * np.abs(values[:-1])) >= -last_bits
    close(values[-1], oracles.log_likelihood(X, theta, phi) / X.sum())


def gap_of_float32(X, K):
    """Return the difference between float32 and float64 after 50 iterations, in nats per token."""
    theta = np.full((X.shape[0], K), 1.0 / K)
    phi = oracles.normalized(np.random.default_rng(13).standard_exponential((K, X.shape[1])))
    runs = [em_run(X, theta, phi, layout=sp.csr_array, dtype=dtype) for dtype in (np.float32, np.float64)]
    for run in runs:
        for _ in range(50):
            run.advance()
    assert runs[0].theta.dtype == np.float32
    return abs(runs[0].report.log_likelihood - runs[1].report.log_likelihood)


@pytest.mark.parametrize("K", [2, 10, 40])
def test_float32_stays_with_float64_on_synthetic_counts(K):
    assert gap_of_float32(oracles.mixed_counts(14, 300, 200, 10), K) < 1e-5


def test_float32_stays_with_float64_on_large_counts():
    X = np.floor(oracles.mixed_counts(15, 100, 60, 5) * 1e7)
    assert gap_of_float32(X, 5) < 1e-5


def test_float32_stays_with_float64_on_real_counts(real_counts):
    assert gap_of_float32(real_counts("counts/ap_blei.npz"), 20) < 1e-5


@LAYOUTS
@pytest.mark.parametrize(("seed", "iterations"), [(17, 0), (18, 3), (19, 200)])
def test_the_residual_bounds_the_gain_from_either_factor(layout, seed, iterations):
    X = oracles.mixed_counts(16, 12, 10, 3, tokens=30)
    theta, phi = oracles.random_factors(seed, 12, 10, 3)
    run = em_run(X, theta, phi, layout=layout)
    for _ in range(iterations):
        run.advance()
    assert_bounds_the_gains(run, X)


@LAYOUTS
def test_the_residual_includes_zeros_that_em_cannot_increase(layout):
    X = oracles.mixed_counts(16, 12, 10, 3, tokens=30)
    theta, phi = oracles.random_factors(20, 12, 10, 3)
    theta[:6] = [1, 0, 0]
    phi[1, :9] = 0
    run = em_run(X, theta, oracles.normalized(phi), layout=layout)
    for _ in range(200):
        run.advance()
    assert assert_bounds_the_gains(run, X) > 1e-3


def assert_bounds_the_gains(run, X):
    """Optimize each factor alone with the oracle; return both gains in nats per token."""
    theta, phi = factors(run)
    here = oracles.log_likelihood(X, theta, phi)
    by_docs = oracles.log_likelihood(X, oracles.fold_in(X, phi, steps=3000), phi) - here
    no_zeros = 0.999 * phi + 0.001 / phi.shape[1]
    by_words = oracles.log_likelihood(X, theta, oracles.refit_words(X, theta, no_zeros, steps=3000)) - here
    gain = (max(by_docs, 0) + max(by_words, 0)) / X.sum()
    assert run.report.residual >= gain
    return gain


def test_the_residual_vanishes_at_the_optimum():
    X = oracles.mixed_counts(21, 12, 10, 1)
    run = em_run(X, np.ones((12, 1)), X.sum(axis=0, keepdims=True) / X.sum())
    assert run.report.residual < 1e-14


def test_weights_are_repeated_documents():
    X = oracles.random_counts(22, 12, 10)
    times = np.array([1, 3, 2, 1, 1, 4, 1, 1, 2, 1, 1, 1])
    theta, phi = oracles.random_factors(23, 12, 10, 3)
    weighted = em_run(X, theta, phi, weights=times.astype(np.float64))
    repeated = em_run(X.repeat(times, axis=0), theta.repeat(times, axis=0), phi)
    for _ in range(30):
        close(weighted.report, repeated.report)
        weighted.advance()
        repeated.advance()
    close(factors(weighted)[1], factors(repeated)[1])


def test_a_document_of_weight_zero_changes_nothing_even_with_unique_words():
    X = np.array([[4, 3, 0, 0, 0], [5, 2, 0, 1, 0], [0, 0, 3, 4, 0], [0, 1, 0, 0, 7.0]])
    theta, phi = oracles.random_factors(24, 4, 5, 2)
    phi[:, 4] = 0
    phi = oracles.normalized(phi)
    with_it = em_run(X, theta, phi, weights=np.array([1.0, 1, 1, 0]))
    without = em_run(X[:3], theta[:3], phi)
    for _ in range(10):
        close(with_it.report, without.report)
        with_it.advance()
        without.advance()
    close(factors(with_it)[1], factors(without)[1])


@pytest.mark.parametrize("times", [1, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@LAYOUTS
def test_a_word_of_probability_zero_is_not_an_optimum(layout, dtype, times):
    """The likelihood is minus infinity, so the residual must be infinite."""
    X = times * np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4.0]]).repeat(500, axis=0)
    theta = np.full((1500, 2), 0.5)
    phi = np.array([[0.5, 0.5, 0, 0], [0.4, 0.6, 0, 0]])
    run = em_run(X, theta, phi, layout=layout, dtype=dtype)
    assert run.report.log_likelihood == -np.inf
    assert run.report.residual == np.inf


@pytest.mark.parametrize("times", [1, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@LAYOUTS
def test_topics_stay_normalized_with_a_word_of_probability_zero(layout, dtype, times):
    X = times * np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4.0]]).repeat(500, axis=0)
    theta = np.full((1500, 2), 0.5)
    phi = np.array([[0.5, 0.5, 0, 0], [0.4, 0.6, 0, 0]])
    run = em_run(X, theta, phi, layout=layout, dtype=dtype)
    run.advance()
    close(factors(run)[1].sum(axis=1), 1, 1e-6)


def test_nmf_and_em_have_the_same_fixed_points():
    """Gaussier and Goutte 2005: a converged NMF, rescaled, is a fixed point of EM."""
    X = oracles.mixed_counts(25, 12, 10, 2)
    W, H = oracles.random_factors(26, 12, 10, 2)
    for _ in range(5000):
        W, H = oracles.nmf_step(X, W, H)
    theta, phi = oracles.normalized(W * H.sum(axis=1)), oracles.normalized(H)
    run = em_run(X, theta, phi)
    run.advance()
    close(factors(run)[0], theta, 1e-8)
    close(factors(run)[1], phi, 1e-8)


# accepting and rejecting points


class Place:
    """Point on a line; a test can check whether it is alive or freed."""

    def __init__(self, x):
        self.x = x


def ascent(values, *, extrapolate=False, compare=False):
    """Return an ascent whose objectives are `values`, and how many of its points are alive in each evaluation.

    A step is one unit long.
    """
    seen, alive, left = [], [], iter(values)

    def evaluate(place):
        seen.append(weakref.ref(place))
        alive.append(sum(reference() is not None for reference in seen))
        value = next(left)
        return EvaluatedPoint(place, Report(value, value, 1.0), Place(place.x + 1))

    def jump(extrapolation, step, last):
        (x,) = extrapolation(np.array([float(step.x)]), np.array([float(last.x)]))
        return Place(x)

    return Ascent(evaluate, Place(0), jump if extrapolate else None, compare=compare), alive


def test_without_extrapolation_every_step_is_accepted_and_old_points_are_freed_first():
    run, alive = ascent([1.0, 3.0, 2.0, 2.0])
    for objective in (3.0, 2.0, 2.0):
        run.advance()
        assert run.report.objective == objective
    assert run.point.x == 3
    assert not run.exhausted
    assert alive == [1, 1, 1, 1]


def test_a_point_with_an_equal_objective_is_accepted_and_one_with_a_lower_objective_is_rejected():
    run, alive = ascent([1.0, 1.0, 1.0, 0.5, 2.0], extrapolate=True)
    positions = []
    for _ in range(4):
        run.advance()
        positions.append(run.point.x)
        assert not run.exhausted
    assert positions == [1, 2.5, 2.5, 3.5]  # a plain step; one of size 0.5; a rejected one; a plain one
    assert run.report.objective == 2.0
    assert run._momentum.size == pytest.approx(0.5 * 1.1 * 0.6)
    assert max(alive) == 2


@pytest.mark.parametrize("extrapolate", [False, True])
def test_a_plain_step_that_lowers_the_objective_ends_an_ascent_that_compares(extrapolate):
    run, _ = ascent([1.0, 0.5], extrapolate=extrapolate, compare=True)
    run.advance()
    assert run.exhausted
    assert (run.point.x, run.report.objective) == (0, 1.0)


def test_other_ascents_continue_after_a_plain_step_that_lowers_the_objective():
    """Only rounding can lower the objective in a plain step, and the steps after it can still gain."""
    run, _ = ascent([1.0, 0.5, 0.75], extrapolate=True)
    for objective in (0.5, 0.75):
        run.advance()
        assert not run.exhausted
        assert run.report.objective == objective


def live_points(solver, iterations):
    """Return how many of the points of a fit of PLSA are alive at the end of each step of EM."""
    theta, phi = oracles.random_factors(1, 40, 25, 4)
    corpus = MemoryCorpus(as_counts(sp.csr_array(oracles.random_counts(0, 40, 25)), np.dtype(np.float64)))
    run_step, arrays, alive = corpus.run, [], []

    def counted(*arguments):
        result = run_step(*arguments)
        arrays.append(weakref.ref(result.next_rows))
        alive.append(sum(reference() is not None for reference in arrays))
        return result

    corpus.run = counted
    run = solver.begin(FitProblem(Model(4), corpus), padded(theta, np.float64), padded(phi.T, np.float64))
    for _ in range(iterations):
        run.advance()
    return alive


def test_em_keeps_a_point_and_its_step_only():
    assert live_points(EM(), 5) == [1, 2, 2, 2, 2, 2]
    assert max(live_points(AcceleratedEM(), 8)) == 2  # without the step before


@pytest.mark.parametrize("solver", [EM(), AcceleratedEM()], ids=repr)
def test_a_run_resumes_from_each_of_its_snapshots_to_the_same_bits(solver):
    theta, phi = oracles.random_factors(5, 30, 20, 4)
    corpus = MemoryCorpus(as_counts(oracles.random_counts(6, 30, 20), np.dtype(np.float64)))
    problem = FitProblem(Model(4), corpus)
    run = solver.begin(problem, padded(theta, np.float64), padded(phi.T, np.float64))
    states = [run.snapshot()]
    for _ in range(20):
        run.advance()
        states.append(run.snapshot())
    assert ("last" in states[0].docs, "last" in states[-1].docs) == (False, solver == AcceleratedEM())
    for done, state in enumerate(states):
        resumed = solver.resume(problem, state)
        for _ in range(20 - done):
            resumed.advance()
        assert resumed.report == run.report
        assert np.array_equal(resumed.theta, run.theta)
        assert np.array_equal(resumed.phi, run.phi)
