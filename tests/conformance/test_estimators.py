"""The common behavior of all estimators; a new estimator is added to MEMBERS in estimator_cases.py."""

from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

import polyseme
from estimator_cases import MEMBERS, X_WITH_GAPS, X, fitted_attributes, over, same_fit
from polyseme import LDA, LSA, NMF, PLSA, InputError, MultinomialMixture, RealTopicModel, UnsupportedError, estimators
from polyseme.scale import write_shards
from polyseme.solvers import EarlyStopping
from polyseme.solvers.base import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
ESTIMATORS = [getattr(estimators, name) for name in estimators.__all__]
EVERY = over()
ITERATING = over(lambda estimator, _: hasattr(estimator, "callback"))
"""Estimators that the fit loop of polyseme fits."""
WEIGHTED = over(lambda _, member: bool(member.weighted))


def fitted(member, data=X, /, *, sample_weight=None, **parameters):
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return member.make(**{"random_state": 0, **parameters}).fit(data, **weights)


def test_every_estimator_of_counts_is_a_member():
    """LSA and RealTopicModel have no topics of counts, TopicClassifier needs labels; they have their own tests."""
    kinds = {type(member.make()).__name__ for member in MEMBERS.values()}
    assert kinds == {kind.__name__ for kind in ESTIMATORS} - {"LSA", "RealTopicModel", "TopicClassifier"}


# weights of documents


@EVERY
@LAYOUTS
@DTYPES
def test_fit_transform_is_fit_then_transform(member, layout, dtype):
    data = layout(X_WITH_GAPS.astype(dtype))
    weights = [None, np.linspace(0, 2, len(X))] if member.weighted else [None]
    for sample_weight in weights:
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        model = member.make(random_state=0)
        rows = model.fit_transform(data, **given)
        assert rows.dtype == model.components_.dtype == dtype
        if not hasattr(model, "_fitted") or model._fitted.inference.has_one_maximum:
            assert np.array_equal(rows, model.transform(data))
        else:
            assert np.array_equal(rows, model.doc_factor_ if hasattr(model, "doc_factor_") else model.doc_topic_)
        assert np.isfinite(rows).all()
        if member.sums:
            np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-6)
            np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-5)


@EVERY
@LAYOUTS
def test_the_result_of_a_row_does_not_depend_on_its_batch(member, layout):
    model = fitted(member, X_WITH_GAPS)
    whole = model.transform(layout(X))
    for d in range(len(X)):
        alone = model.transform(layout(X[d : d + 1]))[0]
        np.testing.assert_allclose(alone, whole[d], rtol=0, atol=member.alone)


# parameters after the fit

FITTED = {
    **{name: member.make for name, member in MEMBERS.items()},
    **{f"LSA-{weights}": partial(LSA, 3, weights=weights) for weights in ("counts", "tf-idf", "log-entropy")},
    "RealTopicModel": lambda **parameters: RealTopicModel(PLSA(3, **parameters)),
}


def results(model):
    """Return the results of the methods of a fitted model for some documents."""
    found = {}
    for name in ("transform", "score", "perplexity", "angles", "outside_simplex", "reconstruction_error"):
        with suppress(AttributeError, UnsupportedError):
            found[name] = getattr(model, name)(X[:5])
    return found


@pytest.mark.parametrize("name", FITTED)
def test_parameters_that_change_after_the_fit_do_not_change_results(name):
    """A fitted model reads n_jobs, which changes no bit, and random_state, the seed of the completion split."""
    model = FITTED[name](**({} if name.startswith("LSA") else {"random_state": 0})).fit(X)
    before = results(model)
    assert "transform" in before
    parameters = model.get_params(deep=False)
    for parameter in parameters.keys() - {"random_state"}:
        for value in (2,) if parameter == "n_jobs" else ("changed", "counts"):
            after = results(model.set_params(**{parameter: value}))
            assert after.keys() == before.keys(), (parameter, value)
            assert all(np.array_equal(after[what], before[what]) for what in before), (parameter, value)
        model.set_params(**{parameter: parameters[parameter]})


# reproducibility


@ITERATING
@LAYOUTS
@DTYPES
def test_results_do_not_depend_on_n_jobs(member, layout, dtype):
    data = layout(X_WITH_GAPS.astype(dtype))
    one, three = (fitted(member, data, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert same_fit(one, three)
    assert np.array_equal(one.transform(data), three.transform(data))
    if hasattr(one, "completion_perplexity") and member.likelihood:
        assert one.completion_perplexity(data) == three.completion_perplexity(data)


@EVERY
@LAYOUTS
def test_float16_is_converted_to_float32(member, layout):
    """Sums of float16 would overflow at 65,504; small counts are the same numbers in both."""
    half = layout(X.astype(np.float32))
    if sp.issparse(half):
        half.data = half.data.astype(np.float16)  # scipy does not make such arrays, but files and other libraries do
    else:
        half = half.astype(np.float16)
    assert half.dtype == np.float16
    one, other = fitted(member, half), fitted(member, half.astype(np.float32))
    assert one.components_.dtype == np.float32
    assert same_fit(one, other)
    assert np.array_equal(one.transform(half), other.transform(half.astype(np.float32)))


def test_float16_works_in_all_other_estimators(tmp_path):
    half = X.astype(np.float16)
    assert np.array_equal(next(iter(write_shards([half], tmp_path / "shards"))).toarray(), X)
    np.testing.assert_allclose(LSA(2).fit(half).transform(half), LSA(2).fit(X).transform(X), rtol=1e-3, atol=1e-3)
    assert np.isfinite(RealTopicModel(PLSA(2, random_state=0)).fit(half).transform(half)).all()


@EVERY
@pytest.mark.parametrize("state", ["0", 1.5, -1, 2**32], ids=["text", "float", "below", "above"])
def test_a_wrong_random_state_raises(member, state):
    with pytest.raises(InputError, match="random_state must be None, a whole number"):
        member.make(random_state=state).fit(X)


@EVERY
def test_verbose_is_a_number(member):
    if "verbose" in member.make().get_params():
        for value in ("loud", -1, None):
            with pytest.raises(InputError, match="verbose must be 0, 1 or 2"):
                member.make(verbose=value).fit(X)


@EVERY
def test_a_random_state_object_is_accepted(member):
    assert same_fit(fitted(member, random_state=np.random.RandomState(5)), fitted(member, random_state=5))
    first, again, other = (fitted(member, random_state=np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert same_fit(first, again)
    assert not same_fit(first, other)


@EVERY
def test_predict_returns_the_largest_weight(member):
    model = fitted(member)
    weights = model.transform(X)
    predicted = model.predict(X)
    assert predicted.shape == (len(X),)
    np.testing.assert_allclose(weights[np.arange(len(X)), predicted], weights.max(axis=1), rtol=1e-5)


@EVERY
def test_inverse_transform_multiplies_weights_and_components(member):
    model = fitted(member)
    weights = model.transform(X)
    expected = np.array([sum(w * topic for w, topic in zip(row, model.components_, strict=True)) for row in weights])
    np.testing.assert_allclose(model.inverse_transform(weights), expected, rtol=1e-5, atol=1e-9)
    if hasattr(model, "perplexity") and member.likelihood:
        assert model.perplexity(X) == pytest.approx(
            np.exp(-(X[X > 0] * np.log(expected[X > 0])).sum() / X.sum()), rel=1e-5
        )
    with pytest.raises(InputError, match="X must be a matrix of numbers with a column for each"):
        model.inverse_transform(weights[:, :2])


@over(lambda estimator, _: isinstance(estimator, PLSA))
def test_score_is_absent_without_a_likelihood(member):
    assert hasattr(member.make(), "score") == hasattr(fitted(member), "score") == member.likelihood


SOLVERS_OF = {
    **{f"PLSA-{name}": partial(PLSA, 2, solver=name) for name in SOLVERS},
    **{f"PLSA-squared-{name}": partial(PLSA, 2, solver=name, loss="squared") for name in SOLVERS},
    **{f"NMF-squared-{name}": partial(NMF, 2, solver=name, loss="squared") for name in SOLVERS},
    "PLSA-early-stopping": partial(PLSA, 2, early_stopping=EarlyStopping()),
    "PLSA-background": partial(PLSA, 2, background=0.1),
    "NMF-chi-square": partial(NMF, 2, loss="chi-square"),
    "LDA": partial(LDA, 2),
}


@pytest.mark.parametrize("make", SOLVERS_OF.values(), ids=SOLVERS_OF)
def test_the_tag_says_whether_missing_entries_are_accepted(make):
    data = X.astype(float)
    data[3, 5] = np.nan
    model = make(random_state=0, max_iter=3)
    if get_tags(model).input_tags.allow_nan:
        assert np.isfinite(model.fit(data).components_).all()
    else:
        with pytest.raises(InputError):
            model.fit(data)


@EVERY
@pytest.mark.parametrize("given", [None, "float32", "float64"])
def test_the_tag_lists_the_dtypes_that_are_preserved(member, given):
    if "dtype" not in member.make().get_params():
        pytest.skip("has no dtype")
    for dtype in ("float32", "float64"):
        model = member.make(dtype=given, random_state=0, max_iter=3).fit(X.astype(dtype))
        assert (model.transform(X.astype(dtype)).dtype == dtype) == (
            dtype in get_tags(model).transformer_tags.preserves_dtype
        )


class MuData:
    """Object like that of mudata: not an array, but an object that contains several."""

    __module__ = "mudata._core.mudata"
    shape, X = X.shape, X


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_annotated_data_raises_with_its_class_name(kind):
    estimator = kind()
    for use in (estimator.fit, estimator.fit_transform):
        with pytest.raises(InputError, match=r"MuData: pass its matrix .* such as adata\.X"):
            use(MuData())
    fitted = kind(PLSA(2, random_state=0)) if kind is RealTopicModel else kind()
    fitted.fit(X, np.arange(len(X)) % 2)  # labels for the classifier; other estimators ignore them
    with pytest.raises(InputError, match=r"adata\.X"):
        fitted.transform(MuData())


@EVERY
def test_the_seed_determines_the_fit(member):
    first = fitted(member, random_state=3)
    assert same_fit(first, fitted(member, random_state=3))
    assert not np.array_equal(first.components_, fitted(member, random_state=4).components_)


@WEIGHTED
def test_integer_weights_are_repeated_rows(member):
    times = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = fitted_attributes(fitted(member, sample_weight=times))
    repeated = fitted_attributes(fitted(member, X.repeat(times, axis=0)))
    for name, tolerance in member.weighted.items():
        np.testing.assert_allclose(weighted[name], repeated[name], **{"rtol": 0, **tolerance})


@EVERY
def test_float32_is_close_to_float64(member):
    """The starts are the same, and the fits stay close for a few iterations."""
    single, double = (fitted(member, X.astype(dtype), max_iter=5) for dtype in (np.float32, np.float64))
    np.testing.assert_allclose(single.components_, double.components_, atol=2e-3 * double.components_.max())


# progress and end of a fit


@ITERATING
def test_the_callback_is_called_with_every_entry_of_the_history(member):
    heard = []
    model = fitted(member, callback=heard.append, max_iter=6)
    assert len(heard) == model.n_iter_ + 1
    for name, column in model.history_.items():
        assert [entry[name] for entry in heard] == column.tolist()
    assert model.history_["iteration"].tolist() == list(range(model.n_iter_ + 1))


@ITERATING
def test_a_fit_that_does_not_converge_warns_with_advice(member):
    advice = r"stopped after max_iter=3 .*(nats per token|lowered the loss|too few to see).*raise max_iter or tol"
    with pytest.warns(ConvergenceWarning, match=advice) as warned:
        model = fitted(member, max_iter=3, tol=0)
    assert not model.converged_
    assert model.n_iter_ == 3
    assert warned[0].filename.endswith(("test_estimators.py", "nmf.py", "lda.py"))


@ITERATING
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_a_fit_has_converged_only_if_its_criterion_holds(member, tol):
    model = fitted(member, X.astype(np.float32), max_iter=100, tol=tol)
    assert model.converged_ == (model.history_["remaining"][-1] < tol)


@over(lambda estimator, _: hasattr(estimator, "callback") and not isinstance(estimator, MultinomialMixture))
def test_n_init_returns_the_best_start(member):
    heard = []
    model = fitted(member, n_init=4, max_iter=8, tol=0, callback=heard.append)
    name = "bound" if "bound" in model.history_ else "objective"
    ends = [entry[name] for entry in heard if entry["iteration"] == 8]
    assert len(set(ends)) == 4
    assert model.history_[name][-1] == max(ends)
    assert model.n_iter_ == 8


@ITERATING
def test_ctrl_c_stores_the_model_so_far(member):
    def stop(entry):
        if entry["iteration"] == 3:
            raise KeyboardInterrupt

    model = member.make(random_state=0, callback=stop, tol=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.n_iter_ == 3
    assert not model.converged_
    assert np.array_equal(model.components_, fitted(member, max_iter=3, tol=0).components_)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(getattr(model, "reconstruction_err_", 0.0))


@pytest.mark.parametrize("name", ["HierarchicalPLSA", "CorrelatedTopicModel"])
def test_ctrl_c_before_the_first_iteration_stores_no_model(name, monkeypatch):
    """The interrupt comes in the short fit of PLSA from which these models start."""

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("polyseme.solvers.coordinate.SCDRun.advance", stopped)
    model = MEMBERS[name].make(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not fitted_attributes(model).keys() - {"n_features_in_"}


@EVERY
def test_a_second_fit_removes_all_attributes_of_the_first(member):
    usual = member.make(random_state=0)
    model = fitted(member, **member.other)
    model.set_params(**{name: getattr(usual, name) for name in member.other}).fit(X)
    assert same_fit(model, usual.fit(X))


@EVERY
def test_changing_a_parameter_does_not_change_the_fit(member):
    model = fitted(member)
    before = model.transform(X)
    assert np.array_equal(model.set_params(**member.other).transform(X), before)


@EVERY
@DTYPES
def test_a_saved_model_is_loaded_unchanged(member, dtype, tmp_path):
    data = sp.csr_array(X_WITH_GAPS.astype(dtype))
    model = fitted(member, data)
    given = {name: list(value) for name, value in model.get_params().items() if isinstance(value, tuple)}
    model.save(tmp_path / "model")
    again = polyseme.load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.get_params() == {**model.get_params(), **given}
    assert same_fit(again, model)
    assert np.array_equal(again.transform(data), model.transform(data))
    assert np.array_equal(again.fit(data).components_, model.components_)
