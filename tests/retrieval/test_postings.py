"""Posting lists: construction from counts in parts, the best documents, and arrays that do not fit together."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme import InputError
from polyseme.retrieval import _postings
from polyseme.retrieval.postings import Postings, QueryWords, best_scores, penalties


def random_counts(seed, n_docs=50, n_words=9):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.4, 1.0, size=n_words), size=(n_docs, n_words)).astype(np.float64)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 50), max_size=3), index=st.sampled_from("il"))
def test_lists_have_the_counts_in_any_parts_order_and_type(seed, cuts, index):
    """Also tokens, each with the count 1, whose columns are not sorted."""
    X = random_counts(seed)
    rows = sp.csr_array(X)
    tokens = sp.csr_array((np.ones(int(X.sum()), np.float32), np.repeat(rows.indices, rows.data.astype(int)),
                           np.append(0, np.cumsum(X.sum(axis=1))).astype(np.int32)), shape=X.shape)  # fmt: skip
    ends = [0, *sorted(cuts), 50]
    parts = [rows[a:b] for a, b in pairwise(ends)]
    for part in parts:
        part.indptr, part.indices = part.indptr.astype(index), part.indices.astype(index)
    for given_parts in (parts, [tokens]):
        postings, totals = Postings.of(given_parts, 9)
        np.testing.assert_array_equal(totals, X.sum(axis=1))
        np.testing.assert_array_equal(postings.by_document().toarray(), X)
        np.testing.assert_array_equal(postings.frequencies(), (X > 0).sum(axis=0))
        for word in range(9):
            documents, x = postings.row(word)
            np.testing.assert_array_equal(documents, np.flatnonzero(X[:, word]))
            np.testing.assert_array_equal(x, X[documents, word])
            part = slice(*postings.indptr[word : word + 2])
            np.testing.assert_allclose(postings.impacts[part], x / (x + penalties(totals)[documents]), rtol=1e-6)


@pytest.mark.parametrize("n_docs", [1, 100, 127, 128, 8191, 8192, 8193, 20_000])
@pytest.mark.parametrize("k", [1, 10, 300, 10**6])
def test_the_best_documents_are_those_of_a_full_stable_sort(n_docs, k):
    """Impacts are multiples of 1/8, so that sums are exact and ties are frequent."""
    rng = np.random.default_rng(n_docs)
    lists = [np.flatnonzero(rng.random(n_docs) < share).astype(np.int32) for share in (0.5, 0.01, 0, 0.9)]
    impacts = [rng.integers(1, 9, size=len(each)).astype(np.float32) / 8 for each in lists]
    indptr = np.append(0, np.cumsum([len(each) for each in lists]))
    postings = Postings(indptr, np.concatenate(lists), np.concatenate(impacts), np.concatenate(impacts), n_docs)
    words, weights = np.array([0, 1, 3], dtype=np.int32), np.array([1, 4, 0.5])
    query = QueryWords(np.ones(4), words, weights)
    scores = np.zeros(n_docs, dtype=np.float32)
    for word, weight in zip(words, weights, strict=True):
        scores[lists[word]] += np.float32(weight) * (impacts[word] + np.float32(0.25))
    allowed = rng.random(n_docs) < 0.3
    for mask in (None, allowed):
        masked = scores if mask is None else np.where(mask, scores, 0)
        expected = [row for row in np.argsort(-masked, kind="stable") if masked[row] > 0][:k]
        rows, found = postings.best(query, 0.25, k, mask)
        assert rows.tolist() == expected
        np.testing.assert_array_equal(found, scores[expected])
        rows, found = best_scores(scores, k, mask)
        assert rows.tolist() == expected


def test_the_bindings_check_all_arrays():
    """Nothing outside of the arrays is read or written, whatever the lists contain."""
    ints, floats = np.array([0, 2], dtype=np.int64), np.ones(2, dtype=np.float32)
    rarity, word, n = np.ones(1), np.zeros(1, dtype=np.int32), np.ones(1)
    for documents in ([-1, 0], [0, 5], [2**31 - 1, 0], [-(2**31), 3]):
        arrays = ints, np.array(documents, dtype=np.int32), floats
        with pytest.raises(ValueError, match="do not increase"):
            _postings.rank(*arrays, rarity, word, n, 0.0, 5, 3, None)
    documents = np.array([0, 1], dtype=np.int32)
    for indptr, words, n_docs, k, mask in (
        (np.array([0, 3]), word, 5, 3, None),
        (np.array([1, 0]), word, 5, 3, None),
        (np.array([-1, 2]), word, 5, 3, None),
        (ints, word + 1, 5, 3, None),
        (ints, word - 1, 5, 3, None),
        (ints, word, 5, 0, None),
        (ints, word, 2**31, 3, None),
        (ints, word, 5, 3, np.ones(4, dtype=np.uint8)),
    ):
        with pytest.raises(ValueError, match=r"list|word|range|allowed"):
            _postings.rank(indptr, documents, floats, rarity, words, n, 0.0, n_docs, k, mask)
    units, topics, none = np.ones((5, 2), dtype=np.float32), np.ones(2, dtype=np.float32), np.empty(0, dtype=np.int32)
    for rows, others, vector in (
        (np.array([5], np.int32), none, topics), (none, np.array([-1], np.int32), topics), (none, none, topics[:1])
    ):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit together"):
            _postings.combine(ints, documents, floats, rarity, word, n, 0.2, rows, others, units, vector, 3)
    sizes = np.zeros(2, dtype=np.int64)
    indptr, values = np.array([0, 2], dtype=np.int32), np.ones(2)
    for columns in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="no word"):
            _postings.count_entries(indptr, np.array(columns, dtype=np.int32), values, sizes)
    with pytest.raises(ValueError, match=r"decreases|ends"):
        _postings.count_entries(np.array([0, 3, 2], np.int32), np.zeros(2, np.int32), values, sizes)
    with pytest.raises(ValueError, match="no room"):
        _postings.append_entries(
            indptr, np.zeros(2, np.int32), values, 0, np.array([0, 1, 2]), np.array([0, 1]), documents.copy(), floats
        )
    with pytest.raises(ValueError, match="does not exist"):
        _postings.compute_impacts(documents, floats, np.ones(1), floats.copy())


def test_too_many_documents_are_refused(monkeypatch):
    monkeypatch.setattr("polyseme.retrieval.postings.MAX_DOCUMENTS", 3)
    with pytest.raises(InputError, match="An index can have 3 documents, got 4"):
        Postings.of([sp.csr_array(np.eye(4))], 4)
