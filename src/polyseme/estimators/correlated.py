"""The correlated topic model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self, cast

import numpy as np

from polyseme.core.fitted import FoldedTraining, fold_in_training
from polyseme.core.fold_in import fold_in_shard
from polyseme.core.logistic_normal import LogisticNormalPosterior, correlation
from polyseme.core.model import Model
from polyseme.data.corpus import Corpus, MemoryCorpus
from polyseme.errors import InputError
from polyseme.estimators.base import TopicEstimator
from polyseme.estimators.validation import factor_dtype, training_data
from polyseme.io.models import NUMBER_OR_NAN, StoredAttributes
from polyseme.kernels import Array, Floats
from polyseme.solvers.base import FitSummary, Start, best_fit, finish_fit, generators
from polyseme.solvers.coordinate import fitted_factors
from polyseme.solvers.initialize import STARTS, check_init, given_pair, given_topics, is_topics_only, named_start
from polyseme.solvers.logistic_normal import CorrelatedRun, begin_correlated, correlated_start
from polyseme.utils import (
    FitCallback,
    RandomStateLike,
    check_integer,
    check_n_jobs,
    check_n_topics,
    check_nonnegative,
    effective_threads,
)

COVARIANCES = ("full", "diagonal")
INITS = ("plsa", *STARTS)


class CorrelatedTopicModel(TopicEstimator):
    """Correlated topic model (Blei and Lafferty 2007), fitted by variational EM.

    The topic weights of a document have a logistic normal distribution::

        theta_d = softmax(eta_d),   eta_d ~ N(mu, Sigma),   P(w|d) = sum_z theta_dz P(w|z)

    Under the Dirichlet prior of LDA, topics are nearly independent; here Sigma describes which topics occur together.
    Topics, mu and Sigma maximize a lower bound on the log evidence.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    covariance : {"full", "diagonal"}, default="full"
        Form of Sigma. "diagonal" means independent topics.
    init : {"plsa", "documents", "random", "nndsvd", "correspondence", "lsa", "spectral"} or pair, default="plsa"
        Start of the fit: "plsa" is a short fit of PLSA; a pair is P(z|d) (documents x K) and P(w|z) (K x words);
        with None in place of P(z|d) the documents are folded in first.
    n_init : int, default=1
        Number of starts. The fit with the best bound is kept.
    max_iter : int, default=200
        Maximum number of iterations of a start.
    tol : float, default=0.001
        A fit stops when an estimate of what the bound can still gain is below `tol` nats per token, as in PLSA.
    n_jobs : int, default=None
        Number of threads; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None uses float64 for float64 data, else float32.
    random_state : int, RandomState or Generator, default=None
        Seed of the start.
    verbose : int, default=0
        1 shows a progress bar, 2 also leaves it on the screen.
    callback : callable, default=None
        Called after each iteration with a dict: iteration, seconds, bound, remaining.

    Attributes
    ----------
    components_ : array of shape (K, n_words)
        P(w|z); rows sum to one.
    doc_topic_ : array of shape (n_documents, K)
        P(z|d) of the training documents, softmax of doc_mean_, equal to `transform(X)`.
    doc_mean_ : array of shape (n_documents, K)
        Mean of the variational posterior q(eta_d).
    doc_variance_ : array of shape (n_documents, K)
        Variances of q(eta_d), whose covariance is diagonal.
    mean_ : array of shape (K,)
        Mu.
    covariance_ : array of shape (K, K)
        Sigma.
    correlation_ : array of shape (K, K)
        Correlations of eta_k minus the mean of all eta, computed from Sigma. A shift of all eta does not change theta,
        so the data determine only these differences. K independent topics of equal variance have correlations of
        -1 / (K - 1).
    bound_ : float
        Lower bound on the log evidence of the training documents, in nats (not per token).
    topic_weights_ : array of shape (K,)
        P(z).
    doc_weights_ : array of shape (n_documents,)
        P(d).
    topic_doc_ : array of shape (K, n_documents)
        P(d|z); rows sum to one.
    unigram_ : array of shape (n_words,)
        P(w) of the training documents.
    log_likelihood_ : float
        Mean log P(w|d) of a training token (natural logarithm).
    history_ : dict of arrays
        Values of each iteration: iteration, seconds, bound and remaining in nats per token.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the fit stopped by `tol`.
    solver_ : str
        Name of the solver, always "variational-em".
    n_tokens_ : float
        Number of training tokens, multiplied by the weights of their documents.
    vocabulary_ : array of str or None
        The word of each column.
    word_documents_ : array of shape (K, n_words)
        Expected number of documents that contain a word and use it in a topic.
    topic_documents_ : array of shape (K,)
        Sum of P(z|d) over the training documents.
    document_frequency_ : array of shape (n_words,)
        Number of training documents that contain each word.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : array of str
        Names of the columns, if X is a data frame.

    References
    ----------
    - Blei, D. M., and Lafferty, J. D. (2007). A correlated topic model of Science. Annals of Applied Statistics 1,
      17-35.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import CorrelatedTopicModel
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = CorrelatedTopicModel(n_components=2, random_state=0).fit(X)
    >>> model.correlation_.shape, model.transform(X).shape
    ((2, 2), (4, 2))
    """

    _stored: ClassVar[StoredAttributes] = {**TopicEstimator._stored, "bound_": NUMBER_OR_NAN}
    bound_: float
    _inferences = (LogisticNormalPosterior,)
    _refits = True

    def __init__(
        self,
        n_components: int = 10,
        *,
        covariance: str = "full",
        init: Any = "plsa",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Self:
        """Fit topics, mu and Sigma to counts.

        Ctrl-C stores the best model so far in the estimator and then raises KeyboardInterrupt.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents. A document of weight v counts as v equal documents.
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X. None uses the column names of a data frame.

        Returns
        -------
        Self
            The fitted estimator.
        """
        K = check_n_topics(self.n_components)
        n_init = check_integer("n_init", self.n_init, least=1)
        max_iter = check_integer("max_iter", self.max_iter, least=1)
        tol = check_nonnegative("tol", self.tol)
        check_init(self.init, INITS)
        if self.covariance not in COVARIANCES:
            raise InputError(f"covariance must be one of {', '.join(map(repr, COVARIANCES))}, got {self.covariance!r}.")
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        data = training_data(self, X, sample_weight, feature_names=feature_names)
        corpus = MemoryCorpus.of(data.X, factor_dtype(self.dtype, data.X), data.weights, n_threads)
        best, interrupted = best_fit(self, self._starts(corpus, K, n_init), max_iter=max_iter, tol=tol)
        _, prior, phi = best.run.point
        topic_word = np.ascontiguousarray(phi[:, :K].T)
        topic_word[topic_word.sum(axis=1) == 0] = corpus.unigram  # a topic without words
        end = FitSummary.of(best, interrupted, "variational-em")
        del best, phi  # frees the memory of the fit before inference on the documents
        corpus.release()
        folded = fold_in_training(
            corpus.all_documents, topic_word, LogisticNormalPosterior(prior.mean, prior.covariance),
            unigram=corpus.unigram, n_tokens=corpus.tokens, n_documents=corpus.documents, vocabulary=data.vocabulary,
        )  # fmt: skip
        self._set_fitted(folded, end, self._of_documents(folded, corpus))
        finish_fit(end, self.components_.dtype, max_iter, tol)
        return self

    @property
    def mean_(self) -> Floats:
        """Mu, shape (K,)."""
        return self._posterior.mean

    @property
    def covariance_(self) -> Floats:
        """Sigma, K x K."""
        return self._posterior.covariance

    @property
    def doc_mean_(self) -> Floats:
        """Means of q(eta_d) of the training documents, documents x K."""
        return self._documents.parameters["mean"]

    @property
    def doc_variance_(self) -> Floats:
        """Variances of q(eta_d) of the training documents, documents x K."""
        return self._documents.parameters["variance"]

    @property
    def _posterior(self) -> LogisticNormalPosterior:
        return cast(LogisticNormalPosterior, self._topics.inference)

    @property
    def correlation_(self) -> Array:
        """Correlations of eta_k minus the mean of all eta, K x K."""
        return correlation(self.covariance_)

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        return {"bound_": folded.bound}

    def _starts(self, corpus: MemoryCorpus, K: int, n_init: int) -> Iterator[Start[CorrelatedRun]]:
        """Yield the starts."""
        diagonal = self.covariance == "diagonal"
        for rng in generators(self.random_state, n_init if isinstance(self.init, str) else 1):

            def begin(rng: np.random.Generator = rng) -> CorrelatedRun:
                if is_topics_only(self.init):
                    phi = given_topics(self.init[1], corpus, Model(K))
                    theta = fold_in_shard(Model(K), corpus, phi)
                elif not isinstance(self.init, str):
                    theta, phi = given_pair(self.init, corpus, Model(K), corpus.kept)
                elif self.init == "plsa":
                    theta, phi = fitted_factors(corpus, K, rng)
                else:
                    theta, phi = named_start(self.init, corpus, Model(K), rng)
                return begin_correlated(
                    corpus, correlated_start(corpus, theta, phi, K, diagonal=diagonal), diagonal=diagonal
                )

            yield Start(begin)
