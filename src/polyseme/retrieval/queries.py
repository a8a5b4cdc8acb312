"""Queries and corpora as counts: checked, and cut down to the words that occur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Array, checked_sparse


class Row(NamedTuple):
    """A document's words and counts."""

    indices: Array
    data: Array


def row_of(matrix: Any, row: int) -> Row:
    """One row of a CSR array, without a copy."""
    start, end = matrix.indptr[row : row + 2]
    return Row(matrix.indices[start:end], matrix.data[start:end])


def checked_counts(counts: Any, n_words: int, what: str) -> Any:
    """`counts` as a canonical CSR array of float64 with `n_words` columns, finite and not negative."""
    try:
        given = checked_sparse(counts, what) if sp.issparse(counts) else np.atleast_2d(np.asarray(counts))
        matrix = sp.csr_array(given, copy=False).astype(np.float64, copy=False)
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputError(f"{what} must be counts: a matrix of numbers with a column for each word.") from None
    if matrix.shape[1] != n_words:
        raise InputError(f"{what} must have a column for each of the {n_words} words, got {matrix.shape[1]} columns.")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0):
        raise InputError(f"{what} must be counts: every number finite and at least 0.")
    if matrix.nnz and matrix.data.min() == 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def query_counts(queries: Any, vectorizer: Any, n_words: int) -> Any:
    """Counts (queries x words) of texts, or of what are counts already."""
    if isinstance(queries, str):
        queries = [queries]
    if isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries):
        queries = vectorizer.transform(queries) if queries else sp.csr_array((0, n_words))
    return checked_counts(queries, n_words, "A query")


def own_words(queries: Any) -> tuple[Array, Any]:
    """The words that occur in the queries, and the counts with a column for each of those alone."""
    words, positions = np.unique(queries.indices, return_inverse=True)
    shape = (queries.shape[0], len(words))
    return words, sp.csr_array((queries.data, positions.astype(queries.indices.dtype), queries.indptr), shape=shape)
