"""Every method folds in each document only once."""

from collections.abc import Iterator

import pytest
import scipy.sparse as sp

from estimator_cases import MEMBERS, X_WITH_GAPS
from polyseme import PLSA, UnsupportedError
from polyseme.core.dirichlet import DirichletPosterior, LearnedPosterior
from polyseme.core.fold_in import LeastLoss, MaximumLikelihood
from polyseme.core.logistic_normal import LogisticNormalPosterior
from polyseme.core.mixture import MixturePosterior
from polyseme.estimators.base import FittedDecomposition, TopicEstimator
from polyseme.metrics import evaluate
from polyseme.retrieval import SearchIndex
from polyseme.selection.cross_validation import score_documents

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = sp.csr_array(X_WITH_GAPS)
VOCABULARY = [f"w{column}" for column in range(X.shape[1])]
HOLDERS = [name for name, member in MEMBERS.items() if isinstance(member.make(), FittedDecomposition)]
LIKELIHOODS = [name for name in HOLDERS if MEMBERS[name].likelihood]
TOPIC_MODELS = [name for name in LIKELIHOODS if isinstance(MEMBERS[name].make(), TopicEstimator)]
NMFS = [name for name in HOLDERS if not isinstance(MEMBERS[name].make(), TopicEstimator)]


@pytest.fixture
def calls(monkeypatch) -> Iterator[list[int]]:
    """Yield a list that grows with the number of documents of each call of an inference."""
    sizes: list[int] = []
    for inference in (
        MaximumLikelihood,
        LearnedPosterior,
        DirichletPosterior,
        LogisticNormalPosterior,
        MixturePosterior,
        LeastLoss,
    ):

        def counted(self, counts, *arguments, weights=inference.weights, **options):
            sizes.append(counts.n_docs)
            return weights(self, counts, *arguments, **options)

        monkeypatch.setattr(inference, "weights", counted)
    return sizes


def fitted(name):
    return MEMBERS[name].make(random_state=0, n_jobs=1).fit(X)


@pytest.mark.parametrize("name", HOLDERS)
def test_fit_folds_in_once(calls, name):
    model = fitted(name)
    assert calls == [60]
    assert model._training.doc_topic.shape[0] == 60


@pytest.mark.parametrize("name", HOLDERS)
def test_fit_transform_folds_in_once(calls, name):
    MEMBERS[name].make(random_state=0, n_jobs=1).fit_transform(X)
    assert calls == [60]


@pytest.mark.parametrize("name", HOLDERS)
def test_transform_folds_in_once(calls, name):
    model = fitted(name)
    calls.clear()
    model.transform(X[:20])
    assert calls == [20]


@pytest.mark.parametrize("name", TOPIC_MODELS)
def test_scores_fold_in_once_and_an_evaluation_twice(calls, name):
    model = fitted(name)
    for method in (model.fold_in, model.perplexity, model.completion_perplexity, model.score):
        calls.clear()
        method(X[:20])
        assert calls == [20]
    calls.clear()
    evaluate(model, X[:20])
    assert calls == [20, 20]  # whole documents, and the half that completion observes


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_held_out_documents_are_folded_in_once(calls, name):
    model = fitted(name)
    calls.clear()
    score_documents(model, X[:20])
    assert calls == [20]


@pytest.mark.parametrize("name", HOLDERS)
def test_an_index_folds_in_its_documents_once_or_not_at_all(calls, name):
    model, index = fitted(name), SearchIndex(X, VOCABULARY)
    calls.clear()
    index.set_model(model)
    assert calls == [60]
    index.set_model(model, model._training.doc_topic)
    for method in ("plsi-q", "plsi-u"):
        index.search("w1 w2", method=method)
    index.senses("w1"), index.related_words("w1"), index.topic_documents(0)
    assert calls == [60]


def test_an_index_uses_the_weights_of_the_models_that_it_fits(calls):
    index = SearchIndex(X, VOCABULARY).fit_models((2, 3), n_jobs=1)
    assert calls == [60, 60]
    calls.clear()
    assert index.search("w1 w2").hits
    assert calls == []


def test_dense_counts_are_folded_in_by_blocks_of_rows(calls, monkeypatch):
    model = PLSA(3, random_state=0, max_iter=5).fit(X_WITH_GAPS)
    monkeypatch.setattr("polyseme.core.shard._DENSE_NUMBERS_AT_ONCE", 25 * X.shape[1])
    calls.clear()
    model.transform(X_WITH_GAPS)
    assert calls == [25, 25, 10]


@pytest.mark.parametrize("name", NMFS)
def test_evaluate_names_the_models_that_have_a_perplexity(name):
    with pytest.raises(UnsupportedError, match=r"NMF has no perplexity: .* or the result of NMF.to_plsa"):
        evaluate(MEMBERS[name].make(random_state=0).fit(X), X)
