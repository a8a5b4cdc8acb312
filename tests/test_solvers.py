"""What every solver promises, run over all of them: a new one in SOLVERS joins by itself."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import oracles
from polyseme import PLSA, InputError, UnsupportedError
from polyseme.initialise import STARTS
from polyseme.kernels import padded
from polyseme.model import Model
from polyseme.solvers import EM, SCD, SOLVERS, Annealed, HeldOutTempered, MultiplicativeNMF, Tempered, run_to_end
from polyseme.split import split_tokens
from solver_problems import (
    advanced,
    begin,
    blocks,
    factorable,
    factors,
    fit,
    mean_log_likelihood,
    multipliers,
    saturated,
    source_of,
)

STOCHASTIC = ("online",)  # see test_online.py
EVERY = pytest.mark.parametrize("name", [name for name in SOLVERS if name not in STOCHASTIC])
TEMPERED = ("tempered", "held-out-tempered", "look-further", "annealed")
HOLDING_OUT = ("held-out-tempered", "look-further")
PLAIN = [name for name in SOLVERS if name not in (*TEMPERED, *STOCHASTIC)]
EVERY_PLAIN = pytest.mark.parametrize("name", PLAIN)
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])

X = oracles.mixed_counts(0, 40, 30, 4)
X[[0, 17]] = 0
X[:, 3] = 0
FILLED = X.sum(axis=1) > 0
START = oracles.random_factors(0, *X.shape, 4)
K = 4


def path(run, iterations):
    """(temperature, report) at the start and after every iteration."""
    seen = [(run.model.temperature, run.report)]
    for _ in range(iterations):
        if run.exhausted:
            break
        run.advance()
        seen.append((run.model.temperature, run.report))
    return seen


def worst_fall(seen):
    """The largest relative fall of the objective from one iteration to the next at the same temperature."""
    return max(
        (
            (before.objective - after.objective) / abs(before.objective)
            for (beta, before), (next_beta, after) in pairwise(seen)
            if beta == next_beta
        ),
        default=0.0,
    )


PROBLEMS = {
    "themes": lambda: (X, START),
    "noise": lambda: (oracles.random_counts(1, 30, 20, 0.2), oracles.random_factors(2, 30, 20, 5)),
    "large counts": lambda: (oracles.random_counts(3, 20, 15) * 1e7, oracles.random_factors(4, 20, 15, 3)),
    "fractions": lambda: (oracles.random_counts(5, 20, 15) * 0.037, oracles.random_factors(6, 20, 15, 3)),
    "one document": lambda: (oracles.random_counts(7, 1, 15, 0.8), oracles.random_factors(8, 1, 15, 3)),
    "more topics than words": lambda: (oracles.random_counts(9, 20, 6, 0.7), oracles.random_factors(10, 20, 6, 9)),
}


# the objective


@EVERY
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_objective_never_falls(name, problem):
    data, start = PROBLEMS[problem]()
    seen = path(begin(SOLVERS[name](), data, start), 120)
    assert np.isfinite([report.objective for _, report in seen]).all()
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
    if name in HOLDING_OUT:  # they report on what they fit
        counts = source_of(X).by_doc
        data = np.zeros_like(X)
        data[np.nonzero(X)] = split_tokens(counts, HeldOutTempered().seed, HeldOutTempered().held_out)[0]
    for _ in range(12):
        theta, phi = factors(run)
        assert run.report.log_likelihood == pytest.approx(mean_log_likelihood(data, theta, phi, weights), abs=1e-11)
        beta = run.model.temperature
        if name in TEMPERED:
            free_energy = mean_log_likelihood(data, theta**beta, phi**beta, weights) / beta
            assert run.report.objective == pytest.approx(free_energy, abs=1e-11)
        else:  # the Poisson one is at most that, and the same where the documents have their own scale
            assert run.report.objective <= run.report.log_likelihood + 1e-12
        run.advance()


@EVERY
def test_the_likelihood_and_the_objective_end_alike_at_beta_one(name):
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
def test_the_padding_stays_empty(name):
    run = advanced(begin(SOLVERS[name](), X, START), 5)
    assert not run.theta[:, K:].any()
    assert not run.phi[:, K:].any()


@EVERY
def test_a_solver_leaves_its_start_alone(name):
    theta, phi = padded(START[0], np.float64), padded(START[1].T, np.float64)
    before = theta.copy(), phi.copy()
    advanced(SOLVERS[name]().begin(Model(K), source_of(X), theta, phi), 5)
    assert np.array_equal(theta, before[0])
    assert np.array_equal(phi, before[1])


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_topics_without_documents_are_still_distributions(name):
    """components_ promises rows that sum to one; with more topics than words some die."""
    for seed in range(5):
        data = oracles.random_counts(seed, 6, 7, 0.5)
        model = PLSA(13, solver=name, random_state=seed, max_iter=30, dtype=np.float64).fit(data)
        np.testing.assert_allclose(model.components_.sum(axis=1), 1, atol=1e-12)


# dense and sparse, weights, threads


@EVERY
@pytest.mark.parametrize("weighted", [False, True])
def test_dense_is_sparse(name, weighted):
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
def test_equal_weights_are_no_weights(name):
    plain = advanced(begin(SOLVERS[name](), X, START), 10)
    weighted = advanced(begin(SOLVERS[name](), X, START, weights=np.full(len(X), 3.0)), 10)
    assert weighted.report.objective == pytest.approx(plain.report.objective, abs=1e-11)
    np.testing.assert_allclose(weighted.phi, plain.phi, atol=1e-9)


@EVERY
@DTYPES
@pytest.mark.parametrize("layout", [sp.csr_array, np.asarray], ids=["sparse", "dense"])
def test_threads_change_no_bit(name, dtype, layout, monkeypatch):
    monkeypatch.setattr("polyseme.kernels._NUMBERS_AT_ONCE", 20_000)
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
    end = fit(SOLVERS[name](), data, start, max_iter=2000, tol=1e-9)
    assert end.converged
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
def test_two_themes_without_a_common_word_are_found_exactly(name):
    """The one optimum: every document has one topic, and no model is more likely."""
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
    """KL = 0 has many factors and one product: all solvers reach it, to 1e-8 nats per token."""
    data, _ = factorable(seed, 15, 12, 2)
    run = optimum(name, data, oracles.random_factors(1, *data.shape, 2))
    theta, phi = factors(run)
    assert saturated(data) - run.report.log_likelihood < 1e-8
    np.testing.assert_allclose(data.sum(axis=1, keepdims=True) * (theta @ phi), data, rtol=1e-3)


@EVERY_PLAIN
@pytest.mark.parametrize("seed", [3, 4, 6])
def test_two_mixed_themes_have_the_same_optimum_for_all(name, seed):
    """Two clear themes in every document: all solvers end within 1e-8 nats per token of each other."""
    data = oracles.mixed_counts(seed, 25, 15, 2, tokens=200)
    start = oracles.random_factors(1, *data.shape, 2)
    best = optimum("em", data, start).report.log_likelihood
    assert optimum(name, data, start).report.log_likelihood == pytest.approx(best, abs=1e-8)


# the residual


@EVERY_PLAIN
@pytest.mark.parametrize("iterations", [1, 5, 30])
def test_the_residual_bounds_what_either_side_could_gain(name, iterations):
    data = oracles.mixed_counts(2, 20, 15, 3)
    run = advanced(begin(SOLVERS[name](), data, oracles.random_factors(3, 20, 15, 3)), iterations)
    theta, phi = factors(run)
    now = run.report.log_likelihood
    better_docs = mean_log_likelihood(data, oracles.fold_in(data, phi, steps=800), phi) - now
    lifted = oracles.normalised(np.maximum(phi, 1e-9))
    better_words = mean_log_likelihood(data, theta, oracles.refit_words(data, theta, lifted, steps=800)) - now
    assert max(better_docs, better_words) <= run.report.residual + 1e-9


@EVERY_PLAIN
@pytest.mark.parametrize("problem", ["themes", "blocks", "factorable", "one topic"])
def test_the_residual_is_small_at_the_optimum(name, problem):
    data = {
        "themes": lambda: oracles.mixed_counts(3, 25, 15, 2, tokens=200),
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
def test_tol_is_what_a_fit_stops_at(name):
    loose, tight = (
        PLSA(3, solver=name, random_state=0, tol=tol, max_iter=400, dtype=np.float64).fit(X) for tol in (0.1, 1e-4)
    )
    assert loose.n_iter_ <= tight.n_iter_
    if name not in HOLDING_OUT:
        assert loose.history_["residual"][-1] <= 0.1
    if loose.n_iter_ > 1 and name not in (*HOLDING_OUT, "annealed"):
        assert loose.history_["residual"][-2] > 0.1


# through PLSA


@EVERY
@pytest.mark.parametrize("init", [*STARTS, "pair"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_start_works(name, init):
    start = START if init == "pair" else init
    for data in (X, sp.csr_array(X, dtype=np.float32)):
        model = PLSA(K, solver=name, init=start, random_state=0, max_iter=12).fit(data)
        np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_allclose(model.doc_topic_.sum(axis=1), 1, rtol=1e-5)
        assert np.isfinite(model.log_likelihood_)
        assert np.array_equal(model.transform(data), model.doc_topic_)


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_n_init_keeps_the_best_objective(name):
    if name in HOLDING_OUT:
        pytest.skip("judged by its held-out score: see test_tempered.py")
    ends = []

    def listen(entry):
        if entry["iteration"] == 0:
            ends.append([])
        ends[-1].append(entry["objective"])

    options = {"solver": name, "random_state": 1, "max_iter": 15, "dtype": np.float64}
    model = PLSA(K, n_init=4, callback=listen, **options).fit(X)
    assert len(ends) == 4
    assert len({end[-1] for end in ends}) > 1
    assert model.history_["objective"][-1] == max(end[-1] for end in ends)


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_document_weights_through_plsa(name):
    repeats = np.random.default_rng(2).integers(1, 4, len(X))
    options = {"solver": name, "random_state": 0, "max_iter": 15, "dtype": np.float64}
    weighted = PLSA(K, **options).fit(X, sample_weight=repeats)
    repeated = PLSA(K, **options).fit(np.repeat(X, repeats, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, abs=1e-9)


@EVERY
def test_one_iteration_is_one_iteration(name):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        model = PLSA(K, solver=name, random_state=0, max_iter=1, tol=0).fit(X)
    assert model.n_iter_ == 1
    assert not model.converged_
    assert [len(column) for column in model.history_.values()] == [2] * 5
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)


@EVERY
def test_no_iteration_beyond_the_last(name):
    theta, phi = padded(START[0], np.float64), padded(START[1].T, np.float64)
    for max_iter in (1, 2, 7):
        end = run_to_end(SOLVERS[name](), Model(K), source_of(X), theta, phi, max_iter=max_iter, tol=0, listeners=[])
        assert end.n_iter == max_iter
        assert end.history["iteration"].tolist() == list(range(max_iter + 1))
        run = advanced(SOLVERS[name]().begin(Model(K), source_of(X), theta, phi), max_iter)
        assert np.array_equal(run.phi, end.run.phi)


# names, objects, settings


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_name_is_the_solver_with_its_default_settings(name):
    by_name, by_object = (
        PLSA(K, solver=solver, random_state=0, max_iter=8).fit(X) for solver in (name, SOLVERS[name]())
    )
    assert np.array_equal(by_name.components_, by_object.components_)
    assert SOLVERS[name].name == name


@pytest.mark.parametrize(
    "solver",
    [
        SCD(passes=5),
        SCD(extrapolate=False),
        MultiplicativeNMF(order="documents-first"),
        SOLVERS["normalized-nmf"](order="documents-first"),
        Tempered(0.7),
        HeldOutTempered(held_out=0.3),
        Annealed(start=0.5),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_of_a_solver_object_count(solver):
    chosen, default = (PLSA(K, solver=s, random_state=0, max_iter=8, tol=0).fit(X) for s in (solver, type(solver)()))
    assert not np.array_equal(chosen.components_, default.components_)
    assert clone(chosen).solver == solver


@EVERY
def test_solvers_are_values(name):
    solver = SOLVERS[name]()
    assert solver == SOLVERS[name]()
    assert hash(solver) == hash(SOLVERS[name]())
    for field in vars(solver):
        with pytest.raises(AttributeError):
            setattr(solver, field, None)


@pytest.mark.parametrize("name", ["scd", "nmf", "normalized-nmf", "plsi"])
def test_a_solver_refuses_a_model_it_cannot_raise(name):
    with pytest.raises(UnsupportedError, match="plain maximum likelihood") as error:
        begin(SOLVERS[name](), X, START, temperature=0.8)
    message = str(error.value)
    assert repr(name) in message
    assert "solver='auto'" in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["auto", "em", "accelerated-em"])
def test_the_others_take_a_tempered_model(name):
    beta = 0.8
    seen = path(begin(SOLVERS[name](), X, START, temperature=beta), 60)
    assert worst_fall(seen) <= 1e-12
    assert seen[-1][1].objective > seen[0][1].objective + 0.1
    run = advanced(begin(SOLVERS[name](), X, START, temperature=beta), 7)
    theta, phi = factors(run)
    assert run.report.objective == pytest.approx(mean_log_likelihood(X, theta**beta, phi**beta) / beta, abs=1e-11)


@pytest.mark.parametrize(
    "solver",
    [
        MultiplicativeNMF(order="sideways"),
        SOLVERS["normalized-nmf"](order="sideways"),
        SCD(passes=0),
        SCD(passes=-1),
    ],
    ids=repr,
)
def test_settings_that_make_no_sense_are_refused(solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(InputError) as error:
            PLSA(2, solver=solver, random_state=0, max_iter=5).fit(X)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("solver", ["simplex", "EM", 3, None, EM])
def test_what_is_no_solver_is_refused(solver):
    with pytest.raises(InputError, match="solver must be"):
        PLSA(2, solver=solver).fit(X)


def test_scd_and_auto_are_the_same_where_nothing_forbids_it():
    assert type(begin(SOLVERS["auto"](), X, START)) is type(begin(SCD(), X, START))
