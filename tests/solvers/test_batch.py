"""Many fits in one call: each is the fit of its problem alone, for any number of threads."""

import itertools
import signal
import threading

import numpy as np
import pytest

import oracles
from polyseme import PLSA
from polyseme.solvers.base import seeds
from polyseme.solvers.batch import Problem, fit_batch
from polyseme.solvers.coordinate import SCD
from solver_problems import FILLED, START, X, make_corpus, mean_log_likelihood

K = len(START[1])
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])


def counts_of(X, dtype=np.float64):
    return make_corpus(X, dtype=dtype).by_doc


def fitted(problems, X=X, dtype=np.float64, **options):
    return fit_batch(counts_of(X, dtype), problems, **{"max_iter": 200, "tol": 1e-7, **options})


def assert_equal(one, other):
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


PROBLEMS = [
    *(Problem(n_topics, seed) for n_topics in (1, 2, 5, 17, 60) for seed in range(2)),
    Problem(K, START),
    Problem(K, START[1]),
    Problem(3, 5, np.random.default_rng(0).integers(0, 3, len(X)).astype(float)),
    Problem(3, 6, np.random.default_rng(1).uniform(0.1, 2, len(X))),
    Problem(3, 7, counts=counts_of(oracles.mixed_counts(9, *X.shape, 3))),
]


@DTYPES
def test_the_likelihood_is_that_of_the_factors(dtype):
    """Includes one topic, more topics than documents and words, and documents and words without counts."""
    for problem, end in zip(PROBLEMS, fitted(PROBLEMS[:-1], dtype=dtype), strict=False):
        weights = np.ones(len(X)) if problem.document_weights is None else problem.document_weights
        used = FILLED & (weights > 0)
        np.testing.assert_allclose(end.doc_topic[used].sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_allclose(end.topic_word.sum(axis=1).round(5) % 1, 0, atol=1e-5)
        assert not end.doc_topic[~used].any()
        p = np.where(X > 0, end.doc_topic.astype(np.float64) @ end.topic_word.astype(np.float64), 1)
        expected = (weights[used, None] * X[used] * np.log(p[used])).sum() / (weights @ X.sum(axis=1))
        assert end.log_likelihood == pytest.approx(expected, abs=1e-9 if dtype == np.float64 else 1e-4)
        assert end.converged or dtype == np.float32  # rounding ends some fits before


def test_the_number_of_threads_and_the_other_problems_do_not_matter():
    together = fitted(PROBLEMS, n_threads=2)
    assert len(together) == len(PROBLEMS)
    for problem, end, threaded in zip(PROBLEMS, fitted(PROBLEMS), together, strict=True):
        assert_equal(end, threaded)
        assert_equal(fitted([problem])[0], end)


@DTYPES
def test_the_likelihood_never_falls(dtype):
    ends = [fitted([Problem(K, START)], dtype=dtype, max_iter=n, tol=0)[0] for n in range(30)]
    assert ends[0].n_iter == 0
    assert all(one.log_likelihood <= other.log_likelihood for one, other in itertools.pairwise(ends))
    start = tuple(factor.astype(dtype) for factor in START)
    assert ends[0].log_likelihood == pytest.approx(mean_log_likelihood(X, *start), abs=1e-5)


@DTYPES
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weighting", ["equal", "positive", "with zeros"])
def test_a_fit_has_the_bits_of_the_solver(weighting, dtype):
    weights = np.random.default_rng(2).uniform(0.5, 2, len(X)) if weighting != "equal" else None
    if weighting == "with zeros":
        weights[::3] = 0
    (seed,) = seeds(0, 1)
    for start, init in ((START, START), (seed, "auto")):
        (end,) = fitted([Problem(K, start, weights)], dtype=dtype, tol=1e-4)
        alone = PLSA(K, solver="scd", init=init, random_state=0, tol=0, max_iter=end.n_iter, dtype=dtype, n_jobs=2)
        alone.fit(X, sample_weight=weights)
        np.testing.assert_array_equal(end.topic_word, alone.components_)
        assert end.log_likelihood == alone.history_["log_likelihood"][-1]


def test_a_document_that_is_drawn_twice_counts_twice():
    drawn = np.array([0, 2, 1, 3] * 10)
    repeated = np.repeat(np.arange(len(X)), drawn)
    (weighted,) = fitted([Problem(3, START[1][:3], drawn.astype(float))])
    (copied,) = fitted([Problem(3, START[1][:3])], X=X[repeated])
    assert weighted.log_likelihood == pytest.approx(copied.log_likelihood, abs=1e-9)
    np.testing.assert_allclose(weighted.topic_word, copied.topic_word, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_ends_where_the_fit_of_the_solver_ends():
    for tol, n_topics, seed in itertools.product((1e-2, 1e-3, 1e-4, 1e-6), (1, 2, 5), range(3)):
        (end,) = fitted([Problem(n_topics, next(seeds(seed, 1)))], tol=tol)
        model = PLSA(n_topics, solver="scd", random_state=seed, tol=tol, dtype="float64").fit(X)
        assert (end.n_iter, end.converged) == (model.n_iter_, model.converged_)
        np.testing.assert_array_equal(model.components_, end.topic_word)
    assert not fitted([Problem(K, START)], max_iter=5)[0].converged


def test_an_error_in_a_problem_ends_the_batch():
    def problems():
        yield Problem(K, START)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fitted(problems(), n_threads=2)


@pytest.mark.parametrize("endless", ["problems", "iterations"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_control_c_ends_the_batch(endless, n_threads):
    if endless == "problems":
        problems, data, options = map(Problem, itertools.repeat(K), itertools.count()), X, {}
    else:
        problems, data = [Problem(20, seed) for seed in range(4)], oracles.mixed_counts(0, 400, 300, 20)
        options = {"max_iter": 10**9, "tol": -1, "solver": SCD(extrapolate=False)}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            fitted(problems, X=data, n_threads=n_threads, **options)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def test_progress_is_reported():
    seen = []
    fitted(PROBLEMS, progress=seen.append)
    assert seen == list(range(1, len(PROBLEMS) + 1))
