"""Levels of topics: a planted tree is found, counts are divided among children, and every level is a complete model."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyseme import PLSA
from polyseme.core.shard import sparse_counts
from polyseme.datasets import synthetic_corpus
from polyseme.estimators.base import load
from polyseme.scale import open_shards, write_shards
from polyseme.selection import levels
from polyseme.selection.levels import children_in_proportion, make_levels, split_topics
from polyseme.selection.suggestions import TopicTokens

GROUPS, CHILDREN, WORDS = 3, 3, 40


def planted_tree(n_documents=500, seed=0):
    """Draw documents of one of 9 topics, of which three at a time share half of their words; return counts and topics.

    The other half of the words of a topic are its own.
    """
    rng = np.random.default_rng(seed)
    n_topics = GROUPS * CHILDREN
    topics = np.zeros((n_topics, WORDS * (GROUPS + n_topics)))
    for topic in range(n_topics):
        group = topic // CHILDREN
        topics[topic, WORDS * group : WORDS * (group + 1)] = 0.5 / WORDS
        topics[topic, WORDS * (GROUPS + topic) : WORDS * (GROUPS + topic + 1)] = 0.5 / WORDS
    of_document = rng.integers(n_topics, size=n_documents)
    counts = np.stack([rng.multinomial(60, topics[topic]) for topic in of_document])
    return sp.csr_array(counts), of_document


@pytest.fixture(scope="module")
def planted():
    X, topics = planted_tree()
    model = PLSA(GROUPS, n_init=3, random_state=0, n_jobs=1).fit(X)
    return X, topics, model, list(make_levels(model, X, np.arange(X.shape[0]), X))


def test_a_planted_tree_is_found_and_levels_end_when_they_predict_no_better(planted):
    _, topics, model, found = planted
    assert [level.model._fitted.n_topics for level in found] == [6, 12]  # 24 topics would be possible
    groups = topics // CHILDREN
    main = model.doc_topic_.argmax(axis=1)
    group_of = {z: np.bincount(groups[main == z]).argmax() for z in range(GROUPS)}
    assert np.mean([group_of[z] for z in main] == groups) > 0.95
    parents = np.arange(GROUPS)
    for level in found:
        parents = parents[level.parents]  # the topic of the first level
        own = level.model.doc_topic_.argmax(axis=1)
        assert np.mean([group_of[parents[z]] for z in own] == groups) > 0.95
        tokens = level.model.topic_weights_
        assert (tokens * level.nesting).sum() > 0.9
    # each planted topic has a topic of its own in the finest level, which has more
    for topic in range(GROUPS * CHILDREN):
        best = np.bincount(own[topics == topic]).argmax()
        assert np.mean(topics[own == best] == topic) > 0.9


def test_expected_counts_of_topics_sum_to_the_counts_and_of_children_to_those_of_their_topic(planted):
    X, _, model, _ = planted
    counts = sparse_counts(X, np.dtype(np.float32))
    tokens = TopicTokens(model._fitted, model._training, counts, n_threads=1)
    total = sum(tokens.of(topic).matrix() for topic in range(GROUPS))
    np.testing.assert_allclose(total.toarray(), X.toarray(), rtol=1e-5)
    own = tokens.enough(0)
    split = PLSA(2, random_state=0, n_jobs=1).fit(own.matrix())
    of_children = TopicTokens(split._fitted, split._training, own, n_threads=1)
    total = of_children.of(0).matrix() + of_children.of(1).matrix()
    np.testing.assert_allclose(total.toarray(), own.matrix().toarray(), rtol=1e-4, atol=1e-6)


def test_children_are_shared_out_in_proportion_and_every_topic_has_one():
    def numbers(weights, n_children, most=100):
        weights = np.array(weights)
        return children_in_proportion(weights, n_children, np.broadcast_to(most, weights.shape)).tolist()

    assert numbers([0.5, 0.3, 0.2], 10) == [5, 3, 2]
    assert numbers([0.97, 0.01, 0.01, 0.01], 8) == [5, 1, 1, 1]
    assert numbers([0.0, 1.0], 4) == [1, 3]
    assert numbers([0.5, 0.3, 0.2], 10, [1, 9, 9]) == [1, 5, 4]  # the children of the first go to the others
    assert numbers([0.5, 0.3, 0.2], 10, 2) == [2, 2, 2]


def test_topics_of_few_documents_have_few_children(planted):
    X, _, model, _ = planted
    topics = split_topics(model, X[:40], 12, rows=np.arange(40))
    assert GROUPS <= len(topics) < 12
    np.testing.assert_allclose(topics.sum(axis=1), 1, rtol=1e-5)


def test_every_level_folds_in_is_saved_and_has_all_documents(planted, tmp_path):
    X, _, model, found = planted
    for level in found:
        fine = level.model
        np.testing.assert_allclose(fine.transform(X[:20]), fine.doc_topic_[:20], atol=1e-3)
        assert fine._fitted.document_prior.shape == (fine._fitted.n_topics,)
        fine.save(tmp_path / "level.safetensors")
        np.testing.assert_array_equal(load(tmp_path / "level.safetensors").components_, fine.components_)
    assert found[-1].model.log_likelihood_ > found[0].model.log_likelihood_ > model.log_likelihood_


def test_the_nesting_is_the_sum_over_tokens_of_both_posteriors(planted, monkeypatch):
    X, _, model, found = planted

    def posterior(fitted):
        joint = fitted.doc_topic_[:, np.newaxis, :] * fitted.components_.T[np.newaxis].astype(np.float64)
        sums = joint.sum(axis=2, keepdims=True)
        return np.divide(joint, sums, out=np.zeros_like(joint), where=sums > 0)

    fine = found[0].model
    shared = np.einsum("dw,dwk,dwl->kl", X.toarray(), posterior(model), posterior(fine))
    np.testing.assert_array_equal(found[0].parents, shared.argmax(axis=0))
    np.testing.assert_allclose(found[0].nesting, shared.max(axis=0) / shared.sum(axis=0), rtol=1e-4)
    monkeypatch.setattr(levels, "_NESTING_NONZEROS", 2000)
    sampled = levels.linked(model, fine, np.arange(X.shape[0]), X)
    np.testing.assert_array_equal(sampled.parents, found[0].parents)


def test_levels_do_not_depend_on_the_number_of_threads(planted):
    X, _, model, found = planted
    again = list(make_levels(model.set_params(n_jobs=3), X, np.arange(X.shape[0]), X))
    model.set_params(n_jobs=1)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one.model.components_, other.model.components_)
        np.testing.assert_array_equal(one.model.doc_topic_, other.model.doc_topic_)
        np.testing.assert_array_equal(one.nesting, other.nesting)


def test_levels_are_made_from_shards_with_a_sample_in_memory(planted, tmp_path, monkeypatch):
    monkeypatch.setattr(levels, "MAX_TOPICS", 6)
    X, _, model, found = planted
    write_shards([X[:200], X[200:]], tmp_path / "shards")
    shards = open_shards(tmp_path / "shards")
    made = make_levels(PLSA(GROUPS, n_init=3, random_state=0, n_jobs=1).fit(shards), shards, np.arange(500), X)
    (level,) = made
    np.testing.assert_allclose(level.model.components_, found[0].model.components_, atol=1e-3)
    sampled = np.arange(0, 500, 2)
    (level,) = make_levels(model, shards, sampled, X[sampled])
    assert len(level.model.doc_topic_) == 500


def test_few_documents_or_many_topics_have_no_finer_levels(planted, monkeypatch):
    X, _, model, found = planted
    assert levels._sizes(10, 5000) == [20, 40, 80, 160]
    assert levels._sizes(10, 500) == [20, 40]
    assert levels._sizes(81, 50_000) == levels._sizes(2, 199) == []
    rows = np.arange(150)
    assert list(make_levels(model.with_documents(X[rows]), X[rows], rows, X[rows])) == []
    seen = []
    monkeypatch.setattr(levels, "MAX_TOPICS", 6)
    (level,) = make_levels(
        model, X, np.arange(X.shape[0]), X, progress=lambda done, most, what: seen.append((done, most, what))
    )
    assert seen == [(0, 1, "6 topics")]
    np.testing.assert_array_equal(level.model.components_, found[0].model.components_)


def test_documents_without_structure_have_no_finer_levels():
    X = synthetic_corpus(400, topic_word=np.full((1, 100), 0.01), length=50, random_state=0).counts()
    model = PLSA(3, random_state=0, n_jobs=1).fit(X)
    assert list(make_levels(model, X, np.arange(400), X)) == []


def test_a_background_and_a_prior_of_the_topics_are_kept_or_left_out(planted, monkeypatch):
    monkeypatch.setattr(levels, "MAX_TOPICS", 6)
    X, _, _, _ = planted
    model = PLSA(GROUPS, background=0.2, topic_word_prior=1.1, random_state=0, n_jobs=1).fit(X)
    first = next(make_levels(model, X, np.arange(X.shape[0]), X)).model
    assert first.background_weight_ == 0.2
    assert first.topic_word_prior is None
