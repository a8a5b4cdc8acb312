"""Posting lists: construction in memory and in parts, the best documents, and arrays that do not fit together."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme import InputError
from polyseme.core.shard import sparse_counts
from polyseme.retrieval import _postings
from polyseme.retrieval.postings import (
    Postings,
    QueryWords,
    StoredLists,
    VectorCodes,
    best_scores,
    mean_length,
    penalties,
)


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
    for matrix in (rows, tokens):
        matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
        postings, totals = Postings.of(matrix)
        np.testing.assert_array_equal(totals, X.sum(axis=1))
        summands = penalties(totals, mean_length(totals))
        np.testing.assert_array_equal(postings.by_document().toarray(), X)
        np.testing.assert_array_equal(postings.frequencies(), (X > 0).sum(axis=0))
        for word in range(9):
            documents, x = postings.row(word)
            np.testing.assert_array_equal(documents, np.flatnonzero(X[:, word]))
            np.testing.assert_array_equal(x, X[documents, word])
            part = slice(*postings.indptr[word : word + 2])
            np.testing.assert_allclose(postings.impacts[part], x / (x + summands[documents]), rtol=1e-6)
    rows = sp.csr_array(X)
    parts = [(a, sparse_counts(rows[a:b], np.float32).transposed(None)) for a, b in pairwise([0, *sorted(cuts), 50])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyseme.retrieval.postings.LISTS_AT_ONCE", 60)
        stored = StoredLists(parts, 9, summands)
        np.testing.assert_array_equal(stored.starts, postings.indptr)
        for name in ("documents", "counts", "impacts"):
            found = list(getattr(stored, name)())
            assert all(len(part) <= 60 for part in found)
            np.testing.assert_array_equal(np.concatenate(found), getattr(postings, name))
    assert stored.counts_type == np.uint8
    fractions = StoredLists([(0, sparse_counts(rows / 2, np.float32).transposed(None))], 9, summands)
    assert fractions.counts_type == (np.uint8 if (X % 2 == 0).all() else np.float32)


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
    known = np.arange(5, dtype=np.int32)
    for rows, table, vector in (
        (np.array([5], np.int32), known, topics), (known, known[::-1].copy(), topics), (none, known[:4], topics),
        (none, known, topics[:1]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit together"):
            _postings.combine(
                ints, documents, floats, rarity, word, n, 0.2, rows, none.astype(np.float32), True, none, table, units,
                vector, 3,
            )  # fmt: skip
    typical = np.array([[0, 1], [2, 5]], dtype=np.int32)
    for table, of_query, problem in (
        (typical[:1], None, "fit together"), (typical, topics[:1].astype(np.float64), "fit together"),
        (typical, None, "increase"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=problem):
            _postings.rank_combined(
                ints, documents, floats, rarity, word, n, units, table, of_query, 0.2, 10, 200, 2, 3
            )  # fmt: skip
    sizes = np.zeros(2, dtype=np.int64)
    indptr, values = np.array([0, 2], dtype=np.int32), np.ones(2)
    for columns in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            _postings.count_entries(indptr, np.array(columns, dtype=np.int32), values, sizes)
    with pytest.raises(ValueError, match=r"decreases|ends"):
        _postings.count_entries(np.array([0, 3, 2], np.int32), np.zeros(2, np.int32), values, sizes)
    with pytest.raises(ValueError, match="no room"):
        _postings.append_entries(
            indptr, np.zeros(2, np.int32), values, 0, np.array([0, 1, 2]), np.array([0, 1]), documents.copy(), floats
        )
    lists = np.array([0, 2], np.int32), np.zeros(2, np.int32), np.ones(2, np.float32)
    written = np.empty(2, np.int32), np.empty(2, np.float32)
    for word, starts, ends, problem in (
        (1, [0, 2], [0], "fit together"), (-1, [0, 2], [0], "fit together"), (0, [0, 1], [0], "no room"),
        (0, [0, 2], [1], "no room"), (0, [0, 3], [0], "no room"), (0, [0, 2], [-1], "no room"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=problem):
            _postings.append_lists(*lists, word, 0, np.array(starts), np.array(ends), *written)
    with pytest.raises(ValueError, match="outside its array"):
        _postings.append_lists(np.array([0, 3], np.int32), *lists[1:], 0, 0, np.array([0, 3]), np.array([0]), *written)
    with pytest.raises(ValueError, match="does not exist"):
        _postings.compute_impacts(documents, floats, np.ones(1), floats.copy())


def test_too_many_documents_are_refused(monkeypatch):
    monkeypatch.setattr("polyseme.retrieval.postings.MAX_DOCUMENTS", 3)
    with pytest.raises(InputError, match="An index can have at most 3 documents, got 4"):
        Postings.of(sp.csr_array(np.eye(4)))


def unit_vectors(rng, n, size):
    """Return columns of length one, some of them equal, almost equal or zero."""
    vectors = rng.standard_normal((n, size)) * np.exp(-np.arange(size) / 20)
    vectors[n // 2 :] = vectors[: n - n // 2] * (1 + 1e-4 * rng.standard_normal((n - n // 2, 1)))
    vectors[n // 4 : n // 3] += 1e-3 * rng.standard_normal((n // 3 - n // 4, size))
    vectors[::7] = vectors[0]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.maximum(lengths, 1e-300)
    units[::11] = 0
    return np.ascontiguousarray(units.T, dtype=np.float32)


@pytest.mark.parametrize("n", [1, 15, 2047, 2049, 6000])
@pytest.mark.parametrize("size", [1, 16, 100, 201])
@pytest.mark.parametrize("k", [1, 10, 400])
def test_the_nearest_vectors_are_those_of_all_products(n, size, k):
    rng = np.random.default_rng(n + size)
    units = unit_vectors(rng, n, size)
    codes, allowed = VectorCodes.of(units), rng.random(n) < 0.3
    sparse = np.zeros(size)
    sparse[-1] = 1
    for query in (rng.standard_normal(size), units[:, n // 2] + 0.0, sparse):
        query = (query / max(np.linalg.norm(query), 1e-30)).astype(np.float32)
        sums = np.zeros(n)
        for weight, row in zip(query.astype(np.float64), units.astype(np.float64), strict=True):
            sums += weight * row  # in the order of the compiled function, so that both round in the same way
        exact = sums.astype(np.float32)
        for mask in (None, allowed):
            given_scores = np.where(exact > 0, exact, 0) * (1 if mask is None else mask)
            expected = np.argsort(-given_scores, kind="stable")[:k]
            expected = expected[given_scores[expected] > 0]
            found, scores = codes.nearest(units, query, k, mask)
            np.testing.assert_array_equal(scores, given_scores[expected])
            np.testing.assert_array_equal(found, expected)


def test_a_query_of_zeros_is_near_no_vector():
    units = unit_vectors(np.random.default_rng(0), 50, 8)
    found, scores = VectorCodes.of(units).nearest(units, np.zeros(8, np.float32), 5)
    assert len(found) == len(scores) == 0


def test_vectors_that_are_not_finite_are_never_found():
    units = unit_vectors(np.random.default_rng(0), 50, 8)
    query = units[:, 1].copy()
    units[3, 1], units[2, 5] = np.nan, np.inf
    found, _ = VectorCodes.of(units).nearest(units, query, 50)
    assert len(found) > 5
    assert not {1, 5} & set(found.tolist())


def test_vectors_that_do_not_fit_together_raise_an_error():
    units = unit_vectors(np.random.default_rng(0), 50, 20)
    codes, query = VectorCodes.of(units), np.ones(20, np.float32)
    with pytest.raises(ValueError, match="do not fit together"):
        _postings.encode_vectors(units, np.empty((50, 16), np.int8), codes.scales.copy(), codes.errors.copy())
    with pytest.raises(ValueError, match="do not fit together"):
        _postings.encode_vectors(units, np.empty((50, 33), np.int8), codes.scales.copy(), codes.errors.copy())
    for arrays in ((codes.codes[:-1], codes.scales, codes.errors, units, query),
                   (codes.codes, codes.scales[:-1], codes.errors, units, query),
                   (codes.codes, codes.scales, codes.errors[:-1], units, query),
                   (codes.codes, codes.scales, codes.errors, units[:, :-1].copy(), query),
                   (codes.codes, codes.scales, codes.errors, units, query[:-1])):  # fmt: skip
        with pytest.raises(ValueError, match="do not fit together"):
            _postings.nearest_vectors(*arrays, 3)
    with pytest.raises(ValueError, match="out of range"):
        codes.nearest(units, query, 0)
    with pytest.raises(ValueError, match="allowed must have"):
        codes.nearest(units, query, 3, np.ones(49, dtype=bool))
