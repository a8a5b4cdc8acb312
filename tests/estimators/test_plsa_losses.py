"""PLSA with other losses: normalized factors, minima under the constraints, and what needs a likelihood."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
import polyseme
from polyseme import PLSA, UnsupportedError
from polyseme.core.model import as_loss
from polyseme.core.shard import sparse_counts
from polyseme.losses import Beta
from polyseme.metrics import evaluate
from polyseme.scale import write_shards
from polyseme.selection import cross_validate
from sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = oracles.mixed_counts(0, 40, 25, 3).astype(float)
X[4] = 0
LOSSES = ["squared", "chi-square", "absolute", Beta(0.5), Beta(1.5)]
EVERY = pytest.mark.parametrize("loss", LOSSES, ids=str)


def expected_failures(estimator):
    """Return the checks that `fit_transform` equals `transform`, if the weights of documents have several minima."""
    names = ("check_transformer_general", "check_transformer_data_not_an_array")
    reason = "the weights of the fit continue from those of its last iteration"
    return dict.fromkeys(names, reason) if estimator.loss == "absolute" else {}


@pytest.mark.slow
@parametrize_with_checks([PLSA(3, loss="squared"), PLSA(3, loss="absolute")], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@EVERY
def test_the_factors_are_distributions_and_the_joint_probabilities_sum_to_one(loss):
    model = PLSA(3, loss=loss, random_state=0, dtype=np.float64).fit(X)
    for distribution in (model.components_, model.doc_topic_, model.topic_doc_, model.topic_weights_[np.newaxis]):
        np.testing.assert_allclose(distribution.sum(axis=1), 1, rtol=1e-9)
        assert distribution.min() >= 0
    joint = np.einsum("k,kd,kw->dw", model.topic_weights_, model.topic_doc_, model.components_)
    assert joint.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        joint, model.doc_weights_[:, np.newaxis] * (model.doc_topic_ @ model.components_), atol=1e-12
    )
    np.testing.assert_allclose(model.doc_weights_, X.sum(axis=1) / X.sum())
    np.testing.assert_allclose(model.doc_topic_[4], model.topic_weights_)


@EVERY
def test_the_weights_of_a_document_minimize_the_loss(loss):
    """Against a general optimizer on the simplex."""
    loss = as_loss(loss)
    model = PLSA(3, loss=loss, random_state=0, dtype=np.float64).fit(X)
    for x, theta in zip(X[:8], model.doc_topic_[:8], strict=True):
        n = x.sum()
        if n == 0:
            continue

        def value(logits, x=x, n=n):
            p = np.exp(logits - logits.max())
            return loss.values(x, np.maximum(n * (p / p.sum()) @ model.components_, 1e-12 * n / 25)).sum()

        found = value(np.log(np.maximum(theta, 1e-12)))
        best = min(
            minimize(value, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-8, "fatol": 1e-10}).fun
            for start in (np.zeros(3), np.log(theta + 1e-3))
        )
        assert found <= best * (1.01 if loss.name == "absolute" else 1.002) + 1e-3  # the smoothing is 0.01


@pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES if loss != Beta(0.5)], ids=str
)  # Beta(0.5) has many local minima
def test_the_loss_is_lower_than_that_of_maximum_likelihood(loss):
    def value(model):
        Q = X.sum(axis=1, keepdims=True) * (model.doc_topic_ @ model.components_)
        return as_loss(loss).values(X, np.maximum(Q, 1e-12)).sum()

    settings = {"random_state": 0, "n_init": 3, "max_iter": 500}
    assert value(PLSA(3, loss=loss, tol=1e-4, **settings).fit(X)) < value(PLSA(3, tol=1e-6, **settings).fit(X))


def test_the_kullback_leibler_loss_is_the_likelihood():
    plain, named, member = (PLSA(3, random_state=0, **loss).fit(X) for loss in (
        {}, {"loss": "kullback-leibler"}, {"loss": Beta(1.0)},
    ))  # fmt: skip
    assert np.array_equal(plain.components_, named.components_)
    assert np.array_equal(plain.components_, member.components_)
    assert member.log_likelihood_ == plain.log_likelihood_


def test_scores_that_need_a_likelihood_raise():
    model = PLSA(3, loss="squared", random_state=0).fit(X)
    for score in (model.perplexity, model.perplexity_report, model.completion_perplexity, model.completion_report,
                  lambda data: evaluate(model, data)):  # fmt: skip
        with pytest.raises(UnsupportedError, match=r"loss without a likelihood.*no perplexity and no score") as error:
            score(X)
        sentence(error)
    for name in ("score", "log_likelihood_", "training_perplexity_"):
        assert not hasattr(model, name)
    with pytest.raises(UnsupportedError, match=r"PLSA has no P\(w\|d\) to score held-out words"):
        cross_validate(PLSA(2, loss="squared", random_state=0), X, n_folds=3)
    with pytest.raises(UnsupportedError, match="to_nmf keeps the likelihood"):
        model.to_nmf()
    with pytest.raises(AttributeError) as error:
        PLSA(3, loss="squared").partial_fit(X)
    assert "partial_fit is stepwise EM" in str(error.value.__cause__)


@pytest.mark.parametrize(
    "parameter", [{"background": 0.1}, {"doc_topic_prior": 1.1}, {"topic_word_prior": 1.1}], ids=str
)
def test_priors_and_backgrounds_raise(parameter):
    with pytest.raises(UnsupportedError, match="has no likelihood that a prior or a background could change") as error:
        PLSA(3, loss="squared", **parameter).fit(X)
    sentence(error)


def test_a_checkpoint_raises(tmp_path):
    with pytest.raises(UnsupportedError, match="checkpoint: solver='mm' cannot be resumed"):
        PLSA(3, loss="squared", random_state=0, checkpoint=tmp_path / "c").fit(X)


@pytest.mark.parametrize("loss", ["squared", Beta(1.5)], ids=str)
def test_shards_are_loaded(loss, tmp_path):
    shards = write_shards([sp.csr_array(X)], tmp_path / "shards", shard_nonzeros=200)
    stored = PLSA(3, loss=loss, random_state=0, dtype=np.float64).fit(shards)
    whole = PLSA(3, loss=loss, random_state=0, dtype=np.float64).fit(sp.csr_array(X))
    np.testing.assert_allclose(stored.components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(stored.doc_topic_, whole.doc_topic_, atol=1e-6)
    np.testing.assert_allclose(stored.transform(shards), whole.transform(X), atol=1e-6)


@EVERY
def test_a_model_is_saved_and_loaded(loss, tmp_path):
    model = PLSA(3, loss=loss, random_state=0, max_iter=20).fit(X)
    model.save(tmp_path / "model")
    again = polyseme.load(tmp_path / "model")
    assert np.array_equal(again.transform(X), model.transform(X))
    assert str(again.topics(n_words=3)) == str(model.topics(n_words=3))


def test_topics_of_an_edited_model_are_folded_in_by_the_loss():
    model = PLSA(3, loss="squared", random_state=0).fit(X)
    merged = model.with_topics(model.components_[[0, 1]] + model.components_[[2, 2]], X)
    assert merged.doc_topic_.shape == (40, 2)
    assert merged._fitted.inference.loss.name == "squared"
    assert not hasattr(merged, "log_likelihood_")


@pytest.mark.parametrize("loss", ["absolute", "squared", "chi-square", Beta(1.5)], ids=str)
def test_new_documents_have_no_weight_in_topics_without_documents(loss):
    model = PLSA(3, loss=loss, random_state=0, max_iter=5, tol=1).fit(X)
    unused = replace(model._fitted, active=np.array([True, False, True]))
    counts = sparse_counts(X[:4], model.components_.dtype)
    weights = unused.fold_in(counts).doc_topic
    np.testing.assert_array_equal(weights[:, 1], 0)
    expected = replace(unused, topic_word=model.components_[[0, 2]], active=np.ones(2, bool)).fold_in(counts).doc_topic
    np.testing.assert_allclose(weights[:, [0, 2]], expected, atol=1e-3)
