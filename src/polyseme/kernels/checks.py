"""Checks of sparse arrays before compiled code, scipy's or our own, reads memory by their indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels.operands import Array


def csr_fault(indptr: Array, indices: Array, values: Array, shape: tuple[int, int]) -> str | None:
    """What is wrong with the arrays of CSR counts of this shape, or None. Reads every index once.

    As in scipy, `indices` and `values` may be longer than indptr says; what follows is unused.
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


def counts_fault(indptr: Array, indices: Array, values: Array, shape: tuple[int, int]) -> str | None:
    """The same for counts in a file of our own: no unused memory, and every value finite and not negative."""
    fault = csr_fault(indptr, indices, values, shape)
    if fault is not None:
        return fault
    if indptr[-1] != len(indices):
        return f"indptr ends at {indptr[-1]}, but there are {len(indices)} values"
    if values.dtype.kind not in "fiu" or values.ndim != 1:
        return "the values must be numbers"
    if values.size and not (values.min() >= 0 and np.isfinite(values.max())):
        return "a count is not a finite number of at least 0"
    return None


def sparse_fault(X: Any) -> str | None:
    """What is wrong with a scipy sparse matrix or array whose arrays were changed or given unchecked, or None."""
    if X.format in ("csr", "csc"):
        return csr_fault(X.indptr, X.indices, X.data, X.shape if X.format == "csr" else X.shape[::-1])
    if X.format == "bsr":
        blocks = tuple(size // block for size, block in zip(X.shape, X.blocksize, strict=True))
        return csr_fault(X.indptr, X.indices, X.data, blocks)
    if X.format == "coo":
        coords = X.coords if hasattr(X, "coords") else (X.row, X.col)  # scipy before 1.13
        if any(len(indices) != len(X.data) for indices in coords):
            return "the coordinates and the values differ in length"
        faults = (_index_fault(indices, size) for indices, size in zip(coords, X.shape, strict=True))
        return next((fault for fault in faults if fault is not None), None)
    return None  # scipy keeps the other formats as Python lists or a few diagonals, and converts them safely


def check_topics(sums: Array) -> None:
    """Raises InputError if sums over the topics of a model show that one has NaN or infinity."""
    if not np.isfinite(sums).all():
        raise InputError("The model's topics contain NaN or infinity: fit the model again.")


def checked_sparse(X: Any, name: str = "X") -> Any:
    """X; raises InputError if X is sparse and its indices do not fit its shape."""
    if sp.issparse(X):
        fault = sparse_fault(X)
        if fault is not None:
            raise InputError(f"{name} is not a valid sparse matrix: {fault}; build it again from its entries.")
    return X
