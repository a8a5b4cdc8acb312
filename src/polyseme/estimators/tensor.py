"""PLSA of counts with two or more modes (tensors), as a scikit-learn estimator.

The data are an n-way array, dense or sparse, or a long table with one column per mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from polyseme.core.fitted import StoredArray
from polyseme.errors import InputError
from polyseme.estimators.base import CountDecomposition, LargestTopic, times_components
from polyseme.estimators.validation import clear_fit, count_data, factor_dtype, working_dtype
from polyseme.io.files import COUNT, FLAG, NULL, TEXT, either, list_of
from polyseme.io.models import INTEGERS, NUMBER, NUMBER_OR_NAN, StoredAttributes, StoredValue
from polyseme.kernels import Array, check_sparse, inner, normalize_columns, padded, row_blocks
from polyseme.metrics.words import largest_items
from polyseme.solvers.base import FitEnd, FitSummary, Start, best_fit, finish_fit, generators
from polyseme.solvers.tensor import (
    TensorCounts,
    TensorPoint,
    TensorRun,
    begin,
    fold_in,
    new_tuples,
    operand,
    padded_point,
    random_start,
)
from polyseme.utils import (
    FitCallback,
    RandomStateLike,
    check_integer,
    check_n_jobs,
    check_n_topics,
    check_nonnegative,
    check_range,
    check_share,
    effective_threads,
)

SOLVERS = ("accelerated-em", "em")
_BLOCK_NUMBERS = 1 << 20


class TensorPLSA(LargestTopic, CountDecomposition):
    """PLSA of counts with two or more modes, fitted by maximum likelihood.

    The modes, such as documents x words x years or authors x words x venues, are independent given the topic::

        P(i_1, ..., i_n) = sum_z P(z) P(i_1|z) ... P(i_n|z)

    With two modes this is the symmetric form of PLSA.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    modes : list of str, default=None
        For a long table (a polars or pandas data frame, or a dict of columns): the columns with the items of each mode.
        None uses all columns of a dict except `counts`, and takes a data frame as a matrix.
    counts : str, default=None
        For a long table: the column with the counts. With None, every row counts one event.
    init : "random" or pair, default="random"
        Start of the fit. A pair is P(z) and a list with P(item|z) (K x items) of each mode.
    solver : {"accelerated-em", "em"}, default="accelerated-em"
        EM with or without extrapolation.
    n_init : int, default=1
        Number of starts. The fit with the best objective is kept.
    max_iter : int, default=200
        Maximum number of iterations of a start.
    tol : float, default=0.001
        A fit stops when an estimate of what it can still gain is below `tol` nats per token, as in PLSA.
    n_jobs : int, default=None
        Number of threads; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None uses float64 for float64 data, else float32.
    random_state : int, RandomState or Generator, default=None
        Seed of the start.
    verbose : int, default=0
        1 shows a progress bar, 2 also leaves it on the screen.
    callback : callable, default=None
        Called after each iteration with a dict: iteration, seconds, log_likelihood, objective, residual, remaining.

    Attributes
    ----------
    topic_weights_ : array of shape (K,)
        P(z).
    factors_ : tuple of arrays of shape (K, n_items)
        P(item|z) of each mode; rows sum to one.
    components_ : array of shape (K, n_items)
        P(item|z) of the last mode.
    shape_ : array of int
        Number of items of each mode.
    mode_labels_ : list of lists or None
        For a table: the names of the items of each mode, in the order of the factors.
    log_likelihood_ : float
        Mean log P(i_1, ..., i_n) of a count (natural logarithm).
    history_ : dict of arrays
        Values of each iteration as in PLSA.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the fit stopped by `tol`.
    n_tokens_ : float
        Sum of all counts.
    n_features_in_ : int
        For a matrix: number of columns.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Peng, W. (2009). Equivalence between nonnegative tensor factorization and tensorial probabilistic latent semantic
      analysis. SIGIR.

    Examples
    --------
    >>> from polyseme import TensorPLSA
    >>> table = {"who": ["ann", "ann", "bob", "bob"], "what": ["tea", "tea", "coffee", "coffee"],
    ...          "when": ["morning", "noon", "noon", "night"], "n": [5, 3, 2, 4]}
    >>> model = TensorPLSA(2, counts="n", random_state=0).fit(table)
    >>> [factor.shape for factor in model.factors_]
    [(2, 2), (2, 2), (2, 3)]
    """

    _stored: ClassVar[StoredAttributes] = {
        **CountDecomposition._stored,
        "topic_weights_": StoredArray("K"),
        "shape_": StoredArray("M", INTEGERS),
        "factor_*_": StoredArray("K*", required=False),
        "mode_labels_": StoredValue(either(NULL, list_of(list_of(either(FLAG, NUMBER, TEXT))))),
        "n_tokens_": StoredValue(NUMBER),
        "log_likelihood_": NUMBER_OR_NAN,
        "n_iter_": StoredValue(COUNT),
        "converged_": StoredValue(FLAG),
    }

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
        tol: float = 1e-3,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
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
        """Fit the topics to counts.

        Ctrl-C stores the best model so far in the estimator and then raises KeyboardInterrupt.

        Parameters
        ----------
        X : array, sparse array or table
            Counts: an n-way array (NumPy, or scipy's coo_array) or a long table.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> from polyseme import TensorPLSA
        >>> table = {"author": ["ann", "ann", "bob", "cid"], "word": ["ship", "sea", "ship", "bond"], "n": [7, 3, 2, 8]}
        >>> model = TensorPLSA(2, counts="n", random_state=0).fit(table)
        >>> [factor.shape for factor in model.factors_]
        [(2, 3), (2, 3)]
        """
        K = check_n_topics(self.n_components)
        n_init = check_integer("n_init", self.n_init, least=1)
        max_iter = check_integer("max_iter", self.max_iter, least=1)
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
        best, interrupted = best_fit(self, self._starts(corpus, K, n_init), max_iter=max_iter, tol=tol)
        self._set_fit(best, data, corpus, K)
        finish_fit(FitSummary.of(best, interrupted, self.solver), self.components_.dtype, max_iter, tol)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit the topics and return the topic weights of the items of the first mode.

        Parameters
        ----------
        X : array, sparse array or table
            Counts.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.

        Returns
        -------
        array of shape (n_items, K)
            P(z|item), equal to `transform(X)`.
        """
        return self.fit(X, y).transform(X)

    def transform(self, X: Any, mode: int = 0) -> Array:
        """Return the topic weights of new items of a mode, with the factors of the other modes fixed.

        Each item is folded in until convergence. An item without counts gets P(z).

        Parameters
        ----------
        X : array, sparse array or table
            Counts with any number of items in `mode`. The items of a table are its sorted labels; rows with an unknown
            label in another mode are ignored.
        mode : int, default=0
            The mode of the new items.

        Returns
        -------
        array of shape (n_items, K)
            P(z|item); rows sum to one.

        Examples
        --------
        >>> from polyseme import TensorPLSA
        >>> table = {"author": ["ann", "ann", "bob", "cid"], "word": ["ship", "sea", "ship", "bond"], "n": [7, 3, 2, 8]}
        >>> model = TensorPLSA(2, counts="n", random_state=0).fit(table)
        >>> model.transform({"author": ["dora"], "word": ["ship"], "n": [4]}).shape
        (1, 2)
        """
        check_is_fitted(self)
        mode = self._mode(mode)
        data = self._known_data(X, mode)
        n_threads = effective_threads(self.n_jobs)
        dtype = self.components_.dtype
        corpus = TensorCounts(data.coords, data.values.astype(dtype), data.shape, n_threads)
        factors = [padded(factor.T, dtype) for factor in self.factors_]
        return fold_in(corpus, mode, self.topic_weights_, factors, n_threads=n_threads)

    def inverse_transform(self, X: Any) -> Array:
        """Return the distributions that topic weights of items of the first mode represent.

        Parameters
        ----------
        X : array-like of shape (n_items, K)
            P(z|item), as `transform` returns it.

        Returns
        -------
        array of shape (n_items, n_items_1, ...)
            The sums over z of P(z|item) P(item_1|z) ... for the items of the other modes, dense.
        """
        check_is_fitted(self)
        _, *shape = self.shape_
        joint = self.factors_[1]
        for factor in self.factors_[2:]:
            joint = (joint[:, :, np.newaxis] * factor[:, np.newaxis]).reshape(len(joint), -1)
        return times_components(X, joint).reshape(-1, *shape)

    def posterior(self, mode: int = 0) -> Array:
        """Return the topic weights of the fitted items of a mode, proportional to P(z) P(item|z).

        Parameters
        ----------
        mode : int, default=0
            The mode.

        Returns
        -------
        array of shape (n_items, K)
            P(z|item); rows sum to one.

        Examples
        --------
        >>> from polyseme import TensorPLSA
        >>> table = {"author": ["ann", "ann", "bob", "cid"], "word": ["ship", "sea", "ship", "bond"], "n": [7, 3, 2, 8]}
        >>> model = TensorPLSA(2, counts="n", random_state=0).fit(table)
        >>> model.posterior(0).round(2).tolist()[2]  # of cid
        [0.0, 1.0]
        """
        check_is_fitted(self)
        joint = self.topic_weights_ * self.factors_[self._mode(mode)].T
        sums = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, sums, out=np.tile(self.topic_weights_, (len(joint), 1)), where=sums > 0)

    def log_probability(self, X: Any, *, smoothing: float = 0.01) -> float:
        """Return the mean log-probability of a count, for example of held-out counts.

        Counts are scored with (1 - smoothing) P(i_1, ..., i_n) + smoothing P(i_1) ... P(i_n). Items that do not occur
        in the training data are not scored.

        Parameters
        ----------
        X : array, sparse array or table
            Counts of the fitted shape.
        smoothing : float, default=0.01
            Weight of the independent modes. Without it a single zero of the model makes the result infinite.

        Returns
        -------
        float
            Mean log-probability (natural logarithm); NaN if nothing is scored.
        """
        check_is_fitted(self)
        smoothing = check_share("smoothing", smoothing)
        data = self._known_data(X, None)
        factors = [factor.T.astype(np.float64) for factor in self.factors_]
        marginals = [factor @ self.topic_weights_ for factor in factors]
        total = tokens = 0.0
        for block in row_blocks(data.values.size, self.topic_weights_.size, _BLOCK_NUMBERS):
            part = {m: index[block] for m, index in enumerate(data.coords)}
            independent = np.prod([marginals[m][index] for m, index in part.items()], axis=0)
            joint = operand(self.topic_weights_, factors, part).sum(axis=1)
            mixed = (1 - smoothing) * joint + smoothing * independent
            x = data.values[block] * (independent > 0)
            with np.errstate(divide="ignore"):
                logs = np.log(mixed, out=np.zeros_like(mixed), where=independent > 0)
            total += inner(x, logs)
            tokens += float(x.sum())
        return total / tokens if tokens > 0 else float("nan")

    def top_items(self, mode: int = -1, labels: Any = None, *, n_items: int = 10) -> list[list[str]]:
        """Return the most probable items of a mode for each topic.

        Parameters
        ----------
        mode : int, default=-1
            The mode.
        labels : sequence of str, default=None
            Names of the items. None uses the labels of the table, or x0, x1, ... for an array.
        n_items : int, default=10
            Number of items per topic.

        Returns
        -------
        list of lists of str
            Names of the items of each topic, most probable first.

        Examples
        --------
        >>> from polyseme import TensorPLSA
        >>> table = {"author": ["ann", "ann", "bob", "cid"], "word": ["ship", "sea", "ship", "bond"], "n": [7, 3, 2, 8]}
        >>> model = TensorPLSA(2, counts="n", random_state=0).fit(table)
        >>> sorted(model.top_items(1, n_items=1))
        [['bond'], ['ship']]
        """
        check_is_fitted(self)
        mode = self._mode(mode)
        if labels is None and self.mode_labels_ is not None:
            labels = self.mode_labels_[mode]
        return largest_items(self.factors_[mode], labels, check_integer("n_items", n_items, least=1))

    @property
    def factors_(self) -> tuple[Array, ...]:
        """P(item|z) of each mode, K x items."""
        return tuple(getattr(self, f"factor_{mode}_") for mode in range(len(self.shape_)))

    @property
    def components_(self) -> Array:  # type: ignore[override]
        """P(item|z) of the last mode, K x items."""
        return self.factors_[-1]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "shape_")

    def _check_stored(self) -> None:
        if [factor.shape[1] for factor in self.factors_] != self.shape_.tolist():
            raise ValueError("the factors do not have the sizes in shape_")

    def _mode(self, mode: Any) -> int:
        n_modes = len(self.shape_)
        if isinstance(mode, bool) or not isinstance(mode, int | np.integer) or not -n_modes <= mode < n_modes:
            raise InputError(f"mode must be a whole number below {n_modes}, the number of modes, got {mode!r}.")
        return int(mode) % n_modes

    def _known_data(self, X: Any, free: int | None) -> TensorData:
        """Return X as counts with the items of the fit in all modes except `free`."""
        data = self._data(X, reset=False) if free in (0, None) else clone(self)._data(X, reset=True)
        known = tuple(int(size) for size in self.shape_)
        if data.labels is not None and len(data.shape) == len(known):
            if self.mode_labels_ is None:
                raise InputError("The model was fitted to an array, so its items have no names: give an array.")
            data = _with_known_labels(data, self.mode_labels_, free)
        if len(data.shape) != len(known) or any(
            mode != free and size != fitted for mode, (size, fitted) in enumerate(zip(data.shape, known, strict=True))
        ):
            except_free = "" if free is None else f" except mode {free}"
            raise InputError(
                f"The tensor has shape {data.shape} where the fit had {known}: all modes{except_free} must agree."
            )
        return data

    def _data(self, X: Any, *, reset: bool) -> TensorData:
        """Return X as checked counts."""
        if _is_table(X, self.modes):
            data = _table_data(X, self.modes, self.counts)
        else:
            data = _array_data(self, X, reset=reset and getattr(X, "ndim", 2) <= 2)
        check_range("Every count", data.values, working_dtype(self, data.values, reset))
        return data

    def _starts(self, corpus: TensorCounts, K: int, n_init: int) -> Iterator[Start[TensorRun]]:
        """Yield the starts."""
        extrapolate = self.solver == SOLVERS[0]
        if not isinstance(self.init, str):
            start = _given_start(self.init, corpus, K)
            yield Start(lambda: begin(corpus, start, extrapolate=extrapolate))
            return
        if self.init != "random":
            raise InputError(f"init must be 'random' or a pair (topic_weights, factors), got {self.init!r}.")
        for rng in generators(self.random_state, n_init):

            def start_at_random(rng: np.random.Generator = rng) -> TensorRun:
                return begin(corpus, random_start(corpus, K, rng), extrapolate=extrapolate)

            yield Start(start_at_random)

    def _set_fit(self, fit: FitEnd[TensorRun], data: TensorData, corpus: TensorCounts, K: int) -> None:
        clear_fit(self)
        weights, *factors = fit.run.point
        self.shape_ = np.array(data.shape, dtype=np.int64)
        self.mode_labels_ = data.labels
        self.topic_weights_ = weights[:K]
        for mode, (factor, totals) in enumerate(zip(factors, corpus.totals, strict=True)):
            topics = np.ascontiguousarray(factor[:, :K].T)
            topics[topics.sum(axis=1) == 0] = totals / corpus.tokens  # a topic without counts
            setattr(self, f"factor_{mode}_", topics)
        self.n_tokens_ = corpus.tokens
        self.log_likelihood_ = fit.run.report.objective
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged


class TensorData(NamedTuple):
    """Positive counts, in which each tuple of indices occurs once."""

    coords: tuple[Array, ...]
    values: Array
    shape: tuple[int, ...]
    labels: list[list[Any]] | None
    """For a table: the sorted names of the items of each mode."""


def _is_table(X: Any, modes: Any) -> bool:
    if sp.issparse(X):  # dok_array is a mapping, too
        return False
    return isinstance(X, Mapping) or (modes is not None and hasattr(X, "columns"))


def _array_data(estimator: Any, X: Any, *, reset: bool) -> TensorData:
    """Return an n-way array as checked counts. Matrices are checked as scikit-learn does."""
    if getattr(X, "ndim", 2) <= 2:
        X = count_data(estimator, X, reset=reset)
    if sp.issparse(X):
        tensor = sp.coo_array(check_sparse(X))
        indices = tensor.coords if hasattr(tensor, "coords") else (tensor.row, tensor.col)  # scipy before 1.13
        coords, values = tuple(np.asarray(index, dtype=np.int64) for index in indices), tensor.data
    else:
        X = np.asarray(X)
        coords = tuple(np.asarray(index, dtype=np.int64) for index in np.nonzero(X))
        values = X[coords]
    return _checked_tensor(coords, values, tuple(X.shape), None)


def _table_data(X: Any, modes: Sequence[str] | None, counts: str | None) -> TensorData:
    """Return a long table as checked counts, one per combination of items."""
    if modes is not None and (isinstance(modes, str) or not isinstance(modes, Sequence | np.ndarray)):
        raise InputError(f"modes must be None or a list of names of columns, got {modes!r}.")
    names = [str(name) for name in getattr(X, "columns", X)]
    wanted = [name for name in names if name != counts] if modes is None else [str(name) for name in modes]
    for name in [*wanted, *([] if counts is None else [counts])]:
        if name not in names:
            raise InputError(f"The table has no column {name!r}: its columns are {', '.join(map(repr, names))}.")
    columns = {name: np.asarray(X[name]) for name in wanted}
    if len({column.shape for column in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise InputError("The columns of the table must have the same length.")
    labels, coords = [], []
    for name, column in columns.items():
        if _has_missing(column):
            raise InputError(f"The column {name!r} has missing values: remove those rows.")
        items, inverse = np.unique(column, return_inverse=True)
        labels.append([_plain(label) for label in items.tolist()])
        coords.append(np.asarray(inverse, dtype=np.int64).ravel())
    shape = tuple(len(names) for names in labels)
    values = np.ones(coords[0].size if coords else 0, dtype=np.int64) if counts is None else np.asarray(X[counts])
    return _checked_tensor(tuple(coords), values, shape, labels)


def _checked_tensor(
    coords: tuple[Array, ...], values: Array, shape: tuple[int, ...], labels: list[list[Any]] | None
) -> TensorData:
    """Return the positive counts. Those of the same tuple are added, as in a sparse matrix."""
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
        raise InputError("Negative values in data: every count of the tensor must be at least 0.")
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    order = np.lexsort(coords)
    starts = new_tuples([index[order] for index in coords])
    if starts.size < order.size:
        kind = values.dtype if values.dtype.kind == "f" else np.int64  # a sum may not fit in fewer bits
        values = np.add.reduceat(values[order], starts, dtype=kind)
        coords = tuple(index[order[starts]] for index in coords)
    positive = values > 0
    return TensorData(tuple(index[positive] for index in coords), values[positive], shape, labels)


def _with_known_labels(data: TensorData, known: list[list[Any]], mode: int | None) -> TensorData:
    """Return the counts of a table with the indices of the fit, without rows that have an unknown label."""
    assert data.labels is not None
    keep = np.ones(data.values.size, dtype=bool)
    coords = list(data.coords)
    for other, names in enumerate(known):
        if other != mode:
            index = {name: i for i, name in enumerate(names)}
            lookup = np.array([index.get(name, -1) for name in data.labels[other]], dtype=np.int64)
            coords[other] = lookup[data.coords[other]]
            keep &= coords[other] >= 0
    shape = tuple(data.shape[mode] if m == mode else len(names) for m, names in enumerate(known))
    return TensorData(tuple(index[keep] for index in coords), data.values[keep], shape, data.labels)


def _has_missing(column: Array) -> bool:
    if column.dtype.kind == "f":
        return bool(np.isnan(column).any())
    return column.dtype.kind == "O" and any(value is None or value != value for value in column)


def _plain(label: Any) -> Any:
    """Return a label that a model file can store."""
    return label if isinstance(label, bool | int | float | str) else str(label)


def _given_start(init: Any, corpus: TensorCounts, K: int) -> TensorPoint:
    """Return the start from a pair (P(z), factors), checked and normalized."""
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
            raise InputError("init: topic_weights and factors must be finite and non-negative, without rows of zeros.")
    return padded_point(weights / weights.sum(), [normalize_columns(factor) for factor in factors], corpus.dtype)
