"""Non-negative matrix factorization (NMF) as a scikit-learn estimator.

With the Kullback-Leibler loss NMF is PLSA without its normalization, and PLSA fits it; with the Frobenius loss
scikit-learn's solver does.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.core.edits import TopicEdit
from polyseme.core.factors import nmf_to_plsa
from polyseme.core.fitted import (
    DocumentWeights,
    FittedTopics,
    FoldedTraining,
    TrainingDocuments,
    document_sums,
    mean_operands,
)
from polyseme.core.fold_in import MaximumLikelihood, select_known_words
from polyseme.core.shard import Shard, as_counts, row_batches
from polyseme.data.corpus import Corpus, is_stored
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import (
    FittedDecomposition,
    clear_fit,
    count_data,
    edited_likelihood,
    factor_dtype,
    fold_in_stored,
    stored_session,
    training_corpus,
    training_data,
)
from polyseme.estimators.plsa import PLSA
from polyseme.kernels import Array, Floats, SparseCounts, check_topics, inner, padded, weighted_sum
from polyseme.solvers.base import finish_fit
from polyseme.solvers.initialize import is_topics_only, pair_of_factors
from polyseme.utils import (
    as_random_state,
    check_integer,
    check_n_jobs,
    check_n_topics,
    check_nonnegative,
    effective_threads,
)

KULLBACK_LEIBLER, FROBENIUS = LOSSES = ("kullback-leibler", "frobenius")


class NMF(FittedDecomposition):
    """Non-negative matrix factorization, X ~ W H.

    W (documents x K) and H (K x words) are non-negative and minimize

        sum x log(x / WH) - x + WH     or     ||X - WH||_F

    With `loss="kullback-leibler"` this is PLSA without its normalization (Gaussier and Goutte 2005), fitted by the same
    solvers: rows of H sum to one and W carries the scale. With `loss="frobenius"` scikit-learn's solver fits the model.

    Parameters
    ----------
    n_components : int, default=10
        Number of components K.
    loss : {"kullback-leibler", "frobenius"}, default="kullback-leibler"
        What to minimize.
    solver : str or Solver, default="auto"
        Solver as in PLSA (Kullback-Leibler loss only).
    init : {"random", "nndsvd", "lsa"} or pair of arrays, default="random"
        Start of the fit: a name ("lsa" for the Kullback-Leibler loss only) or a pair (W, H); with the Kullback-Leibler
        loss (None, H) finds W first.
    n_init : int, default=1
        Number of starts; the best fit is kept (Kullback-Leibler loss only).
    max_iter : int, default=200
        Maximum number of iterations of a start.
    tol : float, default=0.01
        Tolerance in nats per token as in PLSA (Kullback-Leibler loss only).
    early_stopping : bool or EarlyStopping, default=None
        Whether to stop by held-out words as in PLSA (Kullback-Leibler loss only).
    n_jobs : int, default=None
        Number of threads as in PLSA (Kullback-Leibler loss only).
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None: float64 for float64 data, else float32.
    random_state : int or RandomState, default=None
        Seed of the start.
    verbose : int, default=0
        Level of progress output.
    callback : callable, default=None
        Called after each iteration with a dict as in PLSA (Kullback-Leibler loss only).

    Attributes
    ----------
    components_ : array of shape (K, n_words)
        H.
    doc_factor_ : array of shape (n_documents, K)
        W of the training documents, equal to `transform(X)`.
    reconstruction_err_ : float
        sum x log(x / WH) - x + WH, or the Frobenius norm of X - WH. Not available for a model from `PLSA.to_nmf`.
    history_ : dict of arrays
        Values of each iteration as in PLSA (Kullback-Leibler loss).
    log_likelihood_ : float
        Mean log P(w|d) of a training token as in PLSA (Kullback-Leibler loss).
    vocabulary_ : array of str or None
        The word of each column.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the fit stopped by its tolerance.
    solver_ : str
        Name of the solver as in PLSA (Kullback-Leibler loss).
    n_features_in_ : int
        Number of words.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Lee, D. D., and Seung, H. S. (2001). Algorithms for non-negative matrix factorization. NIPS.
    - Gaussier, E., and Goutte, C. (2005). Relation between PLSA and NMF and implications. SIGIR.

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

    file_attributes = (*FittedDecomposition.file_attributes, "loss_")
    edits_topics = True
    refits = True

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
        """Fit W and H to counts.

        Ctrl-C stores the best model so far in the estimator and then raises KeyboardInterrupt (Kullback-Leibler loss).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Non-negative numbers, or shards on disk (Kullback-Leibler loss only).
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents (Kullback-Leibler loss only).
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X.

        Returns
        -------
        Self
            The fitted estimator.
        """
        if self.loss not in LOSSES:
            raise InputError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {self.loss!r}.")
        if self.loss == FROBENIUS:
            return self._fit_frobenius(X, sample_weight, feature_names)
        plsa = PLSA(**self._plsa_parameters())
        settings = plsa._settings()
        with training_corpus(self, X, sample_weight, feature_names, settings.n_threads) as training:
            folded, end = plsa._fit_corpus(settings, training)
            found = self._of_documents(folded, training.corpus.all_documents)
        self._set_fitted(folded, end, {**found, "loss_": self.loss})
        finish_fit(self, end.interrupted, settings.max_iter, settings.tol)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """Fit W and H and return W.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Non-negative numbers, or shards on disk (Kullback-Leibler loss only).
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents (Kullback-Leibler loss only).
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X.

        Returns
        -------
        array of shape (n_documents, K)
            W, equal to `transform(X)`.
        """
        return self.fit(X, y, sample_weight, feature_names).doc_factor_

    def transform(self, X: Any) -> Array:
        """Return W of documents, with H fixed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Non-negative numbers, or shards on disk (Kullback-Leibler loss only).

        Returns
        -------
        array of shape (n_documents, K)
            W.
        """
        check_is_fitted(self)
        if is_stored(X) and self.loss_ == KULLBACK_LEIBLER:
            return self._transform_stored(X)
        X = count_data(self, X, reset=False)
        if self.loss_ == FROBENIUS:
            return self._frobenius_weights(X.astype(self.components_.dtype, copy=False))
        n_threads, parts = effective_threads(self.n_jobs), []
        for counts in row_batches(X, self.components_.dtype):
            weights = self.fitted_.fold_in(counts, n_threads=n_threads)
            parts.append(_scaled(weights.doc_topic, _known_totals(counts, self.components_)))
        return np.concatenate(parts)

    def _transform_stored(self, X: Any) -> Array:
        """Return W of the documents of shards, an array in memory."""
        with stored_session(self, X, effective_threads(self.n_jobs)) as corpus:
            doc_topic = fold_in_stored(self.fitted_, corpus)
            totals = corpus.map(known_totals, shared=(self.components_,))
        return _scaled(doc_topic, np.concatenate(totals))

    def inverse_transform(self, W: Any) -> Array:
        """Return the counts W H that W represents.

        Parameters
        ----------
        W : array-like of shape (n_documents, K)
            Weights of the components.

        Returns
        -------
        array of shape (n_documents, n_words)
            W H.
        """
        check_is_fitted(self)
        return np.asarray(W) @ self.components_

    def to_plsa(self) -> PLSA:
        """Return the same product as a fitted PLSA, by the scaling of Gaussier and Goutte (2005).

        Returns
        -------
        PLSA
            The model with P(z), P(d|z) and P(w|z).
        """
        check_is_fitted(self)
        if self.loss_ == FROBENIUS:
            raise UnsupportedError(
                "loss='frobenius' has no likelihood: rescale its factors with polyseme.core.factors.nmf_to_plsa."
            )
        plsa = PLSA(**{**self._plsa_parameters(), "init": self.init if isinstance(self.init, str) else "random"})
        plsa._share_fit(self)
        plsa.word_background_ = np.zeros(self.unigram_.size)
        return plsa

    @classmethod
    def from_plsa(cls, plsa: PLSA) -> NMF:
        """Return a fitted PLSA as a fitted NMF with Kullback-Leibler loss.

        Parameters
        ----------
        plsa : PLSA
            A fitted model without background.

        Returns
        -------
        NMF
            The fitted factorization.
        """
        own = cls().get_params(deep=False)
        model = cls(**{name: value for name, value in plsa.get_params(deep=False).items() if name in own})
        model._share_fit(plsa)
        model.loss_, model.doc_totals_ = KULLBACK_LEIBLER, plsa.doc_weights_ * plsa.n_tokens_
        return model

    @property
    def components_(self) -> Array:  # type: ignore[override]
        """H, K x words."""
        topics = self._topics.topic_word
        return self.H_ if self.loss_ == FROBENIUS else topics

    @property
    def doc_factor_(self) -> Array:
        """W of the training documents."""
        doc_topic = self._documents.doc_topic
        return self.W_ if self.loss_ == FROBENIUS else _scaled(doc_topic, self.doc_totals_)

    def with_documents(self, X: Any, sample_weight: Any = None) -> Self:
        self._check_likelihood("with_documents")
        return super().with_documents(X, sample_weight)

    def with_edited_topics(self, groups: Any, banned: Any, X: Any, sample_weight: Any = None) -> Self:
        self._check_likelihood("with_edited_topics")
        return super().with_edited_topics(groups, banned, X, sample_weight)

    def refitting(self, X: Any) -> Self:
        self._check_likelihood("refitting")
        return super().refitting(X)

    def _check_likelihood(self, method: str) -> None:
        check_is_fitted(self)
        if self.loss_ == FROBENIUS:
            raise UnsupportedError(f"{method} is not available with loss='frobenius': use loss='kullback-leibler'.")

    def _edit_topics(self, edit: TopicEdit) -> None:
        self.fitted_ = edited_likelihood(self.fitted_, edit)
        self.n_components = self.fitted_.n_topics

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        errors = corpus.map(divergence, corpus.split(folded.documents.doc_topic), (folded.fitted.topic_word,))
        return {
            "doc_totals_": np.concatenate([error.totals for error in errors]),
            "reconstruction_err_": sum(error.value for error in errors),
        }

    def _plsa_parameters(self) -> dict[str, Any]:
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "loss"}
        if is_topics_only(self.init):
            return parameters
        if not isinstance(self.init, str):
            W, H = pair_of_factors(self.init, ("W", "H"))
            if W.shape[1] != H.shape[0]:
                raise InputError(f"init: W has {W.shape[1]} columns and H has {H.shape[0]} rows, where both need K.")
            parameters["init"] = (W * H.sum(axis=1), H)
        return parameters

    def _fit_frobenius(self, X: Any, sample_weight: Any, feature_names: Any) -> Self:
        from sklearn.decomposition import NMF as SklearnNMF  # a slow import that the KL loss does not need

        check_nonnegative("tol", self.tol)
        check_integer("n_init", self.n_init, least=1)
        check_n_jobs(self.n_jobs)
        if sample_weight is not None:
            raise UnsupportedError("loss='frobenius' does not take sample_weight: use loss='kullback-leibler'.")
        data = training_data(self, X, None, feature_names=feature_names)
        X = data.X.astype(factor_dtype(self.dtype, data.X), copy=False)
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
        with np.errstate(invalid="ignore"):  # square root of an error that rounding made negative
            model.fit(X, **start)
        clear_fit(self)
        self.loss_, self.H_ = self.loss, model.components_
        self.W_ = self._frobenius_weights(X)
        self.fitted_, self.documents_ = _normalized(self.W_, self.H_, X, data.vocabulary)
        self.n_iter_ = model.n_iter_
        self.converged_ = model.n_iter_ < self.max_iter
        self.reconstruction_err_ = float(np.nan_to_num(model.reconstruction_err_, nan=0.0))
        return self

    def _frobenius_weights(self, X: Any) -> Array:
        from sklearn.decomposition import non_negative_factorization

        H = self.H_
        return non_negative_factorization(
            X, H=H, n_components=len(H), init="custom", update_H=False, max_iter=self.max_iter
        )[0]


def _normalized(W: Array, H: Array, X: Any, vocabulary: Array | None) -> tuple[FittedTopics, TrainingDocuments]:
    """Return the factors as distributions (Gaussier and Goutte 2005), for words shown, search and pages.

    New documents are folded in by likelihood there, not by the least squares of `transform`.
    """
    parameters = nmf_to_plsa(W, H)
    joint = parameters.topic_doc.T * parameters.topic_weights
    sums = joint.sum(axis=1, keepdims=True)
    doc_topic = np.where(sums > 0, joint / np.where(sums > 0, sums, 1), parameters.topic_weights).astype(H.dtype)
    shard = Shard(as_counts(X, H.dtype), n_threads=1)
    topic_word = parameters.topic_word.astype(H.dtype)
    counts = shard.by_doc
    weights = DocumentWeights(doc_topic, np.zeros(shard.n_docs), counts)
    fitted = FittedTopics(
        topic_word,
        parameters.topic_weights,
        shard.unigram,
        parameters.topic_weights > 0,
        shard.tokens,
        float(shard.n_docs),
        MaximumLikelihood(),
        vocabulary,
        document_sums(counts, mean_operands(weights, topic_word), doc_topic).by_topic(),
    )
    return fitted, TrainingDocuments(shard.totals / shard.tokens, doc_topic, weights.background)


def _scaled(doc_topic: Array, totals: Floats) -> Array:
    """Return W = totals * P(z|d)."""
    return np.asarray(doc_topic * totals[:, np.newaxis], dtype=doc_topic.dtype)


def _known_totals(counts: SparseCounts, H: Array) -> Floats:
    """Return the tokens of each document whose words have a probability in H; no W can produce the others."""
    word_sums = H.sum(axis=0)
    check_topics(word_sums)
    return select_known_words(counts, word_sums > 0)[0].totals


def known_totals(shard: Shard, _: None, H: Array) -> Floats:
    """Return `_known_totals` of the documents of a shard."""
    return _known_totals(shard.by_doc, H)


class Divergence(NamedTuple):
    """Error of the documents of a shard."""

    totals: Floats
    """Tokens of each document whose words have a probability in H."""
    value: float
    """sum_d weight_d (sum_w x log(x / WH) - x + WH)."""


def divergence(shard: Shard, doc_topic: Array, H: Array) -> Divergence:
    """Return the error of W = totals * doc_topic, without forming WH.

    The totals are multiplied in float64: if they are small, products of W and H would underflow in float32.
    """
    counts = shard.by_doc
    totals = _known_totals(counts, H)
    weights = np.ones(counts.n_docs) if shard.weights is None else shard.weights
    products = counts.products(padded(doc_topic, H.dtype), padded(H.T, H.dtype), n_threads=shard.n_threads)
    rows = np.repeat(np.arange(counts.n_docs), np.diff(counts.indptr))
    x, v, products = counts.values.astype(np.float64), weights[rows], products * totals[rows]
    positive = v > 0
    x, v, products = x[positive], v[positive], products[positive]
    with np.errstate(divide="ignore"):  # infinite if no topic has the word, such as a held-out word
        logs = np.log(x / products)
    value = inner(v * x, logs - 1) + inner(weighted_sum(weights * totals, doc_topic), H.sum(axis=1))
    return Divergence(totals, value)
