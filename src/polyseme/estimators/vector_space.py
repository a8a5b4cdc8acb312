"""The vector space model: documents as vectors of weighted counts, compared by the angle between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Floats, checked_sparse

_PAIRS_AT_ONCE = 1 << 16
_NEARLY_PARALLEL = 0.999  # beyond this cosine its arc is found from the difference of the vectors


def angles(X: Any, Y: Any = None) -> Floats:
    """Angles in degrees (rows of X x rows of Y, of X itself without Y); dense or sparse.

    Equal directions are 0 degrees apart, vectors without a common entry 90, and so is a vector of zeros from any other.
    """
    first = unit_rows(X)
    second = first if Y is None else unit_rows(Y)
    if first.shape[1] != second.shape[1]:
        raise InputError(f"The vectors have {first.shape[1]} and {second.shape[1]} entries, which must be as many.")
    cosines = (first @ second.T).toarray()
    result = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    rows, columns = np.nonzero(cosines > _NEARLY_PARALLEL)  # where the arc cosine has lost half of its digits
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        i, j = rows[start : start + _PAIRS_AT_ONCE], columns[start : start + _PAIRS_AT_ONCE]
        difference = first[i] - second[j]
        distances = np.sqrt(np.asarray(difference.multiply(difference).sum(axis=1)).ravel())
        result[i, j] = np.degrees(2 * np.arcsin(distances / 2))
    return result


def unit_rows(X: Any) -> sp.csr_array:
    """Rows of length one, in float64; a row of zeros stays."""
    matrix = sp.csr_array(checked_sparse(X), dtype=np.float64)
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.csr_array(matrix.multiply(1 / np.where(lengths > 0, lengths, 1)[:, np.newaxis]))


def document_frequencies(X: sp.csr_array) -> Floats:
    return np.bincount(X.indices[X.data > 0], minlength=X.shape[1]).astype(np.float64)


def no_weights(X: sp.csr_array) -> Floats:
    return np.ones(X.shape[1])


def inverse_document_frequencies(X: sp.csr_array) -> Floats:
    """log((1 + n) / (1 + documents with the word)) + 1, scikit-learn's smooth form."""
    return np.asarray(np.log((1 + X.shape[0]) / (1 + document_frequencies(X))) + 1)


def entropy_weights(X: sp.csr_array) -> Floats:
    """1 + sum_d p log p / log n with p = x_dw / sum_d x_dw: 1 for a word of one document, 0 for one spread evenly."""
    if X.shape[0] == 1:
        return np.ones(X.shape[1])
    totals = np.bincount(X.indices, weights=X.data, minlength=X.shape[1])
    p = np.divide(X.data, totals[X.indices], out=np.zeros(X.data.shape), where=X.data > 0)  # zeros may be stored
    terms = np.multiply(p, np.log(p, out=np.zeros_like(p), where=p > 0))
    return np.asarray(1 + np.bincount(X.indices, weights=terms, minlength=X.shape[1]) / np.log(X.shape[0]))


Local = Callable[[Floats], Floats]
Global = Callable[[sp.csr_array], Floats]

WEIGHTS: dict[str, tuple[Local, Global]] = {
    "counts": (np.asarray, no_weights),
    "tf-idf": (np.asarray, inverse_document_frequencies),
    "log-entropy": (np.log1p, entropy_weights),
}
"""For each name, what is made of a count, and what it is multiplied by for its word."""


def weighted(X: sp.csr_array, name: str, word_weights: Floats) -> sp.csr_array:
    """local(x_dw) weight_w, in float64."""
    local, _ = WEIGHTS[name]
    values = local(X.data.astype(np.float64)) * word_weights[X.indices]
    return sp.csr_array((values, X.indices, X.indptr), X.shape)
