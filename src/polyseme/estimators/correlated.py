"""The correlated topic model as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyseme.core.logistic_normal import Normal, correlation, least_weight
from polyseme.core.model import Model
from polyseme.core.shard import row_batches
from polyseme.data.corpus import MemoryCorpus, training_corpora
from polyseme.errors import InputError
from polyseme.estimators.base import CountDecomposition, TopicScores, clear_fit, count_data, factor_dtype, training_data
from polyseme.kernels import Array, SparseCounts, padded, weighted_sum
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.words import WordDocuments
from polyseme.solvers.base import FitEnd, best_fit, finish_fit, generators
from polyseme.solvers.coordinate import fitted_factors
from polyseme.solvers.correlated import CorrelatedRun, InferredNormal, infer, start_point
from polyseme.solvers.initialize import STARTS, given_pair, named_start
from polyseme.utils import check_n_jobs, check_n_topics, check_nonnegative, check_whole_number

COVARIANCES = ("full", "diagonal")
INITS = ("plsa", *STARTS)


class CorrelatedTopicModel(TopicScores, CountDecomposition):
    """The correlated topic model (Blei and Lafferty 2007): theta_d = softmax(eta_d), eta_d ~ N(mu, Sigma).

    LDA's Dirichlet law says that, but for their sum, topics do not know of each other. Here the covariance says which
    of them go together. Topics, mu and Sigma maximize a lower bound of the evidence, by variational EM.

    Parameters
    ----------
    n_components : number of topics K.
    covariance : "full"; or "diagonal" for independent topics.
    init : "plsa" (a short fit of PLSA), "random", "nndsvd", "lsa", or a pair (P(z|d) documents x K,
        P(w|z) K x words) to start from.
    n_init : number of starts; the fit with the best bound is kept.
    max_iter : most iterations of a start.
    tol : a fit stops when an iteration adds at most this many nats per token to the bound.
    n_jobs, dtype, random_state, verbose : as in PLSA.
    callback : called after each iteration with a dict: iteration, seconds, bound, gain.

    Attributes
    ----------
    components_ : P(w|z), K x words; rows sum to one.
    doc_topic_ : softmax of doc_mean_, documents x K, by the same inference as `transform`.
    doc_mean_, doc_variance_ : lambda and v of q(eta_d) = N(lambda, diag(v)), documents x K.
    mean_, covariance_ : mu and Sigma.
    correlation_ : correlations of eta_k less the mean of all eta, K x K, from Sigma: what the data can tell, since a
        shift of all eta changes no theta. K independent topics of equal variance have -1 / (K - 1).
    bound_ : lower bound of the log evidence of the training documents, in nats (not per token).
    topic_weights_, doc_weights_, topic_doc_, unigram_, log_likelihood_ : as in LDA.
    history_ : equally long arrays iteration, seconds, bound, gain (nats per token).
    vocabulary_, word_documents_, topic_documents_, document_frequency_, n_tokens_, n_iter_, converged_, n_features_in_,
    feature_names_in_ : as in PLSA.

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
        """Fits topics and their law to counts X (documents x words, dense or sparse).

        A document of weight v counts as v equal documents. Ctrl-C keeps the best model so far in the estimator and
        then raises KeyboardInterrupt.
        """
        K = check_n_topics(self.n_components)
        n_init = check_whole_number("n_init", self.n_init, least=1)
        max_iter = check_whole_number("max_iter", self.max_iter, least=1)
        tol = check_nonnegative("tol", self.tol)
        for name, value, known in (("covariance", self.covariance, COVARIANCES), ("init", self.init, INITS)):
            if (isinstance(value, str) or name == "covariance") and value not in known:
                raise InputError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}.")
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        X, weights = training_data(self, X, sample_weight, feature_names=feature_names)
        dtype = factor_dtype(self.dtype, X)
        whole, corpus, kept = training_corpora(X, dtype, weights, n_threads)
        best, interrupted = best_fit(self, self._beginnings(corpus, K, n_init, kept), max_iter=max_iter, tol=tol)
        self._keep_topics(best, corpus, K)
        self.doc_weights_ = whole.weighted_totals / whole.tokens
        del best  # the documents are visited with the memory of the fit given back
        corpus.release()
        self._keep_documents(X, whole)
        finish_fit(self, interrupted, max_iter, tol)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """`fit`, and P(z|d) of the same documents: what `transform(X)` would give."""
        return self.fit(X, y, sample_weight, feature_names).doc_topic_

    def transform(self, X: Any) -> Array:
        """P(z|d) (documents x K, rows sum to one): softmax of the mean of q(eta_d), topics and their law fixed.

        A document without words gets softmax(mu).
        """
        check_is_fitted(self)
        X = count_data(self, X, reset=False)
        return np.concatenate([self._weights(self._inferred(part)) for part in row_batches(X, self.components_.dtype)])

    @property
    def correlation_(self) -> Array:
        """Correlations of eta_k less the mean of all eta, K x K."""
        return correlation(self.covariance_)

    def _beginnings(
        self, corpus: MemoryCorpus, K: int, n_init: int, kept: Array | None
    ) -> Iterator[Callable[[], CorrelatedRun]]:
        """Functions that begin a run, one for each start; `kept` are the documents that the corpus has (None: all)."""
        diagonal = self.covariance == "diagonal"
        for rng in generators(self.random_state, n_init if isinstance(self.init, str) else 1):

            def begin(rng: np.random.Generator = rng) -> CorrelatedRun:
                if not isinstance(self.init, str):
                    theta, phi = given_pair(self.init, corpus, Model(K), kept)
                elif self.init == "plsa":
                    theta, phi = fitted_factors(corpus, K, rng)
                else:
                    theta, phi = named_start(self.init, corpus, Model(K), rng)
                return CorrelatedRun(corpus, start_point(corpus, theta, phi, K, diagonal=diagonal), diagonal=diagonal)

            yield begin

    def _keep_topics(self, fit: FitEnd[CorrelatedRun], corpus: MemoryCorpus, K: int) -> None:
        """Sets the attributes that come from the end of a fit."""
        clear_fit(self)
        _, prior, phi = fit.run.point
        self.unigram_ = corpus.unigram
        self.components_ = np.ascontiguousarray(phi[:, :K].T)
        self.components_[self.components_.sum(axis=1) == 0] = self.unigram_  # a topic that lost all its words
        self.mean_, self.covariance_ = prior.mean, prior.covariance
        self.n_tokens_ = corpus.tokens
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged

    def _keep_documents(self, X: Any, corpus: MemoryCorpus) -> None:
        """Sets the attributes that come from inference on the training documents."""
        n_threads = effective_threads(self.n_jobs)
        means, variances, weights, bounds, logs = [], [], [], [], []
        found = WordDocuments(corpus.weights, n_threads)
        for counts in row_batches(X, self.components_.dtype):
            part = self._inferred(counts)
            means.append(part.posterior.mean)
            variances.append(part.posterior.variance)
            weights.append(self._weights(part))
            bounds.append(part.bounds)
            operands = self._operands(weights[-1])
            logs.append(counts.logs(*operands, n_threads=n_threads))
            found.add(counts, operands, weights[-1])
        found.keep_in(self)
        self.doc_mean_, self.doc_variance_ = np.concatenate(means), np.concatenate(variances)
        self.doc_topic_ = np.concatenate(weights)
        self.topic_weights_ = weighted_sum(self.doc_weights_, self.doc_topic_)
        self.bound_ = corpus.total_log(np.concatenate(bounds))
        self.log_likelihood_ = corpus.total_log(np.concatenate(logs)) / corpus.tokens

    def _inferred(self, counts: SparseCounts) -> InferredNormal:
        phi = padded(self.components_.T, self.components_.dtype)
        prior = Normal.of(self.mean_, self.covariance_)
        return infer(counts, phi, prior, n_threads=effective_threads(self.n_jobs))

    def _weights(self, inferred: InferredNormal) -> Array:
        dtype = self.components_.dtype
        return np.maximum(inferred.posterior.weights, least_weight(dtype)).astype(dtype)

    def _operands(self, doc_topic: Array) -> tuple[Array, Array]:
        dtype = self.components_.dtype
        return padded(doc_topic, dtype), padded(self.components_.T, dtype)

    def _token_probabilities(self, observed: SparseCounts, scored: SparseCounts) -> Array:
        operands = self._operands(self._weights(self._inferred(observed)))
        return scored.products(*operands, n_threads=effective_threads(self.n_jobs))
