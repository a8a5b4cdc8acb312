"""Tempered EM: the free energy it raises, beta in folding in, Hofmann's schedule, and annealing either way."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
import polyseme
from polyseme import PLSA, InputError, UnsupportedError
from polyseme.initialise import random_topics
from polyseme.model import Model
from polyseme.solvers import EM, AcceleratedEM, Annealed, HeldOutTempered, Tempered
from polyseme.solvers.folding import fold_in
from polyseme.solvers.tempered import distinct_topics
from polyseme.split import split_tokens
from solver_problems import advanced, begin, factors, mean_log_likelihood, source_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 30, 4)
X[3] = 0
START = oracles.random_factors(1, *X.shape, 4)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
BETAS = pytest.mark.parametrize("beta", [0.3, 0.7, 0.95, 1.0, 1.3])


def free_energy(X, theta, phi, beta):
    """(1/beta) sum x log sum_z (P(z|d) P(w|z))^beta per token, by loops."""
    total = 0.0
    for d, w in zip(*np.nonzero(X), strict=True):
        total += X[d, w] * np.log(sum((theta[d, z] * phi[z, w]) ** beta for z in range(len(phi))))
    return total / beta / X.sum()


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
def test_the_objective_is_the_free_energy_and_never_falls(beta):
    run = begin(Tempered(beta), X, START)
    objectives = []
    for step in range(60):
        if step % 20 == 0:
            assert run.report.objective == pytest.approx(free_energy(X, *factors(run), beta), abs=1e-11)
        objectives.append(run.report.objective)
        run.advance()
    assert np.diff(objectives).min() >= -1e-12 * abs(objectives[0])


@BETAS
def test_the_likelihood_beside_it_is_the_true_one(beta):
    run = begin(Tempered(beta), X, START)
    for _ in range(10):
        assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(X, *factors(run)), abs=1e-12)
        run.advance()


def test_the_likelihood_may_fall_where_the_free_energy_rises():
    """From the optimum of the likelihood, a lower beta leads away."""
    best = advanced(begin(EM(), X, START), 300)
    run = advanced(begin(Tempered(0.7), X, factors(best)), 50)
    assert run.report.log_likelihood < best.report.log_likelihood - 1e-3
    assert run.report.objective > free_energy(X, *factors(best), 0.7)


def test_a_lower_beta_smooths():
    """The lower beta, the higher the entropy of P(z|d), until all topics are one."""

    def entropy(beta):
        theta = factors(advanced(begin(Tempered(beta), X, START), 200))[0]
        theta = theta[X.any(axis=1)]
        return -(theta * np.log(np.maximum(theta, 1e-300))).sum(axis=1).mean()

    entropies = [entropy(beta) for beta in (1.0, 0.9, 0.8, 0.5)]
    assert (np.diff(entropies) > 0).all()
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
        fold_in(Model(4, beta), source_of(new).by_doc, model.components_, None, n_threads=1, tol=1e-10).doc_topic,
        naive,
        atol=1e-6,
    )
    for d in range(len(new)):
        ours, best = (free_energy(new[[d]], weights[[d]], model.components_, beta) for weights in (theta, naive))
        assert ours >= best - 1e-3
    plain = naive_fold_in(new, model.components_, 1.0)
    assert np.abs(theta - naive).mean() < 0.2 * np.abs(plain - naive).mean()


def naive_fold_in(X, phi, beta, steps=1000):
    """Many tempered steps of the weights alone, from uniform ones."""
    theta = np.full((len(X), len(phi)), 1 / len(phi))
    for _ in range(steps):
        theta = oracles.tempered_step(X, theta, phi, beta)[0]
    return theta


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


# Hofmann's schedule

SHORT = oracles.mixed_counts(1, 120, 60, 4, tokens=30)
TRAIN, NEW = SHORT[:60], SHORT[60:]


def uniform_start(X, K, seed):
    """What PLSA starts from."""
    return np.full((len(X), K), 1 / K), random_topics(source_of(X), K, np.random.default_rng(seed)).T


def held_out_score(X, settings, weights=None):
    """The naive mean log-probability of the held-out tokens, as a function of theta and phi."""
    counts = source_of(X).by_doc
    observed, held_out = (
        counts.with_values(part).matrix().toarray() for part in split_tokens(counts, settings.seed, settings.held_out)
    )
    weights = np.ones(len(X)) if weights is None else weights
    unigram = weights @ observed
    unigram = unigram / unigram.sum()
    x = weights[:, np.newaxis] * held_out * (unigram > 0)

    def score(theta, phi):
        mixed = (1 - settings.smoothing) * (theta @ phi) + settings.smoothing * unigram
        return (x * np.log(np.where(x > 0, mixed, 1))).sum() / x.sum()

    return score


@pytest.mark.parametrize("settings", [HeldOutTempered(), HeldOutTempered(held_out=0.3, shrink=0.8, seed=5)], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_schedule_keeps_the_best_point(settings, weighted):
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


def test_the_schedule_only_sees_the_tokens_it_does_not_hold_out():
    settings = HeldOutTempered()
    run = begin(settings, TRAIN, uniform_start(TRAIN, 8, 0))
    counts = source_of(TRAIN).by_doc
    observed = counts.with_values(split_tokens(counts, settings.seed, settings.held_out)[0]).matrix().toarray()
    assert 0.85 < observed.sum() / TRAIN.sum() < 0.95
    for _ in range(5):
        assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(observed, *factors(run)), abs=1e-11)
        run.advance()


@pytest.mark.parametrize("K", [8, 15])
def test_the_schedule_does_not_overfit(K):
    """Short documents and too many topics: new documents are predicted better than by EM run to its end."""
    em = PLSA(K, solver="em", max_iter=300, tol=0, random_state=0).fit(TRAIN)
    tempered = PLSA(K, solver="held-out-tempered", max_iter=1000, random_state=0).fit(TRAIN)
    assert tempered.converged_
    assert tempered.temperature_ < 1
    assert tempered.log_likelihood_ < em.log_likelihood_
    assert tempered.completion_perplexity(NEW) < em.completion_perplexity(NEW)
    assert tempered.completion_perplexity(NEW) < tempered.completion_report(NEW).unigram_perplexity


def test_one_bad_step_does_not_end_the_schedule():
    """From some starts the held-out score dips before it climbs: by 2e-4 here, then up by 0.4."""
    settings = HeldOutTempered()
    start = uniform_start(TRAIN, 8, 1460070019)
    score = held_out_score(TRAIN, settings)
    run = begin(settings, TRAIN, start)
    beginning = score(*factors(run))
    while not run.exhausted:
        run.advance()
    assert score(*factors(run)) > beginning + 0.3


def test_n_init_keeps_the_best_held_out_score():
    """Free energies at different betas do not compare: F grows as beta falls."""
    settings = HeldOutTempered()
    score = held_out_score(TRAIN, settings)
    for seed in (0, 8):
        seeds = np.random.RandomState(seed)
        best = max(
            score(*factors(advanced(begin(settings, TRAIN, uniform_start(TRAIN, 8, start)), 1000)))
            for start in [seeds.randint(np.iinfo(np.int32).max) for _ in range(4)]
        )
        # what PLSA keeps, recognised by its topics
        model = PLSA(8, solver=settings, n_init=4, random_state=seed, max_iter=1000, dtype=np.float64).fit(TRAIN)
        seeds = np.random.RandomState(seed)
        kept = [
            score(*factors(run))
            for start in [seeds.randint(np.iinfo(np.int32).max) for _ in range(4)]
            for run in [advanced(begin(settings, TRAIN, uniform_start(TRAIN, 8, start)), 1000)]
            if np.allclose(factors(run)[1], model.components_, atol=1e-12)
        ]
        assert kept == [pytest.approx(best, abs=1e-12)]


def test_weights_are_repeated_documents_in_the_schedule():
    """Equal documents are split alike, so the held-out tokens are the same."""
    repeats = np.random.default_rng(0).integers(1, 4, len(TRAIN))
    options = {"solver": "held-out-tempered", "random_state": 0, "max_iter": 300, "dtype": np.float64}
    weighted = PLSA(5, **options).fit(TRAIN, sample_weight=repeats)
    repeated = PLSA(5, **options).fit(np.repeat(TRAIN, repeats, axis=0))
    assert weighted.temperature_ == repeated.temperature_
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)


def test_nothing_to_hold_out():
    for tiny in (np.array([[0.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])):
        with pytest.raises(UnsupportedError, match="too few tokens") as error:
            PLSA(2, solver=HeldOutTempered(held_out=0.001)).fit(tiny)
        assert str(error.value).endswith(".")


# annealing


PLANTED = {K: oracles.mixed_counts(K, 60, 30, K, tokens=150) for K in (3, 5)}


@pytest.mark.parametrize("K", PLANTED)
def test_topics_split_as_beta_rises(K):
    """From one topic at a low beta to all that were planted at one; once split, they stay."""
    solver = Annealed(start=0.3, stages=8, steps=15)
    model = PLSA(K, solver=solver, random_state=0, max_iter=300, dtype=np.float64).fit(PLANTED[K])
    betas, distinct = model.annealing_.T
    np.testing.assert_allclose(betas, np.linspace(0.3, 1, 8))
    assert distinct[0] == 1
    assert distinct[-1] == K
    assert (np.diff(distinct) >= 0).all()
    assert model.temperature_ == 1.0


def test_annealing_ends_as_likely_as_plain_em():
    for K, counts in PLANTED.items():
        annealed, plain = (
            PLSA(K, solver=solver, random_state=0, max_iter=500, tol=1e-3, dtype=np.float64).fit(counts)
            for solver in (Annealed(start=0.5), "em")
        )
        assert annealed.converged_
        assert annealed.log_likelihood_ > plain.log_likelihood_ - 1e-2


def test_each_stage_has_its_steps_and_its_beta():
    run = begin(Annealed(start=0.5, stop=0.8, stages=4, steps=3), X, START)
    betas = [run.model.temperature]
    for _ in range(15):
        run.advance()
        betas.append(run.model.temperature)
    np.testing.assert_allclose(betas, [0.5] * 3 + [0.6] * 3 + [0.7] * 3 + [0.8] * 7)
    np.testing.assert_allclose([beta for beta, _ in run.stages], [0.5, 0.6, 0.7, 0.8])
    assert all(isinstance(distinct, int) for _, distinct in run.stages)


def test_within_a_stage_the_free_energy_never_falls():
    run = begin(Annealed(start=0.4, stages=5, steps=8), X, START)
    seen = [(run.model.temperature, run.report.objective)]
    for _ in range(60):
        run.advance()
        seen.append((run.model.temperature, run.report.objective))
        if len(seen) % 10 == 0:
            energy = free_energy(X, *factors(run), run.model.temperature)
            assert run.report.objective == pytest.approx(energy, abs=1e-11)
            assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(X, *factors(run)), abs=1e-11)
    assert all(after >= before - 1e-12 * abs(before) for (b, before), (c, after) in pairwise(seen) if b == c)


def test_a_fit_does_not_stop_before_the_last_stage():
    run = begin(Annealed(start=0.5, stages=4, steps=5), X, START)
    for _ in range(15):
        assert run.report.residual == np.inf
        run.advance()
    for _ in range(6):
        run.advance()
    assert run.report.residual < np.inf
    model = PLSA(4, solver=Annealed(stages=4, steps=5), tol=100, random_state=0, max_iter=100).fit(X)
    assert len(model.annealing_) == 4


def test_falling_betas_are_inverse_annealing():
    model = PLSA(4, solver=Annealed(start=1.0, stop=0.5, stages=6), random_state=0, max_iter=200).fit(X)
    betas, distinct = model.annealing_.T
    np.testing.assert_allclose(betas, np.linspace(1, 0.5, 6))
    assert distinct[0] > distinct[-1]
    assert (np.diff(distinct) <= 0).all()
    assert model.temperature_ == pytest.approx(0.5)
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1, rtol=1e-5)


def test_without_noise_topics_that_fell_together_stay_together():
    """Why there is noise: equal topics get equal counts for ever."""
    phi = np.tile(START[1][:1], (4, 1))
    uniform = np.full((len(X), 4), 0.25)
    still = advanced(begin(Annealed(noise=0.0), X, (uniform, phi)), 200)
    assert distinct_topics(factors(still)[1]) == 1
    moved = advanced(begin(Annealed(noise=0.01), X, (uniform, phi)), 200)
    assert distinct_topics(factors(moved)[1]) > 1


def test_the_noise_comes_from_the_seed():
    one, same, other = (advanced(begin(Annealed(seed=seed), X, START), 40).phi for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_one_stage_is_tempered_em():
    annealed, tempered = (
        advanced(begin(solver, X, START), 30) for solver in (Annealed(start=0.8, stages=1), Tempered(0.8))
    )
    np.testing.assert_allclose(annealed.phi, tempered.phi, atol=1e-14)


def test_an_interrupted_annealing_tells_the_stages_it_finished():
    model = PLSA(4, solver=Annealed(steps=10), random_state=0, max_iter=25).fit(X)
    assert model.annealing_.shape == (2, 2)
    assert PLSA(4, solver=Annealed(steps=10), random_state=0, max_iter=3).fit(X).annealing_.shape == (0, 2)
    assert not hasattr(PLSA(4, random_state=0, max_iter=3).fit(X), "annealing_")


def test_the_stages_are_saved(tmp_path):
    model = PLSA(4, solver="annealed", random_state=0, max_iter=95).fit(X)
    model.save(tmp_path / "model")
    assert np.array_equal(polyseme.load(tmp_path / "model").annealing_, model.annealing_)


def test_fitting_again_forgets_the_annealing():
    model = PLSA(4, solver="annealed", random_state=0, max_iter=30).fit(X)
    model.set_params(solver="em").fit(X)
    assert not hasattr(model, "annealing_")
    assert model.temperature_ == 1.0


def test_distinct_topics():
    a, b = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    assert distinct_topics(np.array([a])) == 1
    assert distinct_topics(np.array([a, a, a])) == 1
    assert distinct_topics(np.array([a, b, a, b])) == 2
    assert distinct_topics(np.array([a, 0.97 * a + 0.03 * b])) == 1
    assert distinct_topics(np.array([a, 0.8 * a + 0.2 * b])) == 2


# settings that make no sense


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
def test_settings_that_make_no_sense(solver, words):
    """Refused before the first iteration, in one sentence."""
    seen = []
    with pytest.raises(InputError, match=words) as error:
        PLSA(3, solver=solver, random_state=0, max_iter=30, callback=seen.append).fit(X)
    assert not seen
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 200
