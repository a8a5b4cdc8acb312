"""Probabilistic latent semantic analysis (PLSA) as a scikit-learn estimator.

`PLSA.fit` runs a solver of `polyseme.solvers` on counts in memory or on shards.
`PLSA.partial_fit` runs one pass of stepwise EM over the documents of each call; LDA shares its bookkeeping
(`next_documents`, `add_totals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import FittedTopics, FoldedTraining, StoredArray
from polyseme.core.fold_in import LeastLoss, MaximumLikelihood
from polyseme.core.model import Background, JointBackground, Model, as_background, as_loss
from polyseme.core.shard import Shard, as_counts
from polyseme.data.corpus import Corpus, MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import TopicEstimator
from polyseme.estimators.likelihood import LikelihoodSettings, edited_likelihood, fit_likelihood
from polyseme.estimators.validation import (
    clear_fit,
    factor_dtype,
    model_from_parameters,
    names_or_none,
    training_corpus,
    training_data,
)
from polyseme.io.models import StoredAttributes
from polyseme.kernels import Array, Floats, Want, normalize_columns, normalize_rows, padded
from polyseme.losses.base import Loss
from polyseme.priors.base import Prior
from polyseme.priors.members import as_prior
from polyseme.solvers.base import FitProblem, Solver, check_solver, finish_fit, generators
from polyseme.solvers.checkpoints import Checkpoint
from polyseme.solvers.early_stopping import EarlyStopping
from polyseme.solvers.initialize import FACTORS, check_init, document_topics, random_topics, start_topics
from polyseme.solvers.online import StepwiseEM, Stream
from polyseme.utils import FitCallback, RandomStateLike, check_n_jobs, check_n_topics, effective_threads

if TYPE_CHECKING:
    from polyseme.estimators.nmf import NMF

_UNSEEN_SHARE = 0.5
"""Weight of words that the first documents do not contain, in the random topics that `partial_fit` starts from."""


def _stream_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator, *, variance: float = 1.0) -> Floats:
    """Return means of topics from documents and random topics, because the first documents are few."""
    documents = document_topics(corpus, n_topics, rng, variance=variance)
    return (documents + random_topics(corpus, n_topics, rng, variance=variance)) / 2


_STREAM_INITS = {"auto": _stream_topics, "documents": document_topics, "random": random_topics}
"""Starts of `partial_fit`."""
_TRACE = 1e-6
"""Share of a topic, divided by the number of words, that a word gets if it has probability zero in every topic."""


def has_partial_fit(estimator: PLSA, fitted: FittedTopics | None) -> bool:
    """Return True, or raise UnsupportedError if the parameters need all documents at once.

    `fitted` are the topics to continue from.
    """
    doc_prior, word_prior = as_prior(estimator.doc_topic_prior), as_prior(estimator.topic_word_prior)
    if not as_loss(estimator.loss).is_likelihood:
        raise UnsupportedError("partial_fit is stepwise EM, which needs a likelihood: use loss='kullback-leibler'.")
    background = as_background(estimator.background)
    parts = () if doc_prior is None else doc_prior.parts
    if (
        (background is not None and background.joint)
        or (word_prior is not None and not word_prior.neutral)
        or any(part.for_new_documents() is None for part in parts)
    ):
        raise UnsupportedError(
            "partial_fit sees some documents at a time: it takes no topic_word_prior, no JointBackground, and no "
            "doc_topic_prior that needs all documents at once."
        )
    if fitted is None and isinstance(estimator.init, str) and estimator.init not in _STREAM_INITS:
        raise UnsupportedError("partial_fit has no other starts: init must be 'auto', 'documents', 'random' or a pair.")
    return True


class PLSA(TopicEstimator):
    """Probabilistic latent semantic analysis (PLSA), fitted by maximum likelihood.

    The model of documents d and words w with K topics z is ::

        P(d, w) = P(d) sum_z P(z|d) P(w|z)

    With the counts x_dw, the fit maximizes sum_dw x_dw log P(w|d), plus the log densities of the priors, if any.

    With another `loss`, the model is the same, and the fit minimizes the sum of loss(x_dw, n_d P(w|d)) over all d and
    w (Gaussier and Goutte 2005), with P(d) = n_d / N. Such a fit has no likelihood: no perplexity, no `score`, no
    `log_likelihood_`, no prior or background, no held-out words, and maximum likelihood theory does not apply.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    loss : str or Loss, default="kullback-leibler"
        What to minimize: "kullback-leibler" (minus the likelihood, up to a constant), "squared", "itakura-saito",
        "chi-square", "absolute", or a `polyseme.losses.Beta` with another parameter. `NMF` has their formulas.
    solver : str or Solver, default="auto"
        Name of a solver, or a solver object with its own settings, such as those of `polyseme.solvers`.
    init : {"auto", "documents", "random", "nndsvd", "correspondence", "lsa", "spectral"} or pair, default="auto"
        Start of the fit: "documents" starts from groups of documents that are near to one of K documents that are far
        apart, mixed with random topics; "spectral" from K words that occur in different documents, for every seed the
        same. "auto" is "documents", or "random" with tempered and online solvers, `SeedWords` and `KnownTopics`. A pair
        of arrays is P(z|d) (documents x K) and P(w|z) (K x words); with None in place of P(z|d) the documents are
        folded in first.
    n_init : int, default=1
        Number of starts. The fit with the best objective is kept.
    max_iter : int, default=None
        Maximum number of iterations of a start. None uses the limit of the solver, which is 200, and 3000 for
        `HeldOutTempered`, whose schedule ends by itself.
    tol : float, default=None
        A fit stops when an estimate of what it can still gain is below `tol` nats per token: the gain of the last
        quarter of the iterations, but at least of ten, or `residual` if that is smaller (with coordinate ascent only if
        rounding hides further gains). None is 0.001, which is 0.1% of perplexity. With another loss, the estimate is
        the decrease of the loss in the last ten iterations, in percent of the loss, and None is 0.01.
    early_stopping : EarlyStopping, default=None
        A `polyseme.solvers.EarlyStopping()` stops the fit when words of held-out documents no longer become more
        probable, and returns the best point. It helps where there are far too many topics for the documents; otherwise
        a complete fit predicts new documents as well.
    background : float or Background, default=0.0
        Weight lambda of a fixed background distribution P(w|B) in every document. With a number, P(w|B) is the unigram
        of the training documents; a `polyseme.Background` can have another distribution. 0 means no background.
    doc_topic_prior : float, Prior or list of Prior, default=None
        Prior on P(z|d). A number is the alpha of a symmetric Dirichlet prior, as in LDA. The fit finds the mode of the
        posterior, which is as if each topic had alpha - 1 more tokens in each document: 1 is neutral, and 1 + 1/K has
        the effect of 1/K in LDA.
    topic_word_prior : float, Prior or list of Prior, default=None
        Prior on P(w|z), like `doc_topic_prior`.
    n_jobs : int, default=None
        Number of threads; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None uses float64 for float64 data, else float32. Counts and sample weights must be 0 or
        between 1e-10 and 1e10 in float32, and between 1e-30 and 1e30 in float64.
    random_state : int, RandomState or Generator, default=None
        Seed of the start.
    verbose : int, default=0
        1 shows a progress bar, 2 also leaves it on the screen. Without a terminal, and if another fit of the process
        shows a bar, progress is printed as lines on standard error.
    callback : callable, default=None
        Called after each iteration with a dict of the columns of `history_`.
    checkpoint : path-like or Checkpoint, default=None
        Folder to which the state of the fit is written every ten seconds, or a `polyseme.solvers.Checkpoint` with
        another interval. A fit with the same data and parameters resumes from it, with the same result to the last bit.
        The state is not removed after the fit. With None, a fit to shards stores its state beside the shards until it
        ends, and other fits store nothing.

    Attributes
    ----------
    components_ : array of shape (K, n_words)
        P(w|z); rows sum to one.
    doc_topic_ : array of shape (n_documents, K)
        P(z|d) of the training documents, equal to `transform(X)`, unless `doc_topic_prior` has several maxima
        (`prior.concave` is False), the solver ends at a beta above 1, or the loss is not strictly convex (`Absolute`,
        `Beta` below 1 or above 2). Then it starts from the weights of the fit, and `transform` from uniform weights.
        With `KnownTopics` it follows the known topics, which `transform` does not know.
    topic_weights_ : array of shape (K,)
        P(z).
    doc_weights_ : array of shape (n_documents,)
        P(d).
    topic_doc_ : array of shape (K, n_documents)
        P(d|z); rows sum to one.
    unigram_ : array of shape (n_words,)
        P(w) of the training documents.
    log_likelihood_ : float
        Mean log P(w|d) of a training token (natural logarithm). Not available with another loss.
    history_ : dict of arrays
        Values of each iteration: iteration, seconds, log_likelihood, objective, residual (an upper bound on the gain
        from re-optimizing either factor, usually far above the true gain; with a prior under which EM may lower the
        objective, the share of all tokens that the iteration reassigns) and remaining, which is compared with `tol`.
        With another loss: iteration, seconds, loss, objective and remaining.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the criterion of `tol` holds at the end, or that of held-out tokens (`early_stopping`,
        `HeldOutTempered`).
    solver_ : str
        Name of the solver that fitted the model; with `solver="auto"` the one that was chosen.
    n_tokens_ : float
        Number of training tokens, multiplied by the weights of their documents.
    n_documents_seen_ : float
        Number of training documents, including those of `partial_fit`.
    active_topics_ : array of bool of shape (K,)
        Topics that have documents. A topic without documents has the unigram as its distribution of words.
    background_ : array of shape (n_words,) or None
        P(w|B); None without a background.
    background_weight_ : float
        Lambda; 0 without a background.
    word_background_ : array of shape (n_words,)
        Share of the occurrences of each word that the background explains.
    doc_background_ : array of shape (n_documents,)
        Share of each training document that the background explains.
    temperature_ : float
        Exponent beta of P(z|d,w) at the end of the fit; 1 unless the solver is tempered.
    annealing_ : array of shape (n_stages, 2)
        With the solver `Annealed`: beta and the number of distinct topics at each stage.
    held_out_ : array
        With `early_stopping`: mean log-probability of a held-out token at the start and after each iteration.
    vocabulary_ : array of str or None
        The word of each column: from a data frame, from `fit(feature_names=)` or from `set_vocabulary`.
    word_documents_ : array of shape (K, n_words)
        Expected number of documents that contain a word and use it in a topic: the sum of P(z|d,w) over the training
        documents with the word. `topics` ranks words by it. Not available after `partial_fit`.
    topic_documents_ : array of shape (K,)
        Sum of P(z|d) over the training documents. Not available after `partial_fit`.
    document_frequency_ : array of shape (n_words,)
        Number of training documents that contain each word. Not available after `partial_fit`.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Hofmann, T. (1999). Probabilistic latent semantic indexing. SIGIR.
    - Hofmann, T. (2001). Unsupervised learning by probabilistic latent semantic analysis. Machine Learning 42, 177-196.
    - Gaussier, E., and Goutte, C. (2005). Relation between PLSA and NMF and implications. SIGIR.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(n_components=2, random_state=0).fit(X)
    >>> model.transform([[2, 1, 0, 0], [0, 0, 1, 1]]).shape
    (2, 2)
    """

    _stored: ClassVar[StoredAttributes] = {
        **TopicEstimator._stored,
        "word_background_": StoredArray("W", required=False),
    }
    word_background_: Floats
    annealing_: Floats
    held_out_: Floats
    _inferences = (MaximumLikelihood, LeastLoss)
    _weighs_entries = True
    _edits_topics = True
    _refits = True
    _adds_topics = True

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str | Loss = "kullback-leibler",
        solver: str | Solver = "auto",
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int | None = None,
        tol: float | None = None,
        early_stopping: EarlyStopping | Literal[False] | None = None,
        background: float | Background | JointBackground = 0.0,
        doc_topic_prior: float | Prior | Sequence[Prior] | None = None,
        topic_word_prior: float | Prior | Sequence[Prior] | None = None,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.background = background
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None, entry_weight: Any = None
    ) -> Self:
        """Fit the topics to counts.

        Ctrl-C stores the best model so far in the estimator and then raises KeyboardInterrupt.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk (`polyseme.scale.open_shards`).
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents. A document of weight v counts as v equal documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X. None uses the column names of a data frame.
        entry_weight : array-like, sparse matrix or HiddenEntries of shape (n_documents, n_words), default=None
            Weights of the entries of X in the loss; 0 means that an entry is missing, and booleans say which entries
            are observed. Entries that a sparse matrix does not store have weight 0, even where X is zero.
            `polyseme.losses.HiddenEntries` marks the missing entries instead. With None, all entries have weight 1, and
            NaN in a dense X is a missing entry. Only for loss="kullback-leibler" and "squared", without priors and
            background.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X, feature_names=["cat", "dog", "bond", "stock"])
        >>> model.converged_, model.components_.shape, model.doc_topic_.shape
        (True, (2, 4), (4, 2))
        """
        settings = LikelihoodSettings.of(self)
        with training_corpus(self, X, sample_weight, feature_names, settings.n_threads, entry_weight) as training:
            fit = fit_likelihood(settings, training)
            attributes = self._of_documents(fit.folded, training.corpus.all_documents)
        self._set_fitted(fit.folded, fit.end, attributes)
        finish_fit(fit.end, self.components_.dtype, settings.max_iter, settings.tol)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None, entry_weight: Any = None
    ) -> Array:
        """Fit the topics and return the topic weights of the same documents.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column.
        entry_weight : array-like, sparse matrix or HiddenEntries of shape (n_documents, n_words), default=None
            Weights of the entries as in `fit`.

        Returns
        -------
        array of shape (n_documents, n_topics)
            The attribute `doc_topic_`.
        """
        return self.fit(X, y, sample_weight, feature_names, entry_weight).doc_topic_

    def transform(self, X: Any, entry_weight: Any = None) -> Array:
        """Return the topic weights of documents, with the topics fixed.

        Each document is folded in until convergence, independently of the others. A document without known words gets
        P(z).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk. For shards the result is a file beside them, `transformed.npy`, that is mapped to
            memory. NaN in a dense X is a missing entry.
        entry_weight : array-like, sparse matrix or HiddenEntries of shape (n_documents, n_words), default=None
            Weights of the entries as in `fit`.

        Returns
        -------
        array of shape (n_documents, n_topics)
            P(z|d); rows sum to one.
        """
        return self._doc_topic_of(X, entry_weight)

    @available_if(lambda self: has_partial_fit(self, vars(self).get("_fitted")))  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the model with some documents, by one pass of stepwise EM over them.

        The first call initializes the model, unless it was fitted before; later calls keep its vocabulary and dtype. A
        stream starts from means of topics from groups of its first documents and of random topics
        (`init="documents"` and `init="random"` take one of the two), so give it at least as many documents as topics.
        Documents may contain words that no earlier document contains. A background comes from the documents of the
        first call. The method sets `components_`, `topic_weights_`, `unigram_`, `n_tokens_` and
        `n_documents_seen_`; use `transform` for the weights of documents. Results depend on the order of the documents,
        but not on the number of threads.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
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
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0)
        >>> for batch in (X[:2], X[2:]):
        ...     model = model.partial_fit(batch)
        >>> model.transform(X).shape
        (4, 2)
        """
        update_from_stream(self, self, X, sample_weight)
        return self

    @classmethod
    def from_topics(cls, components: Any, *, vocabulary: Any = None, **parameters: Any) -> Self:
        """Return a model with given topics and no training documents: `transform` and `predict` work at once.

        Topics have equal weights, and P(w) is their mean. `with_documents` gives the model training documents.

        Parameters
        ----------
        components : array-like of shape (K, n_words)
            The topics. Rows are normalized.
        vocabulary : sequence of str or fitted vectorizer, default=None
            The word of each column.
        **parameters
            Parameters of the estimator for later fits, except `n_components`. Documents are folded in by maximum
            likelihood, without background and priors.

        Returns
        -------
        Self
            The model, fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> known = PLSA.from_topics([[0.6, 0.4, 0, 0], [0, 0, 0.4, 0.6]], vocabulary=["cat", "dog", "bond", "stock"])
        >>> known.predict(X)
        array([0, 0, 1, 1])
        """
        topics = normalize_rows(checked_topics(components))
        model = cls(len(topics), **parameters)
        dtype = np.dtype(np.float32) if model.dtype is None else factor_dtype(model.dtype, topics)
        K, n_words = topics.shape
        model.n_features_in_ = n_words
        model._training = None
        model._fitted = FittedTopics(
            np.ascontiguousarray(topics, dtype=dtype), np.full(K, 1 / K), topics.mean(axis=0), np.ones(K, dtype=bool),
            0.0, 0.0, MaximumLikelihood(), names_or_none(vocabulary, n_words),
        )  # fmt: skip
        return model

    def with_topics(self, components: Any, X: Any, sample_weight: Any = None) -> PLSA:
        """Return a fitted model with given topics, with documents folded in.

        Nothing is fitted. A word that occurs in X and in no topic gets its unigram probability in every topic before
        the topics are normalized again. `with_documents` keeps the topics, and `with_edited_topics` merges and removes
        topics.

        Parameters
        ----------
        components : array-like of shape (K, n_words)
            The topics. Rows are normalized.
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.

        Returns
        -------
        PLSA
            A new fitted model with the parameters of this one.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> swapped = model.with_topics(model.components_[::-1], X)
        >>> np.array_equal(swapped.predict(X), 1 - model.predict(X))
        True
        """
        check_is_fitted(self)
        before = self._fitted
        given = _checked_for(before, components)
        model = copy(self)
        model.n_components = len(given)
        model._fitted = replace(
            before, topic_word=normalize_rows(given).astype(before.topic_word.dtype), active=np.ones(len(given), bool)
        )
        return model._fold_in_documents(X, sample_weight)

    def with_added_topics(self, components: Any, X: Any, sample_weight: Any = None) -> PLSA:
        """Return a copy of the fitted model with more topics, with documents folded in.

        Nothing is fitted. The topics of this model keep their numbers and, to the last bit, their words; the added ones
        follow them. A word that occurs in X and has probability zero in all topics gets its unigram probability in
        every topic, as in `with_documents`.

        Parameters
        ----------
        components : array-like of shape (n_added, n_words)
            The topics to add. Rows are normalized.
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents.

        Returns
        -------
        PLSA
            A new fitted model.

        Raises
        ------
        UnsupportedError
            If the model was fitted to a loss without a likelihood.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> more = model.with_added_topics([[0.25, 0.25, 0.25, 0.25]], X)
        >>> more.components_.shape, np.array_equal(more.components_[:2], model.components_)
        ((3, 4), True)
        """
        check_is_fitted(self)
        self._check_adds_topics()
        before = self._fitted
        added = normalize_rows(_checked_for(before, components)).astype(before.topic_word.dtype)
        model = copy(self)
        model.n_components = before.n_topics + len(added)
        model._fitted = replace(
            before,
            topic_word=np.vstack([before.topic_word, added]),
            active=np.append(before.active, np.ones(len(added), bool)),
        )
        return model._fold_in_documents(X, sample_weight)

    def to_nmf(self) -> NMF:
        """Return the same fit as a non-negative matrix factorization with Kullback-Leibler loss.

        Returns
        -------
        NMF
            W = n_d P(z|d) and H = P(w|z), so that W H = N P(d,w) with N tokens in total.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import PLSA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = PLSA(2, random_state=0).fit(X)
        >>> nmf = model.to_nmf()
        >>> bool(np.allclose(nmf.doc_factor_.sum(), X.sum()))
        True
        """
        from polyseme.estimators.nmf import NMF

        check_is_fitted(self)
        if self._training is None:
            raise UnsupportedError("to_nmf needs the training documents, not known after partial_fit: use fit.")
        if not self._topics.inference.is_likelihood:
            raise UnsupportedError(
                "to_nmf keeps the likelihood, which this loss does not have: fit NMF with the same loss."
            )
        if self.background_ is not None:
            raise UnsupportedError(
                "A model with a background is not a product of two factors: fit it without background to use to_nmf."
            )
        return NMF.from_plsa(self)

    @property
    def n_documents_seen_(self) -> float:
        """Number of training documents, including those of `partial_fit`."""
        return self._topics.n_documents

    @property
    def active_topics_(self) -> Array:
        """Topics that have documents, bool of shape (K,)."""
        return self._topics.active

    @property
    def temperature_(self) -> float:
        """Exponent beta of P(z|d,w) at the end of the fit; 1 unless the solver is tempered."""
        return self._inference.temperature

    @property
    def background_(self) -> Floats | None:
        """P(w|B); None without a background."""
        background = self._inference.background
        return None if background is None else background.word_probabilities

    @property
    def background_weight_(self) -> float:
        """Lambda; 0 without a background."""
        background = self._inference.background
        return 0.0 if background is None else background.share

    @property
    def doc_background_(self) -> Floats:
        """Share of each training document that the background explains."""
        return self._documents.background

    @property
    def _inference(self) -> MaximumLikelihood:
        return cast(MaximumLikelihood, self._topics.inference)

    def _edit_topics(self, edit: TopicEdit) -> None:
        self._fitted = edited_likelihood(self._fitted, edit)
        self.n_components = self._fitted.n_topics
        doc_prior, word_prior = as_prior(self.doc_topic_prior), as_prior(self.topic_word_prior)
        if doc_prior is not None:
            self.doc_topic_prior = doc_prior.with_merged_columns(edit.groups)
        if word_prior is not None:
            if self.vocabulary_ is not None:
                word_prior = word_prior.resolve(list(self.vocabulary_))
            self.topic_word_prior = word_prior.with_merged_rows(edit.groups, edit.banned.tolist())

    def _start_of(self, X: Any) -> tuple[Any, Array]:
        background = self._fitted.inference.background
        if background is None or not background.joint:
            return super()._start_of(X)
        model = self.with_documents(X)  # weights do not follow from the topics alone
        return model.doc_topic_, model.components_

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        shares, inference = np.zeros(corpus.n_words), cast(MaximumLikelihood, folded.fitted.inference)
        if inference.background is not None:
            # Shares of a joint background differ between documents. Its corpus is in memory, which is one shard.
            joint = inference.background.joint
            by_document = folded.documents.background if joint else np.float64(inference.background.share)
            rows = corpus.split(folded.documents.doc_topic)
            parts = corpus.map(partial(background_tokens, inference, by_document), rows, (folded.fitted.topic_word,))
            np.divide(np.sum(parts, axis=0), corpus.word_totals, out=shares, where=corpus.word_totals > 0)
        return {"word_background_": shares}


def _checked_for(fitted: FittedTopics, components: Any) -> Floats:
    """Return topics as `checked_topics`; they must have the words of the model."""
    given, n_words = checked_topics(components), fitted.topic_word.shape[1]
    if given.shape[1] != n_words:
        raise InputError(f"components must have the model's {n_words} words.")
    return given


def checked_topics(components: Any) -> Floats:
    """Return topics x words in float64. Raise InputError unless they are finite, not negative, and not only zeros."""
    try:
        given = np.asarray(components, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 2 or not len(given) or not np.isfinite(given).all() or (given < 0).any():
        raise InputError("components must be a matrix (topics x words) of finite non-negative numbers.")
    if (given.sum(axis=1) <= 0).any():
        raise InputError("components must not have a topic of zeros only.")
    return given


def background_tokens(
    inference: MaximumLikelihood, shares: Floats | np.float64, shard: Shard, doc_topic: Array, topic_word: Array
) -> Floats:
    """Return the expected number of tokens of each word in a shard that the background explains.

    `shares` are the shares of the background in the documents, or one share for all documents.
    """
    K = len(topic_word)
    A, B = inference.model(K).token_operands(doc_topic, topic_word, np.broadcast_to(shares, len(doc_topic)))
    return np.asarray(shard.sums(A, B, Want.WORDS).word_sums[:, K] * B[:, K])


class SeenTotals(NamedTuple):
    """Sums over all documents that a model has seen."""

    documents: float
    tokens: float
    words: Floats
    """Tokens of each word."""

    @property
    def unigram(self) -> Floats:
        """P(w)."""
        return self.words / self.words.sum()


def next_documents(
    estimator: Any, X: Any, sample_weight: Any
) -> tuple[MemoryCorpus, Array | None, FittedTopics | None]:
    """Return the documents of a call of `partial_fit`, the words, and the fitted model (None in the first call)."""
    n_threads = effective_threads(check_n_jobs(estimator.n_jobs))
    before: FittedTopics | None = vars(estimator).get("_fitted")
    X, weights, vocabulary, _ = training_data(estimator, X, sample_weight, reset=before is None)
    dtype = factor_dtype(estimator.dtype, X) if before is None else before.topic_word.dtype
    return (
        MemoryCorpus(as_counts(X, dtype), weights, n_threads),
        vocabulary if before is None else before.vocabulary,
        before,
    )


def add_totals(corpus: MemoryCorpus, before: FittedTopics | None) -> SeenTotals:
    """Return the totals of the documents seen so far, including these."""
    documents = corpus.documents
    if before is None:
        return SeenTotals(documents, corpus.tokens, corpus.word_totals)
    words = before.unigram * before.n_tokens
    return SeenTotals(before.n_documents + documents, before.n_tokens + corpus.tokens, words + corpus.word_totals)


def update_from_stream(
    estimator: Any, parameters: PLSA, X: Any, sample_weight: Any, topics_name: str = FACTORS[1]
) -> None:
    """Update the model with these documents, in their order and in mini-batches, and set the fitted attributes.

    `parameters` are those of the fit as a PLSA, `topics_name` is the name of the topics in messages about `init`.
    """
    K = check_n_topics(parameters.n_components)
    settings = parameters.solver if isinstance(parameters.solver, StepwiseEM) else StepwiseEM()
    corpus, vocabulary, before = next_documents(estimator, X, sample_weight)
    if before is not None:
        if not isinstance(before.inference, MaximumLikelihood):
            raise UnsupportedError("A fit with another loss cannot be continued by partial_fit: use a new estimator.")
        model = before.inference.model(before.n_topics)
        joint = (before.active_topics * before.topic_weights[:, np.newaxis]).T
    else:
        model = model_from_parameters(parameters, K, corpus, vocabulary)
        joint = _first_topics(parameters, corpus, K, topics_name) / K
    check_solver(settings, FitProblem(model, corpus), checkpoint=False)
    seen = 0.0 if before is None else before.n_documents
    start = padded(_revive_words(joint), corpus.dtype, model.n_columns)
    stream = Stream(settings, model, start, seen, corpus.n_threads)
    totals = add_totals(corpus, before)
    schedule = settings.schedule(corpus, model.n_topics, totals.documents)
    stream.read(corpus.by_doc, corpus.weights, np.arange(corpus.n_docs), schedule)
    _set_stream(estimator, stream, model, totals, vocabulary)


def _first_topics(estimator: PLSA, corpus: MemoryCorpus, K: int, name: str) -> Floats:
    """Return phi (words x K) to start from.

    A random start gives every word a positive probability, because later documents may contain any word.
    """
    if not isinstance(estimator.init, str):
        check_init(estimator.init, _STREAM_INITS)
        return normalize_columns(start_topics(estimator.init[1], (K, corpus.n_words), name).T)
    (rng,) = generators(estimator.random_state, 1)
    variance = StepwiseEM.start_variance
    unseen = normalize_columns(rng.standard_gamma(1 / variance, (corpus.n_words, K)))
    seen = _STREAM_INITS[estimator.init](corpus, K, rng, variance=variance)
    return (1 - _UNSEEN_SHARE) * seen + _UNSEEN_SHARE * unseen


def _revive_words(joint: Array) -> Array:
    """Give words with probability zero in all topics a small one in every topic, because EM cannot change a zero."""
    zero_rows = joint.sum(axis=1) <= 0
    if zero_rows.any():
        joint = joint.copy()
        joint[zero_rows] = joint.sum(axis=0) * (_TRACE / len(joint))
    return joint


def _set_stream(estimator: Any, stream: Stream, model: Model, totals: SeenTotals, vocabulary: Array | None) -> None:
    """Set the fitted model after `partial_fit`, which does not know the weights of its documents."""
    joint = stream.joint[:, : model.n_topics]
    mass = joint.sum(axis=0, dtype=np.float64)
    components = np.ascontiguousarray((joint / np.where(mass > 0, mass, 1)).astype(joint.dtype).T)
    components[mass <= 0] = totals.unigram
    clear_fit(estimator)
    estimator._training = None
    estimator._fitted = FittedTopics(
        components,
        mass / mass.sum(),
        totals.unigram,
        mass > 0,
        totals.tokens,
        totals.documents,
        MaximumLikelihood(background=model.background, prior=model.doc_prior),
        vocabulary,
    )
