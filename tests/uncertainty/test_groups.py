"""Comparison of groups: words within topics, and the table."""

import numpy as np
import scipy.sparse as sp

from polyseme import PLSA
from polyseme.core.shard import sparse_counts
from polyseme.uncertainty.groups import compare_words

N_DOCS, TOPICS = 400, np.random.default_rng(1).dirichlet(np.full(50, 0.5), 2)


def corpus(change: float, seed: int = 0):
    """Return counts of two groups of documents. The second one uses the likeliest word of topic 0 `change` times."""
    rng = np.random.default_rng(seed)
    other = TOPICS.copy()
    word = int(TOPICS[0].argmax())
    other[0, word] *= change
    other[0] /= other[0].sum()
    theta = rng.dirichlet([0.3, 0.3], N_DOCS)
    groups = np.arange(N_DOCS) % 2
    rows = [rng.multinomial(60, theta[d] @ (other if groups[d] else TOPICS)) for d in range(N_DOCS)]
    return sp.csr_array(np.array(rows)), groups, word


def words_of(X, groups, clusters=None):
    model = PLSA(2, init=(None, TOPICS), n_jobs=1).fit(X)
    membership = sp.csr_array(np.array([groups == 0, groups == 1], dtype=float))
    counts = sparse_counts(X, np.dtype(np.float32))
    return compare_words(counts, model._fitted, membership, clusters, 0.95)


def test_a_word_that_a_group_uses_more_is_found_in_its_topic():
    X, groups, word = corpus(0.4)
    found = words_of(X, groups)
    assert {(found[0].topic, found[0].word), (found[1].topic, found[1].word)} == {(0, word)}
    by_group = {one.group: one for one in found[:2]}
    assert by_group[0].log_ratio > 0 > by_group[1].log_ratio
    share = 0.4 * TOPICS[0, word]
    expected = -np.log(share / (share + 1 - TOPICS[0, word]) / TOPICS[0, word])
    assert abs(by_group[0].log_ratio - expected) < 3 * by_group[0].error
    assert by_group[0].q_value < 0.001


def test_groups_that_do_not_differ_have_no_words():
    found = [len(words_of(*corpus(1.0, seed)[:2])) for seed in range(6)]
    assert sum(count > 0 for count in found) <= 2


def test_words_of_one_document_or_cluster_are_not_found():
    X, groups, _ = corpus(1.0, 3)
    rare = int(TOPICS.max(axis=0).argmin())
    extra = sp.lil_array(X)
    extra[0, rare] += 60
    assert all(one.word != rare for one in words_of(sp.csr_array(extra), groups))
    for row in range(0, 80, 2):
        extra[row, rare] += 5
    X = sp.csr_array(extra)
    clusters = np.where(np.arange(N_DOCS) < 80, np.arange(N_DOCS) % 2, np.arange(N_DOCS))
    assert any(one.word == rare for one in words_of(X, groups))
    assert all(one.word != rare for one in words_of(X, groups, np.unique(clusters, return_inverse=True)[1]))
