"""Non-negative matrix factorisation X ~ W H as a scikit-learn estimator."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.decomposition import non_negative_factorization
from sklearn.utils.validation import check_is_fitted

from polyseme import storage
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.validation import count_data, factor_dtype, training_data
from polyseme.factors import nmf_to_plsa
from polyseme.kernels import Array, inner

LOSSES = ("kullback-leibler", "frobenius")


class NMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """X ~ W H with W (documents x K) and H (K x words) non-negative.

    With `loss="kullback-leibler"` this is PLSA without its normalisation (Gaussier and Goutte 2005), fitted by the same
    solvers; rows of H sum to one and W carries the scale. With `loss="frobenius"` scikit-learn's solver fits it.

    Parameters are those of PLSA, and `loss`; `solver`, `n_init`, `tol`, `n_jobs`, `callback` and `sample_weight` are
    for the KL loss alone.

    Attributes
    ----------
    components_ : H, K x words.
    doc_factor_ : W of the training documents, what `transform` gives for them.
    reconstruction_err_ : sum x log(x / (WH)) - x + WH, or the Frobenius norm of X - WH (of a fit to data; not of a
        model that comes from `PLSA.to_nmf`).
    history_, log_likelihood_ : as in PLSA (KL loss).
    n_iter_, converged_, n_features_in_, feature_names_in_ : as usual in scikit-learn.
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
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fits W and H to non-negative X (documents x words, dense or sparse)."""
        if self.loss not in LOSSES:
            raise InputError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {self.loss!r}.")
        if self.loss == "frobenius":
            return self._fit_frobenius(X, sample_weight)
        plsa = PLSA(**self._plsa_parameters())
        try:
            plsa.fit(X, sample_weight=sample_weight)
        finally:
            if hasattr(plsa, "doc_topic_"):  # also after Ctrl-C
                self._take(plsa, X)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """`fit`, and W of the same documents: what `transform(X)` would give."""
        return self.fit(X, y, sample_weight).doc_factor_

    def transform(self, X: Any) -> Array:
        """W (documents x K) of documents, with H fixed."""
        check_is_fitted(self)
        if self.loss == "frobenius":
            X = count_data(self, X, reset=False).astype(self.components_.dtype, copy=False)
            return self._frobenius_weights(X)
        X = count_data(self, X, reset=False)
        weights = self._as_plsa().transform(X)
        totals = np.asarray(X.sum(axis=1), dtype=np.float64).reshape(-1, 1)
        return (weights * totals).astype(self.components_.dtype)

    def inverse_transform(self, W: Any) -> Array:
        """W H: the counts that W stands for."""
        check_is_fitted(self)
        return np.asarray(W) @ self.components_

    def to_plsa(self) -> PLSA:
        """The same product as PLSA's parameters: P(z), P(d|z), P(w|z) by Gaussier and Goutte's scaling."""
        check_is_fitted(self)
        if self.loss == "frobenius":
            raise UnsupportedError(
                "A Frobenius fit is not a likelihood fit: use polyseme.factors.nmf_to_plsa to rescale its factors."
            )
        return self._as_plsa()

    @classmethod
    def from_plsa(cls, plsa: PLSA) -> NMF:
        """A fitted PLSA as a fitted KL-NMF."""
        model = cls(**plsa.get_params(deep=False))
        model._copy(plsa)
        return model

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the fitted model to a file that `polyseme.load` reads; the file appears whole or not at all."""
        check_is_fitted(self)
        storage.save(self, path)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _plsa_parameters(self) -> dict[str, Any]:
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "loss"}
        if not isinstance(self.init, str):
            try:
                W, H = (np.asarray(factor, dtype=np.float64) for factor in self.init)
            except (TypeError, ValueError):
                raise InputError(f"init must be a name or a pair (W, H) of arrays, got {self.init!r}.") from None
            parameters["init"] = (W * H.sum(axis=1), H)
        return parameters

    def _take(self, plsa: PLSA, X: Any) -> None:
        self._copy(plsa)
        X = count_data(self, X, reset=True)
        self.reconstruction_err_ = _kl_divergence(X, self.log_likelihood_, self.doc_factor_, self.components_)

    def _copy(self, plsa: PLSA) -> None:
        for name, value in vars(plsa).items():
            if name.endswith("_") and name != "doc_topic_":
                setattr(self, name, value)
        counts = self.doc_weights_[:, np.newaxis] * self.n_tokens_
        self.doc_factor_ = (plsa.doc_topic_ * counts).astype(self.components_.dtype)

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

    def _fit_frobenius(self, X: Any, sample_weight: Any) -> Self:
        if sample_weight is not None:
            raise UnsupportedError("loss='frobenius' does not take sample_weight: use loss='kullback-leibler'.")
        X, _ = training_data(self, X, None)
        X = X.astype(factor_dtype(self.dtype, X), copy=False)
        init = self.init if isinstance(self.init, str) and self.init != "lsa" else "custom"
        if self.init == "lsa":
            raise UnsupportedError("init='lsa' is for loss='kullback-leibler': use 'random' or 'nndsvd'.")
        model = SklearnNMF(
            self.n_components, init=init, max_iter=self.max_iter, random_state=self.random_state, verbose=self.verbose
        )
        start = (
            {}
            if isinstance(self.init, str)
            else dict(zip("WH", (np.array(f, X.dtype) for f in self.init), strict=True))
        )
        model.fit(X, **start)
        self.components_ = model.components_
        self.doc_factor_ = self._frobenius_weights(X)
        self.n_iter_ = model.n_iter_
        self.converged_ = model.n_iter_ < self.max_iter
        self.reconstruction_err_ = float(model.reconstruction_err_)
        return self

    def _frobenius_weights(self, X: Any) -> Array:
        H = self.components_
        return non_negative_factorization(
            X, H=H, n_components=len(H), init="custom", update_H=False, max_iter=self.max_iter
        )[0]


def _kl_divergence(X: Any, log_likelihood: float, W: Array, H: Array) -> float:
    """sum x log(x / WH) - x + WH, from sum x log P(w|d) with W's rows summing to n_d."""
    values = (X.data if sp.issparse(X) else X[X > 0]).astype(np.float64)
    values = values[values > 0]
    totals = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    totals = totals[totals > 0]
    log_product = log_likelihood * totals.sum() + inner(totals, np.log(totals))
    return inner(values, np.log(values)) - log_product - float(values.sum()) + inner(W.sum(axis=0), H.sum(axis=1))
