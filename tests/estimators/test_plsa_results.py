"""Results of a fit of PLSA: attributes, history, topics and progress, also after an interruption."""

import io
import multiprocessing
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from estimator_cases import X_WITH_GAPS, X, same_fit
from estimator_cases import fitted_plsa as fitted
from polyseme import LDA, NMF, PLSA, InputError, MissingExtraError, load
from polyseme.core import dirichlet
from polyseme.estimators import nmf
from polyseme.kernels import counts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def model():
    return PLSA(4, random_state=0, max_iter=50).fit(X_WITH_GAPS)


# attributes of a fit


def test_the_symmetric_view_is_the_same_joint_distribution(model):
    asymmetric = model.doc_weights_[:, np.newaxis] * (model.doc_topic_ @ model.components_)
    symmetric = model.topic_doc_.T @ (model.topic_weights_[:, np.newaxis] * model.components_)
    np.testing.assert_allclose(symmetric, asymmetric, rtol=1e-12, atol=1e-18)
    np.testing.assert_allclose(asymmetric.sum(), 1, rtol=1e-12)
    for distribution in (model.topic_weights_, model.doc_weights_, *model.topic_doc_, *model.components_):
        np.testing.assert_allclose(distribution.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(model.doc_weights_, X_WITH_GAPS.sum(axis=1) / X_WITH_GAPS.sum())


def test_log_likelihood_is_that_of_the_fitted_attributes(model):
    value = oracles.log_likelihood(X_WITH_GAPS, model.doc_topic_, model.components_) / X_WITH_GAPS.sum()
    np.testing.assert_allclose(model.log_likelihood_, value, rtol=1e-12)
    np.testing.assert_allclose(model.training_perplexity_, np.exp(-value), rtol=1e-12)
    assert model.log_likelihood_ >= model.history_["log_likelihood"][-1] - 1e-4


def test_history_has_arrays_of_equal_length(model):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(model.history_)
    assert list(table.columns) == ["iteration", "seconds", "log_likelihood", "objective", "residual", "remaining"]
    assert len(table) == model.n_iter_ + 1
    assert table["iteration"].tolist() == list(range(len(table)))
    assert table["seconds"].is_monotonic_increasing
    assert table["log_likelihood"].is_monotonic_increasing
    assert (table["residual"] >= 0).all()


def test_the_fit_stops_at_the_tolerance():
    model = fitted(tol=1e-3, max_iter=1000)
    values, remaining = model.history_["objective"], model.history_["remaining"]
    assert model.converged_
    assert remaining[-1] < 1e-3
    assert (remaining[:-1] >= 1e-3).all()
    for n, value in enumerate(remaining[1:], 1):
        window = max(10, n // 4)
        gain = values[n] - values[n - window] if n >= window else np.inf
        assert value == gain


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_converges_does_not_warn():
    assert PLSA(2, random_state=0, tol=0.5).fit(X).converged_


def interrupt_at(iteration, start=1):
    """Return a callback that acts as Ctrl-C in an iteration of a start."""
    starts = []

    def callback(entry):
        if entry["iteration"] == 0:
            starts.append(entry)
        if entry["iteration"] == iteration and len(starts) == start:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("iteration", [0, 1, 5])
def test_ctrl_c_leaves_a_usable_model(iteration):
    model = PLSA(3, random_state=0, callback=interrupt_at(iteration))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X_WITH_GAPS)
    assert model.n_iter_ == iteration
    assert not model.converged_
    assert len(model.history_["iteration"]) == iteration + 1
    assert np.array_equal(model.transform(X_WITH_GAPS), model.doc_topic_)
    assert np.isfinite(model.score(X_WITH_GAPS))
    if iteration:
        assert np.array_equal(model.components_, fitted(X_WITH_GAPS, max_iter=iteration).components_)


def test_ctrl_c_in_a_later_start_returns_the_best_so_far():
    model = PLSA(3, random_state=0, n_init=3, max_iter=10, callback=interrupt_at(1, start=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert same_fit(model, fitted(max_iter=10))


def test_other_errors_in_the_callback_are_raised():
    def callback(entry):
        raise ZeroDivisionError

    model = PLSA(3, callback=callback)
    with pytest.raises(ZeroDivisionError):
        model.fit(X)
    assert not hasattr(model, "components_")


# topics


def expected_words(model, n_words, names):
    n, sizes, frequency = model.word_documents_, model.topic_documents_, model.document_frequency_
    shown = oracles.shown_words(n.astype(np.float64), sizes, frequency, model.components_, n_words)
    return [", ".join(names[w] for w in row) for row in shown]


def check_topics(frame, model, names):
    assert list(frame.columns) == ["id", "name", "weight", "fit", "words"]
    assert list(frame["id"]) == [0, 1, 2, 3]
    np.testing.assert_allclose(frame["weight"], model.topic_weights_)
    assert list(frame["words"]) == expected_words(model, 4, names)
    fit = [sum(model.topic_doc_[k] * model.doc_topic_[:, k]) for k in range(4)]
    np.testing.assert_allclose(frame["fit"], fit, rtol=1e-9)


NAMES = [f"word{w}" for w in range(45)]


def test_topics_convert_to_a_polars_data_frame(model):
    polars = pytest.importorskip("polars")
    frame = model.topics(NAMES, n_words=4).to_polars()
    assert isinstance(frame, polars.DataFrame)
    check_topics(frame, model, NAMES)


def test_topics_convert_to_a_pandas_data_frame_without_polars(model, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "polars", None)
    frame = model.topics(np.array(NAMES), n_words=4).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    check_topics(frame, model, NAMES)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_data_frames_of_topics_without_the_extra_raise(model, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    table = model.topics(NAMES, n_words=4)
    check_topics(table, model, NAMES)
    with pytest.raises(MissingExtraError, match=r"^A table of topics needs the extra 'text': pip install"):
        getattr(table, f"to_{library}")()


def test_topics_without_a_vocabulary_have_numbered_words(model):
    assert list(model.topics(n_words=4)["words"]) == expected_words(model, 4, [f"x{w}" for w in range(45)])


# progress


def test_a_fit_prints_nothing_by_default(capfd):
    fitted(max_iter=3)
    assert capfd.readouterr() == ("", "")


def test_progress_is_printed_without_rich(capsys, monkeypatch):
    for name in ("rich", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    fitted(max_iter=12, tol=0, verbose=1)
    output = capsys.readouterr()
    assert output.out == ""
    assert [line.split(":")[0] for line in output.err.splitlines()] == ["PLSA 0/12", "PLSA 10/12", "PLSA 12/12"]
    assert ["possible gain" in line for line in output.err.splitlines()] == [False, True, True]


def test_progress_is_printed_as_lines_without_a_terminal(capfd):
    fitted(max_iter=12, tol=0, verbose=1)
    output = capfd.readouterr()
    assert output.out == ""
    assert [line.split(":")[0] for line in output.err.splitlines()] == ["PLSA 0/12", "PLSA 10/12", "PLSA 12/12"]


def test_the_last_line_shows_the_last_iteration_of_every_start(capfd):
    model = fitted(max_iter=300, tol=0.5, n_init=2, verbose=1)
    lines = [line.split(":")[0] for line in capfd.readouterr().err.splitlines()]
    assert lines.count("PLSA 0/300") == 2
    before = lines[lines.index("PLSA 0/300", 1) - 1]
    assert f"PLSA {model.n_iter_}/300" in (before, lines[-1])


def terminal(monkeypatch):
    """Make standard error a terminal, and return its output. (No fixture, because pytest would replace the stream.)"""
    rich = pytest.importorskip("rich.console")
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    assert rich.Console(stderr=True).is_terminal
    return written


def test_progress_is_a_bar_on_a_terminal(monkeypatch, capsys):
    written = terminal(monkeypatch)
    fitted(max_iter=12, tol=0, verbose=2)
    assert "12/12" in written.getvalue()
    assert "PLSA 10/12:" not in written.getvalue()
    assert capsys.readouterr().out == ""


def test_a_fit_during_another_progress_bar_prints_lines(monkeypatch):
    """Also nested and in other threads; when the first bar has ended, a fit has a bar again."""

    def others(entry):
        if entry["iteration"] == 2:
            fitted(max_iter=3, tol=0, verbose=1)
            with ThreadPoolExecutor(3) as pool:
                list(pool.map(lambda _: fitted(max_iter=4, tol=0, verbose=1), range(3)))

    written = terminal(monkeypatch)
    fitted(max_iter=12, tol=0, verbose=2, callback=others)
    text = written.getvalue()
    assert "12/12" in text
    assert "PLSA 3/3: log-likelihood" in text
    assert text.count("PLSA 4/4: log-likelihood") == 3
    fitted(max_iter=5, tol=0, verbose=2)
    assert "5/5" in written.getvalue()
    assert "PLSA 5/5:" not in written.getvalue()


def test_a_fit_in_a_worker_process_prints_lines(monkeypatch):
    written = terminal(monkeypatch)
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    fitted(max_iter=5, tol=0, verbose=1)
    assert "PLSA 5/5: log-likelihood" in written.getvalue()


@pytest.mark.parametrize(
    "model",
    [
        PLSA(16, solver="em", max_iter=2, random_state=0),
        PLSA(16, max_iter=2, random_state=0),
        NMF(16, max_iter=2, random_state=0),
        LDA(16, max_iter=2, random_state=0),
        LDA(16, solver="online", max_iter=1, random_state=0),
    ],
    ids=["em", "auto", "nmf", "lda", "online"],
)
def test_the_memory_of_a_fit_is_that_of_the_counts_and_the_factors(model, monkeypatch):
    """The limit holds for the fit and for everything that is computed after it, such as the words shown."""
    X = sp.random_array((6000, 3000), density=0.03, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
    X.data[:] = np.ceil(5 * X.data)
    for module in (counts, dirichlet, nmf):  # blocks that are small compared with the counts
        monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 1 << 15)
    model.fit(X[:50])
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    factors = 4 * 16 * sum(X.shape)
    assert peak < 3 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + factors)


def test_log_likelihoods_of_documents_are_those_of_their_words():
    model = PLSA(3, random_state=0, background=0.1).fit(X[:, 1:] if X.any(axis=0).all() else X)
    data = X[:, 1:] if X.any(axis=0).all() else X
    p = model.inverse_transform(model.transform(data))
    expected = [sum(x * np.log(q) for x, q in zip(row, probabilities, strict=True) if x > 0)
                for row, probabilities in zip(data, p, strict=True)]  # fmt: skip
    np.testing.assert_allclose(model.score_samples(data), expected, rtol=1e-5)
    assert model.score_samples(data).sum() / data.sum() == pytest.approx(model.log_likelihood_, rel=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_topics_of_tokens_follow_from_bayes_rule(share):
    model = PLSA(3, random_state=0, background=share).fit(X)
    theta, found = model.transform(X), model.token_topics(X)
    rows, columns = np.nonzero(X)
    assert found.shape == (len(rows), 3)
    for row, d, w in zip(found, rows, columns, strict=True):
        joint = (1 - share) * theta[d] * model.components_[:, w]
        rest = share * model.background_[w] if share else 0.0
        np.testing.assert_allclose(row, joint / (joint.sum() + rest), rtol=1e-4, atol=1e-6)


def test_a_model_is_made_from_topics(tmp_path):
    fitted = PLSA(3, random_state=0, dtype="float64").fit(X)
    words = [f"w{i}" for i in range(X.shape[1])]
    model = PLSA.from_topics(2 * fitted.components_, vocabulary=words, dtype="float64")
    np.testing.assert_allclose(model.components_, fitted.components_)
    known = X[X.sum(axis=1) > 0]
    np.testing.assert_allclose(model.transform(known), fitted.transform(known), atol=1e-6)
    assert np.array_equal(model.predict(known), fitted.predict(known))
    assert model.topics()[0].words[0] in words
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").transform(X), model.transform(X))
    documents = model.with_documents(X)
    np.testing.assert_allclose(documents.log_likelihood_, fitted.log_likelihood_, rtol=1e-6)
    with pytest.raises(InputError, match="components must be a matrix"):
        PLSA.from_topics([1, 2])
    with pytest.raises(AttributeError, match="does not know its training documents"):
        model.doc_topic_  # noqa: B018
