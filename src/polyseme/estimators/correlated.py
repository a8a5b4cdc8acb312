"""The correlated topic model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.core.logistic_normal import Normal, correlation, min_weight
from polyseme.core.model import Model
from polyseme.core.shard import row_batches
from polyseme.data.corpus import MemoryCorpus, training_corpora
from polyseme.errors import InputError
from polyseme.estimators.base import TopicEstimator, clear_fit, count_data, factor_dtype, training_data
from polyseme.kernels import Array, SparseCounts, padded, weighted_sum
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.words import WordDocuments
from polyseme.solvers.base import FitEnd, best_fit, finish_fit, generators
from polyseme.solvers.coordinate import fitted_factors
from polyseme.solvers.correlated import CorrelatedRun, InferredNormal, infer, start_point
from polyseme.solvers.initialize import STARTS, given_pair, named_start
from polyseme.utils import check_integer, check_n_jobs, check_n_topics, check_nonnegative

COVARIANCES = ("full", "diagonal")
INITS = ("plsa", *STARTS)


class CorrelatedTopicModel(TopicEstimator):
    """Correlated topic model (Blei and Lafferty 2007), fitted by variational EM.

    The topic weights of a document have a logistic normal distribution:

        theta_d = softmax(eta_d),   eta_d ~ N(mu, Sigma),   P(w|d) = sum_z theta_dz P(w|z)

    Under the Dirichlet prior of LDA topics are nearly independent; here Sigma describes which topics occur together.
    Topics, mu and Sigma maximize a lower bound of the log evidence.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    covariance : {"full", "diagonal"}, default="full"
        Form of Sigma. "diagonal" means independent topics.
    init : {"plsa", "random", "nndsvd", "lsa"} or pair of arrays, default="plsa"
        Start of the fit: "plsa" is a short fit of PLSA; a pair is P(z|d) (documents x K) and P(w|z) (K x words).
    n_init : int, default=1
        Number of starts. The fit with the best bound is kept.
    max_iter : int, default=200
        Maximum number of iterations of a start.
    tol : float, default=0.0001
        A fit stops when an iteration adds at most `tol` nats per token to the bound.
    n_jobs : int, default=None
        Number of threads; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None: float64 for float64 data, else float32.
    random_state : int or RandomState, default=None
        Seed of the start.
    verbose : int, default=0
        1 shows a progress bar, 2 also leaves it on the screen.
    callback : callable, default=None
        Called after each iteration with a dict: iteration, seconds, bound, gain.

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
        Correlations of eta_k minus the mean of all eta, computed from Sigma. A shift of all eta changes no theta, so
        the data determine only these differences. K independent topics of equal variance have correlations of -1 / (K -
        1).
    bound_ : float
        Lower bound of the log evidence of the training documents, in nats (not per token).
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
        Values of each iteration: iteration, seconds, bound, gain in nats per token.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the fit stopped by `tol`.
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

    def __init__(
        self,
        n_components: int = 10,
        *,
        covariance: str = "full",
        init: Any = "plsa",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
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
            The word of each column, or the vectorizer that made X. None: the column names of a data frame.

        Returns
        -------
        Self
            The fitted estimator.
        """
        K = check_n_topics(self.n_components)
        n_init = check_integer("n_init", self.n_init, least=1)
        max_iter = check_integer("max_iter", self.max_iter, least=1)
        tol = check_nonnegative("tol", self.tol)
        for name, value, known in (("covariance", self.covariance, COVARIANCES), ("init", self.init, INITS)):
            if (isinstance(value, str) or name == "covariance") and value not in known:
                raise InputError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}.")
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        X, weights = training_data(self, X, sample_weight, feature_names=feature_names)
        dtype = factor_dtype(self.dtype, X)
        all_documents, corpus, rows = training_corpora(X, dtype, weights, n_threads)
        best, interrupted = best_fit(self, self._start_functions(corpus, K, n_init, rows), max_iter=max_iter, tol=tol)
        self._set_topics(best, corpus, K)
        self.doc_weights_ = all_documents.weighted_totals / all_documents.tokens
        del best  # frees the memory of the fit before inference on the documents
        corpus.release()
        self._set_documents(X, all_documents)
        finish_fit(self, interrupted, max_iter, tol)
        return self

    def transform(self, X: Any) -> Array:
        """Return the topic weights of documents, with topics, mu and Sigma fixed.

        The weights are the softmax of the mean of q(eta_d). A document without words gets softmax(mu).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        array of shape (n_documents, K)
            P(z|d); rows sum to one.
        """
        check_is_fitted(self)
        X = count_data(self, X, reset=False)
        return np.concatenate([self._weights(self._infer(part)) for part in row_batches(X, self.components_.dtype)])

    @property
    def correlation_(self) -> Array:
        """Correlations of eta_k minus the mean of all eta, K x K."""
        return correlation(self.covariance_)

    def _start_functions(
        self, corpus: MemoryCorpus, K: int, n_init: int, rows: Array | None
    ) -> Iterator[Callable[[], CorrelatedRun]]:
        """Yield functions that begin a run, one for each start. `rows` are the documents in the corpus (None: all)."""
        diagonal = self.covariance == "diagonal"
        for rng in generators(self.random_state, n_init if isinstance(self.init, str) else 1):

            def begin(rng: np.random.Generator = rng) -> CorrelatedRun:
                if not isinstance(self.init, str):
                    theta, phi = given_pair(self.init, corpus, Model(K), rows)
                elif self.init == "plsa":
                    theta, phi = fitted_factors(corpus, K, rng)
                else:
                    theta, phi = named_start(self.init, corpus, Model(K), rng)
                return CorrelatedRun(corpus, start_point(corpus, theta, phi, K, diagonal=diagonal), diagonal=diagonal)

            yield begin

    def _set_topics(self, fit: FitEnd[CorrelatedRun], corpus: MemoryCorpus, K: int) -> None:
        """Set the attributes that follow from the end of a fit."""
        clear_fit(self)
        _, prior, phi = fit.run.point
        self.unigram_ = corpus.unigram
        self.components_ = np.ascontiguousarray(phi[:, :K].T)
        self.components_[self.components_.sum(axis=1) == 0] = self.unigram_  # a topic without words
        self.mean_, self.covariance_ = prior.mean, prior.covariance
        self.n_tokens_ = corpus.tokens
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged

    def _set_documents(self, X: Any, corpus: MemoryCorpus) -> None:
        """Set the attributes that follow from inference on the training documents."""
        n_threads = effective_threads(self.n_jobs)
        means, variances, weights, bounds, logs = [], [], [], [], []
        word_documents = WordDocuments(corpus.weights, n_threads)
        for counts in row_batches(X, self.components_.dtype):
            part = self._infer(counts)
            means.append(part.posterior.mean)
            variances.append(part.posterior.variance)
            weights.append(self._weights(part))
            bounds.append(part.bounds)
            operands = self._operands(weights[-1])
            logs.append(counts.logs(*operands, n_threads=n_threads))
            word_documents.add(counts, operands, weights[-1])
        word_documents.set_on(self)
        self.doc_mean_, self.doc_variance_ = np.concatenate(means), np.concatenate(variances)
        self.doc_topic_ = np.concatenate(weights)
        self.topic_weights_ = weighted_sum(self.doc_weights_, self.doc_topic_)
        self.bound_ = corpus.total_log(np.concatenate(bounds))
        self.log_likelihood_ = corpus.total_log(np.concatenate(logs)) / corpus.tokens

    def _infer(self, counts: SparseCounts) -> InferredNormal:
        phi = padded(self.components_.T, self.components_.dtype)
        prior = Normal.of(self.mean_, self.covariance_)
        return infer(counts, phi, prior, n_threads=effective_threads(self.n_jobs))

    def _weights(self, inferred: InferredNormal) -> Array:
        dtype = self.components_.dtype
        return np.maximum(inferred.posterior.weights, min_weight(dtype)).astype(dtype)

    def _operands(self, doc_topic: Array) -> tuple[Array, Array]:
        dtype = self.components_.dtype
        return padded(doc_topic, dtype), padded(self.components_.T, dtype)

    def _token_probabilities(self, observed: SparseCounts, scored: SparseCounts) -> Array:
        operands = self._operands(self._weights(self._infer(observed)))
        return scored.products(*operands, n_threads=effective_threads(self.n_jobs))
