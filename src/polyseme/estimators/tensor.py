"""Counts of several ways from what users have: an n-way array, dense or sparse, or a long table.

PLSA of counts with two or more ways, as an estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from polyseme.core.factors import columns_to_one
from polyseme.data.tensor import TensorCounts, new_tuples, operand
from polyseme.errors import InputError
from polyseme.estimators.base import CountDecomposition, clear_fit, count_data, factor_dtype, working_dtype
from polyseme.estimators.tables import largest_items
from polyseme.kernels import Array, checked_sparse, inner, padded
from polyseme.kernels.threads import effective_threads
from polyseme.solvers.base import FitEnd, best_fit, finish_fit, generators
from polyseme.solvers.tensor import TensorPoint, TensorRun, begin, fold_in, padded_point, random_start
from polyseme.utils import check_n_jobs, check_n_topics, check_nonnegative, check_range, check_share, check_whole_number


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


SOLVERS = ("accelerated-em", "em")
_NUMBERS_AT_ONCE = 1 << 20


class TensorPLSA(CountDecomposition):
    """PLSA of counts with two or more ways: P(i_1, ..., i_n) = sum_z P(z) P(i_1|z) ... P(i_n|z).

    Documents x words x years, authors x words x venues: the modes are independent given the topic. With two modes it is
    the symmetric form of PLSA.

    Parameters
    ----------
    n_components : number of topics K.
    modes, counts : for a long table (a polars or pandas frame, or a dict of columns): the columns that name the items
        of each mode, and the column with the counts (None: every row is one event). A dict's modes are all its other
        columns, if none are named; a frame without `modes` is a matrix.
    init : "random"; or a pair (P(z), [P(item|z) of each mode, K x items]) to start from.
    solver : "accelerated-em" or "em".
    n_init, max_iter, tol, n_jobs, dtype, random_state, verbose, callback : as in PLSA.

    Attributes
    ----------
    topic_weights_ : P(z).
    factors_ : P(item|z) of each mode, K x items; rows sum to one.
    components_ : that of the last mode.
    shape_ : the number of items of each mode.
    mode_labels_ : of a table: the names of each mode's items, in the order of the factors; else None.
    log_likelihood_ : mean log P(i_1, ..., i_n) of a count, natural log.
    history_, n_tokens_, n_iter_, converged_, n_features_in_, feature_names_in_ : as in PLSA.

    Examples
    --------
    >>> from polyseme import TensorPLSA
    >>> table = {"who": ["ann", "ann", "bob", "bob"], "what": ["tea", "tea", "coffee", "coffee"],
    ...          "when": ["morning", "noon", "noon", "night"], "n": [5, 3, 2, 4]}
    >>> model = TensorPLSA(2, counts="n", random_state=0).fit(table)
    >>> [factor.shape for factor in model.factors_]
    [(2, 2), (2, 2), (2, 3)]
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        modes: Any = None,
        counts: Any = None,
        init: Any = "random",
        solver: str = "accelerated-em",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-2,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
    ) -> None:
        self.n_components = n_components
        self.modes = modes
        self.counts = counts
        self.init = init
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fits the topics to counts X: an n-way array (NumPy, or scipy's coo_array), or a long table.

        Ctrl-C keeps the best model so far in the estimator and then raises KeyboardInterrupt.
        """
        K = check_n_topics(self.n_components)
        n_init = check_whole_number("n_init", self.n_init, least=1)
        max_iter = check_whole_number("max_iter", self.max_iter, least=1)
        tol = check_nonnegative("tol", self.tol)
        if self.solver not in SOLVERS:
            raise InputError(f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {self.solver!r}.")
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        data = self._data(X, reset=True)
        if not data.values.size:
            raise InputError("There is nothing to fit: every count is zero.")
        corpus = TensorCounts(
            data.coords, data.values.astype(factor_dtype(self.dtype, data.values)), data.shape, n_threads
        )
        best, interrupted = best_fit(self, self._beginnings(corpus, K, n_init), max_iter=max_iter, tol=tol)
        self._keep(best, data, corpus, K)
        finish_fit(self, interrupted, max_iter, tol)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """`fit`, and P(z|item) of the items of the first mode: what `transform(X)` gives."""
        return self.fit(X, y).transform(X)

    def transform(self, X: Any, mode: int = 0) -> Array:
        """P(z|item) (items x K, rows sum to one) of new items of a mode, by folding in: the other modes' factors fixed.

        X is a tensor as in `fit`, with any number of items in `mode`; of a table, the items are its labels, sorted, and
        rows with labels of other modes that the fit does not know are left out. Each item is folded in to convergence;
        one without counts gets P(z).
        """
        check_is_fitted(self)
        mode = self._mode(mode)
        data = self._known_data(X, mode)
        n_threads = effective_threads(self.n_jobs)
        dtype = self.components_.dtype
        corpus = TensorCounts(data.coords, data.values.astype(dtype), data.shape, n_threads)
        factors = [padded(factor.T, dtype) for factor in self.factors_]
        return fold_in(corpus, mode, self.topic_weights_, factors, n_threads=n_threads)

    def posterior(self, mode: int = 0) -> Array:
        """P(z|item) of the items of a mode that the fit knows, by Bayes: proportional to P(z) P(item|z)."""
        check_is_fitted(self)
        joint = self.topic_weights_ * self.factors_[self._mode(mode)].T
        sums = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, sums, out=np.tile(self.topic_weights_, (len(joint), 1)), where=sums > 0)

    def log_probability(self, X: Any, *, smoothing: float = 0.01) -> float:
        """Mean log-probability of a count of X, a tensor of the fitted shape, such as counts that were held out.

        Under (1 - smoothing) P(i_1, ..., i_n) + smoothing P(i_1) ... P(i_n): without a floor the zeros of a converged
        model would decide the figure. Items that the fit has not seen at all are left out.
        """
        check_is_fitted(self)
        smoothing = check_share("smoothing", smoothing)
        data = self._known_data(X, None)
        factors = [factor.T.astype(np.float64) for factor in self.factors_]
        marginals = [factor @ self.topic_weights_ for factor in factors]
        total = tokens = 0.0
        step = max(1, _NUMBERS_AT_ONCE // self.topic_weights_.size)
        for start in range(0, data.values.size, step):
            part = {m: index[start : start + step] for m, index in enumerate(data.coords)}
            apart = np.prod([marginals[m][index] for m, index in part.items()], axis=0)
            together = operand(self.topic_weights_, factors, part).sum(axis=1)
            mixed = (1 - smoothing) * together + smoothing * apart
            x = data.values[start : start + step] * (apart > 0)
            with np.errstate(divide="ignore"):
                logs = np.log(mixed, out=np.zeros_like(mixed), where=apart > 0)
            total += inner(x, logs)
            tokens += float(x.sum())
        return total / tokens if tokens > 0 else float("nan")

    def top_items(self, mode: int = -1, labels: Any = None, *, n: int = 10) -> list[list[str]]:
        """The n most probable items of a mode for each topic, by name (of a table: its labels)."""
        check_is_fitted(self)
        mode = self._mode(mode)
        if labels is None and self.mode_labels_ is not None:
            labels = self.mode_labels_[mode]
        return largest_items(self.factors_[mode], labels, check_whole_number("n", n, least=1))

    @property
    def factors_(self) -> tuple[Array, ...]:
        """P(item|z) of each mode, K x items."""
        return tuple(getattr(self, f"factor_{mode}_") for mode in range(len(self.shape_)))

    @property
    def components_(self) -> Array:  # type: ignore[override]
        """P(item|z) of the last mode."""
        return self.factors_[-1]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "shape_")

    def _mode(self, mode: Any) -> int:
        n_modes = len(self.shape_)
        if isinstance(mode, bool) or not isinstance(mode, int | np.integer) or not -n_modes <= mode < n_modes:
            raise InputError(f"mode must be a whole number below {n_modes}, the number of modes, got {mode!r}.")
        return int(mode) % n_modes

    def _known_data(self, X: Any, free: int | None) -> TensorData:
        """X as counts with the fit's items in all modes but `free`."""
        data = self._data(X, reset=False) if free in (0, None) else clone(self)._data(X, reset=True)
        known = tuple(int(size) for size in self.shape_)
        if data.labels is not None and len(data.shape) == len(known):
            if self.mode_labels_ is None:
                raise InputError("The fit had an array, so its items have no names: give an array, not a table.")
            data = with_known_labels(data, self.mode_labels_, free)
        if len(data.shape) != len(known) or any(
            mode != free and mine != theirs for mode, (mine, theirs) in enumerate(zip(data.shape, known, strict=True))
        ):
            but = "" if free is None else f" but for mode {free}"
            raise InputError(f"The tensor has shape {data.shape} where the fit had {known}: all modes{but} must agree.")
        return data

    def _data(self, X: Any, *, reset: bool) -> TensorData:
        """X as counts, checked."""
        if is_table(X, self.modes):
            data = table_data(X, self.modes, self.counts)
        else:
            data = array_data(self, X, reset=reset and getattr(X, "ndim", 2) <= 2)
        check_range("Every count", data.values, working_dtype(self, data.values, reset))
        return data

    def _beginnings(self, corpus: TensorCounts, K: int, n_init: int) -> Iterator[Callable[[], TensorRun]]:
        """Functions that begin a run, one for each start."""
        extrapolate = self.solver == SOLVERS[0]
        if not isinstance(self.init, str):
            start = _given(self.init, corpus, K)
            yield lambda: begin(corpus, start, extrapolate=extrapolate)
            return
        if self.init != "random":
            raise InputError(f"init must be 'random' or a pair (topic_weights, factors), got {self.init!r}.")
        for rng in generators(self.random_state, n_init):

            def start_anew(rng: np.random.Generator = rng) -> TensorRun:
                return begin(corpus, random_start(corpus, K, rng), extrapolate=extrapolate)

            yield start_anew

    def _keep(self, fit: FitEnd[TensorRun], data: TensorData, corpus: TensorCounts, K: int) -> None:
        clear_fit(self)
        weights, *factors = fit.run.point
        self.shape_ = np.array(data.shape, dtype=np.int64)
        self.mode_labels_ = data.labels
        self.topic_weights_ = weights[:K]
        for mode, (factor, totals) in enumerate(zip(factors, corpus.totals, strict=True)):
            topics = np.ascontiguousarray(factor[:, :K].T)
            topics[topics.sum(axis=1) == 0] = totals / corpus.tokens  # a topic that lost all its counts
            setattr(self, f"factor_{mode}_", topics)
        self.n_tokens_ = corpus.tokens
        self.log_likelihood_ = fit.run.report.objective
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged


def _given(init: Any, corpus: TensorCounts, K: int) -> TensorPoint:
    """A pair (P(z), factors) to start from, checked and normalized."""
    try:
        weights, given = init
        weights = np.asarray(weights, dtype=np.float64)
        factors = [np.asarray(factor, dtype=np.float64).T for factor in given]
    except (TypeError, ValueError):
        raise InputError("init must be 'random' or a pair (topic_weights, factors) of arrays.") from None
    shapes = [(K,), *((size, K) for size in corpus.shape)]
    if [weights.shape, *(factor.shape for factor in factors)] != shapes:
        raise InputError(
            f"init: topic_weights must have {K} numbers, and the factors the shapes K x items of each mode."
        )
    for numbers in (weights, *factors):
        if not np.isfinite(numbers).all() or (numbers < 0).any() or (numbers.sum(axis=0) <= 0).any():
            raise InputError("init: topic_weights and factors must be finite, non-negative, and no row all zeros.")
    return padded_point(weights / weights.sum(), [columns_to_one(factor) for factor in factors], corpus.dtype)
