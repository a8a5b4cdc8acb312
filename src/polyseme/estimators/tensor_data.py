"""Counts of several ways from what users have: an n-way array, dense or sparse, or a long table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.estimators.validation import count_data
from polyseme.kernels import Array, checked_sparse
from polyseme.sources.tensor import new_tuples


class TensorData(NamedTuple):
    """Non-zero counts, each tuple once."""

    coords: tuple[Array, ...]
    values: Array
    shape: tuple[int, ...]
    labels: list[list[Any]] | None
    """of a table: the names of each mode's items, sorted"""


def is_table(X: Any, modes: Any) -> bool:
    if sp.issparse(X):  # one of scipy's is a mapping, too
        return False
    return isinstance(X, Mapping) or (modes is not None and hasattr(X, "columns"))


def array_data(estimator: Any, X: Any, *, reset: bool) -> TensorData:
    """An array of two ways is checked as scikit-learn does; of more, here."""
    if getattr(X, "ndim", 2) <= 2:
        X = count_data(estimator, X, reset=reset)
    if sp.issparse(X):
        tensor = sp.coo_array(checked_sparse(X))
        indices = tensor.coords if hasattr(tensor, "coords") else (tensor.row, tensor.col)  # scipy before 1.13
        coords, values = tuple(np.asarray(index, dtype=np.int64) for index in indices), tensor.data
    else:
        X = np.asarray(X)
        coords = tuple(np.asarray(index, dtype=np.int64) for index in np.nonzero(X))
        values = X[coords]
    return checked(coords, values, tuple(X.shape), None)


def table_data(X: Any, modes: Sequence[str] | None, counts: str | None) -> TensorData:
    """A long table: a column for each mode, and one with the counts; without counts, every row is one event."""
    if modes is not None and (isinstance(modes, str) or not isinstance(modes, Sequence | np.ndarray)):
        raise InputError(f"modes must be None or a list of names of columns, got {modes!r}.")
    names = [str(name) for name in getattr(X, "columns", X)]
    wanted = [name for name in names if name != counts] if modes is None else [str(name) for name in modes]
    for name in [*wanted, *([] if counts is None else [counts])]:
        if name not in names:
            raise InputError(f"The table has no column {name!r}: its columns are {', '.join(map(repr, names))}.")
    columns = {name: np.asarray(X[name]) for name in wanted}
    if len({column.shape for column in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise InputError("The columns of the table must be equally long.")
    labels, coords = [], []
    for name, column in columns.items():
        if _has_missing(column):
            raise InputError(f"The column {name!r} has missing values: leave those rows out.")
        distinct, inverse = np.unique(column, return_inverse=True)
        labels.append([_plain(label) for label in distinct.tolist()])
        coords.append(np.asarray(inverse, dtype=np.int64).ravel())
    shape = tuple(len(names) for names in labels)
    if counts is not None:
        return checked(tuple(coords), np.asarray(X[counts]), shape, labels)
    order = np.lexsort(coords)
    starts = new_tuples([index[order] for index in coords])
    events = np.diff(np.append(starts, order.size)).astype(np.int64)
    return checked(tuple(index[order[starts]] for index in coords), events, shape, labels)


def checked(
    coords: tuple[Array, ...], values: Array, shape: tuple[int, ...], labels: list[list[Any]] | None
) -> TensorData:
    if len(shape) < 2:
        raise InputError(f"A tensor needs at least two modes, got {len(shape)}.")
    for mode, size in enumerate(shape):
        if size == 0:
            raise InputError(f"Mode {mode} of the tensor has size 0: every mode needs at least one item.")
    if values.dtype.kind not in "fiub" or values.ndim != 1:
        raise InputError("The counts of the tensor must be real numbers.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError("The tensor contains NaN or infinity: every count must be a finite number.")
    if (values < 0).any():
        raise InputError(
            "Negative values in data: the tensor has a count below zero, and every count must be at least 0."
        )
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    order = np.lexsort(coords)
    if new_tuples([index[order] for index in coords]).size < order.size:
        raise InputError("The tensor has duplicate entries: add them up first, for example with sum_duplicates().")
    kept = values > 0
    return TensorData(tuple(index[kept] for index in coords), values[kept], shape, labels)


def with_known_labels(data: TensorData, known: list[list[Any]], mode: int | None) -> TensorData:
    """A table's data with the indices of the fit; rows with a label that the fit does not know are left out."""
    assert data.labels is not None
    keep = np.ones(data.values.size, dtype=bool)
    coords = list(data.coords)
    for other, names in enumerate(known):
        if other != mode:
            place = {name: position for position, name in enumerate(names)}
            lookup = np.array([place.get(name, -1) for name in data.labels[other]], dtype=np.int64)
            coords[other] = lookup[data.coords[other]]
            keep &= coords[other] >= 0
    shape = tuple(data.shape[mode] if m == mode else len(names) for m, names in enumerate(known))
    return TensorData(tuple(index[keep] for index in coords), data.values[keep], shape, data.labels)


def _has_missing(column: Array) -> bool:
    if column.dtype.kind == "f":
        return bool(np.isnan(column).any())
    return column.dtype.kind == "O" and any(value is None or value != value for value in column)


def _plain(label: Any) -> Any:
    """A label that a model file can hold."""
    return label if isinstance(label, bool | int | float | str) else str(label)
