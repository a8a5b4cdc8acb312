"""Topic models for data with negative entries (Shashanka 2009), as a scikit-learn estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from polyseme.core.fitted import StoredArray
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import Decomposition, LargestTopic, times_components
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import check_not_shards, clear_fit, factor_dtype, without_subclass
from polyseme.io.files import FLAG, number
from polyseme.io.models import NESTED, NUMBER_OR_NAN, StoredAttributes, StoredValue
from polyseme.kernels import Array, Floats, normalize_rows, row_blocks
from polyseme.simplex import Hull, SimplexMap
from polyseme.simplex.corners import Corners, farthest_corners, smallest_corners
from polyseme.utils import MAX_COUNT, check_n_topics, check_nonnegative, check_range, check_share

_BLOCK_NUMBERS = 1 << 22
_DARKEST = 0.1
"""Least brightness of a point, because darker ones are mostly noise."""

FindCorners = Callable[[Array, int, Floats, float, bool], Corners]

VOLUMES: dict[str, FindCorners | None] = {
    "data": None,
    "farthest": lambda X, K, weights, margin, non_negative: Corners(
        farthest_corners(X, K, weights, non_negative=non_negative)
    ),
    "minimum": lambda X, K, weights, margin, non_negative: smallest_corners(
        X, K, weights, margin, non_negative=non_negative
    ),
}


class RealTopicModel(LargestTopic, Decomposition):
    """Topic model for points with entries of any sign: mixtures of K corners.

    A point x is approximated by weights theta >= 0 that sum to one and corners c::

        x ~ sum_k theta_k c_k

    The points are mapped to the standard simplex with one more dimension by a map that preserves the ratios of all
    distances (`polyseme.simplex.SimplexMap`). There each point is a distribution, a topic model is fitted, and its
    topics are mapped back to corners. Data may also be non-negative; then the corners are non-negative, too, and unlike
    in a topic model the sum of a row matters.

    A fit without error is not unique, and its corners depend on the start:

    ==========  ====================================================  =====================================
    volume      start                                                 map
    ==========  ====================================================  =====================================
    "minimum"   smallest simplex around the points, in the plane      smallest that contains it
                that fits them best
    "farthest"  points that are far from each other                   the same
    "data"      start of the model (algorithm of the paper)           map of the paper: the smallest entry
                                                                      is subtracted
    ==========  ====================================================  =====================================

    For non-negative data the map is p = (x - shift, bound - sum(x)) / scale instead. It maps no distribution back to a
    point with negative entries, so the corners of every topic model are non-negative. The smallest simplex is then the
    smallest one with non-negative corners.

    A model without a parameter `init`, such as scikit-learn's LatentDirichletAllocation, always has its own start.

    Parameters
    ----------
    model : estimator, default=None
        Unfitted topic model with `fit_transform`, `transform` and `components_`. None uses PLSA(10). Its `tol` is in
        nats per token, and on the simplex a complete fit may gain less than 0.1 nats. A PLSA with dtype="float32" needs
        half the memory.
    total : float, default=10000.0
        Sum of every mapped row. A model with a prior uses it as the number of tokens.
    volume : {"minimum", "farthest", "data"}, default="minimum"
        Start and map; see the table.
    margin : float, default=0.05
        Share of the points (by weight) that may lie beyond any one face of the smallest simplex by more than noise, and
        of outliers that do not turn its plane. With a margin, non-negative points of different brightness are compared
        at the same brightness. Use 0 for data without noise.
    non_negative : {"auto"} or bool, default="auto"
        Whether corners must not have negative entries. "auto" requires this if no point has a negative entry. With
        volume="data", use False for the map of the paper.

    Attributes
    ----------
    components_ : array of shape (K, n_features)
        Corners in the space of the data.
    doc_topic_ : array of shape (n_points, K)
        Weights of the training points, equal to `transform(X)` unless a sparse prior has several maxima.
    reconstruction_err_ : float
        Frobenius norm of `X - doc_topic_ @ components_`.
    model_ : estimator
        The fitted topic model. Its words are the entries of the standard simplex.
    shift_ : array of shape (n_features + 1,)
        Numbers that the map subtracts from the entries.
    non_negative_ : bool
        Whether the corners had to be non-negative.
    total_ : float
        The parameter `total` of the fit.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Shashanka, M. (2009). Simplex decompositions for real-valued datasets. IEEE International Workshop on Machine
      Learning for Signal Processing.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA, RealTopicModel
    >>> corners = np.array([[-2.0, 0.0], [1.0, 3.0], [1.0, -1.0]])
    >>> X = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 300) @ corners
    >>> model = RealTopicModel(PLSA(3), margin=0).fit(X)
    >>> bool(np.abs(np.sort(model.components_, axis=0) - np.sort(corners, axis=0)).max() < 0.05)
    True
    """

    _stored: ClassVar[StoredAttributes] = {
        **Decomposition._stored,
        "model_": StoredValue(NESTED, required=True),
        "components_": StoredArray("KW"),
        "shift_": StoredArray("*"),
        "total_": StoredValue(number(1e-30, 1e30), required=True),
        "non_negative_": StoredValue(FLAG, required=True),
        "doc_topic_": StoredArray("DK", required=False),
        "reconstruction_err_": NUMBER_OR_NAN,
    }

    def __init__(
        self,
        model: Any = None,
        total: float = 1e4,
        *,
        volume: str = "minimum",
        margin: float = 0.05,
        non_negative: bool | str = "auto",
    ) -> None:
        self.model = model
        self.total = total
        self.volume = volume
        self.margin = margin
        self.non_negative = non_negative

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit corners to points.

        Ctrl-C stores what the topic model stores, and then raises KeyboardInterrupt.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points, dense.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_points,), default=None
            Weights of the points. A point of weight v counts as v equal points.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA, RealTopicModel
        >>> rng = np.random.default_rng(0)
        >>> X = rng.dirichlet([0.3, 0.3, 0.3], 100) @ [[-2, 0], [1, 3], [1, -1]]  # mixtures of three corners
        >>> model = RealTopicModel(PLSA(3), margin=0).fit(X)
        >>> model.components_.round(1)[np.argsort(model.components_[:, 1])]
        array([[ 1., -1.],
               [-2., -0.],
               [ 1.,  3.]])
        """
        if self.volume not in VOLUMES:
            raise InputError(f"volume must be one of {', '.join(map(repr, VOLUMES))}, got {self.volume!r}.")
        margin, total = check_share("margin", self.margin), check_nonnegative("total", self.total)
        if total == 0:
            raise InputError("total must be greater than 0.")
        model = self._fresh_model()
        X = self._points(X, reset=True)
        weights = _checked_weights(model, X, sample_weight)
        weighted_points = X if weights is None else X[weights > 0]
        non_negative = self._checked_non_negative(weighted_points)
        find_corners = VOLUMES[self.volume]
        original_parameters: dict[str, Any] = {}
        level: Floats | None = None
        if find_corners is None:
            simplex_map = (SimplexMap.of_orthant if non_negative else SimplexMap.of_paper)(weighted_points)
        else:
            positive_weights = np.ones(len(X)) if weights is None else weights[weights > 0]
            corners, level = find_corners(weighted_points, _n_components(model), positive_weights, margin, non_negative)
            simplex_map = (SimplexMap.of_orthant if non_negative else SimplexMap.tight)(weighted_points, corners)
            hull = Hull(corners)
            starts = [hull.weights(X[part] / _brightness(X[part], level)) for part in _row_blocks(X)]
            original_parameters = _set_start(model, simplex_map.to_simplex(corners), np.concatenate(starts))
        rows = np.empty((X.shape[0], X.shape[1] + 1), dtype=_row_dtype(model, X))
        if total > MAX_COUNT[rows.dtype]:
            raise InputError(f"total must be at most {MAX_COUNT[rows.dtype]:g} in {rows.dtype}, got {total:g}.")
        for part, mapped in _mapped_rows(simplex_map, X, total, rows.dtype, level):
            rows[part] = mapped
        options = {} if weights is None else {"sample_weight": weights}
        try:
            doc_topic = model.fit_transform(rows, **options)
        except KeyboardInterrupt:
            if hasattr(model, "components_"):
                doc_topic = _fold_in(model, simplex_map, X, total)
                self._set_fit(model.set_params(**original_parameters), simplex_map, total, doc_topic, X)
            raise
        del rows
        if level is not None:
            doc_topic = _fold_in(model, simplex_map, X, total)
        self._set_fit(model.set_params(**original_parameters), simplex_map, total, doc_topic, X)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit corners and return the weights of the same points.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points, dense.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_points,), default=None
            Weights of the points.

        Returns
        -------
        array of shape (n_points, K)
            Weights, equal to `transform(X)` unless a sparse prior has several maxima.
        """
        return self.fit(X, y, sample_weight).doc_topic_

    def transform(self, X: Any) -> Array:
        """Return the weights of points.

        A point outside the simplex of the training data (see `outside_simplex`) is replaced by the nearest point
        inside. The weights of a row do not depend on other rows.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points, dense.

        Returns
        -------
        array of shape (n_points, K)
            Non-negative weights; rows sum to one.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA, RealTopicModel
        >>> rng = np.random.default_rng(0)
        >>> X = rng.dirichlet([0.3, 0.3, 0.3], 100) @ [[-2, 0], [1, 3], [1, -1]]  # mixtures of three corners
        >>> model = RealTopicModel(PLSA(3), margin=0).fit(X)
        >>> weights = model.transform([[0, 0.5]])
        >>> (weights @ model.components_).round(2)
        array([[0. , 0.5]])
        """
        check_is_fitted(self)
        X = self._points(X, reset=False)
        return _normalized(_fold_in(self.model_, self._map(), X, self.total_)).astype(X.dtype)

    def inverse_transform(self, X: Any) -> Array:
        """Return the points that weights represent.

        Parameters
        ----------
        X : array-like of shape (n_points, K)
            Weights of the corners.

        Returns
        -------
        array of shape (n_points, n_features)
            The product of the weights and `components_`.
        """
        check_is_fitted(self)
        return times_components(X, self.components_)

    def reconstruction_error(self, X: Any) -> Floats:
        """Return the distance of each point to its approximation by `transform`.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points, dense.

        Returns
        -------
        array of shape (n_points,)
            Euclidean distances.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA, RealTopicModel
        >>> rng = np.random.default_rng(0)
        >>> X = rng.dirichlet([0.3, 0.3, 0.3], 100) @ [[-2, 0], [1, 3], [1, -1]]  # mixtures of three corners
        >>> model = RealTopicModel(PLSA(3), margin=0).fit(X)
        >>> bool(model.reconstruction_error(X).mean() < 0.05)
        True
        """
        check_is_fitted(self)
        X = self._points(X, reset=False)
        return self._errors(X, self.transform(X))

    def outside_hull(self, X: Any, tolerance: float = 1e-6) -> Array:
        """Return which points lie outside the hull of the corners.

        These points are approximated with an error. Noise moves nearly all points off the plane of the corners: with
        noise, increase `tolerance`.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points, dense.
        tolerance : float, default=1e-6
            Allowed distance to the hull, as a multiple of the diameter of the hull.

        Returns
        -------
        array of bool of shape (n_points,)
            True for points outside.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA, RealTopicModel
        >>> rng = np.random.default_rng(0)
        >>> X = rng.dirichlet([0.3, 0.3, 0.3], 100) @ [[-2, 0], [1, 3], [1, -1]]  # mixtures of three corners
        >>> model = RealTopicModel(PLSA(3), margin=0).fit(X)
        >>> model.outside_hull([[0, 0.5], [5, 5]], tolerance=0.05)
        array([False,  True])
        """
        check_is_fitted(self)
        return Hull(self.components_).outside(self._points(X, reset=False), check_nonnegative("tolerance", tolerance))

    def outside_simplex(self, X: Any) -> Array:
        """Return which points lie outside the simplex of the training data.

        After the map these points have an entry below the minimum of the training data.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points, dense.

        Returns
        -------
        array of bool of shape (n_points,)
            True for points outside.
        """
        check_is_fitted(self)
        X = self._points(X, reset=False)
        simplex_map = self._map()
        return np.concatenate([_is_below(simplex_map.to_simplex(X[part])) for part in _row_blocks(X)])

    def _checked_non_negative(self, points: Array) -> bool:
        """Return whether the corners must be non-negative."""
        setting = self.non_negative
        if not isinstance(setting, (bool, np.bool_)) and not (isinstance(setting, str) and setting == "auto"):
            raise InputError(f"non_negative must be True, False or 'auto', got {setting!r}.")
        if not setting:
            return False
        least = min(float(points[part].min()) for part in _row_blocks(points))
        if least < 0 and setting != "auto":
            raise InputError(
                f"non_negative=True needs points without negative entries, got {least:g}: use non_negative=False."
            )
        return least >= 0

    def _map(self) -> SimplexMap:
        return SimplexMap(self.shift_, self.non_negative_)

    def _fresh_model(self) -> Any:
        """Return a clone of the model, or a PLSA whose solver needs little memory, because the rows are dense."""
        if self.model is None:
            return PLSA(solver="em", random_state=0)
        if isinstance(self.model, type) or not all(hasattr(self.model, name) for name in ("fit", "transform")):
            raise InputError(f"model must be None or a topic model such as PLSA(3), not fitted, got {self.model!r}.")
        return clone(self.model)

    def _points(self, X: Any, *, reset: bool) -> Array:
        """Return X as a dense array of finite float32 or float64 numbers, with its features checked against the fit."""
        if getattr(getattr(X, "dtype", None), "kind", "") == "c":
            raise InputError("Complex data not supported: every entry must be a real number.")
        check_not_shards(self, X)
        X = without_subclass(X)
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False)
        for name, is_wrong in (("NaN", np.isnan), ("infinity (inf)", np.isinf)):
            if any(is_wrong(X[part]).any() for part in _row_blocks(X)):
                raise InputError(f"Input X contains {name}: every entry must be a finite number.")
        X = X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))
        largest = [np.abs(X[part]).max() for part in _row_blocks(X)]
        check_range("The largest entry, without its sign,", np.max(largest, keepdims=True), X.dtype)
        return X

    def _set_fit(self, model: Any, simplex_map: SimplexMap, total: float, doc_topic: Array, X: Array) -> None:
        topics = normalize_rows(np.asarray(model.components_, dtype=np.float64))
        clear_fit(self)
        self.model_ = model
        self.total_ = total
        self.shift_ = simplex_map.shift
        self.non_negative_ = simplex_map.non_negative
        self.components_ = simplex_map.from_simplex(topics).astype(X.dtype)
        self.doc_topic_ = _normalized(doc_topic).astype(X.dtype)
        self.reconstruction_err_ = float(np.sqrt((self._errors(X, self.doc_topic_) ** 2).sum()))

    def _errors(self, X: Array, weights: Array) -> Floats:
        parts = (X[part] - np.einsum("dk,kw->dw", weights[part], self.components_) for part in _row_blocks(X))
        return np.concatenate([np.sqrt(np.einsum("dw,dw->d", gap, gap, dtype=np.float64)) for gap in parts])


def _fold_in(model: Any, simplex_map: SimplexMap, X: Array, total: float) -> Array:
    """Return the weights of points by a fitted topic model, row by row."""
    dtype = _row_dtype(model, X)
    return np.concatenate(
        [model.transform(rows.astype(dtype)) for _, rows in _mapped_rows(simplex_map, X, total, dtype)]
    )


def _mapped_rows(
    simplex_map: SimplexMap, X: Array, total: float, dtype: np.dtype[Any], level: Floats | None = None
) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of rows on the simplex with the sum `total`; rows outside are moved to the nearest point.

    With a level, rows are first divided by their brightness, and dark ones have a smaller sum, because they are noisy.
    Weights below the rounding error of the map become zero, because a model may refuse such small counts.
    """
    for part in _row_blocks(X):
        brightness = _brightness(X[part], level)
        mapped = simplex_map.to_simplex(X[part] / brightness)
        below = _is_below(mapped)
        mapped[below] = simplex_map.nearest(mapped[below])
        yield part, np.where(mapped > np.finfo(dtype).eps, mapped, 0) * (total * np.minimum(brightness, 1))


def _brightness(X: Array, level: Floats | None) -> Floats | float:
    """Return the brightness of points as a column, at least `_DARKEST`; one without a level."""
    return 1.0 if level is None else np.maximum(np.einsum("dw,w->d", X, level), _DARKEST)[:, np.newaxis]


def _row_dtype(model: Any, X: Array) -> np.dtype[Any]:
    """Return the dtype of the model's factors, if it is set: float32 halves the memory of the mapped rows."""
    dtype = model.get_params(deep=False).get("dtype")
    return X.dtype if dtype is None else factor_dtype(dtype, X)


def _n_components(model: Any) -> int:
    if not hasattr(model, "n_components"):
        raise UnsupportedError(
            f"{type(model).__name__} has no n_components, so it cannot be given corners: use volume='data'."
        )
    return check_n_topics(model.n_components)


def _checked_weights(model: Any, X: Array, sample_weight: Any) -> Floats | None:
    if sample_weight is None:
        return None
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        raise UnsupportedError(f"{type(model).__name__}.fit takes no sample_weight: leave it out.")
    weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    check_range("Every sample weight", weights, weights.dtype)
    return weights


def _set_start(model: Any, topics: Floats, weights: Floats) -> dict[str, Any]:
    """Set the start of a model that has a named `init`, and return the original value of the parameter."""
    init = model.get_params(deep=False).get("init")
    if not isinstance(init, str):
        return {}
    model.set_params(init=(_without_zeros(weights).astype(np.float32), _without_zeros(topics)))
    return {"init": init}


def _without_zeros(rows: Floats) -> Floats:
    """Return rows without zeros, because EM cannot change a zero."""
    return normalize_rows(np.maximum(rows, 1e-6))


def _is_below(mapped: Floats) -> Array:
    """Return which rows have an entry below zero by more than rounding."""
    return np.asarray(mapped.min(axis=1) < -1e-9)


def _normalized(weights: Array) -> Array:
    """Divide rows by their sums in the dtype of the weights."""
    return weights / weights.sum(axis=1, keepdims=True)


def _row_blocks(X: Array) -> list[slice]:
    return row_blocks(len(X), X.shape[1], _BLOCK_NUMBERS)
