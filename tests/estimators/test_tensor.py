"""PLSA of tensors: against the formulas, two modes, recovery, tables, and the estimator interface."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
import polyseme.solvers.tensor
from polyseme import PLSA, InputError, TensorPLSA, load
from polyseme.core.fitted import symmetric_view
from polyseme.metrics import align
from polyseme.solvers.tensor import TensorCounts, evaluate, padded_point
from sentences import sentence
from solver_problems import multipliers

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X2 = oracles.mixed_counts(0, 60, 45, 4)


def planted(seed, shape=(40, 30, 12), K=3, tokens=8000, alpha=0.2):
    """Return a tensor drawn from K topics, and its factors (K x items each)."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(K, 5.0))
    factors = [rng.dirichlet(np.full(size, alpha), K) for size in shape]
    letters = "abcdefg"[: len(shape)]
    p = np.einsum(",".join(["z", *(f"z{m}" for m in letters)]) + "->" + letters, weights, *factors)
    return rng.multinomial(tokens, p.ravel()).reshape(shape).astype(np.float64), weights, factors


X3, *_ = planted(0)


def n_way(X):
    """Return X as scipy's n-way coo_array, if this version of scipy has it."""
    if np.ndim(X) > 2 and tuple(map(int, __import__("scipy").__version__.split(".")[:2])) < (1, 15):
        pytest.skip("this scipy has no n-way coo_array")
    return sp.coo_array(X)


LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, n_way], ids=["dense", "coo"])


@parametrize_with_checks([TensorPLSA(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([TensorPLSA()])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


def fitted(data=X3, /, n_components=3, **parameters):
    return TensorPLSA(n_components, **{"random_state": 0, "max_iter": 40, **parameters}).fit(data)


# the model


def naive_step(X, weights, factors):
    """Run EM with the posterior of every cell: factors K x items."""
    letters = "abcdefg"[: X.ndim]
    joint = np.einsum(",".join(["z", *(f"z{m}" for m in letters)]) + "->z" + letters, weights, *factors)
    expected = X * joint / joint.sum(axis=0)
    by_mode = [
        oracles.normalized(expected.sum(axis=tuple(m + 1 for m in range(X.ndim) if m != mode)))
        for mode in range(X.ndim)
    ]
    by_topic = expected.sum(axis=tuple(range(1, X.ndim + 1)))
    log = (X * np.log(joint.sum(axis=0), where=X > 0, out=np.zeros_like(X))).sum()
    return by_topic / by_topic.sum(), by_mode, log


@pytest.mark.parametrize("shape", [(9, 8), (7, 6, 5), (5, 4, 6, 3)])
@pytest.mark.parametrize("at_once", [1 << 19, 50])
def test_an_em_step_equals_the_formulas(shape, at_once, monkeypatch):
    monkeypatch.setattr(polyseme.solvers.tensor, "_SWEEP_NUMBERS", at_once)
    X, *_ = planted(1, shape, tokens=300, alpha=1.0)
    rng = np.random.default_rng(2)
    weights, factors = rng.dirichlet(np.ones(4)), [rng.dirichlet(np.ones(size), 4) for size in shape]
    source = TensorCounts(np.nonzero(X), X[X > 0], shape, 2)
    if at_once == 50:
        assert len(source.chunks(16)) > 1
    seen = evaluate(source, padded_point(weights, [f.T for f in factors], np.dtype(float)))
    next_weights, next_factors, log = naive_step(X, weights, factors)
    np.testing.assert_allclose(seen.step[0][:4], next_weights, rtol=1e-12)
    for ours, theirs in zip(seen.step[1:], next_factors, strict=True):
        np.testing.assert_allclose(ours[:, :4].T, theirs, rtol=1e-11, atol=1e-14)
    assert seen.report.objective == pytest.approx(log / X.sum(), rel=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.coo_array])
def test_two_modes_are_symmetric_plsa(layout):
    theta, phi = oracles.random_factors(3, *X2.shape, 4)
    doc_weights = X2.sum(axis=1) / X2.sum()
    weights, topic_doc, _ = oracles.symmetric_of(theta, phi, doc_weights)
    ours = TensorPLSA(4, init=(weights, [topic_doc, phi]), solver="em", max_iter=30, tol=0).fit(layout(X2))
    plain = PLSA(4, init=(theta, phi), solver="em", max_iter=30, tol=0).fit(X2)
    np.testing.assert_allclose(ours.components_, plain.components_, rtol=1e-10, atol=1e-14)
    asymmetric = ours.history_["log_likelihood"] - doc_weights @ np.log(doc_weights)
    np.testing.assert_allclose(asymmetric, plain.history_["log_likelihood"], rtol=1e-10)
    by_oracle = weights, topic_doc, phi
    for _ in range(30):
        by_oracle = oracles.symmetric_em_step(X2, *by_oracle)
    for mine, theirs in zip((ours.topic_weights_, *ours.factors_), by_oracle, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(
        ours.transform(layout(X2)), plain.transform(X2), atol=1e-3
    )  # both fold in to 1e-4 nats per token
    view = symmetric_view(ours.posterior(0), doc_weights)
    np.testing.assert_allclose(view.topic_doc, ours.factors_[0], atol=1e-12)


@LAYOUTS
@pytest.mark.parametrize("solver", ["em", "accelerated-em"])
def test_the_likelihood_never_decreases(layout, solver):
    objective = fitted(layout(X3), solver=solver, tol=0, max_iter=80).history_["objective"]
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[:-1])).all()
    assert objective[-1] > objective[0]


def test_the_residual_bounds_the_remaining_gain():
    source = TensorCounts(np.nonzero(X3), X3[X3 > 0], X3.shape, 1)
    start = polyseme.solvers.tensor.random_start(source, 3, np.random.default_rng(0))
    first = evaluate(source, start)
    for part in range(4):
        moving = list(start)
        for _ in range(60):
            moving[part] = evaluate(source, tuple(moving)).step[part]
        gain = evaluate(source, tuple(moving)).report.objective - first.report.objective
        assert -1e-12 < gain < first.report.residual


def test_planted_factors_are_found_better_than_by_plsa():
    """Median of 5 seeds; plain PLSA gets a matrix whose columns combine all modes except the first."""
    ours, theirs = [], []
    for seed in range(5):
        X, _, factors = planted(seed, tokens=20000, alpha=1.0)
        model = TensorPLSA(3, random_state=seed, tol=1e-4, max_iter=500).fit(X)
        ours.append(np.mean([align(*pair)[1].mean() for pair in zip(factors[1:], model.factors_[1:], strict=True)]))
        plain = PLSA(3, random_state=seed, tol=1e-4, max_iter=500).fit(X.reshape(40, -1))
        side = plain.components_.reshape(3, 30, 12)
        theirs.append(np.mean([align(factors[1], side.sum(axis=2))[1].mean(),
                               align(factors[2], side.sum(axis=1))[1].mean()]))  # fmt: skip
    assert np.median(ours) < 0.15
    assert np.median(ours) < 0.8 * np.median(theirs)


@pytest.mark.parametrize("mode", [0, 1, 2, -1])
def test_folding_in_along_any_mode_is_the_maximum_of_the_likelihood(mode):
    model = fitted(max_iter=200)
    new, *_ = planted(0, tokens=900)
    new = np.moveaxis(new, mode, 0)[:7]
    new[3] = 0
    folded = model.transform(np.moveaxis(new, 0, mode), mode=mode)
    np.testing.assert_allclose(folded.sum(axis=1), 1)
    np.testing.assert_allclose(folded[3], model.topic_weights_)
    others = [factor for m, factor in enumerate(model.factors_) if m != mode % 3]
    words = np.einsum("zb,zc->zbc", *others).reshape(3, -1)
    rows = new.reshape(7, -1) * (words.sum(axis=0) > 0)
    filled = rows.sum(axis=1) > 0
    steepest = multipliers(rows[filled], folded[filled], words)[0].max(axis=1)
    could_gain = rows[filled].sum(axis=1) @ np.log(steepest) / rows.sum()  # by Jensen, at most
    assert -1e-12 < could_gain < 1e-4


def test_chunks_of_items_do_not_change_the_result(monkeypatch):
    model = fitted()
    whole = model.transform(X3)
    monkeypatch.setattr(polyseme.solvers.tensor, "_FOLD_IN_NUMBERS", 16 * 50)
    np.testing.assert_allclose(model.transform(X3), whole, atol=1e-6)
    np.testing.assert_allclose(model.transform(X3[5:6]), whole[5:6], atol=1e-6)


def test_many_modes_with_small_probabilities_work_in_float32():
    """Products of eight probabilities near 1e-3 are below what float32 divides by."""
    rng = np.random.default_rng(0)
    size, n = 3000, 2000
    group = rng.integers(2, size=n)
    coords = tuple(rng.integers(0, size // 2, n) + group * (size // 2) for _ in range(8))
    X = sp.coo_array((np.ones(n, dtype=np.float32), coords), (size,) * 8)
    single, double = (TensorPLSA(2, random_state=0, max_iter=5, dtype=d).fit(X) for d in ("float32", "float64"))
    assert single.log_likelihood_ < np.log(1e-23)
    np.testing.assert_allclose(single.history_["objective"], double.history_["objective"], rtol=1e-5)


# tables


TABLE = {
    "who": ["bob", "ann", "ann", "cid", "bob"],
    "year": [2001, 2000, 2001, 2000, 2000],
    "what": ["tea", "tea", "milk", "milk", "milk"],
    "n": [3, 1, 2, 5, 1],
}


@pytest.mark.parametrize("library", ["polars", "pandas", None])
def test_a_table_gives_the_same_fit_as_its_tensor(library):
    table = TABLE if library is None else pytest.importorskip(library).DataFrame(TABLE)
    modes = ["who", "what", "year"]
    model = TensorPLSA(2, modes=modes, counts="n", random_state=0).fit(table)
    dense = np.zeros((3, 2, 2))
    for who, year, what, n in zip(*TABLE.values(), strict=True):
        dense[["ann", "bob", "cid"].index(who), ["milk", "tea"].index(what), year - 2000] = n
    assert model.mode_labels_ == [["ann", "bob", "cid"], ["milk", "tea"], [2000, 2001]]
    by_array = TensorPLSA(2, random_state=0, dtype="float32").fit(dense)
    for ours, theirs in zip(model.factors_, by_array.factors_, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    expected = [{name for name, p in zip(["milk", "tea"], row, strict=True) if p > 0} for row in model.factors_[1]]
    assert [set(row) for row in model.top_items(1)] == expected
    np.testing.assert_allclose(model.transform(table), by_array.transform(dense), atol=1e-3)


def test_rows_of_a_table_without_counts_are_events():
    events = {"a": ["x", "x", "y", "x"], "b": ["u", "u", "v", "v"]}
    model = TensorPLSA(1, random_state=0).fit(events)
    np.testing.assert_allclose(model.factors_[0], [[0.75, 0.25]])
    assert model.n_tokens_ == 4


def test_labels_unknown_to_the_fit_are_ignored():
    model = TensorPLSA(2, counts="n", random_state=0).fit(TABLE)
    new = {"who": ["dan", "dan", "eve"], "year": [2000, 1999, 1999], "what": ["tea"] * 3, "n": [2, 9, 9]}
    folded = model.transform(new)
    alone = model.transform({"who": ["dan"], "year": [2000], "what": ["tea"], "n": [2]})
    np.testing.assert_allclose(folded[0], alone[0])
    assert folded.shape == (1 + 1, 2)
    np.testing.assert_allclose(folded[1], model.topic_weights_)


def test_held_out_counts_choose_the_number_of_topics():
    rng = np.random.default_rng(0)
    X, *_ = planted(1, tokens=20000)
    held_out = rng.binomial(X.astype(int), 0.2)
    scores = [fitted(X - held_out, K, max_iter=200).log_probability(held_out) for K in (1, 3)]
    assert scores[1] > scores[0]
    marginals = [X.sum(axis=tuple(m for m in range(3) if m != mode)) / X.sum() for mode in range(3)]
    one_topic = fitted(X, 1).log_probability(X)
    independent = np.einsum("a,b,c->abc", *marginals)
    assert one_topic == pytest.approx((X * np.log(np.where(X > 0, independent, 1))).sum() / X.sum(), rel=1e-9)


# the estimator interface


@LAYOUTS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_transform_is_fit_then_transform(layout, dtype):
    data = layout(X3.astype(dtype))
    model = fitted(data)
    assert np.array_equal(clone(model).fit_transform(data), model.transform(data))
    assert {factor.dtype for factor in (*model.factors_, model.transform(data))} == {np.dtype(dtype)}
    for factor in model.factors_:
        np.testing.assert_allclose(factor.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_do_not_depend_on_n_jobs(dtype, monkeypatch):
    monkeypatch.setattr(polyseme.solvers.tensor, "_SWEEP_NUMBERS", 16 * 100)
    one, many = (fitted(X3.astype(dtype), n_jobs=jobs) for jobs in (1, 3))
    for mine, theirs in zip(one.factors_, many.factors_, strict=True):
        assert np.array_equal(mine, theirs)


def test_results_depend_on_the_seed_but_not_on_the_order_of_entries():
    assert np.array_equal(fitted().components_, fitted().components_)
    assert not np.array_equal(fitted().components_, fitted(random_state=1).components_)
    tensor = n_way(X3)
    mixed = np.random.default_rng(0).permutation(tensor.data.size)
    shuffled = sp.coo_array((tensor.data[mixed], tuple(c[mixed] for c in tensor.coords)), tensor.shape)
    assert np.array_equal(fitted(shuffled).components_, fitted(tensor).components_)


@pytest.mark.parametrize("parameters", [{}, {"modes": ["who", "what"], "counts": "n"}])
def test_a_saved_model_is_loaded_unchanged(parameters, tmp_path):
    data = X3 if not parameters else {name: TABLE[name][:4] for name in ("who", "what", "n")}
    model = fitted(data, **parameters)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.transform(data), model.transform(data))
    assert again.mode_labels_ == model.mode_labels_
    assert np.array_equal(again.fit(data).components_, model.components_)


def test_memory_does_not_grow_with_non_zeros_times_topics():
    tracemalloc = pytest.importorskip("tracemalloc")
    rng = np.random.default_rng(0)
    n, K = 60_000, 64
    coords = tuple(rng.integers(0, 400, n) for _ in range(3))
    keys = np.unique(np.ravel_multi_index(coords, (400,) * 3))
    X = sp.coo_array((np.ones(keys.size), np.unravel_index(keys, (400,) * 3)), (400,) * 3)
    source = TensorCounts(X.coords, X.data, X.shape, 1)
    source_point = polyseme.solvers.tensor.random_start(source, K, rng)
    source.chunks(K)
    tracemalloc.start()
    evaluate(source, source_point)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * keys.size * K * 8


# wrong input


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (-X3, "Negative values in data"),
        (np.where(X3 > 3, np.nan, X3), "NaN or infinity"),
        (X3 * 0, "every count is zero"),
        (X3[:, :0], "Mode 1 of the tensor has size 0"),
        (X3.astype(complex), "real numbers"),
        ({"a": ["x", "y"], "b": ["u", "u"], "n": [1, -2]}, "Negative values in data"),
        ({"a": ["x", None], "b": ["u", "u"], "n": [1, 2]}, "missing values"),
        ({"a": ["x", "y"], "n": [1, 2]}, "at least two modes"),
        ({"a": ["x", "y"], "b": ["u"], "n": [1, 2]}, "must have the same length"),
        ({"a": ["x", "y"], "b": ["u", "v"]}, "no column 'n'"),
        ({"a": [], "b": [], "n": []}, "size 0"),
    ],
)  # fmt: skip
def test_wrong_data_raises(data, words):
    with pytest.raises(InputError) as error:
        fitted(data, counts="n")
    assert words in sentence(error)


def test_counts_of_the_same_items_are_added():
    coords = ([0, 0, 1], [1, 1, 0], [0, 0, 1])
    twice = sp.coo_array((np.array([200, 100, 7], np.uint8), coords), (2, 2, 2))  # 300 does not fit in eight bits
    once = sp.coo_array((np.array([300, 7]), ([0, 1], [1, 0], [0, 1])), (2, 2, 2))
    assert fitted(twice).n_tokens_ == 307
    np.testing.assert_array_equal(fitted(twice).factor_0_, fitted(once).factor_0_)
    rows = fitted({"a": ["x", "y", "x"], "b": ["u", "v", "u"], "n": [1.0, 2.0, 4.0]}, counts="n")
    sums = fitted({"a": ["x", "y"], "b": ["u", "v"], "n": [5.0, 2.0]}, counts="n")
    assert rows.log_likelihood_ == sums.log_likelihood_


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_components": 0}, "n_components"),
        ({"solver": "scd"}, "solver must be one of"),
        ({"init": "lsa"}, "init must be 'random'"),
        ({"init": (np.ones(3), [np.ones((3, 2))])}, "init: topic_weights must have 3"),
        ({"init": 3}, "init must be 'random'"),
        ({"tol": -1}, "tol"),
    ],
)
def test_wrong_parameters_raise(parameters, words):
    with pytest.raises(InputError, match=words):
        fitted(X3, **parameters)


def test_wrong_shapes_and_modes_after_the_fit_raise():
    model = fitted()
    with pytest.raises(InputError, match="all modes except mode 0 must agree"):
        model.transform(X3[:, :5])
    with pytest.raises(InputError, match="mode must be"):
        model.transform(X3, mode=3)
    with pytest.raises(InputError, match="give an array"):
        model.transform({"a": ["x"], "b": ["y"], "c": ["z"]})
    with pytest.raises(InputError, match="all modes must agree"):
        model.log_probability(X3[:5])


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0])
def test_the_log_probability_mixes_the_model_with_independent_modes(smoothing):
    model = fitted(X3, 2)
    joint = np.einsum("k,ki,kj,kl->ijl", model.topic_weights_, *model.factors_)
    modes = [joint.sum(axis=tuple(set(range(3)) - {mode})) for mode in range(3)]
    mixed = (1 - smoothing) * joint + smoothing * np.einsum("i,j,l->ijl", *modes)
    expected = (X3 * np.log(np.where(X3 > 0, mixed, 1))).sum() / X3.sum()
    assert model.log_probability(X3, smoothing=smoothing) == pytest.approx(expected, rel=1e-5)
