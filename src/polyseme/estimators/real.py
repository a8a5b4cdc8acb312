"""Topic models for data with negative entries (Shashanka 2009), as a scikit-learn estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import Decomposition, check_not_shards, clear_fit, factor_dtype
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats
from polyseme.simplex import Hull, SimplexMap, farthest_corners, minimum_volume_corners, onto_simplex
from polyseme.utils import check_n_topics, check_nonnegative, check_range, check_share

_NUMBERS_AT_ONCE = 1 << 22

Corners = Callable[[Array, int, Floats, float], Floats]

VOLUMES: dict[str, Corners | None] = {
    "data": None,
    "farthest": lambda X, K, weights, margin: farthest_corners(X, K, weights),
    "minimum": minimum_volume_corners,
}


class RealTopicModel(Decomposition):
    """A topic model for points with entries of any sign: corners, and weights of sum one that mix them.

    The points are mapped to the standard simplex of one more dimension, by a map that keeps the ratios of all distances
    (`polyseme.simplex.SimplexMap`). There each is a distribution, a topic model is fitted, and its topics are mapped
    back. Non-negative data fits, too: then, unlike in a topic model, the total of a row matters (section 4).

    A fit without error is far from unique, and where the corners end depends on where they start:

    | volume | start | map |
    |---|---|---|
    | "minimum" | the smallest simplex around the points, in the plane that fits them best | smallest with room for it |
    | "farthest" | points that span the cloud | the same |
    | "data" | the model's own (the paper's algorithm) | the paper's: the smallest entry is subtracted |

    A model without a parameter `init`, such as scikit-learn's LatentDirichletAllocation, always starts by itself.

    Parameters
    ----------
    model : the topic model, not fitted: any that has `fit_transform`, `transform` and `components_`; None for PLSA(10).
        Its `tol` counts in nats per token, and on the simplex a whole fit may be worth less than 0.1 of them.
        A PLSA with dtype="float32" needs half the memory.
    total : the sum that every mapped row is given. A model with a prior takes it for the number of tokens.
    volume : "minimum", "farthest" or "data".
    margin : the share of the points (by weight) that may lie beyond any one face of the smallest simplex.

    Attributes
    ----------
    components_ : corners in the data's own space, K x features, of any sign.
    doc_topic_ : weights of the training points, points x K.
    reconstruction_err_ : Frobenius norm of X - doc_topic_ @ components_.
    model_ : the fitted topic model; its words are the entries of the standard simplex.
    shift_ : what the map subtracts, one number for each of them.
    n_features_in_, feature_names_in_ : as usual in scikit-learn.

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

    def __init__(self, model: Any = None, total: float = 1e4, *, volume: str = "minimum", margin: float = 0.05) -> None:
        self.model = model
        self.total = total
        self.volume = volume
        self.margin = margin

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fits corners to the rows of X (points x features, dense, any sign). A row of weight v counts as v equal rows.

        Ctrl-C keeps what the topic model keeps, and then raises KeyboardInterrupt.
        """
        if self.volume not in VOLUMES:
            raise InputError(f"volume must be one of {', '.join(map(repr, VOLUMES))}, got {self.volume!r}.")
        margin, total = check_share("margin", self.margin), self._checked_total()
        model = self._fresh_model()
        X = self._points(X, reset=True)
        weights = _weights_of(model, X, sample_weight)
        counted = X if weights is None else X[weights > 0]
        corners_of = VOLUMES[self.volume]
        before: dict[str, Any] = {}
        if corners_of is None:
            simplex_map = SimplexMap.of_paper(counted)
        else:
            counted_weights = np.ones(len(X)) if weights is None else weights[weights > 0]
            corners = corners_of(counted, _n_components(model), counted_weights, margin)
            simplex_map = SimplexMap.tight(counted, corners)
            before = _start_from(model, simplex_map.to_simplex(corners), Hull(corners).weights(X))
        rows = np.empty((X.shape[0], X.shape[1] + 1), dtype=_row_dtype(model, X))
        for part, mapped in _mapped(simplex_map, X, total, rows.dtype):
            rows[part] = mapped
        options = {} if weights is None else {"sample_weight": weights}
        try:
            doc_topic = model.fit_transform(rows, **options)
        except KeyboardInterrupt:
            if hasattr(model, "components_"):
                self._keep(model.set_params(**before), simplex_map, model.transform(rows), X)
            raise
        del rows
        self._keep(model.set_params(**before), simplex_map, doc_topic, X)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """`fit`, and the weights of the same points: what `transform(X)` would give."""
        return self.fit(X, y, sample_weight).doc_topic_

    def transform(self, X: Any) -> Array:
        """Weights (points x K, at least zero, rows sum to one) of points.

        A point outside the simplex of the training data (see `outside_simplex`) is replaced by the nearest point inside
        it. That concerns its own row alone: a row's weights do not depend on the others.
        """
        check_is_fitted(self)
        X = self._points(X, reset=False)
        dtype = _row_dtype(self.model_, X)
        mapped = _mapped(SimplexMap(self.shift_), X, self._checked_total(), dtype)
        parts = [self.model_.transform(rows.astype(dtype)) for _, rows in mapped]
        return _rows_to_one(np.concatenate(parts)).astype(X.dtype)

    def inverse_transform(self, weights: Any) -> Array:
        """The points that weights stand for: weights @ components_."""
        check_is_fitted(self)
        weights = np.asarray(weights)
        if weights.ndim != 2 or weights.shape[1] != len(self.components_):
            raise InputError(f"weights must be a matrix of {len(self.components_)} columns, one for each corner.")
        return np.einsum("dk,kw->dw", weights, self.components_)

    def reconstruction_error(self, X: Any) -> Floats:
        """The distance of each point to the mixture of corners that `transform` gives for it."""
        check_is_fitted(self)
        X = self._points(X, reset=False)
        return self._errors(X, self.transform(X))

    def outside_hull(self, X: Any, tolerance: float = 1e-6) -> Array:
        """Which points are further from the hull of the corners than `tolerance` times the hull's diameter.

        They are modeled with error. Points with noise are nearly all off the corners' plane: raise the tolerance.
        """
        check_is_fitted(self)
        return Hull(self.components_).outside(self._points(X, reset=False), check_nonnegative("tolerance", tolerance))

    def outside_simplex(self, X: Any) -> Array:
        """Which points have, after the map, an entry below the training minimum: they lie outside the simplex."""
        check_is_fitted(self)
        X = self._points(X, reset=False)
        simplex_map = SimplexMap(self.shift_)
        return np.concatenate([_is_below(simplex_map.to_simplex(X[part])) for part in _row_blocks(X)])

    def simplex_points(self, X: Any) -> Array:
        """X itself, checked: corners and points share one space (see `polyseme.simplex.SimplexDecomposition`)."""
        return self._points(X, reset=False)

    def _checked_total(self) -> float:
        total = check_nonnegative("total", self.total)
        if total == 0:
            raise InputError("total must be greater than 0.")
        return total

    def _fresh_model(self) -> Any:
        """A clone of the model; without one, a PLSA whose solver needs little memory, since the rows are dense."""
        if self.model is None:
            return PLSA(solver="em", random_state=0)
        if isinstance(self.model, type) or not all(hasattr(self.model, name) for name in ("fit", "transform")):
            raise InputError(f"model must be None or a topic model such as PLSA(3), not fitted, got {self.model!r}.")
        return clone(self.model)

    def _points(self, X: Any, *, reset: bool) -> Array:
        """X as a dense array of finite float32 or float64 numbers, its features checked against the fit."""
        if getattr(getattr(X, "dtype", None), "kind", "") == "c":
            raise InputError("Complex data not supported: every entry must be a real number.")
        check_not_shards(self, X)
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False)
        for name, wrong in (("NaN", np.isnan), ("infinity (inf)", np.isinf)):
            if any(wrong(X[part]).any() for part in _row_blocks(X)):
                raise InputError(f"Input X contains {name}: every entry must be a finite number.")
        X = X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))
        largest = [np.abs(X[part]).max() for part in _row_blocks(X)]
        check_range("The largest entry, without its sign,", np.max(largest, keepdims=True), X.dtype)
        return X

    def _keep(self, model: Any, simplex_map: SimplexMap, doc_topic: Array, X: Array) -> None:
        topics = _rows_to_one(np.asarray(model.components_, dtype=np.float64))
        clear_fit(self)
        self.model_ = model
        self.shift_ = simplex_map.shift
        self.components_ = simplex_map.from_simplex(topics).astype(X.dtype)
        self.doc_topic_ = _rows_to_one(doc_topic).astype(X.dtype)
        self.reconstruction_err_ = float(np.sqrt((self._errors(X, self.doc_topic_) ** 2).sum()))

    def _errors(self, X: Array, weights: Array) -> Floats:
        parts = (X[part] - np.einsum("dk,kw->dw", weights[part], self.components_) for part in _row_blocks(X))
        return np.concatenate([np.sqrt(np.einsum("dw,dw->d", gap, gap, dtype=np.float64)) for gap in parts])


def _mapped(simplex_map: SimplexMap, X: Array, total: float, dtype: np.dtype[Any]) -> Iterator[tuple[slice, Floats]]:
    """The rows on the simplex, of sum `total`, a few at a time; those outside it at their nearest point.

    Weights below the rounding error of the map become zero: a model may refuse counts that small.
    """
    for part in _row_blocks(X):
        mapped = simplex_map.to_simplex(X[part])
        below = _is_below(mapped)
        mapped[below] = onto_simplex(mapped[below])
        yield part, np.where(mapped > np.finfo(dtype).eps, mapped, 0) * total


def _row_dtype(model: Any, X: Array) -> np.dtype[Any]:
    """That of the model's factors, if it names one: with float32 the mapped rows take half the memory."""
    asked = model.get_params(deep=False).get("dtype")
    return X.dtype if asked is None else factor_dtype(asked, X)


def _n_components(model: Any) -> int:
    if not hasattr(model, "n_components"):
        raise UnsupportedError(
            f"{type(model).__name__} has no n_components, so it cannot be given corners: use volume='data'."
        )
    return check_n_topics(model.n_components)


def _weights_of(model: Any, X: Array, sample_weight: Any) -> Floats | None:
    if sample_weight is None:
        return None
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        raise UnsupportedError(f"{type(model).__name__} takes no sample_weight: fit it without.")
    weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    check_range("Every sample weight", weights, weights.dtype)
    return weights


def _start_from(model: Any, topics: Floats, weights: Floats) -> dict[str, Any]:
    """Gives the model its start, if it can be given one and has no pair of its own; returns the parameter as it was."""
    init = model.get_params(deep=False).get("init")
    if not isinstance(init, str):
        return {}
    model.set_params(init=(_lifted(weights).astype(np.float32), _lifted(topics)))  # weights: points x K, only a start
    return {"init": init}


def _lifted(rows: Floats) -> Floats:
    """No zeros, which EM could not leave again."""
    return _rows_to_one(np.maximum(rows, 1e-6))


def _is_below(mapped: Floats) -> Array:
    """An entry below zero by more than rounding."""
    return np.asarray(mapped.min(axis=1) < -1e-9)


def _rows_to_one(rows: Array) -> Array:
    return rows / rows.sum(axis=1, keepdims=True)


def _row_blocks(X: Array) -> Iterator[slice]:
    step = max(1, _NUMBERS_AT_ONCE // X.shape[1])
    return (slice(start, start + step) for start in range(0, X.shape[0], step))
