"""Coordinate ascent on difficult problems: small sparse counts, wrong zeros, optimality conditions."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import oracles
from polyseme import NMF, PLSA
from polyseme.core.model import Model
from polyseme.estimators.nmf import MULTIPLICATIVE_STEPS
from polyseme.kernels import padded
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import FitProblem
from polyseme.solvers.coordinate import SCD, Unnormalized, column_sums, from_plsa, log_likelihood
from polyseme.solvers.multiplicative import MultiplicativeNMF
from solver_problems import (
    advanced,
    begin,
    factorable,
    factors,
    fit,
    make_corpus,
    mean_log_likelihood,
    multipliers,
    saturated,
)

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])

SHAPES = {
    "whole": lambda rng, X: X,
    "huge": lambda rng, X: X * 10.0 ** rng.uniform(0, 8, X.shape),
    "tiny": lambda rng, X: X * 10.0 ** rng.uniform(-8, 0, X.shape),
    "not whole": lambda rng, X: X * rng.random(X.shape),
    "one word a document": lambda rng, X: np.eye(X.shape[1])[rng.integers(X.shape[1], size=len(X))] * 3,
    "one document a word": lambda rng, X: np.eye(len(X))[rng.integers(len(X), size=X.shape[1])].T * 3,
    "with gaps": lambda rng, X: X * (rng.random((len(X), 1)) < 0.7) * (rng.random((1, X.shape[1])) < 0.7),
    "another scale": lambda rng, X: X * 10.0 ** rng.uniform(-12, 12),
}


def small_problem(kind, seed):
    """Return sparse counts of at most 12 x 12 and a positive start; K can exceed the number of words."""
    rng = np.random.default_rng([list(SHAPES).index(kind), seed])
    n_docs, n_words = rng.integers(1, 13, 2)
    X = oracles.random_counts(rng.integers(2**32), n_docs, n_words, rng.choice([0.1, 0.3, 0.6, 1.0]))
    X = SHAPES[kind](rng, X)
    if not X.any():
        X[0, 0] = 1
    K = int(rng.choice([1, 2, 3, 5, n_words + 1, n_words + 6]))
    sharpness = rng.choice([0.1, 1, 5])
    theta, phi = rng.dirichlet(np.full(K, sharpness), n_docs), rng.dirichlet(np.full(n_words, sharpness), K)
    return X, (oracles.normalized(np.maximum(theta, 1e-12)), oracles.normalized(np.maximum(phi, 1e-12)))


def test_the_likelihood_of_a_float32_point_is_exact():
    """Late iterations gain about 1e-8 nats per token: such an error would decide whether a point is accepted."""
    rng = np.random.default_rng(0)
    corpus = make_corpus(rng.integers(1, 5, (40, 30)), dtype=np.float32)
    point = Unnormalized(*(padded(rng.random(shape), np.float32) for shape in ((40, 3), (30, 3))))
    docs, words = (factor.astype(np.float64) for factor in point)
    by_document = corpus.totals * np.log((docs @ words.T).sum(axis=1))
    assert log_likelihood(corpus, 0.0, point) == pytest.approx(-by_document.sum() / corpus.tokens, rel=1e-14)


@DTYPES
@pytest.mark.parametrize("seed", range(4))
def test_no_row_decreases_if_counts_span_many_orders_of_magnitude(dtype, seed):
    """Subtracting nearly all of q leaves a rounding error, which must not remove the only topic of a word."""
    rng = np.random.default_rng(seed)
    decades = 9 if dtype == np.float32 else 14
    X = oracles.random_counts(seed, 40, 30, 0.4) * 10.0 ** rng.uniform(-decades, decades, (40, 30))
    corpus, K = make_corpus(X, dtype=dtype), 4
    theta, phi = oracles.random_factors(seed, 40, 30, K)
    docs, words = from_plsa(corpus, padded(theta, dtype), padded(phi.T, dtype))
    for _ in range(5):
        for counts, factor, fixed in ((corpus.by_doc, docs, words), (corpus.by_word, words, docs)):
            u = column_sums(fixed)[:K]
            before = poisson_rows(counts, factor, fixed, u)
            counts.improve_rows(factor, fixed, u, passes=2, n_threads=1)
            gained = poisson_rows(counts, factor, fixed, u) - before
            assert (gained >= -1e-5 * counts.totals).all()


def poisson_rows(counts, factor, fixed, u):
    """Return sum x log q - sum u factor of each row, in float64."""
    x = counts.matrix().toarray().astype(np.float64)
    q = factor.astype(np.float64) @ fixed.T.astype(np.float64)
    with np.errstate(divide="ignore"):
        logs = np.log(q, out=np.zeros_like(q), where=x > 0)
    return (x * logs).sum(axis=1) - factor[:, : u.size].astype(np.float64) @ u


@DTYPES
@pytest.mark.parametrize("kind", SHAPES)
def test_small_sparse_problems(kind, dtype):
    """2000 problems: finite values, positive probabilities of non-zeros, no decrease, correct likelihoods."""
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    for seed in range(250):
        X, start = small_problem(kind, seed)
        run = begin(SCD(), X, start, dtype=dtype)
        for _ in range(40):
            if run.exhausted:
                break
            before = run.report.objective
            run.advance()
            assert np.isfinite(run.report.objective), seed
            assert run.report.objective >= before, seed
            assert run.report.residual >= 0, seed
        theta, phi = (factor.astype(np.float64) for factor in factors(run))
        assert np.isfinite(theta).all(), seed
        assert np.isfinite(phi).all(), seed
        assert min(theta.min(), phi.min()) >= 0, seed
        assert ((theta @ phi)[X > 0] > 0).all(), seed
        np.testing.assert_allclose(theta.sum(axis=1)[X.any(axis=1)], 1, atol=1e-5)
        assert abs(mean_log_likelihood(X, theta, phi) - run.report.log_likelihood) < tolerance, seed
        assert run.report.log_likelihood <= saturated(X) + tolerance, seed


@pytest.mark.parametrize(
    ("kind", "seed", "dtype"), [("tiny", 367, np.float32), ("tiny", 105, np.float64), ("huge", 302, np.float64)]
)
def test_extrapolation_does_not_make_the_scales_diverge(kind, seed, dtype):
    """Scale that moves from the words to the documents does not change the product; extrapolating it would never end.

    Words shrank and documents grew a hundredfold at every iteration, until one was zero and the likelihood +inf.
    """
    X, start = small_problem(kind, seed)
    run = begin(SCD(), X, start, dtype=dtype)
    for _ in range(200):
        if run.exhausted:
            break
        run.advance()
        assert run.report.log_likelihood <= saturated(X) + 1e-4
    theta, phi = (factor.astype(np.float64) for factor in factors(run))
    assert mean_log_likelihood(X, theta, phi) == pytest.approx(run.report.log_likelihood, abs=1e-4)


def test_plain_steps_gain_nothing_after_the_run_is_exhausted():
    """A plain step increases the Poisson likelihood, which is that of PLSA only if s_d = n_d."""
    for kind, seed in [("huge", 48), ("tiny", 114), *((kind, seed) for kind in SHAPES for seed in range(20))]:
        X, start = small_problem(kind, seed)
        run = advanced(begin(SCD(), X, start), 300)
        if run.exhausted:
            further = advanced(begin(SCD(extrapolate=False), X, factors(run)), 20)
            assert further.report.log_likelihood < run.report.log_likelihood + 1e-7, (kind, seed)


@DTYPES
def test_every_half_step_increases_the_objective_of_every_row(dtype):
    """sum x log q - sum u theta of every row increases, for any fixed factor."""
    for seed in range(60):
        X, (theta, phi) = small_problem(list(SHAPES)[seed % 4], seed)
        counts = make_corpus(X, dtype=dtype).by_doc
        docs, words = padded(theta * X.sum(axis=1, keepdims=True), dtype), padded(phi.T, dtype)
        u = np.random.default_rng(seed).uniform(0.5, 2, len(phi))
        slack = (1e-12 if dtype == np.float64 else 2e-6) * (1 + X.sum(axis=1)) * 30
        for _ in range(6):
            before, mass = row_values(X, docs, words, u)
            gap, logs = counts.improve_rows(docs, words, u, passes=1, n_threads=1)
            after, new_mass = row_values(X, docs, words, u)
            assert (after - new_mass >= before - mass - slack).all(), seed
            assert (gap >= after - new_mass - before + mass - slack).all(), seed
            np.testing.assert_allclose(logs, after, atol=slack.max(), err_msg=str(seed))


def row_values(X, docs, words, u):
    """Return sum x log q and sum u theta of every row, in float64."""
    docs, words = (factor[:, : len(u)].astype(np.float64) for factor in (docs, words))
    return (X * np.log(np.where(X > 0, docs @ words.T, 1))).sum(axis=1), docs @ u


# wrong zeros


def two_themes():
    """Return counts of two topics: six documents of each and three mixed ones."""
    rng = np.random.default_rng(0)
    phi = np.array([[0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0], [0, 0, 0, 0.1, 0.2, 0.2, 0.2, 0.3]])
    theta = np.array([[1.0, 0]] * 6 + [[0, 1.0]] * 6 + [[0.5, 0.5]] * 3)
    return np.array([rng.multinomial(100, p) for p in theta @ phi], dtype=np.float64)


@DTYPES
@pytest.mark.parametrize("side", ["documents", "words"])
def test_wrong_zeros_become_positive(side, dtype):
    """EM cannot change a zero; coordinate ascent uses its slope and reaches the better optimum."""
    X = two_themes()
    good = fit(SCD(), X, oracles.random_factors(1, *X.shape, 2), max_iter=300).run
    theta, phi = (factor.copy() for factor in factors(good))
    theta, phi = oracles.normalized(theta + 1e-3), oracles.normalized(phi + 1e-3)
    if side == "documents":
        lost = (12, int(theta[12].argmax()))
        theta[lost] = 0
        theta = oracles.normalized(theta)
    else:
        lost = (int(phi[:, 3].argmax()), 3)
        phi[lost] = 0
        phi = oracles.normalized(phi)
    stuck = advanced(begin(EM(), X, (theta, phi), dtype=dtype), 400)
    stuck_factors = [factor.astype(np.float64) for factor in factors(stuck)]
    which = 0 if side == "documents" else 1
    assert stuck_factors[which][lost] == 0
    assert multipliers(X, *stuck_factors)[which][lost] > 1.05  # it is positive at the optimum

    run = begin(SCD(), X, (theta, phi), dtype=dtype)
    run.advance()
    assert factors(run)[which][lost] > 0
    advanced(run, 300)
    assert factors(run)[which][lost] > 0.01
    assert run.report.log_likelihood > stuck.report.log_likelihood + 1e-3
    assert run.report.log_likelihood == pytest.approx(good.report.log_likelihood, abs=1e-5)


@DTYPES
def test_a_word_of_probability_zero_gets_a_positive_one(dtype):
    """p = 0 at a non-zero makes the likelihood -inf; the first half-step must change it."""
    X = oracles.mixed_counts(3, 8, 6, 2)
    theta, phi = oracles.random_factors(1, *X.shape, 2)
    X[0, 0] = 3
    phi[0, 0] = theta[0, 1] = 0
    start = oracles.normalized(theta), oracles.normalized(phi)
    run = begin(SCD(), X, start, dtype=dtype)
    assert run.report.log_likelihood == -np.inf
    run.advance()
    theta, phi = (factor.astype(np.float64) for factor in factors(run))
    assert (theta @ phi)[0, 0] > 0
    assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(X, theta, phi), abs=1e-5)
    best = fit(SCD(), X, oracles.random_factors(1, *X.shape, 2), max_iter=300).run.report.log_likelihood
    assert advanced(run, 300).report.log_likelihood == pytest.approx(best, abs=1e-4)


@DTYPES
def test_a_rare_word_of_a_document_keeps_its_probability(dtype):
    """A count of a ten-millionth of its document, in a separate topic, must not be lost by cancellation."""
    X = np.array([[3.0, 1.0, 2e-7], [1.0, 4.0, 0.0], [0.0, 1.0, 5.0], [0.0, 0.0, 6.0]])
    for seed in range(20):
        run = begin(SCD(), X, oracles.random_factors(seed, *X.shape, 3), dtype=dtype)
        for _ in range(30):
            if run.exhausted:
                break
            run.advance()
            theta, phi = (factor.astype(np.float64) for factor in factors(run))
            assert ((theta @ phi)[X > 0] > 0).all(), seed


def test_zeros_of_the_optimum_are_exact():
    X = two_themes()
    theta, phi = factors(fit(SCD(), X, oracles.random_factors(1, *X.shape, 2), max_iter=300).run)
    assert np.count_nonzero(phi == 0) >= 7
    assert np.count_nonzero(theta == 0) >= 10


# the optimum

OPTIMA = {
    "themes": lambda: (oracles.mixed_counts(1, 25, 18, 3), 3),
    "noise": lambda: (oracles.random_counts(2, 25, 18), 3),
    "two themes": lambda: (two_themes(), 2),
    "factorable": lambda: (factorable(0, 15, 12, 2)[0], 2),
    "many topics": lambda: (oracles.mixed_counts(4, 20, 15, 4), 7),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", [SCD(), SCD(extrapolate=False), SCD(passes=1), SCD(passes=6)], ids=repr)
@pytest.mark.parametrize("problem", ["themes", "noise", "two themes", "factorable"])
def test_the_result_satisfies_the_optimality_conditions(problem, solver, weighted):
    """g <= u everywhere and g = u where the factor is positive (Karush, Kuhn, Tucker), to 1e-6."""
    X, K = OPTIMA[problem]()
    weights = np.random.default_rng(8).uniform(0.5, 2, len(X)) if weighted else None
    end = fit(solver, X, oracles.random_factors(1, *X.shape, K), max_iter=400, weights=weights)
    theta, phi = factors(end.run)
    for slope, factor in zip(multipliers(X, theta, phi, weights), (theta, phi), strict=True):
        assert slope.max() <= 1 + 1e-6
        np.testing.assert_allclose(factor * (slope - 1), 0, atol=1e-6)
        np.testing.assert_allclose(slope[factor > 1e-6], 1, atol=2e-6)


@pytest.mark.parametrize("problem", ["themes", "two themes", "factorable"])
@DTYPES
def test_extrapolation_and_passes_do_not_move_the_optimum(problem, dtype):
    X, K = OPTIMA[problem]()
    start = oracles.random_factors(1, *X.shape, K)
    ends = [
        fit(solver, X, start, max_iter=2000, dtype=dtype).run.report.log_likelihood
        for solver in (SCD(), SCD(extrapolate=False), SCD(passes=1), SCD(passes=6))
    ]
    np.testing.assert_allclose(ends, ends[0], atol=1e-9 if dtype == np.float64 else 2e-5)


@pytest.mark.parametrize("problem", OPTIMA)
def test_it_is_at_least_as_good_as_em_after_the_same_number_of_iterations(problem):
    """This is not a theorem, but a failure on these problems indicates an error."""
    X, K = OPTIMA[problem]()
    start = oracles.random_factors(1, *X.shape, K)
    scd, em = (fit(solver, X, start, max_iter=40).run.report.log_likelihood for solver in (SCD(), EM()))
    assert scd >= em - 1e-3


def test_float32_ends_near_float64():
    for problem in ("themes", "two themes", "factorable"):
        X, K = OPTIMA[problem]()
        start = oracles.random_factors(1, *X.shape, K)
        single, double = (fit(SCD(), X, start, max_iter=500, dtype=d).run for d in (np.float32, np.float64))
        assert single.report.log_likelihood == pytest.approx(double.report.log_likelihood, abs=2e-5)


def test_large_float64_fits_report_their_likelihood():
    """Their half-steps are float32 until an iteration gains less than 1e-6: the report must not show it."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(700, 0.1), 5)
    X = rng.poisson(rng.dirichlet(np.full(5, 0.3), 700) @ topics * 2000) + np.ones((700, 700))
    run = begin(SCD(), X, oracles.random_factors(0, *X.shape, 5), dtype=np.float64)
    values = [run.report.log_likelihood]
    for _ in range(40):
        run.advance()
        values.append(run.report.log_likelihood)
        assert values[-1] == pytest.approx(mean_log_likelihood(X, *factors(run)), abs=1e-8)
    assert (np.diff(values) >= 0).all()
    assert values[-1] - values[-2] < 1e-6


@DTYPES
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6])
def test_the_scale_of_the_counts_does_not_matter(dtype, scale):
    X, K = OPTIMA["themes"]()
    start = oracles.random_factors(1, *X.shape, K)
    one, other = (fit(SCD(), data, start, max_iter=500, dtype=dtype).run for data in (X, X * scale))
    assert other.report.log_likelihood == pytest.approx(
        one.report.log_likelihood, abs=1e-9 if dtype == np.float64 else 2e-5
    )


def test_an_exhausted_run_does_not_move():
    X = two_themes()
    run = fit(SCD(), X, oracles.random_factors(1, *X.shape, 2), max_iter=500).run
    assert run.exhausted
    before = run.report.log_likelihood, run.phi.copy()
    run.advance()
    assert run.report.log_likelihood == before[0]
    assert np.array_equal(run.phi, before[1])


def test_a_real_corpus(real_counts):
    """AP, 300 documents, both dtypes: no decrease, and a higher likelihood than EM after twice as many iterations."""
    X = real_counts("counts/ap_blei.npz")[:300].toarray().astype(np.float64)
    X = X[:, X.any(axis=0)]
    start = oracles.random_factors(0, *X.shape, 10)
    em = fit(EM(), X, start, max_iter=40).run.report.log_likelihood
    for dtype in (np.float64, np.float32):
        end = fit(SCD(), X, start, max_iter=20, dtype=dtype)
        assert (np.diff(end.history["objective"]) >= 0).all()
        assert end.run.report.log_likelihood > em
        theta, phi = (factor.astype(np.float64) for factor in factors(end.run))
        assert end.run.report.log_likelihood == pytest.approx(mean_log_likelihood(X, theta, phi), abs=1e-4)


FASTTOPICS = -6.73354
"""Log-likelihood per token that fastTopics 0.7 (R; scd with extrapolation) reached in 205 s from a common start, on 20
Newsgroups (words in at least 10 documents) with K = 20."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_default_solver_reaches_the_known_likelihood(real_counts, real_file):
    X = real_counts("perf/newsgroups_df10.npz")
    start = np.load(real_file("perf/newsgroups_df10_k20_start.npz"))

    def reached(entry):
        if entry["log_likelihood"] >= FASTTOPICS - 5e-4:
            raise KeyboardInterrupt

    model = PLSA(20, init=(start["doc_topic"], start["topic_word"]), tol=0, max_iter=50, callback=reached)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.history_["log_likelihood"][-1] >= FASTTOPICS - 5e-4


# multiplicative updates first


@DTYPES
def test_multiplicative_updates_come_first_and_then_coordinate_ascent(dtype):
    X, start = oracles.random_counts(3, 30, 20, 0.5), oracles.random_factors(1, 30, 20, 3)
    run = begin(SCD(multiplicative_steps=4), X, start, dtype=dtype)
    multiplicative = begin(MultiplicativeNMF(order="documents-first"), X, start, dtype=dtype)
    values, tolerance = [run.report.log_likelihood], 1e-10 if dtype == np.float64 else 1e-4
    for _ in range(4):
        run.advance()
        multiplicative.advance()
        values.append(run.report.log_likelihood)
        np.testing.assert_allclose(run.theta, multiplicative.theta, rtol=tolerance)
        np.testing.assert_allclose(run.phi, multiplicative.phi, rtol=tolerance)
        assert values[-1] == pytest.approx(mean_log_likelihood(X, *factors(run)), abs=1e-6)
        assert 0 < run.report.residual < np.inf
    scd = begin(SCD(), X, factors(run), dtype=dtype)
    for _ in range(5):
        run.advance()
        scd.advance()
        values.append(run.report.log_likelihood)
        np.testing.assert_allclose(run.phi, scd.phi, rtol=100 * tolerance, atol=1e-6)
    assert np.diff(values).min() >= -1e-8


@pytest.mark.parametrize("stop", [0, 2, 3, 6])
def test_a_fit_with_multiplicative_updates_first_resumes_with_the_same_bits(stop):
    X, start = oracles.random_counts(3, 30, 20, 0.5), oracles.random_factors(1, 30, 20, 3)
    solver, problem = SCD(multiplicative_steps=3), FitProblem(Model(3), make_corpus(X))
    run = advanced(begin(solver, X, start), stop)
    resumed = solver.resume(problem, run.snapshot())
    assert resumed.report == run.report
    for one in (run, resumed):
        advanced(one, 8)
    assert np.array_equal(run.theta, resumed.theta)
    assert np.array_equal(run.phi, resumed.phi)
    assert run.report == resumed.report


def test_nmf_begins_with_multiplicative_updates_by_default_and_plsa_does_not():
    X = oracles.random_counts(3, 30, 20, 0.5)
    settings = {"random_state": 0, "max_iter": 14, "tol": 0.0}
    for estimator, solver in ((NMF, SCD(multiplicative_steps=MULTIPLICATIVE_STEPS)), (PLSA, SCD())):
        with pytest.warns(ConvergenceWarning):
            named, given = (estimator(3, solver=one, **settings).fit(X) for one in ("auto", solver))
        assert np.array_equal(named.components_, given.components_)
        assert named.solver_ == "scd"
