"""Checks of sparse arrays, before compiled code, scipy's or our own, uses their indices to read memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels.factors import Array


def check_sparse(X: Any, name: str = "X") -> Any:
    """Return X. Raise InputError if X is sparse and its indices do not fit its shape."""
    import scipy.sparse as sp

    if sp.issparse(X):
        fault = _sparse_fault(X)
        if fault is not None:
            raise InputError(f"{name} is not a valid sparse matrix: {fault}; build it again from its entries.")
    return X


def find_counts_error(indptr: Array, indices: Array, values: Array, shape: tuple[int, int]) -> str | None:
    """Return what is wrong with CSR counts read from a file, or None.

    In addition to a valid CSR matrix, no entry may be unused, and all values must be finite and non-negative.
    """
    fault = _csr_fault(indptr, indices, values, shape)
    if fault is not None:
        return fault
    if indptr[-1] != len(indices):
        return f"indptr ends at {indptr[-1]}, but there are {len(indices)} values"
    if values.dtype.kind not in "fiu" or values.ndim != 1:
        return "the values must be numbers"
    if values.size and not (values.min() >= 0 and np.isfinite(values.max())):
        return "a count is not a finite number of at least 0"
    return None


def _sparse_fault(X: Any) -> str | None:
    """Return what is wrong with the index arrays of a scipy sparse matrix or array, or None."""
    if X.format in ("csr", "csc"):
        return _csr_fault(X.indptr, X.indices, X.data, X.shape if X.format == "csr" else X.shape[::-1])
    if X.format == "bsr":
        blocks = tuple(size // block for size, block in zip(X.shape, X.blocksize, strict=True))
        return _csr_fault(X.indptr, X.indices, X.data, blocks)
    if X.format == "coo":
        coords = X.coords if hasattr(X, "coords") else (X.row, X.col)  # scipy before 1.13
        if any(len(indices) != len(X.data) for indices in coords):
            return "the coordinates and the values differ in length"
        faults = (_index_fault(indices, size) for indices, size in zip(coords, X.shape, strict=True))
        return next((fault for fault in faults if fault is not None), None)
    return None  # scipy stores the other formats as Python lists or diagonals, and converts them safely


def _csr_fault(indptr: Array, indices: Array, values: Array, shape: tuple[int, int]) -> str | None:
    """Return what is wrong with the arrays of a CSR matrix of this shape, or None. Reads every index once.

    As in scipy, `indices` and `values` may be longer than `indptr` requires; the rest is unused.
    """
    rows, columns = shape
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu" or indptr.ndim != 1 or indices.ndim != 1:
        return "indptr and indices must be one-dimensional arrays of whole numbers"
    if indptr.size != rows + 1:
        return f"indptr has {indptr.size} entries where {rows + 1} are needed"
    if len(indices) != len(values):
        return f"there are {len(indices)} indices but {len(values)} values"
    if indptr[0] != 0:
        return f"indptr starts at {indptr[0]} instead of 0"
    if (indptr[1:] < indptr[:-1]).any():
        return "indptr decreases"
    if indptr[-1] > len(indices):
        return f"indptr ends at {indptr[-1]}, but there are only {len(indices)} values"
    return _index_fault(indices[: indptr[-1]], columns)


def _index_fault(indices: Array, size: int) -> str | None:
    for index in (indices.min(), indices.max()) if indices.size else ():
        if not 0 <= index < size:
            return f"the index {index} is outside 0..{size - 1}"
    return None
