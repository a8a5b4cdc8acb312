"""Latent semantic analysis (LSA) as a scikit-learn estimator, with the weights of the vector space model.

The counts are weighted (`WEIGHTS`), decomposed by a truncated SVD, and documents are compared by angles (`angles`).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from sklearn.utils.validation import check_is_fitted

from polyseme.core.fitted import StoredArray
from polyseme.errors import InputError
from polyseme.estimators.base import CountDecomposition, times_components
from polyseme.estimators.validation import clear_fit, count_data, factor_dtype, training_data
from polyseme.io.files import COUNT, one_of
from polyseme.io.models import WORDS, StoredAttributes, StoredValue
from polyseme.kernels import Array, Floats, check_sparse, single_threaded_blas
from polyseme.utils import check_integer, check_n_topics

_PAIRS_AT_ONCE = 1 << 16
_NEARLY_PARALLEL = 0.999
"""Above this cosine the angle is computed from the difference of the vectors."""
_DENSE_ENTRIES = 1 << 22
"""Matrices with at most this many entries are decomposed by a dense SVD."""
_FIRST_RANK = 32
"""First number of singular values to compute if n_components is a share of the variance."""
LocalWeight = Callable[[Floats], Floats]
GlobalWeight = Callable[[sp.csr_array], Floats]


def unit_weights(X: sp.csr_array) -> Floats:
    """Return the weight 1 for each word."""
    return np.ones(X.shape[1])


def inverse_document_frequencies(X: sp.csr_array) -> Floats:
    """Return log((1 + n) / (1 + documents with the word)) + 1, as scikit-learn does with smooth_idf=True."""
    documents = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
    return np.asarray(np.log((1 + X.shape[0]) / (1 + documents)) + 1)


def entropy_weights(X: sp.csr_array) -> Floats:
    """Return 1 + sum_d p log p / log n with p = x_dw / sum_d x_dw.

    The weight is 1 for a word of one document and 0 for a word that is equally frequent in all documents.
    """
    if X.shape[0] == 1:
        return np.ones(X.shape[1])
    totals = np.bincount(X.indices, weights=X.data, minlength=X.shape[1])
    p = np.divide(X.data, totals[X.indices], out=np.zeros(X.data.shape), where=X.data > 0)  # the matrix may store zeros
    terms = np.multiply(p, np.log(p, out=np.zeros_like(p), where=p > 0))
    return np.asarray(1 + np.bincount(X.indices, weights=terms, minlength=X.shape[1]) / np.log(X.shape[0]))


WEIGHTS: dict[str, tuple[LocalWeight, GlobalWeight]] = {
    "counts": (np.asarray, unit_weights),
    "tf-idf": (np.asarray, inverse_document_frequencies),
    "log-entropy": (np.log1p, entropy_weights),
}
"""Local weight of a count and global weight of a word, for each name that `LSA(weights=)` accepts."""


class LSA(CountDecomposition):
    """Latent semantic analysis (LSA), a truncated singular value decomposition of weighted counts.

    The weighted counts A (documents x words) are approximated by their K largest singular values::

        A ~ U S V'

    The vectors of documents are A V (for training documents U S), those of words V S. Documents are compared by angles.
    Nothing is centered. Nothing is random, and the number of threads does not
    change the result, because linear algebra runs with one thread inside `fit`. Another BLAS or processor may round
    differently.

    Parameters
    ----------
    n_components : int or float, default=100
        Number of singular values K, at most as many as exist; or, below 1, the share of the sum of squares of A that
        they explain together. A share needs one decomposition for every doubling of K.
    weights : {"counts", "tf-idf", "log-entropy"}, default="log-entropy"
        Weights of the counts: x, x (log((1 + n) / (1 + documents with the word)) + 1), or log(1 + x) (1 + sum_d p log p
        / log n) with p = x_dw / sum_d x_dw and n documents.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the vectors. None uses float64 for float64 data, else float32. All computations are in float64.

    Attributes
    ----------
    components_ : array of shape (K, n_words)
        V'. In each row the entry with the largest absolute value is positive.
    singular_values_ : array of shape (K,)
        S, largest first.
    explained_squares_ratio_ : array of shape (K,)
        Share of each squared singular value in the sum of squares of A.
    explained_variance_ : array of shape (K,)
        Variance of each column of `doc_vectors_`, as in scikit-learn's TruncatedSVD.
    explained_variance_ratio_ : array of shape (K,)
        Share of `explained_variance_` in the sum of the variances of the columns of A, as in scikit-learn. It is not
        monotone, because A is not centered.
    doc_vectors_ : array of shape (n_documents, K)
        A V of the training documents, equal to `transform(X)`.
    word_vectors_ : array of shape (n_words, K)
        V S.
    weights_ : str
        The parameter `weights` of the fit.
    word_weights_ : array of shape (n_words,)
        Global weight of each word.
    n_components_ : int
        K.
    vocabulary_ : array of str or None
        The word of each column.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Deerwester, S., Dumais, S. T., Furnas, G. W., Landauer, T. K., and Harshman, R. (1990). Indexing by latent
      semantic analysis. Journal of the American Society for Information Science 41, 391-407.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import LSA
    >>> X = np.array([[2, 1, 0, 0], [4, 2, 0, 0], [0, 0, 1, 3]])
    >>> model = LSA(2, weights="counts").fit(X)
    >>> model.angles(X[:1]).round().tolist()
    [[0.0, 0.0, 90.0]]
    """

    _stored: ClassVar[StoredAttributes] = {
        **CountDecomposition._stored,
        "components_": StoredArray("KW"),
        "weights_": StoredValue(one_of(*WEIGHTS), required=True),
        "word_weights_": StoredArray("W"),
        "singular_values_": StoredArray("K"),
        "explained_squares_ratio_": StoredArray("K", required=False),
        "explained_variance_": StoredArray("K", required=False),
        "explained_variance_ratio_": StoredArray("K", required=False),
        "n_components_": StoredValue(COUNT),
        "doc_vectors_": StoredArray("DK", required=False),
        "vocabulary_": WORDS,
    }

    def __init__(self, n_components: float = 100, *, weights: str = "log-entropy", dtype: Any = None) -> None:
        self.n_components = n_components
        self.weights = weights
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None, feature_names: Any = None) -> Self:
        """Decompose counts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import LSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = LSA(2).fit(X)
        >>> model.doc_vectors_.shape, model.components_.shape
        ((4, 2), (2, 4))
        """
        if self.weights not in WEIGHTS:
            raise InputError(f"weights must be one of {', '.join(map(repr, WEIGHTS))}, got {self.weights!r}.")
        rank, share = self._requested_rank()
        X, _, vocabulary, _ = training_data(self, X, None, feature_names=feature_names)
        dtype = factor_dtype(self.dtype, X)
        counts = _sparse(X)
        clear_fit(self)
        self.vocabulary_ = vocabulary
        self.weights_ = self.weights
        self.word_weights_ = WEIGHTS[self.weights][1](counts)
        A = weighted(counts, self.weights, self.word_weights_)
        total = float((A.data**2).sum())
        with single_threaded_blas():
            values, vectors = _truncated_svd(A, rank, share * total)
        self.singular_values_ = values
        self.explained_squares_ratio_ = values**2 / total if total > 0 else np.zeros(len(values))
        means = A.mean(axis=0)
        variance = total / A.shape[0] - float(means @ means)
        sums = A.sum(axis=0) @ vectors
        # The columns of A V have the squares S^2, because V has orthonormal eigenvectors of A'A.
        self.explained_variance_ = np.maximum(values**2 / A.shape[0] - (sums / A.shape[0]) ** 2, 0.0)
        self.explained_variance_ratio_ = self.explained_variance_ / variance if variance > 0 else np.zeros(len(values))
        self.components_ = np.ascontiguousarray(_fix_signs(vectors).T, dtype=dtype)
        self.n_components_ = len(values)
        self.doc_vectors_ = self._vectors(counts)
        return self

    def fit_transform(self, X: Any, y: Any = None, feature_names: Any = None) -> Array:
        """Decompose counts and return the vectors of the same documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X.

        Returns
        -------
        array of shape (n_documents, K)
            Vectors, equal to `transform(X)`.
        """
        return self.fit(X, y, feature_names).doc_vectors_

    def transform(self, X: Any) -> Array:
        """Return the vectors A V of documents or queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        array of shape (n_documents, K)
            Vectors in the latent space.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import LSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = LSA(2).fit(X)
        >>> model.transform([[1, 1, 0, 0]]).shape
        (1, 2)
        """
        check_is_fitted(self)
        return self._vectors(_sparse(count_data(self, X, reset=False)))

    def inverse_transform(self, X: Any) -> Array:
        """Return the weighted counts that vectors of the latent space represent.

        Parameters
        ----------
        X : array-like of shape (n_documents, K)
            Vectors in the latent space.

        Returns
        -------
        array of shape (n_documents, n_words)
            The product of the vectors and V'.
        """
        check_is_fitted(self)
        return times_components(X, self.components_)

    @property
    def word_vectors_(self) -> Array:
        """V S, words x K. The dot product of two words is that of their columns in U S V'."""
        return (self.components_.T * self.singular_values_).astype(self.components_.dtype)

    def angles(self, X: Any, Y: Any = None) -> Floats:
        """Return the angles between documents in the latent space.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        Y : array-like or sparse matrix of shape (n_others, n_words), default=None
            Counts of other documents. None uses the training documents.

        Returns
        -------
        array of shape (n_documents, n_others)
            Angles in degrees.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import LSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = LSA(2, weights="counts").fit(X)
        >>> model.angles([[1, 0, 0, 0]]).round().tolist()
        [[3.0, 11.0, 93.0, 88.0]]
        """
        return angles(self.transform(X), self.doc_vectors_ if Y is None else self.transform(Y))

    def nearest(self, X: Any, n_documents: int = 10) -> tuple[Array, Floats]:
        """Return the training documents nearest to each row of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        n_documents : int, default=10
            Number of training documents for each row.

        Returns
        -------
        indices : array of shape (n_queries, n_documents)
            Positions of the training documents, nearest first.
        angles : array of shape (n_queries, n_documents)
            Their angles in degrees.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import LSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> numbers, degrees = LSA(2).fit(X).nearest([[1, 0, 0, 0]], n_documents=2)
        >>> sorted(numbers[0].tolist())
        [0, 1]
        """
        return _nearest(self.angles(X), check_integer("n_documents", n_documents, least=1))

    def nearest_words(self, words: Any, n_words: int = 10) -> tuple[Array, Floats]:
        """Return the words nearest to given words. Each given word is among its own neighbors.

        Parameters
        ----------
        words : int or array-like of int
            Columns of the words.
        n_words : int, default=10
            Number of neighbors of each word.

        Returns
        -------
        indices : array of shape (n_given, n_words)
            Columns of the nearest words, nearest first.
        angles : array of shape (n_given, n_words)
            Their angles in degrees.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import LSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> numbers, degrees = LSA(2).fit(X).nearest_words(0, n_words=2)
        >>> sorted(numbers[0].tolist())
        [0, 1]
        """
        check_is_fitted(self)
        vectors, columns = self.word_vectors_, np.atleast_1d(np.asarray(words))
        if columns.dtype.kind not in "iu" or ((columns < 0) | (columns >= len(vectors))).any():
            raise InputError(f"words must be columns from 0 to {len(vectors) - 1}, got {words!r}.")
        return _nearest(angles(vectors[columns], vectors), check_integer("n_words", n_words, least=1))

    def _requested_rank(self) -> tuple[int | None, float]:
        """Return the number of singular values (None if a share is given) and the share of the variance to explain."""
        K = self.n_components
        if isinstance(K, Real) and not isinstance(K, Integral) and 0 < float(K) < 1:
            return None, float(K)
        if isinstance(K, bool) or not isinstance(K, Integral) or K < 1:
            raise InputError(f"n_components must be a whole number of at least 1 or a share below 1, got {K!r}.")
        return check_n_topics(K), 1.0

    def _vectors(self, counts: sp.csr_array) -> Array:
        A = weighted(counts, self.weights_, self.word_weights_)
        dtype = self.components_.dtype
        return np.ascontiguousarray((A @ self.components_.T.astype(np.float64)).astype(dtype))


def angles(X: Any, Y: Any = None) -> Floats:
    """Return the angles in degrees between the rows of X and the rows of Y, dense or sparse. None uses X as Y.

    The angle is 0 between equal directions, and 90 between vectors without a common entry and between a zero vector and
    any other vector.
    """
    first = unit_rows(X)
    second = first if Y is None else unit_rows(Y)
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"The vectors have {first.shape[1]} and {second.shape[1]} entries: both must have the same number."
        )
    cosines = (first @ second.T).toarray()
    result = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    rows, columns = np.nonzero(cosines > _NEARLY_PARALLEL)  # here the arc cosine loses half of its digits
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        i, j = rows[start : start + _PAIRS_AT_ONCE], columns[start : start + _PAIRS_AT_ONCE]
        difference = first[i] - second[j]
        distances = np.sqrt(np.asarray(difference.multiply(difference).sum(axis=1)).ravel())
        result[i, j] = np.degrees(2 * np.arcsin(distances / 2))
    return result


def unit_rows(X: Any) -> sp.csr_array:
    """Return rows of length one in float64; a row of zeros stays zero."""
    matrix = sp.csr_array(check_sparse(X), dtype=np.float64)
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.csr_array(matrix.multiply(1 / np.where(lengths > 0, lengths, 1)[:, np.newaxis]))


def weighted(X: sp.csr_array, name: str, word_weights: Floats) -> sp.csr_array:
    """Return local(x_dw) weight_w in float64."""
    local, _ = WEIGHTS[name]
    values = local(X.data.astype(np.float64)) * word_weights[X.indices]
    return sp.csr_array((values, X.indices, X.indptr), X.shape)


def _sparse(X: Any) -> sp.csr_array:
    matrix = sp.csr_array(X)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _truncated_svd(A: sp.csr_array, rank: int | None, min_squares: float) -> tuple[Floats, Floats]:
    """Return singular values, largest first, and right singular vectors (words x K).

    K is `rank`, or the smallest number of values whose squares sum to `min_squares` if `rank` is None.
    """
    full = min(A.shape)
    if A.shape[0] * A.shape[1] <= _DENSE_ENTRIES:
        _, values, rows = np.linalg.svd(A.toarray(), full_matrices=False)
        return _truncate(values, rows.T, rank, min_squares)
    K = min(_FIRST_RANK if rank is None else rank, full)
    while True:
        values, vectors = _leading_vectors(A, K)
        if rank is not None or full == K or (values**2).sum() >= min_squares:
            return _truncate(values, vectors, rank, min_squares)
        K = min(2 * K, full)


def _leading_vectors(A: sp.csr_array, K: int) -> tuple[Floats, Floats]:
    """Return K singular values and vectors, by Lanczos iteration or, if K is large, from all of A A' or A' A."""
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


def _truncate(values: Floats, vectors: Floats, rank: int | None, min_squares: float) -> tuple[Floats, Floats]:
    K = rank if rank is not None else 1 + int(np.searchsorted(np.cumsum(values**2), min_squares * (1 - 1e-12)))
    return values[:K], vectors[:, :K]


def _fix_signs(vectors: Floats) -> Floats:
    """Multiply each column by 1 or -1 so that its largest entry is positive: an SVD does not determine the sign."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(vectors * signs)


def _nearest(degrees: Floats, n: int) -> tuple[Array, Floats]:
    order = np.argsort(degrees, axis=1, kind="stable")[:, :n]
    return order, np.take_along_axis(degrees, order, axis=1)
