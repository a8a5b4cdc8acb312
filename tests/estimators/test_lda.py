"""LDA as an estimator: scikit-learn's checks, its bound, recovery, files, and wrong input."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from estimator_cases import LEARNED, X_WITH_GAPS, X
from polyseme import LDA, PLSA, InputError, UnsupportedError, load
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import align
from polyseme.solvers import OnlineVariational, Variational

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SOLVERS = ("variational", "online", "map")


@parametrize_with_checks([LDA(2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([LDA()])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


def fitted(data=X, /, n_components=3, **parameters):
    weights = parameters.pop("sample_weight", None)
    return LDA(n_components, **{"random_state": 0, "max_iter": 30, **parameters}).fit(data, sample_weight=weights)


def scikit_learn_bound(model, data):
    """Return scikit-learn's `_approx_bound` for our parameters and priors."""
    theirs = LatentDirichletAllocation(len(model.components_)).fit(np.ones((2, data.shape[1])))
    theirs.doc_topic_prior_, theirs.topic_word_prior_ = model.doc_topic_prior_[0], model.topic_word_prior_[0]
    theirs.components_ = model.topic_word_dirichlet_.astype(np.float64)
    return theirs._approx_bound(data, model.doc_topic_dirichlet_.astype(np.float64), False)


# the bound


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("parameters", "rtol"),
    [
        ({}, 1e-12),
        ({"n_components": 7, "doc_topic_prior": 0.01, "topic_word_prior": 2.5}, 1e-12),
        ({"doc_topic_prior": "symmetric-learned", "topic_word_prior": "symmetric-learned"}, 1e-12),
        ({"solver": "online", "tol": 1e-4}, 1e-12),
        ({"dtype": "float32"}, 1e-6),
    ],
)
def test_the_bound_equals_that_of_scikit_learn(layout, parameters, rtol):
    """Also with empty documents and words that do not occur."""
    model = fitted(layout(X_WITH_GAPS), **parameters)
    np.testing.assert_allclose(model.bound_, scikit_learn_bound(model, X_WITH_GAPS), rtol=rtol)


def test_the_bound_of_many_topics_is_finite_in_float32():
    """alpha = 1/200: exp(psi(alpha)) is 1e-87."""
    model = fitted(sp.csr_array(X), n_components=200, dtype="float32", max_iter=10)
    np.testing.assert_allclose(model.bound_, scikit_learn_bound(model, X), rtol=1e-5)
    assert np.isfinite(model.history_["bound"]).all()


def test_the_bound_is_below_the_evidence():
    """One topic: the evidence is Dirichlet-multinomial, and the bound of one topic is exact."""
    from scipy.special import gammaln

    model = fitted(X, n_components=1, topic_word_prior=0.3)
    counts, eta = X.sum(axis=0), np.full(X.shape[1], 0.3)
    evidence = gammaln(eta.sum()) - gammaln(eta.sum() + counts.sum()) + (gammaln(eta + counts) - gammaln(eta)).sum()
    np.testing.assert_allclose(model.bound_, evidence, rtol=1e-12)


def test_the_final_bound_is_no_lower_than_that_of_scikit_learn():
    theirs = LatentDirichletAllocation(4, max_iter=100, random_state=0).fit(X)
    gamma = theirs._unnormalized_transform(X)
    assert fitted(X, n_components=4, max_iter=200).bound_ > theirs._approx_bound(X, gamma, False)


# recovery


def test_known_topics_are_recovered_better_than_by_plsa():
    """Short documents of few topics: median over 5 seeds of the mean total variation distance of matched topics."""
    errors = {LDA: [], PLSA: []}
    for seed in range(5):
        corpus = synthetic_corpus(
            1000, n_words=100, n_topics=8, length=15, doc_topic_prior=0.1, topic_word_prior=0.2, random_state=seed
        )
        for kind, priors in ((LDA, {"doc_topic_prior": 0.1, "topic_word_prior": 0.2}), (PLSA, {})):
            model = kind(8, random_state=seed, **priors).fit(corpus.counts())
            errors[kind].append(align(corpus.topic_word, model.components_)[1].mean())
    assert np.median(errors[LDA]) < 0.16
    assert np.median(errors[LDA]) < 0.95 * np.median(errors[PLSA])


def test_priors_are_learned():
    """From corpora with known alpha and eta, starting at 1/K."""
    alpha = np.array([0.6, 0.3, 0.1, 0.05])
    corpus = synthetic_corpus(
        800, n_words=60, n_topics=4, length=150, doc_topic_prior=alpha, topic_word_prior=0.1, random_state=0
    )
    model = fitted(corpus.counts(), n_components=4, max_iter=100, n_init=5, **LEARNED)
    order, distance = align(corpus.topic_word, model.components_)
    assert distance.max() < 0.1
    np.testing.assert_allclose(model.doc_topic_prior_[order], alpha, rtol=0.25)
    np.testing.assert_allclose(model.topic_word_prior_, model.topic_word_prior_[0])
    np.testing.assert_allclose(model.topic_word_prior_[0], 0.1, rtol=0.25)
    plain = fitted(corpus.counts(), n_components=4, max_iter=100)
    assert model.bound_ > plain.bound_


# MAP


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_map_with_neutral_priors_is_plsa(layout):
    """Girolami and Kaban (2003)."""
    data = layout(X_WITH_GAPS)
    flat = fitted(data, solver="map", doc_topic_prior=1, topic_word_prior=1.0)
    plsa = PLSA(3, random_state=0, max_iter=30).fit(data)
    np.testing.assert_allclose(flat.components_, plsa.components_, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(flat.doc_topic_, plsa.doc_topic_, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(flat.transform(data), plsa.transform(data), rtol=1e-12, atol=1e-15)
    assert flat.perplexity(data) == plsa.perplexity(data)


def test_map_finds_the_mode_of_the_posterior():
    """No neighbor of (theta, phi) has a higher log posterior; alpha = eta = 1.5."""
    model = fitted(solver="map", doc_topic_prior=1.5, topic_word_prior=1.5, max_iter=3000, tol=1e-7)
    rng = np.random.default_rng(0)

    def log_posterior(theta, phi):
        return oracles.log_likelihood(X, theta, phi) + 0.5 * (np.log(theta).sum() + np.log(phi).sum())

    best = log_posterior(model.doc_topic_, model.components_)
    for _ in range(200):
        theta = oracles.normalized(model.doc_topic_ * np.exp(0.02 * rng.standard_normal(model.doc_topic_.shape)))
        phi = oracles.normalized(model.components_ * np.exp(0.02 * rng.standard_normal(model.components_.shape)))
        assert log_posterior(theta, phi) < best
        assert log_posterior(model.doc_topic_, phi) < best + 1e-6 * abs(best)
    assert not hasattr(model, "bound_")


# weights of documents


def test_empty_documents_get_the_mean_of_the_prior():
    model = fitted(X_WITH_GAPS, doc_topic_prior=[1.0, 2.0, 5.0])
    np.testing.assert_allclose(model.transform(np.zeros((2, 45))), np.tile([0.125, 0.25, 0.625], (2, 1)), rtol=1e-12)
    np.testing.assert_allclose(model.doc_topic_[17], [0.125, 0.25, 0.625], rtol=1e-12)


def test_documents_of_weight_zero_do_not_change_the_fit():
    weights = np.ones(len(X))
    weights[::3] = 0
    with_them, without = fitted(sample_weight=weights), fitted(X[weights > 0])
    np.testing.assert_allclose(with_them.components_, without.components_, atol=1e-12)
    np.testing.assert_allclose(with_them.bound_, without.bound_, rtol=1e-12)
    assert len(with_them.doc_topic_) == len(X)


# attributes of a fit


def test_the_factors_are_means_of_the_posterior():
    model = fitted()
    lambda_, gamma = model.topic_word_dirichlet_, model.doc_topic_dirichlet_
    np.testing.assert_allclose(model.components_, lambda_ / lambda_.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(model.doc_topic_, gamma / gamma.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(lambda_.sum(), X.sum() + model.topic_word_prior_.sum() * 3, rtol=1e-3)  # extrapolated
    np.testing.assert_allclose(gamma.sum(axis=1), X.sum(axis=1) + model.doc_topic_prior_.sum(), rtol=1e-9)
    value = oracles.log_likelihood(X, model.doc_topic_, model.components_) / X.sum()
    np.testing.assert_allclose(model.log_likelihood_, value, rtol=1e-12)
    np.testing.assert_allclose(model.topic_weights_.sum(), 1, rtol=1e-12)


def test_history_and_callback_agree_and_convergence_is_reported():
    heard = []
    model = fitted(max_iter=500, tol=1e-5, callback=heard.append)
    assert model.converged_
    assert list(model.history_) == ["iteration", "seconds", "bound", "remaining"]
    assert len(heard) == model.n_iter_ + 1
    assert [entry["bound"] for entry in heard] == model.history_["bound"].tolist()
    assert (np.diff(model.history_["bound"]) >= 0).all()
    assert model.history_["remaining"][-1] < 1e-5
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 .*too few to see .*raise max_iter or tol"):
        fitted(max_iter=3, tol=0)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=12 .*gain about \d.* nats per token .*raise max_iter or tol"
    ):
        fitted(max_iter=12, tol=0)


@pytest.mark.parametrize("init", ["auto", "plsa", "random", "nndsvd", "correspondence", "lsa", "spectral"])
def test_every_start_is_accepted(init):
    """The best of five fits: the bounds are within 2% on eight corpora, where topics gain 10% over a single one."""
    several = {"max_iter": 100, "n_init": 5}
    np.testing.assert_allclose(fitted(init=init, **several).bound_, fitted(**several).bound_, rtol=0.03)
    assert fitted(init=init, solver="online").bound_ > fitted(n_components=1).bound_ + 100


def test_the_fit_starts_from_a_given_pair():
    corpus = synthetic_corpus(200, n_words=50, n_topics=3, length=80, topic_word_prior=0.05, random_state=1)
    pair = (corpus.doc_topic() + 1e-9, corpus.topic_word + 1e-9)
    model = fitted(corpus.counts(), init=pair, max_iter=20)
    assert align(corpus.topic_word, model.components_)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("solver", [*SOLVERS, Variational(doc_steps=2), OnlineVariational(batch_size=7)])
def test_a_saved_model_is_loaded_unchanged(solver, tmp_path):
    model = fitted(sp.csr_array(X_WITH_GAPS), solver=solver, doc_topic_prior=[0.5, 1.5, 2.0])
    model.save(tmp_path / "model.safetensors")
    twin = load(tmp_path / "model.safetensors")
    assert repr(twin.solver) == repr(solver)
    assert np.array_equal(twin.transform(X), model.transform(X))
    assert twin.score(X) == model.score(X)
    assert getattr(twin, "bound_", None) == getattr(model, "bound_", None)
    assert np.array_equal(twin.doc_topic_prior_, model.doc_topic_prior_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_scores_agree_with_the_attributes(solver):
    model = fitted(X, n_components=4, solver=solver, max_iter=60)
    report = model.completion_report(X)
    assert model.score(X) == -np.log(report.perplexity)
    assert report.perplexity < report.unigram_perplexity
    assert model.perplexity(X) < report.perplexity
    np.testing.assert_allclose(model.perplexity(X), model.training_perplexity_, rtol=1e-9)
    table = model.topics([f"word{w}" for w in range(45)], n_words=3)
    assert list(table.columns) == ["id", "name", "weight", "fit", "words"]
    assert len(table) == 4


TEXTS = ["ant bee ant", "bee ant cow", "iron zinc", "zinc iron gold zinc", "ant cow cow", "gold iron"] * 4


def test_grid_search_prefers_the_number_of_themes():
    pipeline = make_pipeline(CountVectorizer(), LDA(random_state=1))
    search = GridSearchCV(pipeline, {"lda__n_components": [1, 2]}, cv=3, error_score="raise").fit(TEXTS)
    assert search.best_params_ == {"lda__n_components": 2}
    assert list(search.best_estimator_.get_feature_names_out()) == ["lda0", "lda1"]


# wrong input


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"doc_topic_prior": [0.1, 0.2]}, InputError, r"doc_topic_prior has 2 numbers where 3 are needed"),
        ({"topic_word_prior": [0.1] * 44}, InputError, r"topic_word_prior has 44 numbers where 45 are needed"),
        ({"doc_topic_prior": -0.1}, InputError, r"doc_topic_prior must be finite and greater than 0, got -0.1"),
        ({"topic_word_prior": 0}, InputError, r"topic_word_prior must be finite and greater than 0, got 0"),
        ({"doc_topic_prior": float("nan")}, InputError, r"doc_topic_prior must be finite and greater than 0, got nan"),
        ({"doc_topic_prior": [1, np.inf, 1]}, InputError, r"doc_topic_prior must be finite and greater than 0"),
        ({"topic_word_prior": 1e300}, InputError, r"topic_word_prior must be between 1e-30 and 1e\+10, got 1e\+300"),
        ({"doc_topic_prior": "auto"}, InputError, r"doc_topic_prior must be None, a number, .*'symmetric-learned'"),
        ({"doc_topic_prior": {}}, InputError, r"doc_topic_prior must be None, a number, an array or a name"),
        ({"doc_topic_prior": True}, InputError, r"doc_topic_prior must be None, a number, an array or a name"),
        (
            {"doc_topic_prior": [[1.0]]},
            InputError,
            r"doc_topic_prior must be .* the shape \(3,\), got the shape \(1, 1\)",
        ),
        ({"topic_word_prior": np.ones((45, 3))}, InputError, r"topic_word_prior .* \(3, 45\), got the shape \(45, 3\)"),
        ({"solver": "gibbs"}, InputError, r"solver must be one of 'variational', 'online', 'map', .*got 'gibbs'"),
        ({"solver": 3}, InputError, r"solver must be one of .*got 3"),
        ({"init": "zeros"}, InputError, r"init must be one of 'auto', 'plsa', .* or a pair .*, got 'zeros'"),
        ({"init": None}, InputError, r"init must be one of 'auto', 'plsa', .* or a pair .*, got None"),
        ({"init": (None,)}, InputError, r"init must be one of 'auto', 'plsa', .* or a pair .*, got tuple"),
        ({"callback": 3}, InputError, r"callback must be None or a function"),
        ({"tol": -1}, InputError, r"tol must be a finite number of at least 0"),
        ({"max_iter": 0}, InputError, r"max_iter must be a whole number of at least 1"),
        ({"solver": "map", "doc_topic_prior": "symmetric-learned"}, UnsupportedError, r"'map' cannot learn priors"),
    ],
)
def test_wrong_parameters_raise(parameters, error, message):
    with pytest.raises(error, match=message) as caught:
        fitted(**parameters)
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    "settings", [{"batch_size": 0}, {"doc_steps": 0}, {"decay": 0.5}, {"decay": 1.1}, {"offset": 0.5}]
)
def test_wrong_settings_of_the_online_solver_raise(settings):
    with pytest.raises(InputError, match=r"OnlineVariational: .* must be"):
        OnlineVariational(**settings)


@pytest.mark.parametrize("settings", [{"doc_steps": -1}, {"doc_tol": -1.0}, {"refresh": -1}])
def test_wrong_settings_of_the_batch_solver_raise(settings):
    with pytest.raises(InputError, match=r"Variational: .* must not be negative"):
        Variational(**settings)


def test_extreme_counts_give_no_warnings():
    data = np.array([[1e9, 0, 3], [0, 1e-3, 1], [2, 5, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for dtype in ("float32", "float64"):
            model = fitted(data, n_components=2, dtype=dtype)
            assert np.isfinite(model.bound_)
            assert np.isfinite(model.transform(data)).all()
