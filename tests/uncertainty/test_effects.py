"""Effects of metadata. Benchmarks measure the coverage (benchmarks/interval_coverage.py)."""

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import PLSA
from polyseme.core.shard import sparse_counts
from polyseme.errors import InputError
from polyseme.plots import plot_effects
from polyseme.uncertainty import effects
from polyseme.uncertainty.effects import _Regression
from polyseme.uncertainty.formula import Design

pytest.importorskip("formulaic")
mpl.use("Agg")
TOPICS = np.random.default_rng(3).dirichlet(np.full(60, 0.2), 3)
N = 400


@pytest.fixture(scope="module")
def planted():
    """Return documents in which topic 0 has .2 more in group "b", and .4 x, and topic 1 as much less."""
    rng = np.random.default_rng(5)
    group, x = np.arange(N) % 2, rng.random(N)
    change = 0.2 * (group - 0.5) + 0.4 * (x - 0.5)
    means = np.column_stack([0.35 + change, 0.35 - change, np.full(N, 0.3)])
    theta = np.array([rng.dirichlet(mean) for mean in means])
    X = sp.csr_array(np.array([rng.multinomial(60, row @ TOPICS) for row in theta]).astype(float))
    data = {
        "group": np.where(group, "b", "a").tolist(),
        "x": x,
        "noise": rng.random(N),
        "team": (np.arange(N) // 8).tolist(),
    }
    return X, theta, data


@pytest.fixture(scope="module")
def model(planted):
    return PLSA(3, init=(None, TOPICS), random_state=0, n_jobs=1).fit(planted[0])


@pytest.fixture(scope="module")
def found(planted, model):
    X, _, data = planted
    return effects(model, X, "~ group + x + noise", data, n_resamples=40, n_simulations=5, n_jobs=1)


def test_known_effects_are_found(found):
    assert found.names == ["Intercept", "group[b]", "x", "noise"]
    assert found.terms == ["group", "x", "noise"]
    for place, truth in ((1, [0.2, -0.2, 0]), (2, [0.4, -0.4, 0])):
        own = found.coefficients[place]
        assert (np.abs(own.estimate - truth) < 4 * own.error).all()
        assert (own.q_values[:2] < 0.001).all()
        assert own.q_values[2] > 0.01
    assert (found.coefficients.p_values[3] > 0.005).all()
    np.testing.assert_allclose(found.coefficients.estimate.sum(axis=1), [1, 0, 0, 0], atol=1e-4)
    np.testing.assert_allclose(found.coefficients.p_values[1:], found.p_values, rtol=0.2, atol=1e-6)


def test_a_tiny_p_value_is_not_printed_as_zero(planted, model):
    X, _, data = planted
    found = effects(model, X, "~ s(x)", data, n_resamples=20, n_simulations=2, n_jobs=1)
    found = dataclasses.replace(found, p_values=np.full((1, 3), 1e-9), q_values=np.full((1, 3), 1e-9))
    assert found.cell(0, 0) == "p < 0.001 *"


def test_scores_of_documents_without_noise_give_least_squares(planted):
    _, theta, data = planted
    design = Design.of("group * x", data, np.ones(N, dtype=bool))
    counts = sparse_counts(sp.csr_array(1000 * theta @ TOPICS), np.dtype(np.float64))
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    result = _Regression(design).coefficients(weights, counts, TOPICS, counts.word_totals(None))
    root = np.sqrt(weights)[:, np.newaxis]
    expected = np.linalg.lstsq(root * design.matrix, root * theta, rcond=None)[0]
    np.testing.assert_allclose(result, expected, atol=1e-8)


def test_predictions_follow_the_coefficients(found):
    predicted = found.predict("group")
    assert predicted.values == ["a", "b"]
    np.testing.assert_allclose(np.diff(predicted.shares.estimate, axis=0)[0], found.coefficients.estimate[1])
    line = found.predict("x", [0.0, 1.0], at={"group": "a"}).shares
    np.testing.assert_allclose(line.estimate[1] - line.estimate[0], found.coefficients.estimate[2])
    assert (line.low >= 0).all()
    assert (line.high <= 1).all()
    difference = found.compare("group", "b", "a")
    np.testing.assert_allclose(difference.low, found.coefficients.low[1])
    np.testing.assert_allclose(difference.p_values, found.coefficients.p_values[1])
    assert len(found.predict("x").values) == 50


def test_clusters_widen_the_errors_of_what_varies_between_them(planted, model, found):
    X, _, data = planted
    by_team = {**data, "noise": np.random.default_rng(1).random(50)[np.array(data["team"])]}
    repeated = sp.csr_array(X[np.repeat(np.arange(0, N, 8), 8)])
    plain = effects(model, repeated, "noise", by_team, n_resamples=30, n_simulations=0, n_jobs=1)
    clustered = effects(
        model, repeated, "noise", by_team, clusters=data["team"], n_resamples=30, n_simulations=0, n_jobs=1
    )
    assert (clustered.coefficients.error[1] > 1.8 * plain.coefficients.error[1]).all()


def test_what_is_left_out_is_said(planted, model):
    X, _, data = planted
    X = sp.csr_array(sp.vstack([X[:-1], sp.csr_array((1, X.shape[1]))]))
    x = data["x"].copy()
    x[:10] = np.nan
    result = effects(model, X, "s(x)", {"x": x}, n_resamples=5, n_simulations=0, n_jobs=1)
    assert result.n_documents == N - 11
    assert result.notes[:3] == [
        "389 documents.", "10 documents without 'x' are left out.", "1 documents without words are left out."
    ]  # fmt: skip
    assert result.cell(0, 0).startswith("p = ")
    assert result.p_values.shape == (1, 3)


def test_a_group_of_one_cluster_is_reported(planted, model):
    X, _, data = planted
    data = {"rare": ["x" if number < 8 else "y" for number in range(N)]}
    result = effects(model, X, "rare", data, clusters=np.arange(N) // 8, n_resamples=20, n_simulations=0, n_jobs=1)
    assert result.estimable < 1
    assert any("few clusters" in note for note in result.notes)


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(planted, model):
    X, _, data = planted
    one, two = (
        effects(model, X, "group*s(x)", data, n_resamples=4, n_simulations=2, n_jobs=jobs, random_state=3)
        for jobs in (1, 3)
    )
    assert (one.coefficients.error == two.coefficients.error).all()


def test_the_table_and_the_text_have_every_topic(found):
    frame = found.to_polars()
    assert frame.shape == (12, 9)
    assert frame["coefficient"].to_list()[3:6] == ["group[b]"] * 3
    assert len(repr(found).splitlines()) == 2 + 3 + 1


def test_plots_show_the_predictions(planted, model, found):
    line = plot_effects(found, "x", topics=[0])
    np.testing.assert_allclose(line.lines[0].get_ydata(), found.predict("x").shares.estimate[:, 0])
    points = plot_effects(found, "group")
    assert len(points.collections) == 6
    both = plot_effects(found, "x", topics=[0, 1], by="group")
    assert len(both.lines) == 4
    with pytest.raises(InputError, match="by= needs a column of groups"):
        plot_effects(found, "group", by="x")


@pytest.mark.parametrize(
    ("formula", "data", "message"),
    [
        ("group", {"group": ["a"]}, "a value for each of the 400"),
        ("color", {"group": ["a"]}, "no column 'color'"),
        ("x + y", {"x": [1.0] * N, "y": [2.0] * N}, "determine each other"),
    ],
)
def test_tables_that_do_not_fit_are_errors(planted, model, formula, data, message):
    with pytest.raises(InputError, match=message):
        effects(model, planted[0], formula, data, n_resamples=2, n_jobs=1)
