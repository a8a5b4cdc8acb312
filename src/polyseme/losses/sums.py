"""Sums of a loss over all entries: its value, and the numerators and denominators of the multiplicative updates.

What the entries with x = 0 add (`Loss.zeros`) decides how sparse data are used:

- linear: sums of the factors, plus a correction at the non-zeros, by the compiled kernels;
- squared: Gram matrices of the factors, and products of the data with the factors;
- dense: blocks of rows become dense. A block has at least 64 rows, and about 65,536 entries if the rows are short.

Dense data are read in such blocks too, except for the products of the squared loss. Blocks depend on the shape only and
are added up in their order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyseme.kernels import (
    Array,
    Counts,
    Floats,
    SparseCounts,
    gram,
    map_in_threads,
    row_blocks,
    sum_in_order,
    weighted_sum,
    with_weights,
)
from polyseme.losses.base import Loss, Zeros

_BLOCK_NUMBERS, _BLOCK_ROWS = 1 << 16, 64
"""Size of a dense block: entries for the second-level cache, and rows so that sums over words cost little beside it."""
_LEAST_SHARE = 1e-12
"""q is at least this share of x, or of the mean of a row, so that ratios are finite."""


class Terms(NamedTuple):
    """Sums for the update of one factor (rows x width)."""

    numerators: Array
    denominators: Array


def doc_values(loss: Loss, counts: Counts, A: Array, B: Array, *, n_threads: int) -> Floats:
    """Return the loss of each document, with q = A_d . B_w. The squared loss of dense data is summed entry by entry."""
    if counts.is_sparse and loss.zeros is Zeros.SQUARED:
        return doc_terms(loss, counts, A, B, n_threads=n_threads)[0]
    return _doc_sums(loss, counts, A, B, n_threads, update=False)[0]


def doc_terms(loss: Loss, counts: Counts, A: Array, B: Array, *, n_threads: int) -> tuple[Floats, Terms]:
    """Return the loss of each document, and the sums for the update of A."""
    if loss.zeros is not Zeros.SQUARED:
        return _doc_sums(loss, counts, A, B, n_threads, update=True)
    terms = Terms(counts.multiply(B, n_threads=n_threads), _times_gram(A, gram(B, n_threads=n_threads), n_threads))
    cross, explained = (np.einsum("dk,dk->d", A, term, dtype=np.float64) for term in terms)
    return np.maximum(counts.squares - 2 * cross + explained, 0) / 2, terms


def word_terms(
    loss: Loss, counts: Counts, A: Array, B: Array, *, n_threads: int, weights: Floats | None = None
) -> Terms:
    """Return the sums for the update of B, with `weights` of the documents."""
    if loss.zeros is Zeros.SQUARED:
        products = counts.multiply_transpose(A, n_threads=n_threads, weights=weights)
        return Terms(products, _times_gram(B, gram(A, weights, n_threads=n_threads), n_threads))
    if counts.is_sparse and loss.zeros is Zeros.LINEAR:
        by_word = counts.sparse().transposed(None)
        sums = weighted_sum(np.ones(counts.n_docs) if weights is None else weights, A, n_threads=n_threads)
        scale = None if weights is None else weights[by_word.indices].astype(A.dtype)
        return _linear_terms(loss, by_word, _products(by_word, B, A, n_threads), A, sums, scale, n_threads)
    floors = _floors(counts)

    def one_block(block: slice) -> Array:
        x, a = counts.dense_rows(block), A[block]
        ratios = loss.ratios(x, np.maximum(a @ B.T, floors[block]))
        weighted = with_weights(a, weights, block)
        return np.stack([ratio.T @ weighted for ratio in ratios])

    parts = map_in_threads(one_block, _blocks(counts), n_threads)
    return Terms(*sum_in_order(parts, (2, *B.shape)))


def _doc_sums(loss: Loss, counts: Counts, A: Array, B: Array, n_threads: int, *, update: bool) -> tuple[Floats, Terms]:
    """Return the loss of each document and, with `update`, the sums for the update of A."""
    if counts.is_sparse and loss.zeros is Zeros.LINEAR:
        sparse, sums = counts.sparse(), weighted_sum(np.ones(len(B)), B, n_threads=n_threads)
        q = _products(sparse, A, B, n_threads)
        at_nonzeros = sparse.sums_by_row(loss.values(sparse.values, q) - q)
        terms = _linear_terms(loss, sparse, q, B, sums, None, n_threads) if update else Terms(A, A)
        return np.einsum("dk,k->d", A, sums, dtype=np.float64) + at_nonzeros, terms
    floors, losses = _floors(counts), np.empty(counts.n_docs)
    terms = Terms(np.empty_like(A), np.empty_like(A)) if update else Terms(A, A)

    def one_block(block: slice) -> None:
        x = counts.dense_rows(block)
        q = np.maximum(A[block] @ B.T, floors[block])
        losses[block] = loss.values(x, q).sum(axis=1, dtype=np.float64)
        if update:
            for sums, ratio in zip(terms, loss.ratios(x, q), strict=True):
                sums[block] = ratio @ B

    for _ in map_in_threads(one_block, _blocks(counts), n_threads):
        pass
    return losses, terms


def _products(counts: SparseCounts, A: Array, B: Array, n_threads: int) -> Array:
    """Return q of the non-zeros, at least a tiny share of x."""
    least = counts.dtype.type(_LEAST_SHARE) * counts.values
    return np.maximum(counts.products(A, B, n_threads=n_threads), least)


def _linear_terms(
    loss: Loss, counts: SparseCounts, q: Array, B: Array, sums: Floats, weights: Array | None, n_threads: int
) -> Terms:
    """Return the sums for the factor of the rows of `counts`, where B is the other factor and q that of the non-zeros.

    The ratio of a denominator is 1 at x = 0: all entries together add `sums`, and the non-zeros what they differ by.
    `weights` multiply the non-zeros.
    """
    numerator, denominator = loss.ratios(counts.values, q)
    difference = denominator - 1
    if weights is not None:
        numerator, difference = numerator * weights, difference * weights
    denominators = np.broadcast_to(sums, (counts.n_docs, B.shape[1]))
    if difference.any():
        corrected = denominators + counts.multiply(B, n_threads=n_threads, values=difference)
        denominators = np.maximum(corrected, 0)  # negative by rounding only
    return Terms(counts.multiply(B, n_threads=n_threads, values=numerator), denominators)


def _times_gram(factor: Array, G: Floats, n_threads: int) -> Array:
    """Return factor @ G, in the type of the factor."""
    product, G = np.empty_like(factor), G.astype(factor.dtype)

    def one_block(block: slice) -> None:
        product[block] = factor[block] @ G

    for _ in map_in_threads(one_block, row_blocks(*factor.shape), n_threads):
        pass
    return product


def _blocks(counts: Counts) -> list[slice]:
    return row_blocks(counts.n_docs, counts.n_words, _BLOCK_NUMBERS, _BLOCK_ROWS)


def _floors(counts: Counts) -> Array:
    """Return the smallest q of each row, as a column. It depends on the row only."""
    return (_LEAST_SHARE / counts.n_words * counts.totals).astype(counts.dtype)[:, np.newaxis]
