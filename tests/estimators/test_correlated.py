"""The correlated topic model: its bound against the formulas, recovery, special cases, and the estimator interface."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal, spearmanr
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimator_cases import X_WITH_GAPS, X
from polyseme import PLSA, CorrelatedTopicModel, InputError, RealTopicModel, _kernels
from polyseme.core.logistic_normal import Normal, Posterior, correlation, fit_normal, improved, operands
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import padded
from polyseme.metrics import align
from polyseme.solvers.initialize import named_start
from polyseme.solvers.logistic_normal import begin_correlated, correlated_start
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

INSTRUCTION_SETS = ["baseline", "avx2", "avx512"]
RUNNABLE = INSTRUCTION_SETS[: INSTRUCTION_SETS.index(_kernels.best_isa()) + 1]
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
COVARIANCES = pytest.mark.parametrize("covariance", ["full", "diagonal"])


@parametrize_with_checks([CorrelatedTopicModel(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([CorrelatedTopicModel(), CorrelatedTopicModel(2, covariance="diagonal")])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


def step(posterior, expected, totals, prior):
    """Return the posteriors after one update for these expected counts (documents x K)."""
    counts = padded(expected, np.float64)
    return improved(posterior, np.ones_like(counts), counts, totals, prior)


def divergence(posterior, prior):
    """Return KL(q(eta_d) || N(mu, Sigma)) of every document: without tokens, it is the only term of the bound."""
    return -operands(posterior, np.zeros(len(posterior.mean)), prior, np.dtype(float))[1]


def fitted(data=X, /, n_components=3, **parameters):
    weights = parameters.pop("sample_weight", None)
    settings = {"random_state": 0, "max_iter": 30, **parameters}
    return CorrelatedTopicModel(n_components, **settings).fit(data, sample_weight=weights)


# the bound


def naive_bound(x, phi, mean, variance, mu, sigma):
    """Return the bound of a document term by term, with the best q(z) for every word; phi K x words."""
    K = len(mu)
    total = -0.5 * (K * np.log(2 * np.pi) + np.linalg.slogdet(sigma)[1])
    difference = mean - mu
    total -= 0.5 * np.trace(np.linalg.solve(sigma, np.diag(variance)))
    total -= 0.5 * difference @ np.linalg.solve(sigma, difference)
    total += 0.5 * (np.log(variance).sum() + K * (np.log(2 * np.pi) + 1))
    zeta = np.exp(mean + variance / 2).sum()
    for w in np.flatnonzero(x):
        q = np.exp(mean) * phi[:, w]
        q = q / q.sum()
        for k in range(K):
            if q[k] > 0:
                total += x[w] * q[k] * (mean[k] + np.log(phi[k, w]) - np.log(q[k]))
        total -= x[w] * (np.exp(mean + variance / 2).sum() / zeta + np.log(zeta) - 1)
    return total


@LAYOUTS
@COVARIANCES
def test_the_bound_is_the_sum_of_its_terms(layout, covariance):
    model = fitted(layout(X_WITH_GAPS), covariance=covariance)
    filled = np.flatnonzero(X_WITH_GAPS.sum(axis=1))
    wanted = sum(
        naive_bound(X_WITH_GAPS[d], model.components_, model.doc_mean_[d], model.doc_variance_[d], model.mean_,
                    model.covariance_)
        for d in filled
    )  # fmt: skip
    assert model.bound_ == pytest.approx(wanted, rel=1e-9)


@LAYOUTS
@COVARIANCES
@pytest.mark.parametrize("init", ["plsa", "random"])
def test_the_bound_never_decreases(layout, covariance, init):
    bounds = fitted(layout(X_WITH_GAPS), covariance=covariance, init=init, tol=0, max_iter=80).history_["bound"]
    assert (np.diff(bounds) >= -1e-12 * np.abs(bounds[:-1])).all()
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bound_never_decreases_where_eta_has_no_limit(dtype):
    """Documents of many equal tokens: without limits of Sigma and exact token sums, the bound fell by 2.5 nats."""
    counts = as_counts(np.eye(12, 4) * 1e7, dtype)
    corpus = MemoryCorpus(counts, None, 1)
    for n_topics in (4, 10):
        theta, phi = named_start("random", corpus, Model(n_topics), np.random.default_rng(0))
        start = correlated_start(corpus, theta, phi, n_topics, diagonal=False)
        run = begin_correlated(corpus, start, diagonal=False)
        bounds = [run.report.objective]
        for _ in range(100):
            run.advance()
            bounds.append(run.report.objective)
        assert np.diff(bounds).min() > (-1e-6 if dtype == np.float32 else -1e-12)
        assert max(bounds) < 0  # log-probabilities
        assert np.linalg.eigvalsh(run.point.prior.covariance).max() < 1.01e4


def test_rounded_expected_counts_do_not_shift_eta():
    """exp(eta) has no scale: if expected counts do not sum to the tokens, a shift of all eta seems to gain."""
    rng = np.random.default_rng(0)
    posterior = Posterior(rng.normal(size=(3, 4)), rng.uniform(0.1, 1, (3, 4)))
    totals, prior = np.array([5.0, 0.0, 1e7]), Normal.of(np.zeros(4), 100 * np.eye(4))
    exact = rng.dirichlet(np.ones(4), 3) * totals[:, np.newaxis]
    expected, rounded = step(posterior, exact, totals, prior), step(posterior, exact * 1.0000001, totals, prior)
    np.testing.assert_allclose(rounded.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(rounded.variance, expected.variance, rtol=1e-12)


def test_the_bound_is_below_the_evidence():
    """Two topics, so that the evidence is an integral over one number: eta_1 - eta_2."""
    data = X[:, :12]
    model = fitted(data, 2, max_iter=100)
    contrast = np.array([1.0, -1.0])
    mean, spread = contrast @ model.mean_, np.sqrt(contrast @ model.covariance_ @ contrast)
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    theta = 1 / (1 + np.exp(-(mean + spread * nodes)))
    p = theta[:, np.newaxis] * model.components_[0] + (1 - theta)[:, np.newaxis] * model.components_[1]
    filled = data[data.sum(axis=1) > 0]
    logs = filled @ np.log(np.maximum(p, 1e-300)).T + np.log(weights / weights.sum())
    evidence = logsumexp(logs, axis=1).sum()
    assert evidence - 0.1 * data.sum() < model.bound_ < evidence


def random_documents(seed, n=6, K=4):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(K, K))
    prior = Normal.of(rng.normal(size=K), root @ root.T + 0.3 * np.eye(K))
    expected = rng.gamma(0.5, 8.0, (n, K))
    expected[0] = 0
    return prior, expected, expected.sum(axis=1)


def document_value(numbers, expected, total, prior):
    """Return the part of the bound that depends on q(eta), as a function of (lambda, log v)."""
    mean, variance = numbers[: len(expected)], np.exp(numbers[len(expected) :])
    kl = divergence(Posterior(mean[np.newaxis], variance[np.newaxis]), prior)[0]
    return expected @ mean - total * logsumexp(mean + variance / 2) - kl


@pytest.mark.parametrize("seed", range(3))
def test_documents_reach_the_maximum_that_a_general_optimizer_finds(seed):
    prior, expected, totals = random_documents(seed)
    posterior = Posterior(np.zeros_like(expected), np.ones_like(expected))
    values = []
    for _ in range(60):
        posterior = step(posterior, expected, totals, prior)
        together = np.hstack([posterior.mean, np.log(posterior.variance)])
        values.append([document_value(*row, prior) for row in zip(together, expected, totals, strict=True)])
    values = np.array(values)
    assert (np.diff(values, axis=0) >= -1e-12 * np.abs(values[:-1]) - 1e-13).all()
    for found, x, total in zip(values[-1], expected, totals, strict=True):
        best = minimize(lambda n, x=x, t=total: -document_value(n, x, t, prior), np.zeros(8), options={"gtol": 1e-9})
        assert found == pytest.approx(-best.fun, rel=1e-7)


def one_step(expected, total, mean, prior):
    """Return the update of one document by the formulas: v is a root, and lambda takes one Newton step."""
    precision = np.diag(prior.precision)
    c = total * np.exp(mean - logsumexp(mean + 0.5))
    variance = np.array([
        brentq(lambda v, P=P, a=a: P * v + a * v * np.exp(v / 2) - 1, 0, 2 / P, xtol=1e-15)
        for P, a in zip(precision, c, strict=True)
    ])  # fmt: skip
    p = softmax(mean + variance / 2)
    gradient = expected - total * p - prior.precision @ (mean - prior.mean)
    hessian = prior.precision + total * (np.diag(p) - np.outer(p, p))
    return mean + np.linalg.solve(hessian, gradient), variance


@pytest.mark.parametrize("isa", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [1, 2, 15, 16, 17, 50, 65, 130])
def test_a_step_is_that_of_the_formulas(isa, dtype, K):
    if isa not in RUNNABLE:
        pytest.skip(f"this processor cannot run {isa}")
    rng = np.random.default_rng(K)
    root = rng.normal(size=(K, K)) / K**0.5
    prior = Normal.of(rng.normal(size=K), root @ root.T + np.eye(K))
    expected = rng.gamma(0.5, 8.0, (20, K)).astype(dtype)
    expected[0] = 0
    totals = expected.sum(axis=1, dtype=np.float64)
    mean, variance = np.tile(prior.mean, (20, 1)), np.ones((20, K))
    A, terms = np.empty((20, padded(expected, dtype).shape[1]), dtype), np.empty(20)
    _kernels.normal_operands(
        mean, variance, totals, prior.mean, prior.precision, prior.log_det, A, terms, n_threads=1, isa=isa
    )
    np.testing.assert_allclose(A[:, :K], np.exp(mean - mean.max(axis=1, keepdims=True)), rtol=1e-6)
    assert not A[:, K:].any()
    spread = (variance * np.diag(prior.precision) - np.log(variance)).sum(axis=1) + prior.log_det - K
    expected_terms = totals * (mean.max(axis=1) - logsumexp(mean + variance / 2, axis=1)) - spread / 2
    np.testing.assert_allclose(terms, expected_terms, rtol=1e-9)
    wide = padded(expected, dtype)
    _kernels.improve_normals(
        mean, variance, np.ones_like(wide), wide, totals, prior.mean, prior.precision, mean, variance,
        n_threads=1, isa=isa,
    )  # fmt: skip
    for d in range(20):
        wanted_mean, wanted_variance = one_step(expected[d].astype(float), totals[d], prior.mean, prior)
        np.testing.assert_allclose(variance[d], wanted_variance, rtol=1e-10)
        before, after = (
            document_value(np.append(at, np.log(wanted_variance)), expected[d].astype(float), totals[d], prior)
            for at in (prior.mean, wanted_mean)
        )
        assert document_value(
            np.append(mean[d], np.log(variance[d])), expected[d].astype(float), totals[d], prior
        ) >= before - 1e-9 * abs(before)
        if after >= before:  # else the step was halved
            np.testing.assert_allclose(mean[d], wanted_mean, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_documents_do_not_depend_on_threads_and_others(dtype):
    prior, expected, totals = random_documents(3, n=100, K=5)
    posterior = Posterior(np.zeros_like(expected), np.ones_like(expected))
    wide = padded(expected, dtype)
    ones = np.ones_like(wide)
    together = improved(posterior, ones, wide, totals, prior, n_threads=3)
    for d in range(0, 100, 7):
        one = slice(d, d + 1)
        part = Posterior(posterior.mean[one], posterior.variance[one])
        alone = improved(part, ones[one], wide[one], totals[one], prior)
        np.testing.assert_array_equal(alone.mean[0], together.mean[d])
        np.testing.assert_array_equal(alone.variance[0], together.variance[d])


def test_the_divergence_equals_that_of_normal_distributions():
    prior, expected, _ = random_documents(0)
    rng = np.random.default_rng(1)
    posterior = Posterior(rng.normal(size=expected.shape), rng.gamma(1.0, 1.0, expected.shape))
    q = multivariate_normal(posterior.mean[2], np.diag(posterior.variance[2]))
    p = multivariate_normal(prior.mean, prior.covariance)
    draws = q.rvs(200_000, random_state=0)
    assert divergence(posterior, prior)[2] == pytest.approx((q.logpdf(draws) - p.logpdf(draws)).mean(), rel=0.02)


def test_the_prior_maximizes_the_bound_of_its_posteriors():
    rng = np.random.default_rng(0)
    posterior = Posterior(rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)), rng.gamma(1.0, 1.0, (40, 3)))
    weights = rng.integers(1, 4, 40).astype(np.float64)
    best = fit_normal(posterior, weights, diagonal=False)
    least = weights @ divergence(posterior, best)
    for _ in range(200):
        noise = 0.05 * rng.normal(size=(3, 3))
        other = Normal.of(best.mean + 0.05 * rng.normal(size=3), best.covariance + noise + noise.T)
        assert weights @ divergence(posterior, other) >= least


# limits


def test_a_diagonal_covariance_means_independent_topics():
    """Each eta_k has its own distribution, equal to a fit of this number alone and to the full code at that Sigma."""
    model = fitted(covariance="diagonal", max_iter=60)
    variances = np.diag(model.covariance_)
    np.testing.assert_array_equal(model.covariance_, np.diag(variances))
    one_by_one = sum(
        -0.5 * np.log(variance) + 0.5 * np.log(v) + 0.5 - 0.5 * (v + (m - mu) ** 2) / variance
        for mu, variance, m, v in zip(model.mean_, variances, model.doc_mean_.T, model.doc_variance_.T, strict=True)
    )
    prior = Normal.of(model.mean_, model.covariance_)
    posterior = Posterior(model.doc_mean_, model.doc_variance_)
    np.testing.assert_allclose(-divergence(posterior, prior), one_by_one, rtol=1e-10)
    own = fit_normal(posterior, np.ones(len(X)), diagonal=True)
    for k in range(3):
        alone = fit_normal(
            Posterior(posterior.mean[:, k : k + 1], posterior.variance[:, k : k + 1]), np.ones(len(X)), diagonal=False
        )
        assert alone.mean[0] == pytest.approx(own.mean[k], rel=1e-12)
        assert alone.covariance[0, 0] == pytest.approx(own.covariance[k, k], rel=1e-12)
    source = MemoryCorpus(as_counts(X, np.dtype(float)), None, 1)
    theta, phi = (np.full((len(X), 16), 0.0), np.full((X.shape[1], 16), 0.0))
    theta[:, :3], phi[:, :3] = model.doc_topic_, model.components_.T
    full, diagonal = (
        begin_correlated(source, correlated_start(source, theta, phi, 3, diagonal=True), diagonal=diagonal)
        for diagonal in (False, True)
    )
    assert full.report.bound == diagonal.report.bound
    full.advance()
    diagonal.advance()
    np.testing.assert_allclose(full.point.posterior.mean, diagonal.point.posterior.mean, rtol=1e-12)
    assert full.report.bound > diagonal.report.bound


def test_correlations_do_not_change_if_all_eta_are_shifted():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    sigma = root @ root.T
    shift = rng.normal(size=5)
    moved = sigma + np.add.outer(shift, shift) + 20
    np.testing.assert_allclose(correlation(sigma), correlation(moved), atol=1e-12)
    np.testing.assert_allclose(correlation(np.eye(5))[0, 1], -0.25)


def planted(seed, n_docs=600, K=6, n_words=200, length=60):
    """Return documents drawn from a logistic-normal distribution with two strong factors.

    The draws use a Cholesky factor, which is unique. The default, a singular value decomposition, leaves the signs of
    its vectors to the BLAS kernels, so that another processor would draw another corpus.
    """
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(K, 2))
    sigma = loadings @ loadings.T + 0.5 * np.eye(K)
    sigma *= 2.5 / np.diag(sigma).mean()
    theta = softmax(rng.multivariate_normal(np.zeros(K), sigma, n_docs, method="cholesky"), axis=1)
    phi = rng.dirichlet(np.full(n_words, 0.05), K)
    return np.array([rng.multinomial(length, p) for p in theta @ phi]), sigma, phi, theta


def test_known_correlations_are_found_better_than_by_plsa():
    """Medians of 5 seeds: ranks and signs of the correlations; errors of the topics, weights and correlations.

    Over ten other groups of 5 seeds the ratios to PLSA's errors are 0.82 to 0.98 for the topics, 0.82 to 0.88 for the
    weights and 0.17 to 0.4 for the correlations; the rank correlations are 0.96 to 0.99 and all signs are correct.
    """
    agreement, ours, theirs = [], [], []
    for seed in range(5):
        data, sigma, phi, theta = planted(seed)
        pairs = np.triu_indices(6, 1)
        truth = correlation(sigma)[pairs]
        strong = np.abs(truth) > 0.2
        model = CorrelatedTopicModel(6, random_state=seed).fit(data)
        plain = PLSA(6, init="random", random_state=seed, max_iter=500).fit(data)
        logs = np.log(np.maximum(plain.doc_topic_.astype(np.float64), 1e-3))
        for errors, found, sigma_found in ((ours, model, model.covariance_), (theirs, plain, np.cov(logs.T))):
            order, distance = align(phi, found.components_)
            estimate = correlation(sigma_found)[np.ix_(order, order)][pairs]
            difference = np.abs(found.doc_topic_[:, order] - theta).sum(axis=1)
            errors.append([distance.mean(), difference.mean(), np.abs(truth - estimate).mean()])
            if found is model:
                same_sign = np.sign(truth) == np.sign(estimate)
                agreement.append([spearmanr(truth, estimate)[0], same_sign[strong].mean()])
    assert (np.median(agreement, axis=0) > 0.9).all()
    assert (np.median(ours, axis=0) < [1, 0.95, 0.6] * np.median(theirs, axis=0)).all()


@COVARIANCES
def test_it_works_inside_a_real_topic_model(covariance):
    corners = np.array([[-2.0, 0.0], [1.0, 3.0], [1.0, -1.0]])
    data = np.random.default_rng(0).dirichlet([0.7, 0.7, 0.7], 200) @ corners
    model = RealTopicModel(CorrelatedTopicModel(3, covariance=covariance, random_state=0), margin=0).fit(data)
    _, distance = align(corners, model.components_)
    assert distance.max() < 0.3
    assert model.reconstruction_err_ < 0.1 * np.linalg.norm(data - data.mean(axis=0))
    assert model.model_.correlation_.shape == (3, 3)


# the estimator interface


def test_empty_documents_get_the_mode_of_the_prior():
    model = fitted(X_WITH_GAPS)
    np.testing.assert_allclose(model.doc_topic_[0], softmax(model.mean_), rtol=1e-12)


def test_float32_is_close_to_float64():
    single, double = (fitted(X.astype(dtype), init="random") for dtype in (np.float32, np.float64))
    assert single.bound_ == pytest.approx(double.bound_, rel=2e-3)


def test_equal_documents_have_no_variance():
    data = np.random.default_rng(0).multinomial(200, np.full(8, 1 / 8), 80)
    model = fitted(data, 2, max_iter=300)
    assert np.isfinite(model.bound_)
    assert np.linalg.eigvalsh(model.covariance_).min() > 0


def test_scores_and_history_agree_with_the_attributes():
    heard = []
    model = fitted(max_iter=200, callback=heard.append)
    assert model.converged_
    assert list(model.history_) == ["iteration", "seconds", "bound", "remaining"]
    assert len(heard) == len(model.history_["bound"])
    assert model.score(X) == pytest.approx(-np.log(model.completion_perplexity(X)))
    assert model.perplexity(X) < model.perplexity_report(X).unigram_perplexity
    assert model.topics(n_words=3).shape == (3, 5)


@pytest.mark.parametrize("init", ["plsa", "random", "nndsvd", "correspondence", "lsa", "spectral"])
def test_every_start_is_accepted(init):
    assert fitted(init=init, max_iter=60).score(X) > -4


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"covariance": "spherical"}, "covariance must be one of"),
        ({"covariance": None}, "covariance must be one of"),
        ({"init": "oracle"}, "init must be one of 'plsa', 'documents'"),
        ({"init": (X,)}, "or a pair (doc_topic, topic_word), got tuple."),
        ({"init": None}, "or a pair (doc_topic, topic_word), got None."),
        ({"init": (np.ones((2, 2)), np.ones((2, 2)))}, "init: doc_topic and topic_word must have shapes"),
        ({"tol": -1}, "tol must be"),
    ],
)
def test_wrong_parameters_raise(parameters, words):
    with pytest.raises(InputError) as error:
        fitted(**parameters)
    assert words in sentence(error)


def test_the_graph_shows_topics_and_strong_correlations():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from polyseme.plots import plot_topic_graph

    model = fitted(n_components=4)
    ax = plot_topic_graph(model, threshold=0.3, n_words=2)
    pairs = np.abs(model.correlation_[np.triu_indices(4, 1)]) > 0.3
    assert len(ax.get_lines()) == pairs.sum()
    assert len(ax.texts) == len(ax.collections[0].get_offsets()) == 4
    assert ax.texts[0].get_text() == "\n".join(model.topics(n_words=2)[0].words)
    matplotlib.pyplot.close("all")
    with pytest.raises(InputError, match="CorrelatedTopicModel"):
        plot_topic_graph(PLSA(2))
