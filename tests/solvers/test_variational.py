"""Variational Bayes: special functions, steps compared with a naive form, a bound that never decreases, priors."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, psi

import oracles
from polyseme import _kernels
from polyseme.core.dirichlet import (
    ASYMMETRIC,
    GIVEN,
    SYMMETRIC,
    Concentration,
    DirichletPosterior,
    improve_documents,
    topic_sums,
    topics_term,
    word_operands,
)
from polyseme.kernels import padded
from polyseme.solvers.base import advance_to_end
from polyseme.solvers.dirichlet import Priors, Variational, expected_counts
from polyseme.solvers.online import OnlineVariational
from solver_problems import make_corpus

ISAS = ("baseline", "avx2", "avx512")
USABLE = ISAS[: ISAS.index(_kernels.best_isa()) + 1]
X = oracles.mixed_counts(0, 50, 40, 4)
X[[3, 20]] = 0
X[:, 7] = 0


def expected_logs(rows):
    return psi(rows) - psi(rows.sum(axis=1, keepdims=True))


def naive_bound(X, gamma, lambda_, alpha, eta, weights=None):
    """Return E log p - E log q by term (Blei, Ng and Jordan 2003, eq. 15), with the best q(z); lambda is K x words."""
    weights = np.ones(len(X)) if weights is None else weights
    log_theta, log_phi = expected_logs(gamma), expected_logs(lambda_)
    joint = np.exp(log_theta[:, :, np.newaxis] + log_phi)
    log_q = np.log(joint.sum(axis=1))
    documents = (X * log_q).sum(axis=1) - divergence(gamma, alpha, log_theta)
    return weights @ documents - divergence(lambda_, eta, log_phi).sum()


def divergence(rows, prior, logs):
    """Return KL(Dirichlet(row) || Dirichlet(prior)) of every row."""
    return (
        gammaln(rows.sum(axis=1)) - gammaln(rows).sum(axis=1)
        - gammaln(prior.sum(axis=-1)) + gammaln(prior).sum(axis=-1) + ((rows - prior) * logs).sum(axis=1)
    )  # fmt: skip


def naive_step(X, gamma, lambda_, alpha, eta):
    """Return gamma and lambda from q(z) at the old ones."""
    joint = np.exp(expected_logs(gamma)[:, :, np.newaxis] + expected_logs(lambda_))
    expected = X[:, np.newaxis, :] * joint / joint.sum(axis=1, keepdims=True)
    return alpha + expected.sum(axis=2), eta + expected.sum(axis=0)


def begun(solver, *, K=4, dtype=np.float64, kinds=(GIVEN, GIVEN), weights=None, layout=sp.csr_array, n_threads=1):
    corpus = make_corpus(X, dtype=dtype, layout=layout, weights=weights, n_threads=n_threads)
    priors = Priors(Concentration(np.full(K, 0.3), kinds[0]), Concentration(np.full(X.shape[1], 0.2), kinds[1]))
    theta, phi = oracles.random_factors(1, *X.shape, K)
    expected = expected_counts(padded(theta, dtype), corpus.totals)
    return solver.begin(corpus, priors, lambda: expected, padded(phi.T, dtype), np.random.default_rng(0))


# special functions


@pytest.mark.parametrize("isa", USABLE)
@pytest.mark.parametrize("by_topic", [False, True])
@pytest.mark.parametrize(("dtype", "rtol", "floor"), [(np.float64, 2e-13, 1e-200), (np.float32, 2e-7, 1e-18)])
def test_word_operands_are_those_of_scipy(isa, dtype, rtol, floor, by_topic):
    rng = np.random.default_rng(0)
    K, n_words = 21, 300
    lambda_ = np.abs(rng.standard_normal((n_words, K)) * 10 ** rng.uniform(-2, 4, (n_words, K))) + 0.02
    wide = padded(lambda_, dtype)
    wide[:, K:] = 1
    lambda_ = wide[:, :K].astype(np.float64)
    eta = rng.uniform(0.01, 2, wide.shape if by_topic else n_words)
    sums = topic_sums(wide, K)
    words = word_operands(wide, eta, sums, n_threads=2, isa=isa)
    logs = psi(lambda_) - psi(lambda_.sum(axis=0))
    np.testing.assert_allclose(words.scales, logs.max(axis=1), rtol=1e-14, atol=1e-14)
    reference = np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), floor)
    np.testing.assert_allclose(words.operand[:, :K], reference, rtol=rtol)
    assert not words.operand[:, K:].any()
    np.testing.assert_allclose(words.log_sums, logs.sum(axis=1), rtol=1e-13)
    prior = eta[:, :K].T if by_topic else eta
    np.testing.assert_allclose(topics_term(words, eta, sums), -divergence(lambda_.T, prior, logs.T).sum(), rtol=1e-11)


@pytest.mark.parametrize("isa", USABLE)
@pytest.mark.parametrize(("dtype", "rtol", "floor"), [(np.float64, 1e-13, 1e-200), (np.float32, 5e-5, 1e-18)])
def test_document_operands_are_those_of_scipy(isa, dtype, rtol, floor):
    """float32: the relative error of exp(psi(x)) for small x is about eps / x, but the value is negligible."""
    rng = np.random.default_rng(1)
    corpus = make_corpus(X, dtype=dtype)
    alpha = rng.uniform(0.005, 2, 21)
    expected = rng.gamma(0.05, 30, (len(X), 21))
    B = padded(rng.random((X.shape[1], 21)), dtype)
    n = padded(expected, dtype)
    docs = improve_documents(corpus.by_doc, B, alpha, n, totals=corpus.totals, steps=0, tol=0, n_threads=2, isa=isa)
    gamma = alpha + expected
    logs = expected_logs(gamma)
    reference = np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), floor)
    np.testing.assert_allclose(docs.operand[:, :21], reference, rtol=rtol)
    terms = corpus.totals * logs.max(axis=1) - divergence(gamma, alpha, logs)
    np.testing.assert_allclose(docs.terms, terms, rtol=1e-12 if dtype == np.float64 else 1e-5)
    np.testing.assert_allclose(docs.log_sums, logs.sum(axis=0), rtol=1e-12 if dtype == np.float64 else 1e-6)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(1e-6, 1e8), min_size=2, max_size=20))
def test_operands_are_finite_for_any_parameters(parameters):
    """Even if exp(psi(x)) is far below the smallest floating-point number."""
    row = np.array([parameters])
    K = row.shape[1]
    for dtype in (np.float32, np.float64):
        corpus = make_corpus(np.ones((1, 3)), dtype=dtype)
        n = padded(np.zeros((1, K)), dtype)
        B = padded(np.ones((3, K)), dtype)
        docs = improve_documents(corpus.by_doc, B, row[0], n, totals=corpus.totals, steps=0, tol=0, n_threads=1)
        assert docs.operand[0, :K].max() == pytest.approx(1, rel=1e-6)
        assert docs.operand[0, :K].min() > 0
        assert np.isfinite(docs.terms).all()


# steps and the bound


@pytest.mark.parametrize("layout", [sp.csr_array, np.asarray])
def test_an_iteration_without_document_steps_is_the_naive_one(layout):
    """Both gamma and lambda come from the old q(z); the bound is that of the point."""
    run = begun(Variational(doc_steps=0, refresh=0, extrapolate=False), layout=layout)
    alpha, eta = np.full(4, 0.3), np.full(X.shape[1], 0.2)
    theta, phi = oracles.random_factors(1, *X.shape, 4)
    gamma, lambda_ = alpha + theta * X.sum(axis=1, keepdims=True), eta + phi * X.sum() / 4
    for _ in range(6):
        np.testing.assert_allclose(run.lambda_[:, :4].T, lambda_, rtol=1e-10)
        bound = naive_bound(X, gamma, lambda_, alpha, eta) / X.sum()
        np.testing.assert_allclose(run.report.bound, bound, rtol=1e-12)
        gamma, lambda_ = naive_step(X, gamma, lambda_, alpha, eta)
        run.advance()


def test_document_steps_are_naive_ones():
    rng = np.random.default_rng(2)
    lambda_, alpha = rng.gamma(2, 3, (4, X.shape[1])), np.array([0.1, 0.2, 0.4, 0.8])
    corpus = make_corpus(X)
    wide = padded(lambda_.T, np.float64)
    wide[:, 4:] = 1
    words = word_operands(wide, np.ones(X.shape[1]), topic_sums(wide, 4), n_threads=1)
    n = padded(X.sum(axis=1, keepdims=True) * np.full(4, 0.25), np.float64)
    improve_documents(corpus.by_doc, words.operand, alpha, n, totals=corpus.totals, steps=7, tol=0, n_threads=1)
    gamma = alpha + X.sum(axis=1, keepdims=True) * np.full(4, 0.25)
    for _ in range(7):
        gamma, _ = naive_step(X, gamma, lambda_, alpha, 1.0)
    np.testing.assert_allclose(alpha + n[:, :4], gamma, rtol=1e-10)


def test_inference_is_a_fixed_point_and_reports_the_bound():
    rng = np.random.default_rng(3)
    lambda_, alpha = rng.gamma(2, 3, (4, X.shape[1])), np.array([0.5, 0.2, 0.4, 0.8])
    eta = np.full(X.shape[1], 0.7)
    posterior = DirichletPosterior(lambda_, alpha, eta)
    inferred = posterior.weights(make_corpus(X).by_doc, oracles.normalized(lambda_), None, n_threads=2)
    gamma = inferred.parameters["gamma"]
    again, _ = naive_step(X, gamma, lambda_, alpha, 1.0)
    assert (np.abs(again - gamma).sum(axis=1) <= 1e-4 * X.sum(axis=1)).all()
    topics = -divergence(lambda_, eta, expected_logs(lambda_)).sum()
    np.testing.assert_allclose(posterior.topics_term(n_threads=1), topics, rtol=1e-12)
    total = inferred.bounds.sum() + topics
    np.testing.assert_allclose(total, naive_bound(X, gamma, lambda_, alpha, eta), rtol=1e-12)
    np.testing.assert_allclose(gamma[3], alpha)
    np.testing.assert_allclose(inferred.doc_topic, oracles.normalized(gamma), rtol=1e-12)


@pytest.mark.parametrize("kinds", [(GIVEN, GIVEN), (ASYMMETRIC, SYMMETRIC), (SYMMETRIC, ASYMMETRIC)])
@pytest.mark.parametrize("doc_steps", [0, 1, 5])
@pytest.mark.parametrize("refresh", [0, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_plain_step_never_decreases_the_bound(kinds, doc_steps, refresh, weighted):
    """Step by step, because a run would refuse a step that decreases the bound."""
    weights = np.random.default_rng(4).integers(1, 4, len(X)).astype(np.float64) if weighted else None
    solver = Variational(doc_steps=doc_steps, refresh=refresh, extrapolate=False)
    run = begun(solver, kinds=kinds, weights=weights)
    step, bounds = run._ascent.step, [run._ascent.report.bound]
    for _ in range(80):
        point, report, step = run._ascent._evaluate(step)
        bounds.append(report.bound)
    assert (np.diff(bounds) / np.abs(bounds[1:])).min() >= -1e-12
    assert bounds[-1] > bounds[0]
    learned = [prior.learned for prior in run.priors]
    changed = [not np.allclose(new, old.values) for new, old in zip(point.shared[1:], run.priors, strict=True)]
    assert changed == learned


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kinds", [(GIVEN, GIVEN), (ASYMMETRIC, SYMMETRIC)])
def test_the_bound_of_a_run_never_decreases_and_extrapolation_is_no_worse(dtype, kinds):
    ends = []
    for extrapolate in (False, True):
        run = begun(Variational(extrapolate=extrapolate), dtype=dtype, kinds=kinds)
        fit = advance_to_end(lambda run=run: run, max_iter=25, tol=0.0, listeners=[])
        assert (np.diff(fit.history["bound"]) >= 0).all()
        ends.append(fit.history["bound"][-1])
    assert ends[1] > ends[0] - 5e-3


def test_the_bound_of_a_run_includes_weights_and_learned_priors():
    """gamma comes from the document steps of the run, which start from the expected counts of the last iteration."""
    weights = np.random.default_rng(5).uniform(0.5, 2, len(X))
    run = begun(Variational(refresh=0, extrapolate=False), weights=weights, kinds=(ASYMMETRIC, SYMMETRIC))
    for _ in range(15):
        expected = run._ascent.step.expected[:, :4].copy()
        run.advance()
    alpha, eta = run.priors.alpha.values, run.priors.eta.values
    lambda_, gamma = run.lambda_[:, :4].T, alpha + expected
    moving = X.sum(axis=1) > 0
    for _ in range(5):
        new, _ = naive_step(X, gamma, lambda_, alpha, eta)
        moved = np.abs(new - gamma).sum(axis=1)
        gamma[moving] = new[moving]
        moving &= moved > 0.01 * X.sum(axis=1)
    bound = naive_bound(X, gamma, lambda_, alpha, eta, weights)
    np.testing.assert_allclose(run.report.bound, bound / (weights @ X.sum(axis=1)), rtol=1e-12)
    assert np.ptp(alpha) > 0.01


def test_starting_documents_from_uniform_weights_only_improves_them():
    """Start with a single topic per document, which small steps cannot leave."""
    corpus = make_corpus(X)
    priors = Priors(Concentration(np.full(4, 0.02)), Concentration(np.full(X.shape[1], 0.2)))
    theta = padded(np.eye(4)[np.arange(len(X)) % 4], np.float64)
    phi = padded(oracles.random_factors(1, *X.shape, 4)[1].T, np.float64)
    ends = {}
    for refresh in (0, 4):
        expected = expected_counts(theta, corpus.totals)
        run = Variational(refresh=refresh).begin(
            corpus, priors, lambda expected=expected: expected, phi, np.random.default_rng(0)
        )
        for _ in range(40):
            run.advance()
        ends[refresh] = run.report.bound
    assert ends[4] > ends[0] + 0.05


# online


def test_online_steps_follow_the_formula():
    """Two batches of known documents, computed naively. The order follows from a seed, the pass and the shard."""
    run = begun(OnlineVariational(batch_size=25, offset=10.0, doc_steps=400, doc_tol=0.0))
    alpha, eta = np.full(4, 0.3), np.full(X.shape[1], 0.2)
    lambda_ = run.lambda_[:, :4].T.copy()
    seed = np.random.default_rng(0).integers(1 << 31)
    order = np.random.default_rng((seed, 0, 0)).permutation(len(X))
    run.advance()
    for batch in range(2):
        rows = X[order[25 * batch : 25 * batch + 25]]
        gamma = alpha + rows.sum(axis=1, keepdims=True) * np.full(4, 0.25)
        for _ in range(400):
            gamma, _ = naive_step(rows, gamma, lambda_, alpha, eta)
        _, target = naive_step(rows, gamma, lambda_, alpha, np.zeros(X.shape[1]))
        rho = (10.0 + batch) ** -0.7
        lambda_ = (1 - rho) * lambda_ + rho * (eta + 2 * target)
    np.testing.assert_allclose(run.lambda_[:, :4].T, lambda_, rtol=1e-8)


def test_one_batch_of_all_documents_with_rate_one_is_a_batch_step():
    """decay = 1, offset = 1: the first step is lambda = eta + n, without the old values."""
    run = begun(OnlineVariational(batch_size=len(X), offset=1.0, decay=1.0, doc_steps=30, doc_tol=0.0))
    batch = begun(Variational(doc_steps=30, doc_tol=0.0, refresh=0, extrapolate=False))
    corpus = make_corpus(X)
    start = begun(OnlineVariational()).lambda_
    words = word_operands(start, np.full(X.shape[1], 0.2), topic_sums(start, 4), n_threads=1)
    n = padded(X.sum(axis=1, keepdims=True) * np.full(4, 0.25), np.float64)
    docs = improve_documents(
        corpus.by_doc, words.operand, np.full(4, 0.3), n, totals=corpus.totals, steps=30, tol=0, n_threads=1
    )
    swept = corpus.sums(docs.operand, words.operand)
    run.advance()
    np.testing.assert_allclose(run.lambda_, words.operand * swept.word_sums + 0.2, rtol=1e-9)
    assert batch.report.bound < run.report.bound + 1  # both are bounds of one corpus


@pytest.mark.parametrize("kinds", [(GIVEN, GIVEN), (ASYMMETRIC, SYMMETRIC)])
def test_online_passes_increase_the_bound(kinds):
    run = begun(OnlineVariational(batch_size=5), kinds=kinds, dtype=np.float32)
    bounds = []
    for _ in range(6):
        run.advance()
        bounds.append(run.report.bound)
    assert bounds[-1] > bounds[0]
    assert [prior.learned for prior in run.priors] == [kind != GIVEN for kind in kinds]
    assert np.ptp(run.priors.alpha.values) > 0 or kinds[0] == GIVEN


# learned priors


@pytest.mark.parametrize("true", [[0.1, 0.5, 2.0, 0.03], [30.0, 1.0, 200.0], [0.3] * 20])
@pytest.mark.parametrize("start", [1e-3, 1.0, 100.0])
def test_a_dirichlet_is_learned_from_its_logs(true, start):
    rng = np.random.default_rng(0)
    logs = np.log(np.maximum(rng.dirichlet(true, 5000), 1e-300)).sum(axis=0)
    learned = Concentration(np.full(len(true), start), ASYMMETRIC).improved(logs, 5000)
    slope = psi(learned.values.sum()) - psi(learned.values) + logs / 5000
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    np.testing.assert_allclose(learned.values, true, rtol=0.1)
    symmetric = Concentration(np.full(len(true), start), SYMMETRIC).improved(logs, 5000).values
    assert np.ptp(symmetric) == 0
    a, m = symmetric[0], len(true)
    assert psi(m * a) - psi(a) + logs.mean() / 5000 == pytest.approx(0, abs=1e-6)


def test_a_given_prior_does_not_change():
    given_one = Concentration(np.array([0.1, 0.2]))
    assert given_one.improved(np.array([-1.0, -2.0]), 3) is given_one
    single = Concentration(np.array([0.1]), ASYMMETRIC)
    assert single.improved(np.array([0.0]), 3) is single
