"""Checks of parameters and data, each with one sentence that says what to do."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_non_negative, validate_data

from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, checked_sparse
from polyseme.priors import Prior
from polyseme.solvers import SOLVERS, EarlyStopping, Solver
from polyseme.sources.disk import Shards

_ANNOTATED = ("anndata", "mudata")
"""packages whose objects hold counts together with other tables"""


MOST_TOPICS = 2**31 - 1
"""the kernels count topics in 32 bits"""


def whole_number(name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def number_of_topics(n_components: Any) -> int:
    K = whole_number("n_components", n_components, least=1)
    if K > MOST_TOPICS:
        raise InputError(f"n_components must be at most {MOST_TOPICS}, got {n_components!r}.")
    return K


def non_negative(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < float("inf"):
        raise InputError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
        raise InputError(f"{name} must be a number between 0 and 1, got {value!r}.")
    return float(value)


def threads_of(n_jobs: Any) -> int | None:
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}.")
    return int(n_jobs)


def random_state_of(random_state: Any) -> np.random.RandomState:
    """A seed as scikit-learn takes it: None, a number or a RandomState. A Generator would not survive `clone`."""
    if isinstance(random_state, np.random.Generator):
        raise InputError(
            "random_state must be None, a whole number or a numpy.random.RandomState, not a Generator: pass a number "
            "drawn from it, int(generator.integers(2**31))."
        )
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state must be None, a whole number from 0 to 2**32 - 1 or a numpy.random.RandomState, got "
            f"{random_state!r}."
        ) from None


def forget_fit(estimator: Any) -> None:
    """Removes what an earlier fit left, but for what validation has just set."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        if name not in ("n_features_in_", "feature_names_in_", "vocabulary_"):
            delattr(estimator, name)


def word_names(name: str, vocabulary: Any, size: int) -> Array:
    """The word of each column as strings, from a sequence of names, or from a fitted vectorizer or Pipeline."""
    if hasattr(vocabulary, "get_feature_names_out"):
        vocabulary = vocabulary.get_feature_names_out()
    if isinstance(vocabulary, str) or len(vocabulary) != size:
        raise InputError(f"{name} must have one name for each of the {size} words, got {_how_many(vocabulary)}.")
    return np.array([str(word) for word in vocabulary], dtype=object)


def keep_vocabulary(estimator: Any, names: Any, size: int) -> None:
    """Sets vocabulary_ to the names of the `size` words; None, the default of the class, where they are not known."""
    vars(estimator).pop("vocabulary_", None)
    if names is not None:
        estimator.vocabulary_ = word_names("feature_names", names, size)


def _how_many(vocabulary: Any) -> str:
    return repr(vocabulary) if isinstance(vocabulary, str) else str(len(vocabulary))


def refuse_other_factors(name: str, prior: Prior, factor: str) -> None:
    """Raises InputError if a part of the prior `name` cannot act on `factor`."""
    for part in prior.parts:
        if factor not in part.acts_on:
            raise InputError(f"{name} is on {factor}, but {type(part).__name__} acts on {part.acts_on[0]} only.")


def solver_of(solver: Any) -> Solver:
    """A solver object, or the one of that name with its default settings."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise InputError(
                f"solver must be one of {', '.join(map(repr, SOLVERS))} or a solver object, got {solver!r}."
            )
        return SOLVERS[solver]()
    if isinstance(solver, type) or not hasattr(solver, "begin"):
        raise InputError(f"solver must be a name or a solver object such as polyseme.solvers.EM(), got {solver!r}.")
    return solver


def stopped_early(early_stopping: Any, solver: Solver) -> Solver:
    """The solver, its iterations ended by held-out words if `early_stopping` asks for it."""
    if early_stopping is None or early_stopping is False:
        return solver
    if early_stopping is True:
        early_stopping = EarlyStopping()
    if not isinstance(early_stopping, EarlyStopping):
        raise InputError(
            f"early_stopping must be None, True or a polyseme.solvers.EarlyStopping, got {early_stopping!r}."
        )
    return early_stopping if early_stopping.solver is not None else replace(early_stopping, solver=solver)


def _refuse_what_is_no_number(X: Any) -> None:
    """scikit-learn's own messages print the data."""
    dtypes = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", ()))
    if not dtypes:
        try:
            dtypes = [np.asarray(X).dtype]
        except ValueError:
            return  # ragged: scikit-learn says so well
    kinds = {getattr(dtype, "kind", "") for dtype in dtypes}
    if "c" in kinds:
        raise InputError("Complex data not supported: every count must be a real number of at least 0.")
    if kinds & {"U", "S", "T"} or ("O" in kinds and not sp.issparse(X) and _has_text(X)):
        raise InputError("X holds text where numbers belong: count the words first, for example with CountVectorizer.")


def _has_text(X: Any) -> bool:
    return any(isinstance(value, str | bytes) for value in np.asarray(X, dtype=object).ravel())


def refuse_shards(estimator: Any, X: Any) -> None:
    """For what only takes arrays."""
    if isinstance(X, Shards):
        raise UnsupportedError(
            f"This part of {type(estimator).__name__} takes no shards, which are for PLSA's fit and transform: give "
            "the counts of some documents; iterating over shards gives those of one shard after the other."
        )
    if any(kind.__module__.partition(".")[0] in _ANNOTATED for kind in type(X).__mro__):
        raise InputError(
            f"X is an object of the class {type(X).__name__}: pass its matrix of counts, a row for each cell, such as "
            "adata.X or adata.layers['counts']."
        )


MOST = {np.dtype(np.float32): 1e10, np.dtype(np.float64): 1e30}
"""counts and weights must be 0, or between the inverse of this and this: products and squares of them stay finite"""


def check_range(name: str, values: Array, dtype: np.dtype[Any]) -> None:
    """Refuses numbers of at least 0 that are too large or too small for factors of `dtype`."""
    if not values.size:
        return
    most = MOST[dtype]
    wrong = float(values.max())
    if not wrong > most:
        if values.dtype.kind != "f" or values.min() >= 1 / most:
            return
        wrong = float(np.min(values, initial=wrong, where=values > 0))
        if wrong >= 1 / most or wrong == 0:
            return
    wider = ", or use float64" if dtype == np.float32 else ""
    raise InputError(
        f"{name} must be 0 or between {1 / most:.0e} and {most:.0e} in {dtype.name}, got {wrong:.3g}: "
        f"rescale the data{wider}."
    )


def count_data(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a CSR matrix or a dense array of non-negative finite numbers, its features checked against the fit.

    Sparse data may have unsorted entries, duplicates (which are added up) and unused memory after its entries. Indices
    that do not fit its shape raise InputError, before scipy or a kernel reads memory by them.
    """
    refuse_shards(estimator, X)
    _refuse_what_is_no_number(X)
    given = checked_sparse(X)
    X = validate_data(
        estimator,
        given,
        reset=reset,
        accept_sparse="csr",
        accept_large_sparse=True,
        dtype="numeric",
        order="C",
        ensure_all_finite=False,  # scikit-learn's own message is a page long
    )
    if sp.issparse(X):
        if X is not given:
            checked_sparse(X)  # made from a format that is not checked itself, or from a data frame
        if X.indices.size > X.nnz:
            X = type(X)((X.data[: X.nnz], X.indices[: X.nnz], X.indptr), X.shape)
    if X.dtype == np.float16:
        X = X.astype(np.float32)
    elif X.dtype == np.longdouble and X.dtype != np.float64:  # which scipy.sparse and the kernels do not take
        with np.errstate(over="ignore"):  # infinity is refused below
            X = X.astype(np.float64)
    elif not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    elif sp.issparse(X) and X.dtype.kind in "iu" and X.dtype.itemsize < 8 and not X.has_canonical_format:
        X = X.astype(np.int64)  # where the sum of duplicates fits
    values = X.data if sp.issparse(X) else X
    for name, wrong in (("NaN", np.isnan), ("infinity (inf)", np.isinf)):
        if values.dtype.kind == "f" and wrong(values).any():
            raise InputError(f"Input X contains {name}: every count must be a finite number.")
    check_non_negative(X, type(estimator).__name__)
    check_range("Every count", values, working_dtype(estimator, X, reset))
    return X


def working_dtype(estimator: Any, X: Any, reset: bool) -> np.dtype[Any]:
    """The dtype of an estimator's factors: as fitted, or as a fit to X makes them."""
    if not reset and hasattr(estimator, "components_"):
        return factor_dtype(estimator.components_.dtype, X)
    return factor_dtype(estimator.get_params(deep=False).get("dtype"), X)


def training_data(
    estimator: Any, X: Any, sample_weight: Any, *, feature_names: Any = None, reset: bool = True
) -> tuple[Any, Floats | None]:
    """`count_data` of a fit, with its weights (None: all one); at least one token of weight is needed.

    Sets vocabulary_ from `feature_names`, or else from the columns of a frame.
    """
    X = count_data(estimator, X, reset=reset)
    if reset or feature_names is not None:
        names = getattr(estimator, "feature_names_in_", None) if feature_names is None else feature_names
        keep_vocabulary(estimator, names, X.shape[1])
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        check_range("Every sample weight", weights, working_dtype(estimator, X, reset))
    row_sums = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    if not (row_sums if weights is None else row_sums * weights).sum() > 0:
        raise InputError("There is nothing to fit: every document is empty (or has weight zero).")
    return X, weights


def factor_dtype(dtype: Any, X: Array | sp.csr_array | Shards) -> np.dtype[Any]:
    """The dtype of the factors: as asked, else float64 for float64 data and float32 for integers and float32."""
    if dtype is None:
        return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)
    for known in (np.dtype(np.float32), np.dtype(np.float64)):
        if isinstance(dtype, str | type | np.dtype) and dtype in (known.name, known.type, known):
            return known
    raise InputError(f"dtype must be None, float32 or float64, got {dtype!r}.")
