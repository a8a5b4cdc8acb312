"""Annealing: topics separate as beta increases, stage by stage."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
import polyseme
from polyseme import PLSA
from polyseme.solvers import Annealed, Tempered
from polyseme.solvers.tempered import distinct_topics
from solver_problems import advanced, begin, factors, mean_log_likelihood

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 30, 4)
X[3] = 0
START = oracles.random_factors(1, *X.shape, 4)
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])

# annealing


PLANTED = {K: oracles.mixed_counts(K, 60, 30, K, tokens=150) for K in (3, 5)}


@pytest.mark.parametrize("K", PLANTED)
def test_topics_separate_as_beta_increases(K):
    """One topic at a low beta becomes all true topics at beta = 1; their number never decreases."""
    solver = Annealed(start=0.3, stages=8, steps=15)
    model = PLSA(K, solver=solver, random_state=0, max_iter=300, dtype=np.float64).fit(PLANTED[K])
    betas, distinct = model.annealing_.T
    np.testing.assert_allclose(betas, np.linspace(0.3, 1, 8))
    assert distinct[0] == 1
    assert distinct[-1] == K
    assert (np.diff(distinct) >= 0).all()
    assert model.temperature_ == 1.0


def test_annealing_ends_with_the_likelihood_of_em():
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


def test_the_free_energy_never_decreases_within_a_stage():
    run = begin(Annealed(start=0.4, stages=5, steps=8), X, START)
    seen = [(run.model.temperature, run.report.objective)]
    for _ in range(60):
        run.advance()
        seen.append((run.model.temperature, run.report.objective))
        if len(seen) % 10 == 0:
            energy = oracles.free_energy(X, *factors(run), run.model.temperature)
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


def test_decreasing_betas_are_inverse_annealing():
    model = PLSA(4, solver=Annealed(start=1.0, stop=0.5, stages=6), random_state=0, max_iter=200).fit(X)
    betas, distinct = model.annealing_.T
    np.testing.assert_allclose(betas, np.linspace(1, 0.5, 6))
    assert distinct[0] > distinct[-1]
    assert (np.diff(distinct) <= 0).all()
    assert model.temperature_ == pytest.approx(0.5)
    np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1, rtol=1e-5)


def test_equal_topics_stay_equal_without_noise():
    """Without noise equal topics get equal counts in every iteration."""
    phi = np.tile(START[1][:1], (4, 1))
    uniform = np.full((len(X), 4), 0.25)
    still = advanced(begin(Annealed(noise=0.0), X, (uniform, phi)), 200)
    assert distinct_topics(factors(still)[1]) == 1
    moved = advanced(begin(Annealed(noise=0.01), X, (uniform, phi)), 200)
    assert distinct_topics(factors(moved)[1]) > 1


def test_the_noise_comes_from_the_seed():
    one, same, other = (advanced(begin(Annealed(random_state=seed), X, START), 40).phi for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_one_stage_is_tempered_em():
    annealed, tempered = (
        advanced(begin(solver, X, START), 30) for solver in (Annealed(start=0.8, stages=1), Tempered(0.8))
    )
    np.testing.assert_allclose(annealed.phi, tempered.phi, atol=1e-14)


def test_an_interrupted_annealing_has_the_stages_it_finished():
    model = PLSA(4, solver=Annealed(steps=10), random_state=0, max_iter=25).fit(X)
    assert model.annealing_.shape == (2, 2)
    assert PLSA(4, solver=Annealed(steps=10), random_state=0, max_iter=3).fit(X).annealing_.shape == (0, 2)
    assert not hasattr(PLSA(4, random_state=0, max_iter=3).fit(X), "annealing_")


def test_the_stages_are_saved(tmp_path):
    model = PLSA(4, solver="annealed", random_state=0, max_iter=95).fit(X)
    model.save(tmp_path / "model")
    assert np.array_equal(polyseme.load(tmp_path / "model").annealing_, model.annealing_)


def test_another_fit_removes_the_stages():
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
