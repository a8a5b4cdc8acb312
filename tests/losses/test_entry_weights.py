"""Missing entries and weights of entries: naive formulas, planted data, repeated observations, folding in, errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import get_tags

import oracles
from polyseme import LDA, NMF, PLSA, InputError, RealTopicModel, UnsupportedError
from polyseme.core.model import Model
from polyseme.core.shard import as_counts
from polyseme.data.corpus import MemoryCorpus
from polyseme.kernels import DenseCounts, padded
from polyseme.losses import LOSSES, HiddenEntries
from polyseme.losses.entry_weights import DenseWeights, StoredWeights, WithoutEntries, diagonal_folds, stored
from polyseme.losses.updates import LossSums
from polyseme.scale import write_shards
from polyseme.selection import cross_validate
from polyseme.solvers import EarlyStopping
from polyseme.solvers.base import FitProblem
from polyseme.solvers.majorize import HALS, MajorizeMinimize
from solver_problems import begin_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(5, 40, 30, 3)
K, FLOAT = 3, np.dtype(np.float64)
RNG = np.random.default_rng(0)
HIDDEN = RNG.random(X.shape) < 0.3
GIVEN = np.where(HIDDEN, 0, RNG.exponential(size=X.shape))
NAMES = ("kullback-leibler", "squared")
EVERY_LOSS = pytest.mark.parametrize("loss", NAMES)
EVERY_CLASS = pytest.mark.parametrize("kind", [NMF, PLSA])


def diagonal():
    return diagonal_folds(*X.shape, 5, 3)[2]


WEIGHTS = {
    "dense": lambda: (DenseWeights(DenseCounts(GIVEN)), GIVEN),
    "sparse": lambda: (StoredWeights(stored(sp.csr_array(GIVEN), FLOAT)), GIVEN),
    "hidden": lambda: (HiddenEntries(HIDDEN).weights(FLOAT), 1.0 - HIDDEN),
    "diagonal": lambda: (WithoutEntries(diagonal()), 1 - diagonal().dense()),
}
EVERY_KIND = pytest.mark.parametrize("name", WEIGHTS)


def loss_of(name, V, W, H, data=X):
    """Return the weighted loss of each entry, by its formula."""
    Q = W @ H
    if name == "squared":
        return V * (data - Q) ** 2 / 2
    return V * (data * np.log(ratios(data, Q, 1.0)) - data + Q)


def ratios(data, Q, otherwise=0.0):
    """Return data / Q, where data is positive."""
    return np.divide(data, Q, out=np.full_like(Q, otherwise), where=data > 0)


def begin(solver, loss, name, V, *, free=True, seed=0):
    entries, _ = WEIGHTS[name]()
    theta, phi = oracles.random_factors(seed, *X.shape, K)
    corpus = MemoryCorpus(as_counts(V * X, FLOAT), None, 1, entries)
    model = Model(K, loss=LOSSES[loss], free_scale=free and loss == "squared")
    scale = X.sum(axis=1, keepdims=True) if loss == "squared" else 1.0
    return begin_problem(solver, FitProblem(model, corpus), padded(theta * scale, FLOAT), padded(phi.T, FLOAT))


@EVERY_KIND
def test_sums_equal_those_of_dense_weights(name):
    entries, V = WEIGHTS[name]()
    rng = np.random.default_rng(1)
    docs, words, weights = rng.random((40, 16)), rng.random((30, 16)), rng.random(40)
    Q = docs @ words.T
    rows, columns = np.indices(X.shape)
    np.testing.assert_allclose(entries.at(rows.ravel(), columns.ravel()).reshape(X.shape), V, atol=1e-15)
    np.testing.assert_allclose(entries.dense(), V, atol=1e-15)
    some, every = slice(5, 20), slice(None)
    for part, own, w in ((entries, every, None), (entries, every, weights), (entries.take(some), some, None)):
        v, d, q = V[own], docs[own], Q[own]
        scaled = d if w is None else d * w[:, np.newaxis]
        np.testing.assert_allclose(part.over_words(words), v @ words, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(part.over_docs(d, w), v.T @ scaled, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(part.fitted_over_words(d, words), (v * q) @ words, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(part.fitted_over_docs(d, words, w), (v * q).T @ scaled, rtol=1e-11, atol=1e-11)
    for layout in (np.asarray, sp.csr_array):
        product = entries.times(layout(X))
        np.testing.assert_allclose(product.toarray() if sp.issparse(product) else product, V * X, atol=1e-15)


@EVERY_KIND
@EVERY_LOSS
def test_losses_are_those_of_the_formula(name, loss):
    entries, V = WEIGHTS[name]()
    W, H = oracles.random_factors(2, *X.shape, K)
    W = W * X.sum(axis=1, keepdims=True)
    for layout in (np.asarray, sp.csr_array):
        sums = LossSums(LOSSES[loss], as_counts(layout(V * X), FLOAT), K, n_threads=1, entries=entries)
        values = sums.values(padded(W, FLOAT), padded(H.T, FLOAT))
        np.testing.assert_allclose(values, loss_of(loss, V, W, H).sum(axis=1), rtol=1e-10)


@EVERY_KIND
def test_iterates_are_those_of_the_formula(name):
    """One factor after the other, with sums over the observed entries as denominators."""
    _, V = WEIGHTS[name]()
    W, H = oracles.random_factors(0, *X.shape, K)
    W = W * (V * X).sum(axis=1, keepdims=True)
    run = begin(MajorizeMinimize(extrapolate=False), "kullback-leibler", name, V)
    for _ in range(8):
        assert run.report.loss * (V * X).sum() == pytest.approx(loss_of("kullback-leibler", V, W, H).sum(), rel=1e-9)
        R = V * ratios(X, W @ H)
        W = W * (R @ H.T) / (V @ H.T)
        R = V * ratios(X, W @ H)
        H = H * (W.T @ R) / (W.T @ V)
        run.advance()
        docs, words = run.point
        np.testing.assert_allclose(docs @ words.T, W @ H, rtol=1e-9)


@EVERY_KIND
@pytest.mark.parametrize(("solver", "loss"), [
    (MajorizeMinimize(), "kullback-leibler"), (MajorizeMinimize(), "squared"), (HALS(), "squared"),
    (HALS(2), "squared"),
])  # fmt: skip
def test_the_loss_never_rises(name, solver, loss):
    run = begin(solver, loss, name, WEIGHTS[name]()[1])
    losses = [run.report.loss]
    for _ in range(60):
        if not run.exhausted:
            run.advance()
        losses.append(run.report.loss)
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    assert losses[-1] < 0.5 * losses[0]


def planted(seed, n_docs=200, n_words=60, scale=5.0):
    rng = np.random.default_rng(seed)
    Q = scale * rng.gamma(1, 1, (n_docs, 4)) @ rng.gamma(0.5, 1, (4, n_words))
    return Q, rng.poisson(Q).astype(float), rng.random(Q.shape) < 0.3


@EVERY_LOSS
def test_planted_data_are_recovered_with_a_third_missing(loss):
    """The error on all entries is within ten percent of that of a fit to all entries; filling in zeros is not."""
    for seed in range(2):
        _, data, hidden = planted(seed)
        errors = []
        for given in (data, np.where(hidden, np.nan, data), np.where(hidden, 0, data)):
            model = NMF(4, loss=loss, random_state=0, tol=1e-3, max_iter=500).fit(given)
            errors.append(np.linalg.norm(data - model.doc_factor_ @ model.components_))
        assert errors[1] <= 1.1 * errors[0]
        assert errors[2] > 1.5 * errors[0]


def test_missing_entries_of_exact_data_are_found():
    Q, _, hidden = planted(0)
    model = NMF(4, loss="squared", random_state=0, tol=0, max_iter=400).fit(np.where(hidden, np.nan, Q))
    assert np.linalg.norm((Q - model.doc_factor_ @ model.components_)[hidden]) < 1e-3 * np.linalg.norm(Q[hidden])


@EVERY_CLASS
@EVERY_LOSS
class TestEstimators:
    def fit(self, kind, loss, data, **given):
        return kind(K, loss=loss, random_state=0, max_iter=40, tol=0, dtype="float64").fit(data, **given)

    def same(self, one, other, tolerance=1e-9):
        np.testing.assert_allclose(one.components_, other.components_, atol=tolerance)
        assert one.history_["objective"][-1] == pytest.approx(other.history_["objective"][-1], rel=1e-9)

    def test_all_forms_of_missing_entries_are_equal(self, kind, loss):
        first = self.fit(kind, loss, np.where(HIDDEN, np.nan, X))
        assert first.solver_ == ("mm" if loss == "kullback-leibler" else "hals")
        wild = np.where(HIDDEN, 77.0, X)  # not used
        masks = HiddenEntries(HIDDEN), HiddenEntries(sp.coo_array(HIDDEN))
        for given in (~HIDDEN, (~HIDDEN).astype(int), sp.csc_array(~HIDDEN), *masks):
            for data in (wild, sp.csr_array(wild)):
                self.same(self.fit(kind, loss, data, entry_weight=given), first)
        self.same(self.fit(kind, loss, np.where(HIDDEN, np.nan, X), entry_weight=~HIDDEN), first)

    def test_equal_weights_of_a_row_are_a_sample_weight(self, kind, loss):
        times = np.random.default_rng(3).integers(1, 4, len(X))
        table = np.repeat(times[:, np.newaxis], X.shape[1], axis=1)
        sampled, repeated = self.fit(kind, loss, X, sample_weight=times), self.fit(kind, loss, X.repeat(times, axis=0))
        for given in (table, sp.csr_array(table)):
            weighted = self.fit(kind, loss, X, entry_weight=given)
            assert np.array_equal(weighted.components_, sampled.components_)
            np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-7)
        both = self.fit(kind, loss, X, entry_weight=table, sample_weight=times)
        assert np.array_equal(both.components_, self.fit(kind, loss, X, sample_weight=times**2).components_)
        for ones in (np.ones_like(X), HiddenEntries(np.zeros_like(X))):
            same = self.fit(kind, loss, X, entry_weight=ones)
            assert np.array_equal(same.components_, self.fit(kind, loss, X).components_)

    def test_weighted_rows_are_repeated_rows_with_missing_entries(self, kind, loss):
        """The same holds if some entries are missing, so that weights of entries are needed."""
        times = np.random.default_rng(3).integers(1, 4, len(X))
        observed = (~HIDDEN).astype(float)
        weighted = self.fit(kind, loss, X, entry_weight=observed, sample_weight=times)
        repeated = self.fit(kind, loss, X.repeat(times, axis=0), entry_weight=observed.repeat(times, axis=0))
        np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-7)
        if loss == "kullback-leibler":
            rows = self.fit(kind, loss, X, entry_weight=observed * times[:, np.newaxis])
            np.testing.assert_allclose(rows.components_, weighted.components_, atol=1e-7)

    def test_transform_equals_fit_transform(self, kind, loss):
        model = self.fit(kind, loss, X, entry_weight=GIVEN)
        weights = model.doc_factor_ if kind is NMF else model.doc_topic_
        assert np.array_equal(model.transform(X, entry_weight=GIVEN), weights)
        alone = model.transform(X[3:4], entry_weight=GIVEN[3:4])
        np.testing.assert_allclose(alone[0], weights[3], rtol=1e-9, atol=1e-12)
        again = kind(K, loss=loss, random_state=0, max_iter=40, tol=0, dtype="float64")
        assert np.array_equal(again.fit_transform(X, entry_weight=GIVEN), weights)

    def test_folding_in_uses_observed_entries_only(self, kind, loss):
        """With topics that explain the data exactly, missing entries do not change the weights."""
        W, H = oracles.random_factors(4, 30, 20, K)
        model = kind(K, loss=loss, random_state=0, max_iter=600, tol=0, dtype="float64").fit(50 * W @ H)
        data = 7 * np.random.default_rng(5).dirichlet(np.ones(K), 30) @ model.components_
        hidden = np.random.default_rng(6).random(data.shape) < 0.3
        found = model.transform(np.where(hidden, np.nan, data))
        np.testing.assert_allclose(found, model.transform(data), atol=2e-2 * found.max())
        assert np.abs(model.transform(np.where(hidden, 0, data)) - found).max() > 0.05 * found.max()

    def test_threads_types_and_documents_of_weight_zero(self, kind, loss):
        settings = {"loss": loss, "random_state": 0, "max_iter": 10, "tol": 0}
        one, two = (kind(K, n_jobs=n, **settings).fit(sp.csr_array(X), entry_weight=GIVEN) for n in (1, 2))
        assert np.array_equal(one.components_, two.components_)
        narrow = kind(K, **settings).fit(X.astype(np.float32), entry_weight=GIVEN)
        assert narrow.components_.dtype == np.float32
        np.testing.assert_allclose(narrow.components_, one.components_, atol=1e-3)
        counted = np.arange(len(X)) % 5 > 0
        zero = kind(K, **settings).fit(X, entry_weight=GIVEN, sample_weight=counted)
        without = kind(K, **settings).fit(X[counted], entry_weight=GIVEN[counted])
        np.testing.assert_allclose(zero.components_, without.components_, atol=1e-12)
        assert len(zero.transform(X, entry_weight=GIVEN)) == len(X)


@EVERY_LOSS
def test_the_error_is_the_weighted_loss(loss):
    """Integer weights of entries multiply their terms of the loss."""
    V = np.random.default_rng(7).integers(0, 4, X.shape)
    model = NMF(K, loss=loss, random_state=0, max_iter=100).fit(X, entry_weight=V)
    value = loss_of(loss, V, model.doc_factor_.astype(float), model.components_.astype(float)).sum()
    assert model.reconstruction_err_ == pytest.approx(value, rel=1e-6)


def test_the_likelihood_is_that_of_the_observed_words():
    model = PLSA(K, random_state=0, max_iter=100).fit(X, entry_weight=~HIDDEN)
    p = np.where(HIDDEN, 0, model.doc_topic_ @ model.components_)
    seen = ~HIDDEN & (X > 0)
    logs = np.log((p / p.sum(axis=1, keepdims=True))[seen])
    assert model.log_likelihood_ == pytest.approx((X[seen] * logs).sum() / X[seen].sum(), rel=1e-6)
    assert model.history_["log_likelihood"][-1] == pytest.approx(model.log_likelihood_, abs=1e-3)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_predictions_of_missing_counts_are_unbiased(share):
    _, data, _ = planted(3, n_docs=400, scale=1.0)
    hidden = np.random.default_rng(1).random(data.shape) < share
    model = NMF(4, random_state=0, tol=1e-3).fit(data, entry_weight=HiddenEntries(hidden))
    predicted = (model.doc_factor_ @ model.components_)[hidden].sum()
    assert predicted / data[hidden].sum() == pytest.approx(1.0, abs=0.04)


def test_cross_validation_by_entries():
    rng = np.random.default_rng(1)
    theta, phi = rng.dirichlet(np.full(4, 0.3), 250), rng.dirichlet(np.full(300, 0.2), 4)
    data = rng.poisson(rng.gamma(4, 30, 250)[:, np.newaxis] * (theta @ phi)).astype(np.float32)
    found = {k: cross_validate(PLSA(k, random_state=0), data, by="entries", n_folds=3) for k in (1, 4, 30)}
    for k in (1, 4):
        assert found[k].predicted_ratio == pytest.approx(1.0, abs=0.02)
    assert found[4].perplexity < found[1].perplexity
    assert found[4].perplexity < found[30].perplexity
    assert found[1].perplexity == pytest.approx(found[1].unigram_perplexity, rel=0.01)
    assert found[4].scores.tokens.sum() + found[4].scores.unseen_tokens == pytest.approx(data.sum())
    same = cross_validate(NMF(4, random_state=0), sp.csr_array(data), by="entries", n_folds=3)
    assert same.perplexity == pytest.approx(found[4].perplexity, rel=1e-4)


def test_folds_have_every_entry_once_and_equally_often_per_row_and_column():
    folds = [fold.dense() for fold in diagonal_folds(*X.shape, 5, 0)]
    assert (np.sum(folds, axis=0) == 1).all()
    for fold in folds:
        assert (fold.sum(axis=1) == 6).all()
        assert (fold.sum(axis=0) == 8).all()


@pytest.mark.parametrize(
    "model",
    [
        LDA(2),
        PLSA(2, background=0.1),
        PLSA(2, solver="em"),
        NMF(2, loss="squared"),
        PLSA(2, loss="squared"),
        NMF(2, alpha_W=0.1),
    ],
)
def test_cross_validation_by_entries_is_for_plain_likelihood(model):
    with pytest.raises(UnsupportedError, match="by='entries' fits plain maximum likelihood"):
        cross_validate(model, X, by="entries", n_folds=3)


def without_row():
    table = np.ones_like(X)
    table[4] = 0
    return table


ERRORS = {
    "shape": (X, np.ones((3, 2)), {}, InputError, r"entry_weight must have the shape of X, \(40, 30\), got \(3, 2\)"),
    "ragged": (X, [[1, 2], [3]], {}, InputError, "entry_weight must have the shape of X"),
    "hidden-shape": (X, HiddenEntries(np.ones((3, 2))), {}, InputError, "entry_weight must have the shape of X"),
    "negative": (X, np.where(HIDDEN, -1, 1), {}, InputError, "entry_weight must be finite and not negative"),
    "sparse-negative": (X, sp.csr_array(-np.eye(40, 30)), {}, InputError, "must be finite and not negative"),
    "infinite": (X, np.where(HIDDEN, np.inf, 1), {}, InputError, "entry_weight must be finite and not negative"),
    "text": (X, np.full(X.shape, "a"), {}, InputError, "entry_weight must be a table of numbers"),
    "range": (X, np.where(HIDDEN, 1e-60, 1), {}, InputError, "Every entry_weight must be 0 or between"),
    "row": (X, without_row(), {}, InputError, "All entries of row 4 are missing: leave such a row out"),
    "column": (X, without_row().T[:30].T @ np.diag(np.arange(30) != 2), {}, InputError, "All entries of"),
    "nan-row": (np.where(without_row() > 0, X, np.nan), None, {}, InputError, "All entries of row 4 are missing"),
    "nan-column": (np.where(np.arange(30) == 2, np.nan, X), None, {}, InputError, "All entries of column 2"),
    "nan-present": (
        np.where(HIDDEN, np.nan, X), np.where(np.arange(30) > 3, 1, 2) * np.ones_like(X), {}, InputError,
        "X is NaN in row .*, where entry_weight is positive",
    ),
    "sparse-nan": (sp.csr_array(np.where(HIDDEN, np.nan, X)), None, {}, InputError, "Input X contains NaN"),
    "nan-and-infinity": (np.where(HIDDEN, np.nan, np.inf), None, {}, InputError, "contains infinity"),
    "nan-and-negative": (np.where(HIDDEN, np.nan, -X - 1), None, {}, ValueError, "Negative values"),
    "loss": (X, ~HIDDEN, {"loss": "chi-square"}, UnsupportedError, "loss='chi-square' takes no entry_weight"),
    "loss-nan": (np.where(HIDDEN, np.nan, X), None, {"loss": "absolute"}, UnsupportedError, "no missing entries"),
    "solver": (X, ~HIDDEN, {"solver": "scd"}, UnsupportedError, "'scd' gives all entries the same weight.*: auto, mm"),
    "stopping": (X, ~HIDDEN, {"early_stopping": EarlyStopping()}, UnsupportedError, "all entries the same weight"),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_masked_entries_are_missing(dtype):
    masked = np.ma.masked_array(X.astype(dtype), HIDDEN)
    with_nan = np.where(HIDDEN, np.nan, X).astype(np.float32 if dtype is np.float32 else np.float64)
    for estimator in (PLSA(K, random_state=0, max_iter=20), NMF(K, loss="squared", random_state=0, max_iter=20)):
        expected = estimator.fit(with_nan).components_
        np.testing.assert_array_equal(estimator.fit(masked).components_, expected, strict=True)
    for other in (LDA(K), RealTopicModel(PLSA(K))):
        with pytest.raises(InputError, match="Input X contains NaN"):
            other.fit(masked)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    data, weights, settings, error, message = ERRORS[name]
    with pytest.raises(error, match=message):
        PLSA(K, random_state=0, **settings).fit(data, entry_weight=weights)


@pytest.mark.parametrize("kind", [PLSA, NMF])
@pytest.mark.parametrize(
    "weights",
    [np.ones(X.shape), np.repeat(np.arange(1.0, 41)[:, np.newaxis], 30, axis=1), sp.csr_array(np.ones(X.shape)),
     HiddenEntries(np.zeros(X.shape))],
    ids=["ones", "rows", "sparse", "none-hidden"],
)  # fmt: skip
def test_nan_is_refused_where_all_entries_of_a_document_have_the_same_weight(kind, weights):
    data, message = X.copy(), "X is NaN in row 3, column 5, where entry_weight is positive"
    data[3, 5] = np.nan
    model = kind(2, random_state=0, max_iter=1, tol=1e9).fit(X)
    for method in (model.fit, model.fit_transform, model.transform):
        with pytest.raises(InputError, match=message):
            method(data, entry_weight=weights)


@pytest.mark.parametrize("parameters", [{"background": 0.2}, {"doc_topic_prior": 1.1}, {"solver": "tempered"}], ids=str)
def test_models_that_cannot_weigh_entries_refuse_them_for_new_documents(parameters):
    model = PLSA(2, random_state=0, max_iter=3, tol=0, **parameters).fit(X)
    with pytest.raises(UnsupportedError, match="without background, priors and tempering"):
        model.transform(np.where(HIDDEN, np.nan, X))


@pytest.mark.parametrize("kind", [PLSA, NMF])
def test_a_loss_that_cannot_weigh_entries_refuses_them_for_new_documents(kind):
    model = kind(2, random_state=0, max_iter=3, tol=0, loss="absolute").fit(X)
    with pytest.raises(UnsupportedError, match="loss='absolute' takes no entry_weight and no missing entries"):
        model.transform(np.where(HIDDEN, np.nan, X))


def test_a_prior_of_topics_does_not_matter_for_new_documents():
    model = PLSA(2, random_state=0, max_iter=3, tol=0, topic_word_prior=1.1).fit(X)
    np.testing.assert_allclose(model.transform(np.where(HIDDEN, np.nan, X)).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (PLSA(), True), (NMF(), True), (NMF(loss="squared"), True), (LDA(), False), (PLSA(loss="absolute"), False),
        (NMF(loss="no loss"), False), (PLSA(background=0.1), False), (PLSA(background="no number"), False),
        (PLSA(doc_topic_prior=1.1), False), (PLSA(topic_word_prior="no prior"), False),
    ],
)  # fmt: skip
def test_tags_say_who_takes_missing_entries(model, expected):
    assert get_tags(model).input_tags.allow_nan is expected


def test_other_errors(tmp_path):
    for settings in ({"background": 0.1}, {"doc_topic_prior": 1.1}, {"topic_word_prior": 1.1}):
        with pytest.raises(UnsupportedError, match="without background, priors and tempering"):
            PLSA(K, **settings).fit(X, entry_weight=~HIDDEN)
    with pytest.raises(UnsupportedError, match="cannot be resumed"):
        PLSA(K, random_state=0, checkpoint=tmp_path / "state").fit(X, entry_weight=~HIDDEN)
    shards = write_shards([X], tmp_path / "shards")
    for method in (PLSA(K).fit, NMF(K).fit, PLSA(K, max_iter=2).fit(X).transform, NMF(K, max_iter=2).fit(X).transform):
        with pytest.raises(UnsupportedError, match="Shards have no weights of entries"):
            method(shards, entry_weight=~HIDDEN)
    model = PLSA(K, max_iter=2).fit(X)
    with pytest.raises(InputError, match="All entries of row 4 are missing"):
        model.transform(X, entry_weight=without_row())
    for method in (model.perplexity, model.with_documents, model.partial_fit, LDA(K).fit):
        with pytest.raises(InputError, match="Input X contains NaN"):
            method(np.where(HIDDEN, np.nan, X))
    with pytest.raises(InputError, match="HiddenEntries takes a table"):
        HiddenEntries(["a"])
