"""Non-negative matrix factorization (NMF) as a scikit-learn estimator.

NMF is PLSA without its normalization, so the code of PLSA fits it, by maximum likelihood for the Kullback-Leibler loss.

References
----------
E. Gaussier and C. Goutte (2005). Relation between PLSA and NMF and implications. SIGIR, 601-602.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import FoldedTraining, StoredArray, observed_shares
from polyseme.core.fold_in import LeastLoss, MaximumLikelihood, select_known_words
from polyseme.core.model import as_loss
from polyseme.core.shard import Shard, row_batches, sparse_counts
from polyseme.data.corpus import Corpus, is_stored
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import FittedDecomposition, fold_in_stored, share_fit, stored_session, times_components
from polyseme.estimators.likelihood import LikelihoodSettings, edited_likelihood, fit_likelihood
from polyseme.estimators.plsa import PLSA, has_partial_fit, update_from_stream
from polyseme.estimators.validation import check_no_weights, observed_data, training_corpus
from polyseme.io.files import TEXT
from polyseme.io.models import NUMBER_OR_NAN, StoredAttributes, StoredValue
from polyseme.kernels import NUMBERS_AT_ONCE, Array, Floats, SparseCounts, check_topics, inner, padded, weighted_sum
from polyseme.losses import KULLBACK_LEIBLER
from polyseme.losses.base import Loss
from polyseme.losses.entry_weights import EntryWeights
from polyseme.losses.penalized import Penalties, Penalty
from polyseme.losses.updates import LossSums
from polyseme.solvers.base import Auto, Solver, finish_fit
from polyseme.solvers.early_stopping import EarlyStopping
from polyseme.solvers.initialize import is_topics_only, pair_of_factors
from polyseme.utils import (
    FitCallback,
    RandomStateLike,
    check_n_topics,
    check_nonnegative,
    check_share,
    effective_threads,
)

MULTIPLICATIVE_STEPS = 10
"""Multiplicative updates before coordinate ascent, for the Kullback-Leibler loss with solver="auto"."""

_NEXT_TO_ZERO = 1e-9
"""Where a row of zeros in W of a start begins with penalties, as a share of the mean of W."""

_FACTORS = ("W", "H")
"""Names of the factors in messages."""


def _has_partial_fit(estimator: NMF) -> bool:
    """Return True, or raise UnsupportedError if the parameters need all documents at once."""
    if estimator._alphas() is not None:
        raise UnsupportedError("partial_fit takes no penalties: leave out alpha_W and alpha_H.")
    return has_partial_fit(PLSA(**estimator._plsa_parameters()), vars(estimator).get("_fitted"))


class NMF(FittedDecomposition):
    """Non-negative matrix factorization, X ~ W H.

    W (documents x K) and H (K x words) are non-negative and minimize a loss, the sum over all entries x of X, with
    their approximations q = (W H)_dw, of ::

        x log(x / q) - x + q       "kullback-leibler"
        (x - q)^2 / 2              "squared"
        x / q - log(x / q) - 1     "itakura-saito", for positive X only
        (x - q)^2 / q              "chi-square"
        |x - q|                    "absolute"

    or another member of the family `polyseme.losses.Beta`. Rows of H sum to one and W carries the scale. With
    "kullback-leibler" this is PLSA without its normalization (Gaussier and Goutte 2005), fitted by the same solvers.
    Sparse X is not made dense, except that "itakura-saito" and other members of `Beta` process blocks of dense rows.

    With `alpha_W` and `alpha_H` the fit minimizes the loss plus the penalties of scikit-learn's NMF, ::

        alpha_W n_words     (l1_ratio sum W + (1 - l1_ratio) sum W^2 / 2)
        alpha_H n_documents (l1_ratio sum H + (1 - l1_ratio) sum H^2 / 2)

    Then rows of H do not sum to one: W and H have the scale with the smallest penalties.

    Parameters
    ----------
    n_components : int, default=10
        Number of components K.
    loss : str or Loss, default="kullback-leibler"
        What to minimize: a name above, or a `polyseme.losses.Beta` with another parameter.
    alpha_W : float, default=0.0
        Strength of the penalty of W. The penalty of a document counts with its `sample_weight`.
    alpha_H : float or "same", default="same"
        Strength of the penalty of H; "same" is `alpha_W`. Both are zero or both are positive.
    l1_ratio : float, default=0.0
        Share of the absolute values in the penalties, from 0 (squares only) to 1. With the squared loss, absolute
        values make entries zero.
    solver : str or Solver, default="auto"
        Solver as in PLSA; for losses other than Kullback-Leibler "hals" (squared loss) or "mm". If "auto" chooses
        coordinate ascent, ten iterations with multiplicative updates come first.
    init : {"auto", "documents", "random", "nndsvd", "correspondence", "lsa", "spectral"} or pair, default="auto"
        Start of the fit: a name as in PLSA or a pair (W, H); (None, H) finds W first.
    n_init : int, default=1
        Number of starts; the best fit is kept.
    max_iter : int, default=None
        Maximum number of iterations of a start. None uses the limit of the solver as in PLSA.
    tol : float, default=None
        Tolerance in nats per token as in PLSA. With a loss other than Kullback-Leibler, a fit stops when its last ten
        iterations have lowered the loss by less than `tol` percent (of a thousandth of the loss at the start, if that
        is larger). None is 0.001 nats, or 0.01 percent.
    early_stopping : EarlyStopping, default=None
        Early stopping by held-out documents as in PLSA (Kullback-Leibler loss only).
    n_jobs : int, default=None
        Number of threads as in PLSA.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None uses float64 for float64 data, else float32.
    random_state : int, RandomState or Generator, default=None
        Seed of the start.
    verbose : int, default=0
        Level of progress output.
    callback : callable, default=None
        Called after each iteration with a dict as in PLSA.

    Attributes
    ----------
    components_ : array of shape (K, n_words)
        H.
    doc_factor_ : array of shape (n_documents, K)
        W of the training documents: `transform(X)`, or, for a loss that is not strictly convex (`Absolute`, `Beta`
        below 1 or above 2), a minimum that continues from W of the fit. Not available after `partial_fit`.
    reconstruction_err_ : float
        Loss of `doc_factor_` and `components_` without penalties, weighted by `sample_weight`. For the squared loss,
        the square root of twice this number is the Frobenius norm of X - W H. Not available for a model from
        `PLSA.to_nmf` and after `partial_fit`.
    history_ : dict of arrays
        Values of each iteration as in PLSA.
    log_likelihood_ : float
        Mean log P(w|d) of a training token as in PLSA (Kullback-Leibler loss).
    vocabulary_ : array of str or None
        The word of each column.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the criterion of `tol` holds at the end, or that of `early_stopping`.
    solver_ : str
        Name of the solver as in PLSA.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Lee, D. D., and Seung, H. S. (2001). Algorithms for non-negative matrix factorization. NIPS.
    - Gaussier, E., and Goutte, C. (2005). Relation between PLSA and NMF and implications. SIGIR.
    - Fevotte, C., and Idier, J. (2011). Algorithms for nonnegative matrix factorization with the beta-divergence.
      Neural Computation 23, 2421-2456.

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

    _stored: ClassVar[StoredAttributes] = {
        **FittedDecomposition._stored,
        "loss_": StoredValue(TEXT, required=True),
        "doc_totals_": StoredArray("D", required=False),
        "reconstruction_err_": NUMBER_OR_NAN,
    }
    doc_totals_: Floats
    reconstruction_err_: float
    _weighs_entries = True
    _inferences = (MaximumLikelihood, LeastLoss)
    _edits_topics = True
    _refits = True

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str | Loss = "kullback-leibler",
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        solver: str | Solver = "auto",
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        early_stopping: EarlyStopping | Literal[False] | None = None,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.allow_nan and not self.alpha_W
        return tags

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None, entry_weight: Any = None
    ) -> Self:
        """Fit W and H to counts.

        Ctrl-C stores the best model so far in the estimator and then raises KeyboardInterrupt.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Non-negative numbers, or shards on disk (Kullback-Leibler loss only).
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X.
        entry_weight : array-like, sparse matrix or HiddenEntries of shape (n_documents, n_words), default=None
            Weights of the entries of X in the loss; 0 means that an entry is missing, and booleans say which entries
            are observed. Entries that a sparse matrix does not store have weight 0, even where X is zero.
            `polyseme.losses.HiddenEntries` marks the missing entries instead. With None, all entries have weight 1, and
            NaN in a dense X is a missing entry. Only for loss="kullback-leibler" and "squared".

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import NMF
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = NMF(2, random_state=0).fit(X)
        >>> round(float(model.reconstruction_err_), 2)
        1.43
        """
        loss = as_loss(self.loss)
        alphas = self._alphas()
        settings = LikelihoodSettings.of(PLSA(**self._plsa_parameters()))._replace(factors=_FACTORS)
        if settings.solver == Auto():
            settings = settings._replace(solver=Auto(multiplicative_steps=MULTIPLICATIVE_STEPS))
        _check_place(X, loss.name, is_likelihood=loss.is_likelihood, penalized=alphas is not None)
        with training_corpus(self, X, sample_weight, feature_names, settings.n_threads, entry_weight) as training:
            penalties = None
            if alphas is not None:
                _check_unpenalized(training.corpus.entries)
                penalties = Penalties(
                    self._penalty(alphas[0] * training.corpus.n_words),
                    self._penalty(alphas[1] * training.corpus.documents),
                )
            folded, end = fit_likelihood(settings, training, free_scale=not loss.is_likelihood, penalties=penalties)
            attributes = self._of_documents(folded, training.corpus.all_documents)
        self._set_fitted(folded, end, {**attributes, "loss_": loss.name})
        finish_fit(end, self.components_.dtype, settings.max_iter, settings.tol)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None, entry_weight: Any = None
    ) -> Array:
        """Fit W and H and return W.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Non-negative numbers, or shards on disk (Kullback-Leibler loss only).
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X.
        entry_weight : array-like, sparse matrix or HiddenEntries of shape (n_documents, n_words), default=None
            Weights of the entries as in `fit`.

        Returns
        -------
        array of shape (n_documents, K)
            The attribute `doc_factor_`.
        """
        return self.fit(X, y, sample_weight, feature_names, entry_weight).doc_factor_

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update H with some documents, by one pass of stepwise EM over mini-batches of them.

        For the Kullback-Leibler loss without penalties. H is that of `PLSA.partial_fit`, whose rules apply.
        `solver=StepwiseEM(batch_size=..., decay=...)` sets the size of the batches and how fast earlier ones are
        forgotten. Use `transform` for W, which is not kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Non-negative numbers.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.

        Returns
        -------
        Self
            The updated estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import NMF
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = NMF(2, random_state=0)
        >>> for batch in (X[:2], X[2:]):
        ...     model = model.partial_fit(batch)
        >>> model.components_.shape
        (2, 4)
        """
        update_from_stream(self, PLSA(**self._plsa_parameters()), X, sample_weight, _FACTORS[1])
        self.loss_ = KULLBACK_LEIBLER.name
        return self

    def transform(self, X: Any, entry_weight: Any = None) -> Array:
        """Return W of documents, with H fixed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Non-negative numbers, or shards on disk (Kullback-Leibler loss only). NaN in a dense X is a missing entry.
        entry_weight : array-like, sparse matrix or HiddenEntries of shape (n_documents, n_words), default=None
            Weights of the entries as in `fit`.

        Returns
        -------
        array of shape (n_documents, K)
            W.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import NMF
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = NMF(2, random_state=0).fit(X)
        >>> (model.transform([[3, 2, 0, 0]]) @ model.components_).round(1)
        array([[3.2, 1.8, 0. , 0. ]], dtype=float32)
        """
        check_is_fitted(self)
        self._check_place(X)
        if is_stored(X):
            check_no_weights(None, entry_weight)
            return self._transform_stored(X)
        X, entries, _ = observed_data(self, X, entry_weight, reset=False)
        n_threads, parts = effective_threads(self.n_jobs), []
        if self._scales is not None:
            _check_unpenalized(entries)
        if entries is not None:
            counts = sparse_counts(X, self.components_.dtype)
            weights = self._fitted.fold_in(counts, n_threads=n_threads, entries=entries)
            if not self._is_likelihood:
                return weights.parameters["factor"]
            return _scaled(weights.doc_topic, _expected_totals(counts, weights.doc_topic, self.components_, entries))
        for counts in row_batches(X, self.components_.dtype):
            weights = self._fitted.fold_in(counts, n_threads=n_threads)
            if self._is_likelihood:
                parts.append(_scaled(weights.doc_topic, _known_totals(counts, self.components_)))
            else:
                parts.append(self._unscaled(weights.parameters["factor"]))
        return np.concatenate(parts)

    def _transform_stored(self, X: Any) -> Array:
        """Return W of the documents of shards, an array in memory."""
        with stored_session(self, X, effective_threads(self.n_jobs)) as corpus:
            doc_topic = fold_in_stored(self._fitted, corpus)
            totals = corpus.map(known_totals, shared=(self.components_,))
        return _scaled(doc_topic, np.concatenate(totals))

    def inverse_transform(self, X: Any) -> Array:
        """Return the counts W H that W represents.

        Parameters
        ----------
        X : array-like of shape (n_documents, K)
            W, as `transform` returns it.

        Returns
        -------
        array of shape (n_documents, n_words)
            W H.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import NMF
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = NMF(2, random_state=0).fit(X)
        >>> round(float(model.inverse_transform(model.transform(X)).sum())), int(X.sum())
        (31, 31)
        """
        check_is_fitted(self)
        return times_components(X, self.components_)

    def to_plsa(self) -> PLSA:
        """Return the same product as a fitted PLSA, by the scaling of Gaussier and Goutte (2005).

        Returns
        -------
        PLSA
            The model with P(z), P(d|z) and P(w|z).

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import NMF
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = NMF(2, random_state=0).fit(X)
        >>> bool(np.allclose(model.to_plsa().doc_topic_.sum(axis=1), 1))
        True
        """
        check_is_fitted(self)
        if self._scales is not None:
            raise UnsupportedError("A model with penalties has no likelihood: fit it without alpha_W and alpha_H.")
        if not self._is_likelihood:
            raise UnsupportedError(
                f"loss={self.loss_!r} has no likelihood: rescale W and H with polyseme.estimators.nmf.nmf_to_plsa, or "
                "fit PLSA with this loss."
            )
        plsa = PLSA(**{**self._plsa_parameters(), "init": self.init if isinstance(self.init, str) else "random"})
        share_fit(self, plsa)
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

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import NMF, PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> nmf = NMF.from_plsa(PLSA(2, random_state=0).fit(X))
        >>> round(float(nmf.inverse_transform(nmf.doc_factor_).sum())), int(X.sum())
        (31, 31)
        """
        names = cls().get_params(deep=False)
        model = cls(**{name: value for name, value in plsa.get_params(deep=False).items() if name in names})
        share_fit(plsa, model)
        model.loss_, model.doc_totals_ = KULLBACK_LEIBLER.name, plsa.doc_weights_ * plsa.n_tokens_
        return model

    @property
    def doc_factor_(self) -> Array:
        """W of the training documents."""
        documents = self._documents
        if self._is_likelihood:
            return _scaled(documents.doc_topic, self.doc_totals_)
        return self._unscaled(documents.parameters["factor"])

    @property
    def components_(self) -> Array:  # type: ignore[override]
        """H; rows sum to one unless W and H have penalties."""
        H, scales = self._topics.topic_word, self._scales
        return H if scales is None else (H * scales[:, np.newaxis]).astype(H.dtype)

    @property
    def _is_likelihood(self) -> bool:
        return self._topics.inference.is_likelihood

    @property
    def _scales(self) -> Floats | None:
        """Sums of the rows of H with penalties; None without penalties, where they are one."""
        inference = self._topics.inference
        penalized = inference.loss.penalized if isinstance(inference, LeastLoss) else None
        return None if penalized is None else np.array(penalized.docs.scales)

    def _unscaled(self, factor: Array) -> Array:
        """Return W from the factor of topics that sum to one."""
        scales = self._scales
        if scales is None:
            return factor
        return np.divide(factor, scales, out=np.zeros(factor.shape), where=scales > 0).astype(factor.dtype)

    def _alphas(self) -> tuple[float, float] | None:
        """Return alpha_W and alpha_H after a check; None if both are zero."""
        alpha = check_nonnegative("alpha_W", self.alpha_W)
        other = alpha if self.alpha_H == "same" else check_nonnegative("alpha_H", self.alpha_H)
        check_share("l1_ratio", self.l1_ratio)
        if (alpha > 0) != (other > 0):
            raise InputError(
                "alpha_W and alpha_H must both be zero or both be positive: with one penalty only, scaling W down and "
                "H up (or the reverse) makes it as small as you like."
            )
        if alpha > 0 and self.early_stopping is not None and self.early_stopping is not False:
            raise UnsupportedError("early_stopping needs a likelihood: leave it out, or alpha_W and alpha_H.")
        return (alpha, other) if alpha > 0 else None

    def _penalty(self, alpha: float) -> Penalty:
        return Penalty(float(alpha * self.l1_ratio), float(alpha * (1 - self.l1_ratio)))

    def _check_place(self, X: Any) -> None:
        _check_place(X, self.loss_, is_likelihood=self._is_likelihood, penalized=self._scales is not None)

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        """Return the attributes that depend on the training documents."""
        inference, H = folded.fitted.inference, folded.fitted.topic_word
        if isinstance(inference, LeastLoss):
            rows = corpus.split(folded.documents.parameters["factor"])
            return {"reconstruction_err_": sum(corpus.map(partial(weighted_loss, inference.loss), rows, (H,)))}
        errors = corpus.map(divergence, corpus.split(folded.documents.doc_topic), (H,))
        return {
            "doc_totals_": np.concatenate([error.totals for error in errors]),
            "reconstruction_err_": max(0.0, sum(error.value for error in errors)),  # rounding of an exact fit
        }

    def _edit_topics(self, edit: TopicEdit) -> None:
        self._fitted = edited_likelihood(self._fitted, edit)
        self.n_components = self._fitted.n_topics

    @contextmanager
    def _corpus_of(self, X: Any, sample_weight: Any = None, banned: Sequence[int] | Array = ()) -> Iterator[Corpus]:
        self._check_place(X)
        with super()._corpus_of(X, sample_weight, banned) as corpus:
            yield corpus

    def _plsa_parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.get_params(deep=False)
        for name in ("alpha_W", "alpha_H", "l1_ratio"):
            del parameters[name]
        if is_topics_only(self.init):
            return parameters
        if not isinstance(self.init, str):
            W, H = pair_of_factors(self.init, _FACTORS)
            K = check_n_topics(self.n_components)
            if not W.shape[1] == H.shape[0] == K:
                raise InputError(
                    f"init: W has {W.shape[1]} columns and H has {H.shape[0]} rows, but n_components is {K}."
                )
            scales = H.sum(axis=1)
            if self._alphas() is not None:
                # Penalties can make rows zero. For a row of H any other has the same product. One of W continues from
                # next to zero, because no update could make it positive again.
                H = np.where(scales[:, np.newaxis] > 0, H, 1.0)
                W = np.where(W.any(axis=1, keepdims=True), W, _NEXT_TO_ZERO * (W.mean() or 1.0))
            parameters["init"] = (W * scales, H)
        return parameters


def _check_unpenalized(entries: EntryWeights | None) -> None:
    """Raise UnsupportedError for entries with weights in a model with penalties."""
    if entries is not None:
        raise UnsupportedError(
            "A model with penalties takes no entry_weight and no missing entries (NaN): leave alpha_W and alpha_H out."
        )


def _check_place(X: Any, loss: str, *, is_likelihood: bool, penalized: bool) -> None:
    """Raise UnsupportedError for shards with a loss whose solvers need all counts in memory."""
    if is_stored(X) and penalized:
        raise UnsupportedError("NMF with alpha_W and alpha_H takes no shards: give the counts as an array.")
    if is_stored(X) and not is_likelihood:
        raise UnsupportedError(
            f"NMF with loss={loss!r} takes no shards: give the counts as an array, or use loss='kullback-leibler'."
        )


def _scaled(doc_topic: Array, totals: Floats) -> Array:
    """Return W = totals * P(z|d)."""
    return np.asarray(doc_topic * totals[:, np.newaxis], dtype=doc_topic.dtype)


def _known_totals(counts: SparseCounts, H: Array) -> Floats:
    """Return the tokens of each document whose words have a probability in H; no W can produce other tokens."""
    word_sums = H.sum(axis=0)
    check_topics(word_sums)
    return select_known_words(counts, word_sums > 0)[0].totals


def _expected_totals(counts: SparseCounts, doc_topic: Array, H: Array, entries: EntryWeights) -> Floats:
    """Return the totals that documents would have if all entries had been observed with weight one."""
    observed = observed_shares(doc_topic, H, entries)
    return np.divide(_known_totals(counts, H), observed, out=np.zeros_like(observed), where=observed > 0)


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
    if shard.entries is not None:
        totals = _expected_totals(counts, doc_topic, H, shard.entries)
        return Divergence(totals, weighted_loss(KULLBACK_LEIBLER, shard, _scaled(doc_topic, totals), H))
    totals = _known_totals(counts, H)
    weights = np.ones(counts.n_docs) if shard.weights is None else shard.weights
    words, terms, end = padded(H.T, H.dtype), np.empty(counts.values.size), 0
    for rows, block in counts.blocks(NUMBERS_AT_ONCE):
        products = block.products(padded(doc_topic[rows], H.dtype), words, n_threads=shard.n_threads)
        lengths = np.diff(block.indptr)
        v = np.repeat(weights[rows], lengths)
        positive = v > 0
        x, v = block.values[positive].astype(np.float64), v[positive]
        products = (products * np.repeat(totals[rows], lengths))[positive]
        start, end = end, end + x.size
        with np.errstate(divide="ignore"):  # infinite if no topic has the word, such as a held-out word
            terms[start:end] = v * x * (np.log(x / products) - 1)
    value = float(terms[:end].sum()) + inner(weighted_sum(weights * totals, doc_topic), H.sum(axis=1))
    return Divergence(totals, value)


def weighted_loss(loss: Loss, shard: Shard, W: Array, H: Array) -> float:
    """Return the loss of W H, for losses without a likelihood and for weights of entries."""
    sums = LossSums(loss, shard.counts, len(H), n_threads=shard.n_threads, entries=shard.entries)
    return shard.total_log(sums.values(padded(W, H.dtype), padded(H.T, H.dtype)))


class PLSAParameters(NamedTuple):
    """Parameters of the symmetric form, and the sum of the matrix they were computed from."""

    topic_weights: Floats
    """P(z), shape (K,)."""
    topic_doc: Floats
    """P(d|z), K x documents."""
    topic_word: Floats
    """P(w|z), K x words."""
    total: float
    """Sum of all entries of W H."""


def nmf_to_plsa(W: Array, H: Array) -> PLSAParameters:
    """Write W H (documents x K, K x words) as total * sum_z P(z) P(d|z) P(w|z) (Gaussier and Goutte 2005).

    With A_k = sum_d W_dk and B_k = sum_w H_kw: P(d|z) = W / A, P(w|z) = H / B, P(z) = A B / sum(A B). The product does
    not change. A component that is zero in W or in H has weight zero.
    """
    W, H = W.astype(np.float64), H.astype(np.float64)
    A, B = W.sum(axis=0), H.sum(axis=1)
    weights = A * B
    total = float(weights.sum())
    topic_doc = _rows_or_uniform(W.T, A)
    topic_word = _rows_or_uniform(H, B)
    return PLSAParameters(weights / total if total > 0 else weights, topic_doc, topic_word, total)


def plsa_to_nmf(parameters: PLSAParameters) -> tuple[Floats, Floats]:
    """Return W = total * P(z) P(d|z) (documents x K) and H = P(w|z) (K x words), the inverse of `nmf_to_plsa`."""
    W = parameters.total * parameters.topic_doc.T * parameters.topic_weights
    return W, parameters.topic_word.copy()


def _rows_or_uniform(rows: Floats, sums: Floats) -> Floats:
    """Return the rows divided by their sums; rows whose sum is zero become uniform."""
    result = np.full(rows.shape, 1.0 / rows.shape[1])
    np.divide(rows, sums[:, np.newaxis], out=result, where=sums[:, np.newaxis] > 0)
    return result
