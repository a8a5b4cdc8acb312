"""Latent semantic analysis as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from sklearn.utils.validation import check_is_fitted

from polyseme.errors import InputError
from polyseme.estimators.base import CountDecomposition
from polyseme.estimators.validation import count_data, factor_dtype, forget_fit, training_data, whole_number
from polyseme.estimators.vector_space import WEIGHTS, angles, weighted
from polyseme.kernels import Array, Floats, single_threaded_blas

_SMALL = 1 << 22  # entries of a matrix that is decomposed as a whole
_FIRST_TRY = 32


class LSA(CountDecomposition):
    """Latent semantic analysis: the weighted counts A ~ U S V' by their K largest singular values.

    A document is at A V (for a training document, U S), a word at V S; documents are compared by the angle between
    them. Nothing is centred, so "variance" is the sum of squares.

    Parameters
    ----------
    n_components : number of singular values K (at most as many as there are), or a share below 1 of the variance that
        they shall explain together. A share costs a decomposition for every doubling of K.
    weights : "counts", "tf-idf" (x times log((1 + n)/(1 + documents with the word)) + 1), or "log-entropy"
        (log(1 + x) times 1 + sum_d p log p / log n).
    dtype : None for float32 vectors of integer and float32 data, float64 of float64 data; all is computed in float64.

    Attributes
    ----------
    components_ : V', K x words. The largest entry of each row, by its absolute value, is positive.
    singular_values_ : S, largest first.
    explained_variance_ratio_ : each squared singular value's share of A's sum of squares.
    doc_vectors_ : A V of the training documents, documents x K: what `transform` gives for them.
    word_vectors_ : V S, words x K.
    word_weights_ : what each word's local weight is multiplied by.
    n_components_ : K.
    vocabulary_ : the word of each column, or None, as in PLSA.
    n_features_in_, feature_names_in_ : as usual in scikit-learn.

    Nothing is random: the same data give the same vectors, and the number of threads changes no bit, for linear algebra
    runs with one thread inside `fit`. Another BLAS or processor may round differently.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import LSA
    >>> X = np.array([[2, 1, 0, 0], [4, 2, 0, 0], [0, 0, 1, 3]])
    >>> model = LSA(2, weights="counts").fit(X)
    >>> model.angles(X[:1]).round().tolist()
    [[0.0, 0.0, 90.0]]
    """

    def __init__(self, n_components: float = 100, *, weights: str = "log-entropy", dtype: Any = None) -> None:
        self.n_components = n_components
        self.weights = weights
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None, feature_names: Any = None) -> Self:
        """Decomposes counts X (documents x words, dense or sparse); feature_names is the word of each column."""
        if self.weights not in WEIGHTS:
            raise InputError(f"weights must be one of {', '.join(map(repr, WEIGHTS))}, got {self.weights!r}.")
        wanted, share = self._wanted()
        X, _ = training_data(self, X, None, feature_names=feature_names)
        dtype = factor_dtype(self.dtype, X)
        counts = _sparse(X)
        forget_fit(self)
        self.word_weights_ = WEIGHTS[self.weights][1](counts)
        A = weighted(counts, self.weights, self.word_weights_)
        total = float((A.data**2).sum())
        with single_threaded_blas():
            values, vectors = _decomposed(A, wanted, share * total)
        self.singular_values_ = values
        self.explained_variance_ratio_ = values**2 / total if total > 0 else np.zeros(len(values))
        self.components_ = np.ascontiguousarray(_with_signs(vectors).T, dtype=dtype)
        self.n_components_ = len(values)
        self.doc_vectors_ = self._vectors(counts)
        return self

    def fit_transform(self, X: Any, y: Any = None, feature_names: Any = None) -> Array:
        """`fit`, and the vectors of the same documents: what `transform(X)` would give."""
        return self.fit(X, y, feature_names).doc_vectors_

    def transform(self, X: Any) -> Array:
        """Documents or queries (rows of counts) in the latent space, n x K, by folding in: A V."""
        check_is_fitted(self)
        return self._vectors(_sparse(count_data(self, X, reset=False)))

    def inverse_transform(self, vectors: Any) -> Array:
        """The weighted counts that vectors of the latent space stand for: vectors V'."""
        check_is_fitted(self)
        with single_threaded_blas():
            return np.asarray(vectors) @ self.components_

    @property
    def word_vectors_(self) -> Array:
        """V S, words x K: the dot product of two words is that of their columns in U S V'."""
        return (self.components_.T * self.singular_values_).astype(self.components_.dtype)

    def angles(self, X: Any, Y: Any = None) -> Floats:
        """Degrees between documents X and documents Y (without Y: the training documents) in the latent space."""
        return angles(self.transform(X), self.doc_vectors_ if Y is None else self.transform(Y))

    def nearest(self, X: Any, n: int = 10) -> tuple[Array, Floats]:
        """The n training documents nearest to each row of X: their numbers and angles, nearest first."""
        return _nearest(self.angles(X), n)

    def nearest_words(self, words: Any, n: int = 10) -> tuple[Array, Floats]:
        """The n words nearest to each of some words (columns), the word itself among them: numbers and angles."""
        check_is_fitted(self)
        vectors = self.word_vectors_
        return _nearest(angles(vectors[np.atleast_1d(np.asarray(words, dtype=np.intp))], vectors), n)

    def _wanted(self) -> tuple[int | None, float]:
        """How many singular values, or None; and the share of the variance that they shall explain."""
        K = self.n_components
        if isinstance(K, Real) and not isinstance(K, Integral) and 0 < float(K) < 1:
            return None, float(K)
        if isinstance(K, bool) or not isinstance(K, Integral) or K < 1:
            raise InputError(f"n_components must be a whole number of at least 1 or a share below 1, got {K!r}.")
        return int(K), 1.0

    def _vectors(self, counts: sp.csr_array) -> Array:
        A = weighted(counts, self.weights, self.word_weights_)
        dtype = self.components_.dtype
        return np.ascontiguousarray((A @ self.components_.T.astype(np.float64)).astype(dtype))


def _sparse(X: Any) -> sp.csr_array:
    matrix = sp.csr_array(X)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _decomposed(A: sp.csr_array, wanted: int | None, enough: float) -> tuple[Floats, Floats]:
    """Singular values, largest first, and right singular vectors (words x K).

    As many as wanted, or (None) as few as have squares that sum to `enough`.
    """
    full = min(A.shape)
    if A.shape[0] * A.shape[1] <= _SMALL:
        _, values, rows = np.linalg.svd(A.toarray(), full_matrices=False)
        return _cut(values, rows.T, wanted, enough)
    K = min(_FIRST_TRY if wanted is None else wanted, full)
    while True:
        values, vectors = _largest(A, K)
        if wanted is not None or full == K or (values**2).sum() >= enough:
            return _cut(values, vectors, wanted, enough)
        K = min(2 * K, full)


def _largest(A: sp.csr_array, K: int) -> tuple[Floats, Floats]:
    """By Lanczos iteration on the smaller of A A' and A' A, or whole where K is most of it."""
    if min(A.shape) <= 2 * K:
        wide = A.shape[0] < A.shape[1]
        squares, vectors = np.linalg.eigh(((A @ A.T) if wide else (A.T @ A)).toarray())
        values, vectors = np.sqrt(np.maximum(squares[::-1][:K], 0)), vectors[:, ::-1][:, :K]
        if wide:
            vectors = (A.T @ vectors) / np.where(values > 0, values, 1)
        return values, vectors
    start = np.random.default_rng(0).uniform(0.5, 1.5, min(A.shape))
    _, values, rows = svds(A, k=K, v0=start, return_singular_vectors="vh")
    order = np.argsort(-values, kind="stable")
    return values[order], rows[order].T


def _cut(values: Floats, vectors: Floats, wanted: int | None, enough: float) -> tuple[Floats, Floats]:
    K = wanted if wanted is not None else 1 + int(np.searchsorted(np.cumsum(values**2), enough * (1 - 1e-12)))
    return values[:K], vectors[:, :K]


def _with_signs(vectors: Floats) -> Floats:
    """Each column times 1 or -1, so that its largest entry is positive: a decomposition leaves the sign open."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(vectors * signs)


def _nearest(degrees: Floats, n: int) -> tuple[Array, Floats]:
    order = np.argsort(degrees, axis=1, kind="stable")[:, : whole_number("n", n, least=1)]
    return order, np.take_along_axis(degrees, order, axis=1)
