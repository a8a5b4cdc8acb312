"""Every solver in PLSA: starts, names, objects, settings."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyseme import PLSA, InputError, JointBackground, UnsupportedError
from polyseme.core.model import Background, Model
from polyseme.data.corpus import LOADED_NONZEROS
from polyseme.data.disk import LocalShards
from polyseme.kernels import padded
from polyseme.priors import Decorrelation, TopicSelection
from polyseme.priors.members import as_prior
from polyseme.scale import write_shards
from polyseme.solvers import Annealed, EarlyStopping, HeldOutTempered, Tempered
from polyseme.solvers.ascent import EM
from polyseme.solvers.base import SOLVERS, FitProblem, Requirement, Solver, check_solver
from polyseme.solvers.coordinate import SCD
from polyseme.solvers.initialize import STARTS
from polyseme.solvers.multiplicative import MultiplicativeNMF
from solver_problems import (
    EVERY,
    HOLDING_OUT,
    START,
    K,
    X,
    advanced,
    begin,
    begin_problem,
    factors,
    fit,
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
    assert {len(column) for column in model.history_.values()} == {2}
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)


@EVERY
def test_no_iteration_runs_after_max_iter(name):
    for max_iter in (1, 2, 7):
        end = fit(SOLVERS[name](), X, START, max_iter=max_iter)
        assert end.n_iter == max_iter
        assert end.history["iteration"].tolist() == list(range(max_iter + 1))
        run = advanced(begin(SOLVERS[name](), X, START), max_iter)
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
        SCD(multiplicative_steps=3),
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


# requirements


UNIGRAM = X.sum(axis=0) / X.sum()
PROBLEMS = {
    "plain": (Model(K), {}),
    "background": (Model(K, background=Background(0.2, UNIGRAM)), {"background": 0.2}),
    "joint background": (
        Model(K, background=JointBackground(0.2, UNIGRAM)),
        {"background": JointBackground(0.2)},
    ),
    "temperature": (Model(K, 0.8), None),
    "monotone document prior": (Model(K, doc_prior=as_prior(1.1)), {"doc_topic_prior": 1.1}),
    "monotone topic prior": (Model(K, word_prior=as_prior(1.1)), {"topic_word_prior": 1.1}),
    "document prior": (Model(K, doc_prior=as_prior(0.5)), {"doc_topic_prior": 0.5}),
    "prior that couples documents": (
        Model(K, doc_prior=TopicSelection(0.1)),
        {"doc_topic_prior": TopicSelection(0.1)},
    ),
    "topic prior": (Model(K, word_prior=Decorrelation(1.0)), {"topic_word_prior": Decorrelation(1.0)}),
}
"""Models, and the parameters of a PLSA that has them; no parameter sets a temperature."""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Yield corpora in memory, on disk, and on disk with more non-zeros than are loaded."""
    shards = write_shards([sp.csr_array(X)], tmp_path_factory.mktemp("shards") / "s", shard_nonzeros=200)
    with shards.session(np.dtype(np.float64), 1) as corpus:
        yield {
            "memory": make_corpus(X),
            "disk": corpus,
            "large": LargeCorpus(corpus.shards, corpus.dtype, 1, corpus.work),
        }


class LargeCorpus(LocalShards):
    """Shards with more non-zeros than are loaded."""

    n_nonzeros = LOADED_NONZEROS + 1


def listed(message):
    """Return the names of solvers at the end of an error message."""
    names = message[:-1].rpartition(": ")[2].split(", ")
    assert set(names) <= set(SOLVERS)
    return names


def refusal(solver, problem, **options):
    """Return the message with which `check_solver` refuses a solver; None if it accepts it."""
    try:
        check_solver(solver, problem, **options)
    except UnsupportedError as error:
        return str(error)
    return None


@pytest.mark.parametrize("checkpoint", [False, True], ids=["", "checkpoint"])
@pytest.mark.parametrize("place", ["memory", "disk", "large"])
@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_solver_is_refused_exactly_as_it_declares(kind, place, checkpoint, corpora):
    problem = FitProblem(PROBLEMS[kind][0], corpora[place])
    assert Requirement.IN_MEMORY.holds(problem) == (place != "large")
    able = [
        name
        for name, solver in SOLVERS.items()
        if all(requirement.holds(problem) for requirement in solver.requires) and (solver.resumable or not checkpoint)
    ]
    assert {"auto", "em", "tempered"} <= set(able)
    assert ("scd" in able) == (kind == "plain" and place != "large")
    for name, solver in SOLVERS.items():
        message = refusal(solver(), problem, checkpoint=checkpoint)
        assert (message is None) == (name in able)
        if message is not None:
            assert repr(name) in message
            assert message.endswith(".")
            assert "\n" not in message
            assert listed(message) == able


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_solver_that_is_accepted_fits_the_model(kind, corpora):
    model, parameters = PROBLEMS[kind]
    problem = FitProblem(model, corpora["memory"])
    theta, phi = (padded(factor, np.float64, model.n_columns) for factor in (START[0], START[1].T))
    for name, solver in SOLVERS.items():
        if refusal(solver(), problem, checkpoint=False) is None:
            run = advanced(begin_problem(solver(), problem, theta, phi), 3)
            assert np.isfinite(run.report.objective)
        if parameters is not None:
            plsa = PLSA(K, solver=name, random_state=0, max_iter=3, **parameters)
            if refusal(solver(), problem, checkpoint=False) is None:
                assert plsa.fit(X).n_iter_ <= 3
            else:
                with pytest.raises(UnsupportedError, match=r"Solvers that fit this (model|loss): auto, em, "):
                    plsa.fit(X)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_early_stopping_stops_the_solvers_that_it_names(kind, corpora):
    problem = FitProblem(PROBLEMS[kind][0], corpora["memory"])
    able = [
        name
        for name, solver in SOLVERS.items()
        if not solver.holds_out and refusal(solver(), problem, checkpoint=False) is None
    ]
    for name, solver in SOLVERS.items():
        message = refusal(EarlyStopping(solver=solver()), problem, checkpoint=False)
        assert (message is None) == (name in able)
        assert message is None or listed(message) == able
        stopping = EarlyStopping(solver=solver()).choose(problem)
        assert stopping.solver == solver().choose(problem)
    on_disk, large = (problem._replace(corpus=corpora[place]) for place in ("disk", "large"))
    assert refusal(EarlyStopping(), on_disk, checkpoint=False) is None
    message = refusal(EarlyStopping(), large, checkpoint=False)
    assert message.startswith("early_stopping needs all counts in memory, where shards of at most 67,108,864 non-zeros")
    assert "are loaded. Solvers that read shards, without early_stopping: auto, em, " in message
    assert all(refusal(SOLVERS[name](), large, checkpoint=False) is None for name in listed(message))


@dataclass(frozen=True)
class OwnSolver(Solver):
    """A solver of a user, which is not in SOLVERS."""

    name: ClassVar[str] = "own"
    requires: ClassVar[frozenset[Requirement]] = frozenset({Requirement.PLAIN_LIKELIHOOD})

    def begin(self, problem, theta, phi):
        return EM().begin(problem, theta, phi)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_solver_of_a_user_is_checked_as_well(corpora, tmp_path):
    settings = {"random_state": 0, "max_iter": 4}
    own, em = (PLSA(K, solver=solver, **settings).fit(X) for solver in (OwnSolver(), EM()))
    assert np.array_equal(own.components_, em.components_)
    with pytest.raises(UnsupportedError, match="solver='own' fits plain maximum likelihood only"):
        PLSA(K, solver=OwnSolver(), background=0.1).fit(X)
    with pytest.raises(UnsupportedError, match="checkpoint: solver='own' cannot be resumed"):
        PLSA(K, solver=OwnSolver(), checkpoint=tmp_path / "c", **settings).fit(X)
    on_disk = FitProblem(Model(K), corpora["disk"])
    assert refusal(OwnSolver(), on_disk, checkpoint=False) is None  # shards do not require a checkpoint
    message = refusal(OwnSolver(), on_disk, checkpoint=True)
    assert message.startswith("checkpoint: solver='own' cannot be resumed. Solvers that can: auto, em, ")
    with pytest.raises(UnsupportedError, match="cannot be resumed"):
        OwnSolver().resume(FitProblem(Model(K), corpora["memory"]), None)


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
        SCD(multiplicative_steps=-1),
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
