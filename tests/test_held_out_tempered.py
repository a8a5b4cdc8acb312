"""Tempering by held-out tokens, Hofmann's schedule: what it sees, keeps and refuses."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from polyseme import PLSA, UnsupportedError
from polyseme.initialise import random_topics
from polyseme.solvers import HeldOutTempered
from polyseme.split import split_tokens
from solver_problems import advanced, begin, factors, mean_log_likelihood, source_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 30, 4)
X[3] = 0
START = oracles.random_factors(1, *X.shape, 4)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])

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
