"""Every solver in PLSA: starts, names, objects, settings."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyseme import PLSA, InputError, UnsupportedError
from polyseme.core.model import Model
from polyseme.kernels import padded
from polyseme.solvers import EM, SCD, SOLVERS, Annealed, HeldOutTempered, MultiplicativeNMF, Tempered
from polyseme.solvers.base import run_to_end
from polyseme.solvers.initialize import STARTS
from solver_problems import (
    EVERY,
    HOLDING_OUT,
    START,
    K,
    X,
    advanced,
    begin,
    factors,
    make_corpus,
    mean_log_likelihood,
    path,
    worst_fall,
)

# fits of PLSA


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
def test_n_init_selects_the_best_objective(name):
    if name in HOLDING_OUT:
        pytest.skip("selected by its held-out score: see tests/solvers/test_tempered.py")
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
def test_max_iter_one_runs_one_iteration(name):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        model = PLSA(K, solver=name, random_state=0, max_iter=1, tol=0).fit(X)
    assert model.n_iter_ == 1
    assert not model.converged_
    assert [len(column) for column in model.history_.values()] == [2] * 5
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)


@EVERY
def test_no_iteration_runs_after_max_iter(name):
    theta, phi = padded(START[0], np.float64), padded(START[1].T, np.float64)
    for max_iter in (1, 2, 7):
        end = run_to_end(SOLVERS[name](), Model(K), make_corpus(X), theta, phi, max_iter=max_iter, tol=0, listeners=[])
        assert end.n_iter == max_iter
        assert end.history["iteration"].tolist() == list(range(max_iter + 1))
        run = advanced(SOLVERS[name]().begin(Model(K), make_corpus(X), theta, phi), max_iter)
        assert np.array_equal(run.phi, end.run.phi)


# names, objects, settings


@EVERY
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_name_selects_the_solver_with_default_settings(name):
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
def test_settings_of_a_solver_object_apply(solver):
    chosen, default = (PLSA(K, solver=s, random_state=0, max_iter=8, tol=0).fit(X) for s in (solver, type(solver)()))
    assert not np.array_equal(chosen.components_, default.components_)
    assert clone(chosen).solver == solver


@EVERY
def test_solvers_are_hashable_and_immutable(name):
    solver = SOLVERS[name]()
    assert solver == SOLVERS[name]()
    assert hash(solver) == hash(SOLVERS[name]())
    for field in vars(solver):
        with pytest.raises(AttributeError):
            setattr(solver, field, None)


@pytest.mark.parametrize("name", ["scd", "nmf", "normalized-nmf", "plsi"])
def test_a_solver_refuses_a_model_it_cannot_fit(name):
    with pytest.raises(UnsupportedError, match="plain maximum likelihood") as error:
        begin(SOLVERS[name](), X, START, temperature=0.8)
    message = str(error.value)
    assert repr(name) in message
    assert "solver='auto'" in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["auto", "em", "accelerated-em"])
def test_em_solvers_fit_a_tempered_model(name):
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
def test_invalid_settings_are_refused(solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.raises(InputError) as error:
            PLSA(2, solver=solver, random_state=0, max_iter=5).fit(X)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("solver", ["simplex", "EM", 3, None, EM])
def test_invalid_solvers_are_refused(solver):
    with pytest.raises(InputError, match="solver must be"):
        PLSA(2, solver=solver).fit(X)


def test_auto_selects_scd_for_plain_likelihood():
    assert type(begin(SOLVERS["auto"](), X, START)) is type(begin(SCD(), X, START))
