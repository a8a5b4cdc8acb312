"""Non-negative matrix factorization X ~ W H as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.core.factors import nmf_to_plsa
from polyseme.core.shard import sparse_counts
from polyseme.data.disk import DiskCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import (
    CountDecomposition,
    clear_fit,
    count_data,
    factor_dtype,
    set_vocabulary,
    training_data,
)
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats, SparseCounts, check_topics, inner, padded, weighted_sum
from polyseme.kernels.threads import effective_threads
from polyseme.solvers.initialize import pair_of_factors
from polyseme.utils import as_random_state, check_n_jobs, check_n_topics, check_nonnegative, check_whole_number

LOSSES = ("kullback-leibler", "frobenius")


class NMF(CountDecomposition):
    """X ~ W H with W (documents x K) and H (K x words) non-negative.

    With `loss="kullback-leibler"` this is PLSA without its normalization (Gaussier and Goutte 2005), fitted by the same
    solvers; rows of H sum to one and W carries the scale. With `loss="frobenius"` scikit-learn's solver fits it.

    Parameters
    ----------
    n_components : number of components K.
    loss : "kullback-leibler" or "frobenius".
    init : "random", "nndsvd", "lsa" (KL loss), or a pair (W, H) to start from.
    max_iter, dtype, random_state, verbose : as in PLSA.
    solver, n_init, tol, early_stopping, n_jobs, callback : as in PLSA, for the KL loss alone, as is `sample_weight`.

    Attributes
    ----------
    components_ : H, K x words.
    doc_factor_ : W of the training documents, what `transform` gives for them.
    reconstruction_err_ : sum x log(x / (WH)) - x + WH, or the Frobenius norm of X - WH (of a fit to data; not of a
        model that comes from `PLSA.to_nmf`).
    history_, log_likelihood_ : as in PLSA (KL loss).
    vocabulary_ : the word of each column, or None, as in PLSA.
    n_iter_, converged_, n_features_in_, feature_names_in_ : as usual in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import NMF
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = NMF(n_components=2, random_state=0).fit(X)
    >>> W = model.transform(X)
    >>> W.shape, bool(np.isclose((W @ model.components_).sum(), X.sum()))
    ((4, 2), True)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str = "kullback-leibler",
        solver: Any = "auto",
        init: Any = "random",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-2,
        early_stopping: Any = None,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Self:
        """Fits W and H to non-negative X (documents x words, dense or sparse)."""
        if self.loss not in LOSSES:
            raise InputError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {self.loss!r}.")
        if self.loss == "frobenius":
            check_nonnegative("tol", self.tol)
            check_whole_number("n_init", self.n_init, least=1)
            check_n_jobs(self.n_jobs)
            return self._fit_frobenius(X, sample_weight, feature_names)
        if isinstance(X, DiskCorpus):
            raise UnsupportedError("NMF takes no shards: fit PLSA to them, and take its to_nmf().")
        plsa = PLSA(**self._plsa_parameters())
        try:
            plsa.fit(X, sample_weight=sample_weight, feature_names=feature_names)
        finally:
            if hasattr(plsa, "doc_topic_"):  # also after Ctrl-C
                self._take(plsa, X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """`fit`, and W of the same documents: what `transform(X)` would give."""
        return self.fit(X, y, sample_weight, feature_names).doc_factor_

    def transform(self, X: Any) -> Array:
        """W (documents x K) of documents, with H fixed."""
        check_is_fitted(self)
        X = count_data(self, X, reset=False)
        if self._is_frobenius:
            return self._frobenius_weights(X.astype(self.components_.dtype, copy=False))
        totals = _known_totals(sparse_counts(X, self.components_.dtype), self.components_)
        return (self._as_plsa().transform(X) * totals[:, np.newaxis]).astype(self.components_.dtype)

    def inverse_transform(self, W: Any) -> Array:
        """W H: the counts that W stands for."""
        check_is_fitted(self)
        return np.asarray(W) @ self.components_

    def to_plsa(self) -> PLSA:
        """The same product as PLSA's parameters: P(z), P(d|z), P(w|z) by Gaussier and Goutte's scaling."""
        check_is_fitted(self)
        if self._is_frobenius:
            raise UnsupportedError(
                "A Frobenius fit is not a likelihood fit: use polyseme.core.factors.nmf_to_plsa to rescale its factors."
            )
        return self._as_plsa()

    @classmethod
    def from_plsa(cls, plsa: PLSA) -> NMF:
        """A fitted PLSA as a fitted KL-NMF."""
        own = cls().get_params(deep=False)
        model = cls(**{name: value for name, value in plsa.get_params(deep=False).items() if name in own})
        model._copy(plsa, plsa.doc_weights_ * plsa.n_tokens_)
        return model

    @property
    def _is_frobenius(self) -> bool:
        """Whether the fit was to the Frobenius loss; the parameter may have changed since."""
        return not hasattr(self, "unigram_")

    def _plsa_parameters(self) -> dict[str, Any]:
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "loss"}
        if not isinstance(self.init, str):
            W, H = pair_of_factors(self.init, ("W", "H"))
            if W.shape[1] != H.shape[0]:
                raise InputError(f"init: W has {W.shape[1]} columns and H has {H.shape[0]} rows, where both need K.")
            parameters["init"] = (W * H.sum(axis=1), H)
        return parameters

    def _take(self, plsa: PLSA, X: Any, sample_weight: Any) -> None:
        X = count_data(self, X, reset=True)
        counts = sparse_counts(X, plsa.components_.dtype)
        totals = _known_totals(counts, plsa.components_)
        self._copy(plsa, totals)
        given = 1.0 if sample_weight is None else sample_weight  # one number is the weight of every document
        weights = np.broadcast_to(np.asarray(given, dtype=np.float64), counts.n_docs)
        self.reconstruction_err_ = _kl_divergence(counts, weights, totals, plsa.doc_topic_, self.components_)

    def _copy(self, plsa: PLSA, totals: Floats) -> None:
        clear_fit(self)
        set_vocabulary(self, plsa.vocabulary_, plsa.components_.shape[1])
        for name, value in vars(plsa).items():
            if name.endswith("_") and name != "doc_topic_":
                setattr(self, name, value)
        self.doc_factor_ = (plsa.doc_topic_ * totals[:, np.newaxis]).astype(self.components_.dtype)

    def _as_plsa(self) -> PLSA:
        plsa = PLSA(**{**self._plsa_parameters(), "init": self.init if isinstance(self.init, str) else "random"})
        own = ("doc_factor_", "reconstruction_err_")
        for name, value in vars(self).items():
            if name.endswith("_") and name not in own:
                setattr(plsa, name, value)
        parameters = nmf_to_plsa(self.doc_factor_, self.components_)
        joint = (parameters.topic_doc.T * parameters.topic_weights).astype(self.components_.dtype)
        sums = joint.sum(axis=1, keepdims=True)
        plsa.doc_topic_ = np.where(sums > 0, joint / np.where(sums > 0, sums, 1), self.topic_weights_).astype(
            joint.dtype
        )
        return plsa

    def _fit_frobenius(self, X: Any, sample_weight: Any, feature_names: Any) -> Self:
        from sklearn.decomposition import NMF as SklearnNMF  # a heavy import that the KL loss does without

        if sample_weight is not None:
            raise UnsupportedError("loss='frobenius' does not take sample_weight: use loss='kullback-leibler'.")
        X, _ = training_data(self, X, None, feature_names=feature_names)
        X = X.astype(factor_dtype(self.dtype, X), copy=False)
        K = check_n_topics(self.n_components)
        init, start = self.init, {}
        if not isinstance(self.init, str):
            W, H = pair_of_factors(self.init, ("W", "H"), ((X.shape[0], K), (K, X.shape[1])))
            init, start = "custom", {"W": W.astype(X.dtype), "H": H.astype(X.dtype)}
        elif self.init not in ("random", "nndsvd"):
            raise UnsupportedError(
                f"init must be 'random', 'nndsvd' or a pair with loss='frobenius', got {self.init!r}."
            )
        as_random_state(self.random_state)
        model = SklearnNMF(K, init=init, max_iter=self.max_iter, random_state=self.random_state, verbose=self.verbose)
        with np.errstate(invalid="ignore"):  # the square root of an error that rounding made negative
            model.fit(X, **start)
        clear_fit(self)
        self.components_ = model.components_
        self.doc_factor_ = self._frobenius_weights(X)
        self.n_iter_ = model.n_iter_
        self.converged_ = model.n_iter_ < self.max_iter
        self.reconstruction_err_ = float(np.nan_to_num(model.reconstruction_err_, nan=0.0))
        return self

    def _frobenius_weights(self, X: Any) -> Array:
        from sklearn.decomposition import non_negative_factorization

        H = self.components_
        return non_negative_factorization(
            X, H=H, n_components=len(H), init="custom", update_H=False, max_iter=self.max_iter
        )[0]


def _known_totals(counts: SparseCounts, H: Array) -> Floats:
    """The tokens of each document whose words H knows: no W can make the others."""
    word_sums = H.sum(axis=0)
    check_topics(word_sums)
    return counts.with_values(np.where((word_sums > 0)[counts.indices], counts.values, 0)).totals


def _kl_divergence(counts: SparseCounts, weights: Floats, totals: Floats, doc_topic: Array, H: Array) -> float:
    """sum_d weight_d (sum_w x log(x / WH) - x + WH) with W = totals * doc_topic, without forming WH.

    The totals are multiplied in float64: where they are small, products of W and H would underflow in float32.
    """
    products = counts.products(padded(doc_topic, H.dtype), padded(H.T, H.dtype), n_threads=effective_threads(None))
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    x, v, products = counts.values.astype(np.float64), weights[rows], products * totals[rows]
    counted = v > 0
    x, v, products = x[counted], v[counted], products[counted]
    with np.errstate(divide="ignore"):  # infinite where no topic has a word, such as one that was held out
        logs = np.log(x / products)
    return inner(v * x, logs - 1) + inner(weighted_sum(weights * totals, doc_topic), H.sum(axis=1))
