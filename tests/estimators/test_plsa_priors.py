"""PLSA with every prior and background: weights, batches, files, and stationary points."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from family_cases import (
    BACKGROUND,
    DOC_CASES,
    PHI,
    WORD_CASES,
    K,
    X,
    fitted,
    log_likelihood,
    model_of,
    over,
    same_fit,
)
from polyseme import PLSA, Background, JointBackground, load
from polyseme.core.fold_in import fold_in
from polyseme.core.shard import sparse_counts
from polyseme.priors import Decorrelation, Dirichlet, Entropic, KnownTopics, SeedWords, Smoothing, TopicSelection
from polyseme.priors.members import as_prior
from polyseme.solvers import Tempered

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def everything():
    """Return the parameters of a fit for each prior and background, by name."""
    cases = {f"docs-{name}": {"doc_topic_prior": case.prior} for name, case in DOC_CASES.items()}
    cases |= {f"words-{name}": {"topic_word_prior": case.prior} for name, case in WORD_CASES.items()}
    cases |= {
        "background": {"background": 0.3},
        "given-background": {"background": Background(0.3, BACKGROUND)},
        "joint-background": {"background": JointBackground(0.3)},
        "all": {"background": 0.2, "doc_topic_prior": 1.1, "topic_word_prior": [Entropic(-1), Smoothing(2)]},
        "all-tempered": {
            "background": 0.2, "doc_topic_prior": 1.1, "topic_word_prior": Entropic(2), "solver": Tempered(0.8),
        },
    }  # fmt: skip
    return cases


EVERYTHING = over("parameters", everything())


class TestEstimator:
    @EVERYTHING
    def test_weights_are_repeated_rows(self, parameters):
        times = np.random.default_rng(5).integers(1, 4, 20)
        weighted = fitted(sample_weight=times, max_iter=15, tol=0, **parameters)
        repeated = fitted(X.repeat(times, axis=0), max_iter=15, tol=0, **parameters)
        np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)
        np.testing.assert_allclose(weighted.doc_topic_.repeat(times, axis=0), repeated.doc_topic_, atol=1e-7)
        np.testing.assert_allclose(weighted.history_["objective"], repeated.history_["objective"], rtol=1e-10)
        np.testing.assert_allclose(weighted.word_background_, repeated.word_background_, atol=1e-9)

    @EVERYTHING
    def test_a_document_of_weight_zero_does_not_change_the_fit(self, parameters):
        counted = (np.arange(20) % 4 > 0).astype(float)
        weighted = fitted(sample_weight=counted, max_iter=15, **parameters)
        without = fitted(X[counted > 0], max_iter=15, **parameters)
        np.testing.assert_allclose(weighted.components_, without.components_, atol=1e-12)

    @EVERYTHING
    def test_results_do_not_depend_on_threads(self, parameters):
        one = fitted(sp.csr_array(X), n_jobs=1, **parameters)
        for n_jobs in (2, 3):
            same_fit(fitted(sp.csr_array(X), n_jobs=n_jobs, **parameters), one)

    @EVERYTHING
    def test_dense_and_sparse_data_give_equal_fits(self, parameters):
        same_fit(fitted(sp.csr_array(X), max_iter=10, **parameters), fitted(X, max_iter=10, **parameters), 1e-9)

    @EVERYTHING
    def test_float32_stays_float32(self, parameters):
        narrow, wide = fitted(X.astype(np.float32), max_iter=5, **parameters), fitted(max_iter=5, **parameters)
        assert narrow.components_.dtype == narrow.doc_topic_.dtype == np.float32
        assert narrow.transform(X.astype(np.float32)).dtype == np.float32
        assert wide.components_.dtype == np.float64
        np.testing.assert_allclose(narrow.components_, wide.components_, atol=1e-4)

    @EVERYTHING
    def test_folding_in_equals_fit_transform(self, parameters):
        """transform is doc_topic_, whatever the batch; a document without words has the topics' weights.

        Under a prior with several maxima, doc_topic_ starts from the weights of the fit.
        """
        data = X.copy()
        data[4] = 0
        model = fitted(data, **parameters)
        weights = model.transform(data)
        if model._fitted.inference.has_one_maximum:
            assert np.array_equal(weights, model.doc_topic_)
        assert np.array_equal(model.doc_topic_[4], model.topic_weights_)
        assert np.array_equal(weights[4], model.topic_weights_)
        for array in (weights, model.doc_topic_):
            np.testing.assert_allclose(array.sum(axis=1), 1, atol=1e-12)
        for d in range(20):
            assert np.array_equal(model.transform(data[d : d + 1])[0], weights[d])
        assert np.array_equal(model.transform(data[::-1]), weights[::-1])
        assert np.array_equal(model.transform(sp.csr_array(data)), weights)

    @EVERYTHING
    def test_a_saved_model_is_loaded_unchanged(self, parameters, tmp_path):
        model = fitted(**parameters)
        model.save(tmp_path / "model")
        twin = load(tmp_path / "model")
        same_fit(twin, model)
        assert np.array_equal(twin.transform(X), model.transform(X))
        assert twin.score(X) == model.score(X)
        assert twin.perplexity(X) == model.perplexity(X)
        twin.set_params(max_iter=30).fit(X)
        same_fit(twin, model)

    @EVERYTHING
    def test_training_perplexity_is_that_of_the_folded_in_documents(self, parameters):
        model = fitted(**parameters)
        weights = model.fold_in(X)._replace(doc_topic=model.doc_topic_, background=model.doc_background_)
        report = model.perplexity_report(X, weights=weights)
        assert report.perplexity == pytest.approx(model.training_perplexity_, rel=1e-12)
        if model._fitted.inference.has_one_maximum:
            assert model.perplexity(X) == report.perplexity

    @pytest.mark.parametrize("solver", [Tempered(0.8), "held-out-tempered", "annealed"])
    @pytest.mark.parametrize("background", [0.0, 0.3, JointBackground(0.3)])
    def test_tempered_solvers_accept_every_prior(self, solver, background):
        priors = {"topic_word_prior": [Dirichlet(1.1), Decorrelation(0.5)]}
        if not isinstance(background, JointBackground):
            priors["doc_topic_prior"] = Entropic(0.5)
        model = fitted(solver=solver, background=background, max_iter=100, **priors)
        assert np.isfinite(model.score(X))
        if model._fitted.inference.has_one_maximum:
            assert np.array_equal(model.transform(X), model.doc_topic_)
        same_fit(fitted(sp.csr_array(X), solver=solver, background=background, max_iter=100, **priors), model, 1e-6)


CONCAVE = {
    "dirichlet": (Dirichlet(1.3), DOC_CASES["number"]._replace(log_density=lambda f: 0.3 * np.log(f).sum(axis=1))),
    "smoothing": (Smoothing(3, np.arange(1, K + 1)), DOC_CASES["smoothing"]),
    "flat-entropic": (Entropic(-2), DOC_CASES["flat-entropic"]),
}


class TestStationary:
    @over("case", CONCAVE)
    @pytest.mark.parametrize("share", [0.0, 0.3])
    def test_no_other_weights_of_a_document_are_better(self, case, share):
        prior, naive = case
        theta = fold_in(
            model_of(prior, share=share), sparse_counts(X, np.dtype(np.float64)), PHI, None, n_threads=1, tol=1e-9
        ).doc_topic

        def value(weights):
            p = share * BACKGROUND + (1 - share) * weights @ PHI
            return (X * np.log(p)).sum(axis=1) + naive.log_density(weights)

        best, rng = value(theta), np.random.default_rng(6)
        for size in np.geomspace(1e-5, 1, 500):
            other = (1 - size) * theta + size * rng.dirichlet(np.ones(K), 20)
            assert (value(other) <= best + 1e-6).all()

    @over("parameters", {
        **{f"docs-{name}": {"doc_topic_prior": case.prior} for name, case in DOC_CASES.items()},
        **{f"words-{name}": {"topic_word_prior": case.prior} for name, case in WORD_CASES.items()},
        **{f"docs-entropic-{beta}": {"doc_topic_prior": Entropic(beta), "n_components": 6} for beta in (10, 20, 60)},
        "both-entropic": {"doc_topic_prior": Entropic(10), "topic_word_prior": Entropic(5)},
    })  # fmt: skip
    def test_weights_and_topics_are_a_local_maximum_together(self, parameters):
        """Neither random neighbors of the returned pair nor a fit that starts from it has a higher objective.

        Weights of priors with one maximum are folded in with a tolerance, and plain EM, which the priors that are not
        monotone need, is slow.
        """
        model = fitted(tol=0, max_iter=600, **parameters)
        doc_prior, word_prior = (as_prior(parameters.get(f"{side}_prior")) for side in ("doc_topic", "topic_word"))

        def value(theta, phi):
            density = 0.0 if word_prior is None else word_prior.log_density(phi)
            if doc_prior is not None:
                density += doc_prior.with_row_totals(X.sum(axis=1)).log_density(theta)
            return log_likelihood(X, theta, phi) + density

        point = model.doc_topic_, model.components_
        best, rng = value(*point), np.random.default_rng(6)
        exact = not model._fitted.inference.has_one_maximum and model.solver_ != "em"
        tolerance = 1e-6 if exact else 2e-3
        for size in np.geomspace(1e-5, 1e-2, 100):
            near = [oracles.normalized(factor * np.exp(size * rng.normal(size=factor.shape))) for factor in point]
            others = value(near[0], point[1]), value(point[0], near[1]), value(*near)
            assert max(others) <= best + tolerance
        again = fitted(tol=0, max_iter=200, init=point, **parameters)
        assert value(again.doc_topic_, again.components_) <= best + tolerance

    def test_a_strong_prior_determines_the_weights(self):
        model = fitted(doc_topic_prior=Smoothing(1e9, [0.5, 0.3, 0.2]))
        np.testing.assert_allclose(model.transform(X), np.tile([0.5, 0.3, 0.2], (20, 1)), atol=1e-6)

    def test_topics_that_selection_switched_off_stay_off_in_transform(self):
        """Folding in treats documents independently: active topics are free, inactive topics stay inactive."""
        model = fitted(n_components=6, doc_topic_prior=TopicSelection(2), max_iter=200)
        assert 0 < model.active_topics_.sum() < 6
        assert (model.transform(X)[:, ~model.active_topics_] == 0).all()
        assert (model.topic_weights_[~model.active_topics_] == 0).all()

    def test_an_inactive_topic_stays_inactive_with_a_smoothing_word_prior(self):
        """The prior fills the words of a topic that no document has: that does not turn it on."""
        model = fitted(n_components=6, doc_topic_prior=TopicSelection(2), topic_word_prior=1.1, max_iter=200)
        assert 0 < model.active_topics_.sum() < 6
        assert (model.transform(X)[:, ~model.active_topics_] == 0).all()


def checks_of_separate_documents(estimator):
    """Return the checks that fit_transform equals transform, if a prior acts on all training documents together."""
    names = ("check_transformer_general", "check_transformer_data_not_an_array")
    reason = "transform does not know the other documents"
    return dict.fromkeys(names, reason) if isinstance(estimator.doc_topic_prior, TopicSelection) else {}


@pytest.mark.slow
@parametrize_with_checks(
    [
        PLSA(2, background=0.2),
        PLSA(2, doc_topic_prior=1.1, topic_word_prior=1.1),
        PLSA(2, doc_topic_prior=Entropic(0.5)),
        PLSA(2, background=JointBackground(0.2)),
        PLSA(2, doc_topic_prior=TopicSelection(0.1), topic_word_prior=[Decorrelation(1), Smoothing(1)]),
        PLSA(2, background=0.2, doc_topic_prior=Entropic(-0.5), topic_word_prior=0.9, solver="em"),
    ],
    expected_failed_checks=checks_of_separate_documents,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("prior", "init"),
    [
        ({"topic_word_prior": SeedWords({0: [1, 2]})}, "random"),
        ({"topic_word_prior": [Smoothing(0.1), SeedWords({0: [1, 2]})]}, "random"),
        ({"doc_topic_prior": KnownTopics([0, None] * (len(X) // 2))}, "random"),
        ({"topic_word_prior": [Smoothing(0.1), Decorrelation(1.0)], "doc_topic_prior": 1.1}, "documents"),
    ],
)
def test_topics_that_a_prior_names_start_at_random(prior, init):
    automatic, named = (PLSA(3, init=start, random_state=0, max_iter=15, **prior).fit(X) for start in ("auto", init))
    np.testing.assert_array_equal(automatic.components_, named.components_)
