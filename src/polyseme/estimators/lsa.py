"""The vector space model: documents as vectors of weighted counts, compared by the angle between them.

Latent semantic analysis as a scikit-learn estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from sklearn.utils.validation import check_is_fitted

from polyseme.errors import InputError
from polyseme.estimators.base import CountDecomposition, clear_fit, count_data, factor_dtype, training_data
from polyseme.kernels import Array, Floats, checked_sparse, single_threaded_blas
from polyseme.utils import check_whole_number

_PAIRS_AT_ONCE = 1 << 16
_NEARLY_PARALLEL = 0.999  # beyond this cosine its arc is found from the difference of the vectors


def angles(X: Any, Y: Any = None) -> Floats:
    """Angles in degrees (rows of X x rows of Y, of X itself without Y); dense or sparse.

    Equal directions are 0 degrees apart, vectors without a common entry 90, and so is a vector of zeros from any other.
    """
    first = unit_rows(X)
    second = first if Y is None else unit_rows(Y)
    if first.shape[1] != second.shape[1]:
        raise InputError(f"The vectors have {first.shape[1]} and {second.shape[1]} entries, which must be as many.")
    cosines = (first @ second.T).toarray()
    result = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    rows, columns = np.nonzero(cosines > _NEARLY_PARALLEL)  # where the arc cosine has lost half of its digits
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        i, j = rows[start : start + _PAIRS_AT_ONCE], columns[start : start + _PAIRS_AT_ONCE]
        difference = first[i] - second[j]
        distances = np.sqrt(np.asarray(difference.multiply(difference).sum(axis=1)).ravel())
        result[i, j] = np.degrees(2 * np.arcsin(distances / 2))
    return result


def unit_rows(X: Any) -> sp.csr_array:
    """Rows of length one, in float64; a row of zeros stays."""
    matrix = sp.csr_array(checked_sparse(X), dtype=np.float64)
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.csr_array(matrix.multiply(1 / np.where(lengths > 0, lengths, 1)[:, np.newaxis]))


def document_frequencies(X: sp.csr_array) -> Floats:
    return np.bincount(X.indices[X.data > 0], minlength=X.shape[1]).astype(np.float64)


def no_weights(X: sp.csr_array) -> Floats:
    return np.ones(X.shape[1])


def inverse_document_frequencies(X: sp.csr_array) -> Floats:
    """log((1 + n) / (1 + documents with the word)) + 1, scikit-learn's smooth form."""
    return np.asarray(np.log((1 + X.shape[0]) / (1 + document_frequencies(X))) + 1)


def entropy_weights(X: sp.csr_array) -> Floats:
    """1 + sum_d p log p / log n with p = x_dw / sum_d x_dw: 1 for a word of one document, 0 for one spread evenly."""
    if X.shape[0] == 1:
        return np.ones(X.shape[1])
    totals = np.bincount(X.indices, weights=X.data, minlength=X.shape[1])
    p = np.divide(X.data, totals[X.indices], out=np.zeros(X.data.shape), where=X.data > 0)  # zeros may be stored
    terms = np.multiply(p, np.log(p, out=np.zeros_like(p), where=p > 0))
    return np.asarray(1 + np.bincount(X.indices, weights=terms, minlength=X.shape[1]) / np.log(X.shape[0]))


Local = Callable[[Floats], Floats]
Global = Callable[[sp.csr_array], Floats]

WEIGHTS: dict[str, tuple[Local, Global]] = {
    "counts": (np.asarray, no_weights),
    "tf-idf": (np.asarray, inverse_document_frequencies),
    "log-entropy": (np.log1p, entropy_weights),
}
"""For each name, what is made of a count, and what it is multiplied by for its word."""


def weighted(X: sp.csr_array, name: str, word_weights: Floats) -> sp.csr_array:
    """local(x_dw) weight_w, in float64."""
    local, _ = WEIGHTS[name]
    values = local(X.data.astype(np.float64)) * word_weights[X.indices]
    return sp.csr_array((values, X.indices, X.indptr), X.shape)


_SMALL = 1 << 22  # entries of a matrix that is decomposed as a whole
_FIRST_TRY = 32


class LSA(CountDecomposition):
    """Latent semantic analysis: the weighted counts A ~ U S V' by their K largest singular values.

    A document is at A V (for a training document, U S), a word at V S; documents are compared by the angle between
    them. Nothing is centered, so "variance" is the sum of squares.

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
        clear_fit(self)
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
    order = np.argsort(degrees, axis=1, kind="stable")[:, : check_whole_number("n", n, least=1)]
    return order, np.take_along_axis(degrees, order, axis=1)
