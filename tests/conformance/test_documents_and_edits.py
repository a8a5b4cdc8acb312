"""Every text model, in memory and from shards: other training documents, edited topics, and fits from its topics."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from estimator_cases import MEMBERS, X_WITH_GAPS
from polyseme import LDA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, InputError, JointBackground
from polyseme.core.shard import without_words
from polyseme.errors import UnsupportedError
from polyseme.estimators.base import FittedDecomposition
from polyseme.priors import Dirichlet, SeedWords, Smoothing
from polyseme.scale import write_shards

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = sp.csr_array(X_WITH_GAPS.astype(np.float64))
OTHER = X[::-2]
MORE = {"PLSA-background": lambda **given: PLSA(3, max_iter=40, background=0.2, **given)}
MAKERS = {
    name: member.make for name, member in MEMBERS.items() if isinstance(member.make(), FittedDecomposition)
} | MORE
EVERY = pytest.mark.parametrize("name", MAKERS)
IN_MEMORY = [name for name in MAKERS if name.startswith("NMF-")]
"""Models without shards."""
OTHER_LOSS = [name for name, member in MEMBERS.items() if name in MAKERS and not member.likelihood]
EDITED = [name for name, make in MAKERS.items() if make()._edits_topics and name not in OTHER_LOSS]
REFITTED = [name for name, make in MAKERS.items() if make()._refits]
OF_DOCUMENTS = (
    "log_likelihood_", "topic_weights_", "unigram_", "n_tokens_", "doc_weights_", "bound_", "log_evidence_",
    "doc_totals_", "reconstruction_err_", "node_word_documents_", "labels_", "node_weights_", "word_documents_",
    "topic_documents_", "document_frequency_", "word_background_", "n_documents_seen_",
)  # fmt: skip
"""Attributes that follow from the training documents."""


def places(names):
    """Return a mark that runs a test with every model and every place of its documents."""
    pairs = [(name, place) for place in ("memory", "dense", "shards") for name in names]
    return pytest.mark.parametrize(
        ("name", "place"), [pair for pair in pairs if pair[1] != "shards" or pair[0] not in IN_MEMORY]
    )


@pytest.fixture(scope="module")
def fitted():
    """Return a function that returns a fitted model, fitted once."""
    known = {}

    def fit(name):
        if name not in known:
            known[name] = MAKERS[name](random_state=0, n_jobs=1).fit(X)
        return known[name]

    return fit


def placed(counts, place, folder):
    """Return counts in memory, or in several shards."""
    if place == "dense":
        return counts.toarray()
    if place == "memory":
        return counts
    shards = write_shards([counts], folder / "shards", shard_nonzeros=1 + counts.nnz // 3)
    assert len(shards.manifest.shards) > 2
    return shards


def of_documents(model):
    found = {name: getattr(model, name) for name in OF_DOCUMENTS if hasattr(model, name)}
    documents = model._training
    found |= {"doc_topic": documents.doc_topic, "background": documents.background, **documents.parameters}
    return {name: np.asarray(value) for name, value in found.items()}


def objective(model, data):
    """Return the log-likelihood, or minus the loss."""
    inference = model._fitted.inference
    if inference.is_likelihood:
        return model.log_likelihood_
    assert not hasattr(model, "log_likelihood_")
    counts = data.toarray() if sp.issparse(data) else data
    factor = model.doc_factor_ if isinstance(model, NMF) else model.doc_topic_ * counts.sum(axis=1)[:, np.newaxis]
    q = factor @ model.components_
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where((counts == 0) & (q == 0), 0, inference.loss.values(counts, q))
    if isinstance(model, NMF):
        np.testing.assert_allclose(model.reconstruction_err_, values.sum(), rtol=1e-6)
    return -values.sum()


# other documents


@places(MAKERS)
def test_the_documents_of_the_fit_give_the_fit(name, place, fitted, tmp_path):
    model = fitted(name)
    before = of_documents(model)
    again = model.with_documents(placed(X, place, tmp_path))
    assert type(again) is type(model)
    assert again._fitted.topic_word is model._fitted.topic_word
    after = of_documents(again)
    assert after.keys() == before.keys()
    if not model._fitted.inference.has_one_maximum:  # weights of the fit continue from those of its last iteration
        weights = model.transform(X)[X.sum(axis=1) > 0]
        shares = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(after["doc_topic"][X.sum(axis=1) > 0], shares, rtol=1e-6, atol=1e-9)
        return
    for key, value in before.items():
        np.testing.assert_allclose(after[key], value, rtol=1e-6, atol=1e-9, err_msg=key)


@places(MAKERS)
def test_other_documents_replace_those_of_the_fit(name, place, fitted, tmp_path):
    model = fitted(name)
    before = of_documents(model)
    other = model.with_documents(placed(OTHER, place, tmp_path))
    np.testing.assert_allclose(other._training.doc_topic.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(other.unigram_, np.asarray(OTHER.sum(axis=0)).ravel() / OTHER.sum())
    assert other.n_tokens_ == OTHER.sum()
    assert other._fitted.n_documents == OTHER.shape[0]
    assert len(other._training.doc_weights) == len(other._training.background) == OTHER.shape[0]
    weights = other._training.doc_weights @ other._training.doc_topic
    np.testing.assert_allclose(other.topic_weights_, weights, rtol=1e-6)
    filled = OTHER.sum(axis=1) > 0
    transformed = np.asarray(model.transform(OTHER))[filled]
    parts = other.doc_factor_ if isinstance(other, NMF) else other.doc_topic_
    np.testing.assert_allclose(np.asarray(parts)[filled], transformed, rtol=1e-6, atol=1e-9)
    changed = of_documents(other)
    assert changed.keys() == before.keys()
    same = {"background", "n_documents_seen_", "word_background_"} if name != "PLSA-background" else {"background"}
    for key in before.keys() - same:
        assert not np.array_equal(before[key], changed[key]), key
    for key, value in of_documents(model).items():  # the model itself does not change
        np.testing.assert_array_equal(value, before[key])
    assert other.n_iter_ == model.n_iter_


@places(MAKERS)
def test_a_word_without_a_topic_gets_a_probability(name, place, fitted, tmp_path):
    new = X.toarray()
    new[:, 3] = np.arange(60) % 4 == 0  # no document of the fit has the word
    other = fitted(name).with_documents(placed(sp.csr_array(new), place, tmp_path))
    topics = other._fitted.topic_word
    assert np.isfinite(objective(other, sp.csr_array(new)))
    assert (topics[:, 3] > 0).all()
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-6)
    if isinstance(other, HierarchicalPLSA):
        np.testing.assert_allclose(other.leaf_node_ @ other.node_word_, topics, atol=1e-9)
        assert (other.node_word_[:, 3] > 0).all()
    if name.startswith("LDA") and name != "LDA-map":
        assert topics is fitted(name)._fitted.topic_word
    elif name not in ("LDA-map", "MultinomialMixture"):  # which have pseudo-counts
        np.testing.assert_allclose(topics[:, 3], other.unigram_[3] / (1 + other.unigram_[3]), rtol=1e-6)


@EVERY
def test_weights_count_as_repeated_documents(name, fitted):
    weighted = of_documents(fitted(name).with_documents(X, np.full(60, 2.0)))
    twice = of_documents(fitted(name).with_documents(sp.vstack([X, X], format="csr")))
    for key in ("log_likelihood_", "topic_weights_", "n_tokens_", "document_frequency_", "bound_", "word_background_"):
        if key in weighted:
            np.testing.assert_allclose(weighted[key], twice[key], rtol=1e-6, err_msg=key)


def test_wrong_documents(fitted, tmp_path):
    model = fitted("PLSA")
    with pytest.raises(NotFittedError):
        PLSA(2).with_documents(X)
    with pytest.raises(ValueError, match="44 features"):
        model.with_documents(X[:, 1:])
    with pytest.raises(InputError, match="44 words, but the model has 45"):
        model.with_documents(placed(X[:, 1:], "shards", tmp_path))
    with pytest.raises(InputError, match="nothing to fit"):
        model.with_documents(X * 0)
    with pytest.raises(UnsupportedError, match="no weights"):
        model.with_documents(placed(X, "shards", tmp_path / "b"), np.ones(60))
    joint = PLSA(2, background=JointBackground(0.2), random_state=0, max_iter=5).fit(X)
    with pytest.raises(UnsupportedError, match="JointBackground cannot be shards"):
        joint.with_documents(placed(X, "shards", tmp_path / "c"))
    np.testing.assert_allclose(joint.with_documents(X).word_background_, joint.word_background_)


def test_a_model_of_partial_fit_gets_documents():
    for model in (PLSA(3, random_state=0), LDA(3, random_state=0)):
        model.partial_fit(X)
        assert model._training is None
        assert model.with_documents(X).doc_topic_.shape == (60, 3)
        assert model.with_documents(X).word_documents_.shape == (3, 45)


# edited topics


@places(EDITED)
def test_merged_topics_and_banned_words(name, place, fitted, tmp_path):
    model, banned = fitted(name), [5, 9]
    data = placed(X if place == "dense" else without_words(X, np.array(banned)), place, tmp_path)
    edited = model.with_edited_topics([[2, 0], [1]], banned, data)
    topics = edited._fitted.topic_word
    assert topics.shape == (2, 45)
    assert edited.n_components == 2
    assert (topics[:, banned] == 0).all()
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(edited._training.doc_topic.sum(axis=1), 1, rtol=1e-6)
    assert edited.n_tokens_ == X.sum() - X[:, banned].sum()
    assert (edited.unigram_[banned] == 0).all()
    assert np.isfinite(edited.log_likelihood_)
    assert model._fitted.topic_word.shape == (3, 45)
    total = edited.n_tokens_ if name == "NMF" else X.shape[0]
    np.testing.assert_allclose(np.asarray(edited.transform(X)).sum(), total, rtol=1e-6)
    if "variational" in str(edited.solver_):
        assert np.isfinite(edited.bound_)
        np.testing.assert_allclose(
            edited.doc_topic_prior_, model.doc_topic_prior_[[0, 1]] + [model.doc_topic_prior_[2], 0]
        )
        counts = model.topic_word_dirichlet_ - model.topic_word_prior_
        kept = np.setdiff1d(np.arange(45), banned)
        sums = np.maximum(counts[[0, 2]].sum(axis=0), 0) + model.topic_word_prior_  # extrapolation can end below
        np.testing.assert_allclose(edited.topic_word_dirichlet_[0, kept], sums[kept], rtol=1e-6)
        np.testing.assert_allclose(topics[0, kept], sums[kept] / sums[kept].sum(), rtol=1e-6)
    elif name != "LDA-online":  # every other model is one of maximum likelihood
        expected = model.topic_weights_[[2, 0]] @ model._fitted.topic_word[[2, 0]]
        expected[banned] = 0
        np.testing.assert_allclose(topics[0], expected / expected.sum(), rtol=1e-6)


@places(EDITED)
def test_a_removed_topic_leaves_its_words_to_the_others(name, place, fitted, tmp_path):
    model = fitted(name)
    edited = model.with_edited_topics([[1]], [], placed(X, place, tmp_path))
    np.testing.assert_allclose(edited._training.doc_topic, np.ones((60, 1)), rtol=1e-6)
    assert np.isfinite(edited.log_likelihood_)
    assert (edited._fitted.topic_word[0, edited.unigram_ > 0] > 0).all()


@pytest.mark.parametrize("name", EDITED)
def test_groups_of_one_topic_change_the_order_only(name, fitted):
    model = fitted(name)
    edited = model.with_edited_topics([[2], [0], [1]], [], X)
    np.testing.assert_allclose(edited._fitted.topic_word, model._fitted.topic_word[[2, 0, 1]], rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(edited._training.doc_topic, model._training.doc_topic[:, [2, 0, 1]], atol=2e-3)
    np.testing.assert_allclose(edited.log_likelihood_, model.log_likelihood_, rtol=1e-6)
    if hasattr(model, "bound_"):
        np.testing.assert_allclose(edited.bound_, model.bound_, rtol=1e-6)


def test_a_banned_word_of_a_background_has_no_probability(fitted):
    edited = fitted("PLSA-background").with_edited_topics([[0], [1]], [5], X)
    assert edited.background_[5] == edited.word_background_[5] == 0
    np.testing.assert_allclose(edited.background_.sum(), 1)


def test_priors_follow_the_topics():
    priors = {"topic_word_prior": SeedWords({0: [1, 2], 2: [5]}), "doc_topic_prior": Dirichlet((1.1, 1.2, 1.3))}
    model = PLSA(3, random_state=0, max_iter=20, **priors).fit(X)
    edited = model.with_edited_topics([[1, 2], [0]], [2], X)
    assert edited.topic_word_prior.seeds == {0: (5,), 1: (1,)}
    np.testing.assert_allclose(edited.doc_topic_prior.alpha, (1.5, 1.1))
    np.testing.assert_allclose(edited._inference.prior.alpha, (1.5, 1.1))
    again = edited.refitting(without_words(X, np.array([2]))).fit(without_words(X, np.array([2])))
    assert again.components_.shape == (2, 45)
    assert model.with_edited_topics([[1]], [], X).topic_word_prior is None
    assert model.topic_word_prior is priors["topic_word_prior"]
    target = Smoothing(10, (1, 2, 1)).with_merged_columns([[0, 2]])
    assert target.strength == 5
    assert target.target == (0.5,)
    both = PLSA(3, random_state=0, max_iter=20, topic_word_prior=[SeedWords({0: [1]}), Smoothing(5)]).fit(X)
    assert both.with_edited_topics([[1], [2]], [], X).topic_word_prior == Smoothing(5)
    lda = LDA(3, random_state=0, max_iter=5, solver="map", doc_topic_prior=[1.1, 1.2, 1.3]).fit(X)
    merged = lda.with_edited_topics([[0, 1], [2]], [], X)
    np.testing.assert_allclose(merged.doc_topic_prior_, (1.3, 1.3))
    assert merged.refitting(X).fit(X).components_.shape == (2, 45)


@pytest.mark.parametrize(
    ("groups", "banned", "message"),
    [
        ([], [], "at least one list"),
        ([[0], []], [], "no list without topics"),
        ([[0, 0]], [], "topic 0 appears more than once"),
        ([[0], [1, 0]], [], "topic 0 appears more than once"),
        ([[3]], [], "whole numbers from 0 to 2, got 3"),
        ([[-1]], [], "whole numbers from 0 to 2, got -1"),
        ([[True]], [], "got True"),
        ([0, 1], [], "groups must be a list, got 0"),
        ("01", [], "groups must be a list"),
        ([[0]], [45], "banned must have whole numbers from 0 to 44"),
        ([[0]], ["ant"], "banned must have whole numbers"),
        ([[1, 0]], list(range(45)), "Topic 1, 0 has only banned words"),
    ],
)
def test_wrong_edits(groups, banned, message, fitted):
    with pytest.raises(InputError, match=message):
        fitted("PLSA").with_edited_topics(groups, banned, X)


@pytest.mark.parametrize("name", EDITED)
def test_shards_with_a_banned_word_are_refused(name, fitted, tmp_path):
    with pytest.raises(InputError, match="write the shards without them"):
        fitted(name).with_edited_topics([[0]], [5], placed(X, "shards", tmp_path))


@pytest.mark.filterwarnings("error:X does not have valid feature names")
def test_documents_of_a_data_frame():
    frame = pytest.importorskip("pandas").DataFrame(X.toarray(), columns=[f"w{i}" for i in range(45)])
    model = PLSA(2, random_state=0, max_iter=5).fit(frame)
    assert model.with_documents(frame).log_likelihood_ == pytest.approx(model.log_likelihood_)
    edited = model.with_edited_topics([[1], [0]], [5], frame)
    assert edited.unigram_[5] == 0
    assert list(edited.vocabulary_) == list(frame.columns)
    only = PLSA(1, random_state=0).fit([[1, 2, 0], [0, 1, 1]])
    with pytest.raises(InputError, match="no words"):
        only.with_edited_topics([[0]], [2], [[0, 0, 3]])


@pytest.mark.parametrize("make", [lambda: HierarchicalPLSA(depth=1, branching=2), lambda: CorrelatedTopicModel(2)])
def test_models_whose_topics_depend_on_each_other_say_what_is_possible(make):
    model = make()
    assert not model._edits_topics
    with pytest.raises(UnsupportedError, match="rename them, or fit again with another number of topics"):
        model.with_edited_topics([[0]], [], X)


# fits from the topics


@places(REFITTED)
def test_a_fit_starts_from_the_topics(name, place, fitted, tmp_path):
    model, data = fitted(name), placed(OTHER, place, tmp_path)
    seen = []
    again = model.refitting(data).set_params(max_iter=2, callback=lambda entry: seen.append(entry["iteration"]))
    assert "fitted_" not in vars(again)
    assert type(again) is type(model)
    if name.startswith(("Correlated", "Multinomial")) and place == "shards":
        with pytest.raises(UnsupportedError, match="takes no shards"):
            again.fit(data)
        return
    again.fit(data)
    assert max(seen) <= 2
    assert again._training.doc_topic.shape == (OTHER.shape[0], 3)
    assert np.corrcoef(again._fitted.topic_word.ravel(), model._fitted.topic_word.ravel())[0, 1] > 0.8
    if name[:3] in ("PLS", "NMF"):
        before = objective(model.with_documents(data), OTHER)
        assert objective(again, OTHER) >= before - 1e-6 * abs(before)


@pytest.mark.parametrize("name", REFITTED)
def test_ctrl_c_keeps_the_best_model_so_far(name, fitted):
    def interrupt(entry):
        raise KeyboardInterrupt

    again = fitted(name).refitting(OTHER).set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        again.fit(OTHER)
    assert again._training.doc_topic.shape == (OTHER.shape[0], 3)


@pytest.mark.parametrize("name", REFITTED)
def test_words_without_a_topic_do_not_stop_the_fit(name, fitted):
    new = X.toarray()
    new[:, 3] = np.arange(60) % 4 == 0
    again = fitted(name).refitting(new).set_params(max_iter=2).fit(new)
    assert (again._fitted.topic_word[:, 3] > 0).any()


def test_a_joint_background_starts_from_the_weights_too():
    model = PLSA(2, background=JointBackground(0.2), random_state=0, max_iter=20).fit(X)
    again = model.refitting(OTHER)
    assert again.init[0].shape == (OTHER.shape[0], 2)
    assert again.fit(OTHER).log_likelihood_ >= model.with_documents(OTHER).log_likelihood_ - 1e-3


def test_a_tree_says_what_to_do():
    assert not HierarchicalPLSA._refits
    with pytest.raises(UnsupportedError, match="cannot start from given topics: fold in the documents"):
        HierarchicalPLSA().fit(X).refitting(X)


# losses without a likelihood


@pytest.mark.parametrize("name", IN_MEMORY)
def test_other_losses_of_nmf_take_no_shards(name, fitted, tmp_path):
    model, shards = fitted(name), placed(X, "shards", tmp_path)
    for call in (model.transform, model.with_documents, model.refitting, MAKERS[name]().fit):
        with pytest.raises(UnsupportedError, match="takes no shards: give the counts as an array"):
            call(shards)


@pytest.mark.parametrize("name", OTHER_LOSS)
def test_the_topics_of_other_losses_are_not_edited(name, fitted):
    for call in (fitted(name)._check_edits_topics, lambda: fitted(name).with_edited_topics([[0]], [], X)):
        with pytest.raises(UnsupportedError, match="rename them, or fit with loss='kullback-leibler'"):
            call()
    with pytest.raises(NotFittedError):
        MAKERS[name]().with_edited_topics([[0]], [], X)


def test_a_loss_that_needs_positive_counts():
    positive = X.toarray() + 1
    model = NMF(2, loss="itakura-saito", random_state=0, max_iter=5).fit(positive)
    assert model.with_documents(positive[::2]).doc_factor_.shape == (30, 2)
    assert model.refitting(positive).fit(positive).reconstruction_err_ <= model.reconstruction_err_ * (1 + 1e-9)
    with pytest.raises(InputError, match="infinite where X is zero"):
        model.with_documents(X)
