"""Checks of parameters and counts that estimators, solvers and functions share, the number of threads, and perplexity.

Every `check_*` function takes the name of the parameter and its value, returns the value in its final type, and raises
InputError with the name, the condition and the value if the condition does not hold. joblib, scikit-learn and
threadpoolctl are imported where they are used: a search needs none of them, and they take a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Array, check_sparse
from polyseme.options import drawn_seed

FitCallback = Callable[[dict[str, Any]], object] | None
"""What is called after each iteration of a fit."""
RandomStateLike = int | np.integer | np.random.RandomState | np.random.Generator | None
"""Values of `random_state`. None is not reproducible."""
MAX_TOPICS = 2**31 - 1
"""Largest number of topics, because the kernels count topics in 32 bits."""
MAX_COUNT = {np.dtype(np.float32): 1e10, np.dtype(np.float64): 1e30}
"""Largest count or weight for each type of the factors, and the inverse of the smallest positive one.

Within these limits, products and squares of counts and weights are finite.
"""

_SCIKIT_LEARN = {
    "mu": "'em', or 'mm' for other losses than Kullback-Leibler",
    "cd": "'scd', or 'hals' for the squared loss",
    "batch": "'variational'",
    "frobenius": "'squared'",
    "nndsvda": "'nndsvd'",
    "nndsvdar": "'nndsvd'",
    "custom": "the pair itself",
}
"""What to write instead of the names of scikit-learn's parameters."""


def got(value: Any) -> str:
    """Return the end of a message about an unknown name: the value, and our name if it is one of scikit-learn's."""
    ours = _SCIKIT_LEARN.get(value) if isinstance(value, str) else None
    return f"got {value!r}" + (f" (instead write {ours})." if ours else ".")


def perplexity_of(log_probability: float, tokens: float = 1.0) -> float:
    """Return exp(-log_probability / tokens); NaN without tokens, infinite beyond the largest float."""
    with np.errstate(over="ignore"):
        return float(np.exp(-log_probability / tokens)) if tokens > 0 else float("nan")


def check_integer(name: str, value: Any, *, least: int) -> int:
    """Return `value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_n_topics(value: Any, name: str = "n_components") -> int:
    """Return the number of topics as an int from 1 to `MAX_TOPICS`."""
    n_topics = check_integer(name, value, least=1)
    if n_topics > MAX_TOPICS:
        raise InputError(f"{name} must be at most {MAX_TOPICS}, got {value!r}.")
    return n_topics


def check_nonnegative(name: str, value: Any) -> float:
    """Return `value` as a finite float of at least 0."""
    if not _is_real(value) or not 0 <= float(value) < float("inf"):
        raise InputError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return `value` as a float from 0 to 1."""
    if not _is_real(value) or not 0 <= float(value) <= 1:
        raise InputError(f"{name} must be a number between 0 and 1, got {value!r}.")
    return float(value)


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return `n_jobs` as None or an int other than 0."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}.")
    return int(n_jobs)


def as_random_state(random_state: Any) -> np.random.RandomState:
    """Return the RandomState for None, a number, a RandomState or a Generator."""
    from sklearn.utils import check_random_state

    try:
        return check_random_state(
            drawn_seed(random_state) if isinstance(random_state, np.random.Generator) else random_state
        )
    except (TypeError, ValueError):
        raise InputError(
            "random_state must be None, a whole number from 0 to 2**32 - 1, a numpy.random.Generator or a "
            f"numpy.random.RandomState, got {random_state!r}."
        ) from None


def sample_rows(n_documents: int, size: int, seed: int) -> Array:
    """Draw `size` rows without replacement and sort them. Return all rows if there are at most `size`."""
    if n_documents <= size:
        return np.arange(n_documents)
    return np.sort(np.random.default_rng(seed).choice(n_documents, size, replace=False, shuffle=False))


def as_seed(random_state: Any) -> int:
    """Return a seed from 0 to 2**32 - 1: a number as it is, and one that any other `random_state` draws."""
    if not isinstance(random_state, Integral) or isinstance(random_state, bool):
        return int(as_random_state(random_state).randint(2**32, dtype=np.int64))
    as_random_state(random_state)  # raises for numbers out of range
    return int(random_state)


def word_names(name: str, vocabulary: Any, size: int) -> Array:
    """Return the word of each of `size` columns, from a sequence of names or from a fitted vectorizer or Pipeline."""
    if hasattr(vocabulary, "get_feature_names_out"):
        vocabulary = vocabulary.get_feature_names_out()
    if isinstance(vocabulary, str) or len(vocabulary) != size:
        given = repr(vocabulary) if isinstance(vocabulary, str) else str(len(vocabulary))
        raise InputError(f"{name} must have one name for each of the {size} words, got {given}.")
    return np.array([str(word) for word in vocabulary], dtype=object)


def check_range(name: str, values: Array, dtype: np.dtype[Any]) -> None:
    """Raise InputError if non-negative values are too large, or positive and too small, for factors of `dtype`."""
    if not values.size:
        return
    most = MAX_COUNT[dtype]
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


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`.

    None gives the number of cores of this process (affinity and cgroup limits, as counted by joblib), but no more than
    OpenMP would use (OMP_NUM_THREADS, `threadpool_limits`, `inner_max_num_threads` of joblib). A negative number counts
    back from there, as in scikit-learn. A positive number is used as given, up to four times the number of cores: more
    threads cost memory without a gain, and results do not depend on their number.
    """
    if n_jobs == 1:
        return 1
    cores = usable_cores()
    if n_jobs is not None and n_jobs > 0:
        return min(n_jobs, 4 * cores)
    usable = min(cores, openmp_threads() or cores)
    return usable if n_jobs is None else max(1, usable + 1 + n_jobs)


def usable_cores() -> int:
    """Return the number of cores this process may use (affinity, cgroup and LOKY_MAX_CPU_COUNT)."""
    affinity = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return _count_cores(affinity, os.environ.get("LOKY_MAX_CPU_COUNT"))


def openmp_threads() -> int | None:
    """Return the number of threads OpenMP would use, or None if scikit-learn was built without OpenMP.

    The number reflects OMP_NUM_THREADS, `threadpool_limits` of threadpoolctl and `inner_max_num_threads` of joblib.
    """
    import sklearn  # noqa: F401, loads the OpenMP library whose limits are read

    return min((library.get_num_threads() for library in _openmp_libraries()), default=None)


@cache
def _openmp_libraries() -> list[Any]:
    """Return the loaded OpenMP libraries. Cached, because the search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "openmp"]


@cache
def _count_cores(affinity: frozenset[int] | None, limit: str | None) -> int:
    """Return the count of joblib, cached because it opens files, which is slow compared with a small fit."""
    import joblib

    return int(joblib.cpu_count())


def checked_counts(counts: Any, n_words: int, what: str) -> Any:
    """Return `counts` as a canonical CSR array of float64 with `n_words` columns, finite and not negative."""
    matrix = valid_counts(counts, n_words, what).astype(np.float64, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and matrix.data.min() == 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def valid_counts(counts: Any, n_words: int, what: str) -> Any:
    """Return `counts` as a CSR array of floats; columns of a row can be in any order and occur several times."""
    import scipy.sparse as sp

    try:
        given = check_sparse(counts, what) if sp.issparse(counts) else np.atleast_2d(np.asarray(counts))
        matrix = sp.csr_array(given, copy=False)
        if matrix.dtype != np.float32:
            matrix = matrix.astype(np.float64, copy=False)
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputError(f"{what} must be counts: a matrix of numbers with a column for each word.") from None
    check_columns(what, matrix.shape[1], n_words)
    if matrix.nnz and not (matrix.data.min() >= 0 and matrix.data.max() < np.inf):
        raise InputError(f"{what} must be counts: every number finite and at least 0.")
    return matrix


def check_columns(what: str, found: int, n_words: int) -> None:
    """Raise InputError unless there is a column for each word."""
    if found != n_words:
        raise InputError(f"{what} must have a column for each of the {n_words} words, got {found} columns.")
