"""Tempered EM at a fixed beta, settings of all tempered solvers, and the schedules with held-out tokens."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import oracles
import polyseme
from polyseme import PLSA, InputError, UnsupportedError
from polyseme.core.fold_in import fold_in
from polyseme.core.model import Model
from polyseme.core.shard import split_tokens
from polyseme.datasets import synthetic_corpus
from polyseme.priors import TopicSelection
from polyseme.solvers import Annealed, HeldOutTempered, Tempered
from polyseme.solvers.ascent import EM, AcceleratedEM
from polyseme.solvers.base import FitProblem, advance_to_end
from polyseme.solvers.early_stopping import hold_out_tokens
from polyseme.solvers.initialize import named_start, random_topics
from solver_problems import advanced, begin, begin_problem, factors, make_corpus, mean_log_likelihood, path, worst_fall

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 30, 4)
X[3] = 0
START = oracles.random_factors(1, *X.shape, 4)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
BETAS = pytest.mark.parametrize("beta", [0.3, 0.7, 0.95, 1.0, 1.3])


# a fixed beta


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@LAYOUTS
def test_beta_one_is_em(layout, dtype):
    tempered, em = (begin(solver, X, START, layout=layout, dtype=dtype) for solver in (Tempered(1.0), EM()))
    for _ in range(20):
        assert tempered.report == em.report
        assert np.array_equal(tempered.theta, em.theta)
        assert np.array_equal(tempered.phi, em.phi)
        tempered.advance()
        em.advance()


@BETAS
@LAYOUTS
def test_iterates_are_those_of_the_formula(beta, layout):
    theta, phi = START
    run = begin(Tempered(beta), X, START, layout=layout)
    for _ in range(15):
        run.advance()
        theta, phi = oracles.tempered_step(X, theta, phi, beta)
        np.testing.assert_allclose(factors(run)[0], theta, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(factors(run)[1], phi, rtol=1e-11, atol=1e-12)


@BETAS
def test_the_objective_is_the_free_energy_and_never_decreases(beta):
    run = begin(Tempered(beta), X, START)
    objectives = []
    for step in range(60):
        if step % 20 == 0:
            assert run.report.objective == pytest.approx(oracles.free_energy(X, *factors(run), beta), abs=1e-11)
        objectives.append(run.report.objective)
        run.advance()
    assert np.diff(objectives).min() >= -1e-12 * abs(objectives[0])


@BETAS
def test_the_reported_likelihood_is_that_of_the_point(beta):
    run = begin(Tempered(beta), X, START)
    for _ in range(10):
        assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(X, *factors(run)), abs=1e-12)
        run.advance()


def test_the_likelihood_can_decrease_while_the_free_energy_increases():
    """A lower beta leads away from the optimum of the likelihood."""
    best = advanced(begin(EM(), X, START), 300)
    run = advanced(begin(Tempered(0.7), X, factors(best)), 50)
    assert run.report.log_likelihood < best.report.log_likelihood - 1e-3
    assert run.report.objective > oracles.free_energy(X, *factors(best), 0.7)


def test_a_lower_beta_smooths():
    """A lower beta gives a higher entropy of P(z|d), until all topics are equal.

    From one beta to the next it rises by 0.14 to 0.7 nats on twelve corpora.
    """

    def entropy(beta):
        theta = factors(advanced(begin(Tempered(beta), X, START), 200))[0]
        theta = theta[X.any(axis=1)]
        return -(theta * np.log(np.maximum(theta, 1e-300))).sum(axis=1).mean()

    entropies = [entropy(beta) for beta in (1.0, 0.7, 0.5)]
    assert (np.diff(entropies) > 0.1).all()
    assert entropies[-1] == pytest.approx(np.log(4), abs=1e-6)


def test_extrapolation_reaches_the_same_free_energy():
    slow = advanced(begin(Tempered(0.9), X, START), 500)
    fast = advanced(begin(AcceleratedEM(), X, START, temperature=0.9), 500)
    assert fast.report.objective == pytest.approx(slow.report.objective, abs=1e-6)


# folding in


@pytest.mark.parametrize(("beta", "layout"), [(0.6, np.asarray), (0.9, sp.csr_array), (1.2, np.asarray)])
def test_folding_in_uses_the_fitted_beta(beta, layout):
    model = PLSA(4, solver=Tempered(beta), random_state=0, max_iter=100, dtype=np.float64).fit(layout(X))
    assert model.temperature_ == beta
    new = oracles.mixed_counts(5, 15, 30, 4) * (X.sum(axis=0) > 0)
    theta = model.transform(layout(new))
    naive = naive_fold_in(new, model.components_, beta)
    np.testing.assert_allclose(
        fold_in(Model(4, beta), make_corpus(new).by_doc, model.components_, None, n_threads=1, tol=1e-10).doc_topic,
        naive,
        atol=1e-6,
    )
    for d in range(len(new)):
        ours, best = (
            oracles.free_energy(new[[d]], weights[[d]], model.components_, beta) for weights in (theta, naive)
        )
        assert ours >= best - 1e-3
    plain = naive_fold_in(new, model.components_, 1.0)
    assert np.abs(theta - naive).mean() < 0.2 * np.abs(plain - naive).mean()


def naive_fold_in(X, phi, beta, steps=1000):
    """Run many tempered steps of the weights, from uniform ones."""
    theta = np.full((len(X), len(phi)), 1 / len(phi))
    for _ in range(steps):
        theta = oracles.tempered_step(X, theta, phi, beta)[0]
    return theta


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("background", [0.0, 0.3])
def test_weights_at_a_beta_above_one_continue_from_the_fit(background):
    """The weights of a document then have several maxima, and those of the fit belong to its topics."""
    model = PLSA(3, solver=Tempered(3.0), background=background, max_iter=300, tol=0, dtype="float64", random_state=0)
    model.fit(oracles.mixed_counts(0, 25, 18, 3, tokens=40))
    assert model.log_likelihood_ == pytest.approx(model.history_["log_likelihood"][-1], abs=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_held_out_words_are_possible_under_a_prior_that_acts_on_all_documents():
    """The fit does not see these words, and its weights are those of `doc_topic_`."""
    counts = np.random.default_rng(1).poisson(1.0, (6, 4)) + np.eye(6, 4)
    solver = HeldOutTempered(held_out=0.5)
    model = PLSA(3, solver=solver, doc_topic_prior=TopicSelection(2.0), max_iter=10, random_state=0)
    model.fit(counts)
    assert np.isfinite(model.log_likelihood_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_documents_that_only_the_background_explains_have_weights_at_a_beta_above_one():
    """Their topics lack all of their words, so every row of weights is equally good."""
    counts, topics = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 3.0]]), np.array([[1e-300, 0.5, 0.5], [1e-300, 0.9, 0.1]])
    model = PLSA(2, solver=Tempered(2.0), background=0.9, init=(np.full((2, 2), 0.5), topics), max_iter=1).fit(counts)
    np.testing.assert_array_equal(model.doc_topic_[0], 0.5)


def test_the_fitted_beta_is_saved(tmp_path):
    model = PLSA(4, solver="tempered", random_state=0, max_iter=20).fit(X)
    model.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    assert loaded.temperature_ == model.temperature_ == 0.9
    assert np.array_equal(loaded.transform(X), model.transform(X))


def test_the_likelihood_of_a_fit_is_that_of_its_attributes():
    model = PLSA(4, solver=Tempered(0.8), random_state=0, max_iter=50, dtype=np.float64).fit(X)
    naive = mean_log_likelihood(X, model.doc_topic_, model.components_)
    assert model.log_likelihood_ == pytest.approx(naive, abs=1e-10)


# invalid settings


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (Tempered(0.0), "beta must be"),
        (Tempered(-0.5), "beta must be"),
        (Tempered(float("nan")), "beta must be"),
        (Tempered(float("inf")), "beta must be"),
        (Annealed(start=0.0), "beta must be"),
        (Annealed(stop=-1.0), "beta must be"),
        (Annealed(start=float("nan")), "beta must be"),
        (Annealed(stages=0), "stages"),
        (Annealed(steps=0), "steps"),
        (Annealed(noise=-0.1), "noise"),
        (Annealed(noise=1.0), "noise"),
        (HeldOutTempered(held_out=0.0), "held_out"),
        (HeldOutTempered(held_out=1.0), "held_out"),
        (HeldOutTempered(held_out=float("nan")), "held_out"),
        (HeldOutTempered(shrink=1.0), "shrink"),
        (HeldOutTempered(shrink=0.0), "shrink"),
        (HeldOutTempered(smoothing=0.0), "smoothing"),
        (HeldOutTempered(smoothing=1.5), "smoothing"),
    ],
    ids=repr,
)
def test_invalid_settings_are_refused(solver, words):
    """The error is raised before the first iteration and is one sentence."""
    seen = []
    with pytest.raises(InputError, match=words) as error:
        PLSA(3, solver=solver, random_state=0, max_iter=30, callback=seen.append).fit(X)
    assert not seen
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 200


# Hofmann's schedule

SHORT = oracles.mixed_counts(1, 120, 60, 4, tokens=30)
TRAIN, NEW = SHORT[:60], SHORT[60:]


def uniform_start(X, K, seed):
    """Return the start of PLSA."""
    return np.full((len(X), K), 1 / K), random_topics(make_corpus(X), K, np.random.default_rng(seed)).T


def held_out_score(X, settings, weights=None):
    """Return a function of theta and phi: the mean log-probability of a held-out token, computed naively."""
    counts = make_corpus(X).by_doc
    observed, held_out = (
        counts.with_values(part).matrix().toarray()
        for part in split_tokens(counts, settings.random_state, settings.held_out)
    )
    weights = np.ones(len(X)) if weights is None else weights
    unigram = weights @ observed
    unigram = unigram / unigram.sum()
    x = weights[:, np.newaxis] * held_out * (unigram > 0)

    def score(theta, phi):
        mixed = (1 - settings.smoothing) * (theta @ phi) + settings.smoothing * unigram
        return (x * np.log(np.where(x > 0, mixed, 1))).sum() / x.sum()

    return score


@pytest.mark.parametrize(
    "settings", [HeldOutTempered(), HeldOutTempered(held_out=0.3, shrink=0.8, random_state=5)], ids=repr
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_schedule_returns_the_best_point(settings, weighted):
    weights = np.random.default_rng(3).uniform(0.5, 2, len(TRAIN)) if weighted else None
    score = held_out_score(TRAIN, settings, weights)
    run = begin(settings, TRAIN, uniform_start(TRAIN, 8, 0), weights=weights)
    scores, betas = [score(*factors(run))], [run.model.temperature]
    for _ in range(1000):
        run.advance()
        scores.append(score(*factors(run)))
        betas.append(run.model.temperature)
        if run.exhausted:
            break
    assert run.exhausted
    assert scores[-1] == pytest.approx(max(scores), abs=1e-12)
    assert scores[-1] > scores[0] + 0.1
    assert betas[0] == 1.0
    assert min(betas) < 0.95
    assert all(after == before or after == before * settings.shrink for before, after in pairwise(betas[:-1]))


def test_the_schedule_fits_only_tokens_that_are_not_held_out():
    settings = HeldOutTempered()
    run = begin(settings, TRAIN, uniform_start(TRAIN, 8, 0))
    counts = make_corpus(TRAIN).by_doc
    observed = counts.with_values(split_tokens(counts, settings.random_state, settings.held_out)[0]).matrix().toarray()
    assert 0.85 < observed.sum() / TRAIN.sum() < 0.95
    for _ in range(5):
        assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(observed, *factors(run)), abs=1e-11)
        run.advance()


@pytest.mark.parametrize("K", [8, 15])
def test_the_schedule_does_not_overfit(K):
    """With short documents and too many topics, new documents are predicted better than by converged EM.

    Of 24 starts, one (K = 15, random_state=0) ends at beta = 1 because 0.9 brings no gain.
    """
    em = PLSA(K, solver="em", max_iter=300, tol=0, random_state=1).fit(TRAIN)
    tempered = PLSA(K, solver="held-out-tempered", max_iter=1000, random_state=1).fit(TRAIN)
    assert tempered.converged_
    assert tempered.temperature_ < 1
    assert tempered.log_likelihood_ < em.log_likelihood_
    assert tempered.completion_perplexity(NEW) < em.completion_perplexity(NEW)
    assert tempered.completion_perplexity(NEW) < tempered.completion_report(NEW).unigram_perplexity


def test_one_bad_step_does_not_end_the_schedule():
    """From some starts the held-out score decreases before it increases: by 2e-4 here, then by 0.4."""
    settings = HeldOutTempered()
    start = uniform_start(TRAIN, 8, 1460070019)
    score = held_out_score(TRAIN, settings)
    run = begin(settings, TRAIN, start)
    beginning = score(*factors(run))
    while not run.exhausted:
        run.advance()
    assert score(*factors(run)) > beginning + 0.3


def test_n_init_selects_the_best_held_out_score():
    """Free energies at different betas cannot be compared: F increases as beta decreases."""
    settings = HeldOutTempered()
    score, counts = held_out_score(TRAIN, settings), make_corpus(TRAIN).by_doc
    observed = counts.with_values(split_tokens(counts, settings.random_state, settings.held_out)[0]).matrix().toarray()
    for seed in (0, 8):
        seeds = np.random.RandomState(seed)
        best = max(
            score(*factors(advanced(begin(settings, TRAIN, uniform_start(observed, 8, start)), 1000)))
            for start in [seeds.randint(np.iinfo(np.int32).max) for _ in range(4)]
        )
        # the start that PLSA selects, recognized by its topics
        model = PLSA(8, solver=settings, n_init=4, random_state=seed, max_iter=1000, dtype=np.float64).fit(TRAIN)
        seeds = np.random.RandomState(seed)
        selected = [
            score(*factors(run))
            for start in [seeds.randint(np.iinfo(np.int32).max) for _ in range(4)]
            for run in [advanced(begin(settings, TRAIN, uniform_start(observed, 8, start)), 1000)]
            if np.allclose(factors(run)[1], model.components_, atol=1e-12)
        ]
        assert selected == [pytest.approx(best, abs=1e-12)]


def test_weights_are_repeated_documents_in_the_schedule():
    """Equal documents have the same held-out tokens."""
    repeats = np.random.default_rng(0).integers(1, 4, len(TRAIN))
    options = {"solver": "held-out-tempered", "random_state": 0, "max_iter": 300, "dtype": np.float64}
    weighted = PLSA(5, **options).fit(TRAIN, sample_weight=repeats)
    repeated = PLSA(5, **options).fit(np.repeat(TRAIN, repeats, axis=0))
    assert weighted.temperature_ == repeated.temperature_
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)


def test_too_few_tokens_to_hold_out_are_refused():
    for tiny in (np.array([[0.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])):
        with pytest.raises(UnsupportedError, match="too few tokens") as error:
            PLSA(2, solver=HeldOutTempered(held_out=0.001)).fit(tiny)
        assert str(error.value).endswith(".")


def sparse_corpus(seed):
    """Return counts of few tokens: 60 documents of 40 tokens over 400 words."""
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(400, 0.1), 6), rng.dirichlet(np.full(6, 0.2), 60)
    return np.array([rng.multinomial(40, p) for p in weights @ topics])


def held_out_fit(solver, X, K, seed):
    corpus = make_corpus(X)
    theta, phi = named_start("random", corpus, Model(K), np.random.default_rng(seed))
    run = begin_problem(solver, FitProblem(Model(K), corpus), theta, phi)
    return advance_to_end(lambda: run, max_iter=3000, tol=0, listeners=[])


@pytest.mark.parametrize("seed", range(4))
def test_further_tries_do_not_lower_the_held_out_score(seed):
    X = sparse_corpus(seed)
    plain = held_out_fit(HeldOutTempered(), X, 30, seed)
    further = held_out_fit(HeldOutTempered(tries=2), X, 30, seed)
    assert further.converged
    assert further.run.score >= plain.run.score
    assert further.n_iter > plain.n_iter


def test_further_tries_find_a_beta_below_one_without_gain():
    """With 30 topics for 2400 tokens beta = 0.9 overfits, so Hofmann's schedule ends there; lower betas do not.

    The seeds are an example. From other seeds the schedule continues by itself, or no beta is better.
    """
    plain = held_out_fit(HeldOutTempered(), sparse_corpus(5), 30, 3)
    further = held_out_fit(HeldOutTempered(tries=2), sparse_corpus(5), 30, 3)
    assert plain.run.model.temperature == 1.0
    assert further.run.model.temperature < 0.8
    assert further.run.score > plain.run.score + 0.01


def test_the_objective_of_further_tries_never_decreases_at_a_constant_beta():
    reports = path(begin(HeldOutTempered(patience=2, tries=2), X, START), 200)
    assert len({beta for beta, _ in reports}) > 3
    assert worst_fall(reports) <= 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_do_not_change_a_bit_of_further_tries(dtype):
    counts = oracles.random_counts(11, 700, 300, 0.03)
    start = oracles.random_factors(12, *counts.shape, 5)
    solver = HeldOutTempered(patience=1, tries=2)
    one, *others = (advanced(begin(solver, counts, start, n_threads=n, dtype=dtype), 20) for n in (1, 2, 3))
    for other in others:
        assert other.report == one.report
        assert np.array_equal(other.theta, one.theta)
        assert np.array_equal(other.phi, one.phi)


def test_weights_are_repeated_documents_in_further_tries():
    repeats = np.random.default_rng(2).integers(1, 4, len(X))
    theta, phi = START
    solver = HeldOutTempered(patience=2, tries=2)
    weighted = begin(solver, X, START, weights=repeats.astype(np.float64))
    repeated = begin(solver, np.repeat(X, repeats, axis=0), (np.repeat(theta, repeats, axis=0), phi))
    for _ in range(40):
        assert weighted.report.objective == pytest.approx(repeated.report.objective, abs=1e-9)
        np.testing.assert_allclose(weighted.phi, repeated.phi, atol=1e-8)
        weighted.advance()
        repeated.advance()


def test_tries_must_not_be_negative():
    with pytest.raises(InputError, match="tries must be at least 0"):
        PLSA(2, solver=HeldOutTempered(tries=-1)).fit(np.eye(3))


def test_a_model_fitted_with_further_tries_can_be_loaded(tmp_path):
    model = PLSA(4, random_state=0, max_iter=30, solver=HeldOutTempered(patience=2, tries=1)).fit(sparse_corpus(0))
    model.save(tmp_path / "model")
    assert polyseme.load(tmp_path / "model").solver == model.solver


def constant_run(settings):
    """Return a run in which no iteration changes the held-out score."""
    run = begin(settings, TRAIN, uniform_start(TRAIN, 4, 0))
    run._token_score = lambda inner: -1.0
    run._descend(1.0, run.theta, run.phi)
    return run


@pytest.mark.parametrize("tries", [0, 1, 3])
def test_the_schedule_ends_after_as_many_tries_as_it_may_make(tries):
    run = constant_run(HeldOutTempered(patience=2, tries=tries))
    betas = [run.model.temperature]
    while not run.exhausted:
        run.advance()
        betas.append(run.model.temperature)
    assert len(betas) - 1 == 4 * (1 + tries)  # a descent has two betas, each for `patience` iterations
    assert min(betas) == pytest.approx(0.9 ** (1 + 2 * tries))


def test_gains_below_the_least_gain_do_not_count():
    runs = []
    for least_gain in (0.0, 1e-2, 1e9):
        run = begin(HeldOutTempered(patience=3, least_gain=least_gain), TRAIN, uniform_start(TRAIN, 8, 0))
        n_iter = 0
        while not run.exhausted:
            run.advance()
            n_iter += 1
        runs.append(n_iter)
    assert runs[0] > runs[1] > runs[2] == 7  # the first iteration, and two betas, each for `patience` iterations


def test_the_schedule_has_its_own_limit_of_iterations():
    """Hofmann's schedule ends by itself; 200 iterations, the limit of other solvers, would cut it short."""
    model = PLSA(20, solver=HeldOutTempered(patience=40), random_state=0).fit(TRAIN)
    assert model.n_iter_ > 200
    assert model.converged_
    with pytest.warns(ConvergenceWarning, match="after max_iter=7 iterations"):
        assert PLSA(20, solver=HeldOutTempered(), random_state=0, max_iter=7).fit(TRAIN).n_iter_ == 7
    with pytest.warns(ConvergenceWarning, match="after max_iter=200 iterations"):
        assert PLSA(20, solver="em", random_state=0, tol=0).fit(TRAIN).n_iter_ == 200


def test_the_start_is_never_the_result_of_the_schedule():
    """It has the frequencies of all words, so it predicts the held-out words of few documents best of all."""
    corpus = sp.csr_array(
        synthetic_corpus(200, n_words=1500, n_topics=10, length=60, topic_word_prior=0.05, random_state=0).counts()
    )
    known, new = corpus[:150], corpus[150:]
    tokens = hold_out_tokens(make_corpus(known.toarray()), 0.1, 0, 0.01)
    run = begin(HeldOutTempered(), known.toarray(), uniform_start(known.toarray(), 10, 0))
    assert run.score == -np.inf
    start, model = tokens.score(run), PLSA(10, solver=HeldOutTempered(), random_state=0).fit(known)
    run.advance()
    assert tokens.score(run) < start
    assert model.n_iter_ > 20
    report = model.completion_report(new)
    assert report.perplexity < 0.8 * report.unigram_perplexity
