"""Checks of parameters and data, each with one sentence that says what to do."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, check_non_negative, validate_data

from polyseme.errors import InputError
from polyseme.kernels import Array, Floats
from polyseme.solvers import SOLVERS, Solver


def whole_number(name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def non_negative(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < float("inf"):
        raise InputError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def solver_of(solver: Any) -> Solver:
    """A solver object, or the one of that name with its default settings."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise InputError(
                f"solver must be one of {', '.join(map(repr, SOLVERS))} or a solver object, got {solver!r}."
            )
        return SOLVERS[solver]()
    if not hasattr(solver, "begin"):
        raise InputError(f"solver must be a name or a solver object such as polyseme.solvers.EM(), got {solver!r}.")
    return solver


def count_data(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a CSR matrix or a dense array of non-negative finite numbers, its features checked against the fit."""
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        accept_large_sparse=True,
        dtype="numeric",
        order="C",
        ensure_all_finite=False,  # scikit-learn's own message is a page long
    )
    values = X.data if sp.issparse(X) else X
    for name, wrong in (("NaN", np.isnan), ("infinity (inf)", np.isinf)):
        if values.dtype.kind == "f" and wrong(values).any():
            raise InputError(f"Input X contains {name}: every count must be a finite number.")
    check_non_negative(X, type(estimator).__name__)
    return X


def training_data(estimator: Any, X: Any, sample_weight: Any) -> tuple[Any, Floats | None]:
    """`count_data` of a fit, with its weights (None: all one); at least one token of weight is needed."""
    X = count_data(estimator, X, reset=True)
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    row_sums = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    if not (row_sums if weights is None else row_sums * weights).sum() > 0:
        raise InputError("There is nothing to fit: every document is empty (or has weight zero).")
    return X, weights


def factor_dtype(dtype: Any, X: Array | sp.csr_array) -> np.dtype[Any]:
    """The dtype of the factors: as asked, else float64 for float64 data and float32 for integers and float32."""
    if dtype is None:
        return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)
    chosen = np.dtype(dtype)
    if chosen not in (np.float32, np.float64):
        raise InputError(f"dtype must be None, float32 or float64, got {dtype!r}.")
    return chosen
