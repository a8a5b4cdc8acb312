"""Latent Dirichlet allocation as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyseme.core.dirichlet import (
    ASYMMETRIC,
    SYMMETRIC,
    Concentration,
    dirichlet_means,
    topic_sums,
    topics_term,
    word_operands,
)
from polyseme.core.model import Model
from polyseme.core.shard import row_batches
from polyseme.data.corpus import MemoryCorpus, training_corpora
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import (
    CountDecomposition,
    TopicScores,
    clear_fit,
    count_data,
    factor_dtype,
    training_data,
)
from polyseme.estimators.plsa import _LEAST_BATCH, PLSA, _keep_totals, _part, _Totals, _totals
from polyseme.kernels import Array, Floats, SparseCounts, padded, weighted_sum
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.words import WordDocuments
from polyseme.priors import Dirichlet
from polyseme.solvers.base import FitEnd, best_fit, finish_fit, generators
from polyseme.solvers.initialize import STARTS, given_pair, given_topics, named_start
from polyseme.solvers.online import (
    OnlineVariational,
    PosteriorStream,
    batches,
    rate,
)
from polyseme.solvers.variational import (
    InferredDirichlet,
    Priors,
    Variational,
    VariationalRun,
    VariationalSolver,
    first_lambda,
    flat_topics,
    infer,
    likely_factors,
    number_of_documents,
    padded_parameters,
)
from polyseme.utils import check_n_jobs, check_n_topics, check_nonnegative, check_whole_number

if TYPE_CHECKING:
    from polyseme.estimators.plsa import PLSA


# LDA


def takes_posterior_parts(estimator: LDA) -> bool:
    """Whether LDA can be fitted without looking at all documents at once."""
    if isinstance(estimator.solver, str) and estimator.solver == "map":
        raise UnsupportedError("partial_fit is stochastic variational Bayes: use solver='online' instead of 'map'.")
    if isinstance(estimator.doc_topic_prior, str) or isinstance(estimator.topic_word_prior, str):
        raise UnsupportedError("partial_fit does not learn priors: give numbers for doc_topic_prior, topic_word_prior.")
    if isinstance(estimator.init, str) and estimator.init not in ("auto", "random"):
        raise UnsupportedError("partial_fit starts at random: init must be 'auto', 'random' or a pair.")
    return True


def update_posterior(
    estimator: LDA, settings: OnlineVariational, priors: Callable[[int], Priors], X: Any, sample_weight: Any
) -> None:
    """Takes these documents into the posterior, in their order, a batch at a time; sets the fitted attributes.

    priors(n_words) are those of a first call. The topics' posterior lambda is of D documents, those seen so far
    with these: lambda - eta, the expected counts, grows with D from call to call.
    """
    corpus, before = _part(estimator, X, sample_weight)
    totals = _totals(corpus, before)
    n_docs = max(totals.documents, settings.total_documents or 0.0)
    if before is None:
        fixed = priors(corpus.n_words)
        tokens = corpus.tokens / totals.documents * n_docs
        lambda_ = _first_posterior(estimator, corpus, fixed, tokens)
        seen = 0.0
    else:
        if not hasattr(estimator, "topic_word_dirichlet_"):
            raise UnsupportedError("A fit with solver='map' has no posterior: partial_fit cannot go on from it.")
        fixed = Priors(Concentration(estimator.doc_topic_prior_), Concentration(estimator.topic_word_prior_))
        seen = before.documents
        growth = n_docs / max(seen, settings.total_documents or 0.0)
        lambda_ = _grown(padded_parameters(estimator.topic_word_dirichlet_), fixed.eta.values, growth)
    stream = PosteriorStream(settings, fixed, lambda_, n_docs, corpus.n_threads)
    size = settings.batch_size or max(_LEAST_BATCH, settings.documents_a_batch(corpus.n_docs))
    for batch in batches(corpus.by_doc, corpus.weights, np.arange(corpus.n_docs), size):
        if batch.size > 0:
            stream.take(batch, rate(settings.offset, settings.decay, seen / batch.size))
            seen += batch.size
    _keep_posterior(estimator, stream, totals)


def _first_posterior(estimator: LDA, corpus: MemoryCorpus, priors: Priors, tokens: float) -> Array:
    """lambda (words x width) of so many tokens."""
    K = priors.alpha.values.size
    if isinstance(estimator.init, str):
        (rng,) = generators(estimator.random_state, 1)
        phi = padded(flat_topics(corpus.n_words, K, rng), corpus.dtype)
    else:
        phi = given_topics(estimator.init[1], corpus, Model(K))
    return first_lambda(phi, priors, tokens)


def _grown(lambda_: Array, eta: Floats, growth: float) -> Array:
    """eta + growth (lambda - eta)"""
    if growth == 1:
        return lambda_
    prior = eta[:, np.newaxis]
    return np.asarray(prior + growth * np.maximum(lambda_ - prior, 0), dtype=lambda_.dtype)


def _keep_posterior(estimator: LDA, stream: PosteriorStream, totals: _Totals) -> None:
    """What is known after these documents; a document's own weights are `transform`'s to find."""
    K, eta = stream.priors.alpha.values.size, stream.priors.eta.values
    lambda_ = np.ascontiguousarray(stream.lambda_[:, :K].T)
    expected = np.maximum(lambda_ - eta, 0).sum(axis=1, dtype=np.float64)
    clear_fit(estimator)
    estimator.topic_word_dirichlet_ = lambda_
    estimator.components_ = dirichlet_means(lambda_)
    estimator.doc_topic_prior_, estimator.topic_word_prior_ = stream.priors.alpha.values, eta
    estimator.topic_weights_ = expected / expected.sum()
    _keep_totals(estimator, totals)


MAP = "map"
VARIATIONAL_SOLVERS: dict[str, type[VariationalSolver]] = {
    solver.name: solver for solver in (Variational, OnlineVariational)
}
INITS = ("auto", "plsa", *STARTS)
LEARNED = {"symmetric-learned": SYMMETRIC, "asymmetric-learned": ASYMMETRIC}

_TOLERANCE = 1e-4
_MAP_TOLERANCE = 1e-2


class LDA(TopicScores, CountDecomposition):
    """Latent Dirichlet allocation: PLSA with P(z|d) ~ Dirichlet(alpha) and P(w|z) ~ Dirichlet(eta).

    Parameters
    ----------
    n_components : number of topics K.
    solver : "variational" (variational Bayes, all documents an iteration), "online" (stochastic variational Bayes, a
        few documents a step), "map" (the mode of the posterior: PLSA with Dirichlet priors), or a solver object with
        settings (`polyseme.solvers.Variational`, `polyseme.solvers.OnlineVariational`).
    doc_topic_prior, topic_word_prior : alpha and eta. A number, or an array (K numbers; one for each word);
        "symmetric-learned" or "asymmetric-learned" for one that the fit learns; None for 1/K (with solver="map"
        1 + 1/K, which adds as many pseudo-counts; 1 is flat there, and both flat is PLSA).
    init : "plsa" (a few sweeps of maximum likelihood), "random", "nndsvd", "lsa", or a pair (P(z|d) documents x K,
        P(w|z) K x words) to start from; "auto" is "plsa", and with the other two solvers "random".
    n_init : number of starts; the fit with the best bound is kept.
    max_iter : most iterations of a start (with "online", passes over the documents).
    tol : a fit stops when an iteration adds at most this many nats per token to the bound (mean of the last few). None:
        1e-4; with solver="map", as in PLSA, where it is 1e-2.
    n_jobs, dtype, random_state, verbose : as in PLSA.
    callback : called after each iteration with a dict: iteration, seconds, bound, gain (solver="map": as PLSA's).

    Attributes
    ----------
    components_ : P(w|z), K x words: the mean of the posterior; rows sum to one.
    doc_topic_ : P(z|d) of the training documents, documents x K: the mean, by the same inference as `transform`.
    topic_word_dirichlet_, doc_topic_dirichlet_ : lambda (K x words) and gamma (documents x K), the parameters of the
        variational posterior.
    doc_topic_prior_, topic_word_prior_ : alpha (K numbers) and eta (one for each word), as given or learned.
    bound_ : lower bound of the log evidence of the training documents at lambda and gamma, in nats (not per token).
    topic_weights_, doc_weights_, topic_doc_ : P(z), P(d), P(d|z) (K x documents): the symmetric view of the means.
    unigram_ : P(w) of the training documents.
    log_likelihood_ : mean log P(w|d) of a training token at the means, natural log.
    history_ : equally long arrays iteration, seconds, bound, gain (nats per token; solver="map": as PLSA's).
    vocabulary_, word_documents_, topic_documents_, document_frequency_, n_tokens_, n_documents_seen_, n_iter_,
    converged_, n_features_in_, feature_names_in_ : as in PLSA.

    With solver="map" there is no variational posterior: no bound_, topic_word_dirichlet_ and doc_topic_dirichlet_.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import LDA
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = LDA(n_components=2, random_state=0).fit(X)
    >>> model.transform([[2, 1, 0, 0], [0, 0, 1, 1]]).shape
    (2, 2)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        solver: Any = "variational",
        doc_topic_prior: Any = None,
        topic_word_prior: Any = None,
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float | None = None,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
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
        """Fits the topics to counts X (documents x words, dense or sparse).

        A document of weight v counts as v equal documents (with solver="online" only nearly so). Ctrl-C keeps the best
        model so far in the estimator and then raises KeyboardInterrupt.
        """
        if isinstance(self.solver, str) and self.solver == MAP:
            return self._fit_map(X, sample_weight, feature_names)
        K = check_n_topics(self.n_components)
        n_init = check_whole_number("n_init", self.n_init, least=1)
        max_iter = check_whole_number("max_iter", self.max_iter, least=1)
        tol = _TOLERANCE if self.tol is None else check_nonnegative("tol", self.tol)
        solver = _variational_solver(self.solver)
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        X, weights = training_data(self, X, sample_weight, feature_names=feature_names)
        dtype = factor_dtype(self.dtype, X)
        whole, corpus, kept = training_corpora(X, dtype, weights, n_threads)
        priors = self._priors(K, X.shape[1])
        beginnings = self._beginnings(solver, corpus, priors, n_init, kept)
        best, interrupted = best_fit(self, beginnings, max_iter=max_iter, tol=tol)
        self._keep_topics(best, corpus)
        self.doc_weights_ = whole.weighted_totals / whole.tokens
        del best  # the documents are visited with the memory of the fit given back
        corpus.release()
        self._keep_documents(X, whole)
        finish_fit(self, interrupted, max_iter, tol)
        return self

    @available_if(takes_posterior_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Takes some more documents into the posterior: one pass of `solvers.OnlineVariational`, in their order.

        The first call starts the model, unless `fit` did; vocabulary, priors and dtype then stay. Sets components_,
        topic_word_dirichlet_, topic_weights_ (by expected counts), unigram_, n_tokens_ and n_documents_seen_; the
        weights of documents come from `transform`. The posterior is of the documents seen so far, or of the solver's
        `total_documents`. Results depend on the order of the documents, but not on the threads. There is no
        partial_fit for solver="map" and learned priors.
        """
        K = check_n_topics(self.n_components)
        solver = _variational_solver(self.solver)
        settings = solver if isinstance(solver, OnlineVariational) else OnlineVariational()
        update_posterior(self, settings, lambda n_words: self._priors(K, n_words), X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """`fit`, and P(z|d) of the same documents: what `transform(X)` would give."""
        return self.fit(X, y, sample_weight, feature_names).doc_topic_

    def transform(self, X: Any) -> Array:
        """P(z|d) (documents x K, rows sum to one): the mean of q(theta_d), topics fixed, each document to convergence.

        A document without words gets the mean of the prior.
        """
        check_is_fitted(self)
        X = count_data(self, X, reset=False)
        if self._is_mode:
            return self._as_plsa().transform(X)
        parts = row_batches(X, self.components_.dtype)
        return np.concatenate([dirichlet_means(self._inferred(counts).gamma) for counts in parts])

    def _priors(self, n_topics: int, n_words: int) -> Priors:
        return Priors(
            _concentration("doc_topic_prior", self.doc_topic_prior, n_topics, 1.0 / n_topics),
            _concentration("topic_word_prior", self.topic_word_prior, n_words, 1.0 / n_topics),
        )

    def _beginnings(
        self, solver: VariationalSolver, corpus: MemoryCorpus, priors: Priors, n_init: int, kept: Array | None
    ) -> Iterator[Callable[[], VariationalRun]]:
        """Functions that begin a run, one for each start."""
        if isinstance(self.init, str) and self.init not in INITS:
            raise InputError(f"init must be one of {', '.join(map(repr, INITS))} or a pair, got {self.init!r}.")
        for rng in generators(self.random_state, n_init if isinstance(self.init, str) else 1):

            def begin(rng: np.random.Generator = rng) -> VariationalRun:
                theta, phi = self._start(corpus, priors.alpha.values.size, kept, solver.start, rng)
                return solver.begin(corpus, priors, theta, phi, rng)

            yield begin

    def _start(self, corpus: MemoryCorpus, K: int, kept: Array | None, suited: str, rng: Any) -> tuple[Array, Array]:
        """theta and phi, padded; `kept` are the documents that the corpus has (None: all)."""
        if not isinstance(self.init, str):
            return given_pair(self.init, corpus, Model(K), kept)
        name = suited if self.init == "auto" else self.init
        if name == "plsa":
            return likely_factors(corpus, K, rng)
        theta, phi = named_start(name, corpus, Model(K), rng)
        if name == "random":
            phi = padded(flat_topics(corpus.counts.n_words, K, rng), phi.dtype)
        return theta, phi

    def _keep_topics(self, fit: FitEnd[VariationalRun], corpus: MemoryCorpus) -> None:
        """Sets the attributes that come from the end of a fit."""
        clear_fit(self)
        priors = fit.run.priors
        self.topic_word_dirichlet_ = np.ascontiguousarray(fit.run.lambda_[:, : priors.alpha.values.size].T)
        self.components_ = dirichlet_means(self.topic_word_dirichlet_)
        self.doc_topic_prior_, self.topic_word_prior_ = priors.alpha.values, priors.eta.values
        self.unigram_ = corpus.unigram
        self.n_tokens_ = corpus.tokens
        self.n_documents_seen_ = number_of_documents(corpus)
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged

    def _keep_documents(self, X: Any, corpus: MemoryCorpus) -> None:
        """Sets the attributes that come from inference on the training documents."""
        parts = [(counts, self._inferred(counts)) for counts in row_batches(X, self.components_.dtype)]
        self.doc_topic_dirichlet_ = np.concatenate([part.gamma for _, part in parts])
        self.doc_topic_ = dirichlet_means(self.doc_topic_dirichlet_)
        self.topic_weights_ = weighted_sum(self.doc_weights_, self.doc_topic_)
        lambda_, eta = padded_parameters(self.topic_word_dirichlet_), self.topic_word_prior_
        sums = topic_sums(lambda_, len(self.components_))
        words = word_operands(lambda_, eta, sums, n_threads=corpus.n_threads)
        bounds = np.concatenate([part.bounds for _, part in parts])
        self.bound_ = corpus.total_log(bounds) + topics_term(words, eta, sums)
        found = WordDocuments(corpus.weights, corpus.n_threads)
        logs = []
        for counts, part in parts:
            doc_topic = dirichlet_means(part.gamma)
            logs.append(self._log_rows(counts, doc_topic))
            found.add(counts, self._mean_operands(doc_topic), doc_topic)
        found.keep_in(self)
        self.log_likelihood_ = corpus.total_log(np.concatenate(logs)) / corpus.tokens

    def _inferred(self, counts: SparseCounts) -> InferredDirichlet:
        lambda_ = padded_parameters(self.topic_word_dirichlet_)
        return infer(counts, lambda_, self.doc_topic_prior_, n_threads=effective_threads(self.n_jobs))

    def _mean_operands(self, doc_topic: Array) -> tuple[Array, Array]:
        dtype = self.components_.dtype
        return padded(doc_topic, dtype), padded(self.components_.T, dtype)

    def _log_rows(self, counts: SparseCounts, doc_topic: Array) -> Floats:
        n_threads = effective_threads(self.n_jobs)
        logs = counts.logs(*self._mean_operands(doc_topic), n_threads=n_threads)
        return logs

    def _token_probabilities(self, observed: SparseCounts, scored: SparseCounts) -> Array:
        if self._is_mode:
            return self._as_plsa()._token_probabilities(observed, scored)
        operands = self._mean_operands(dirichlet_means(self._inferred(observed).gamma))
        return scored.products(*operands, n_threads=effective_threads(self.n_jobs))

    # solver="map"

    @property
    def _is_mode(self) -> bool:
        """Whether the fit found the posterior's mode, and no posterior."""
        return not hasattr(self, "topic_word_dirichlet_")

    def _plsa(self, alpha: Floats, eta: Floats) -> PLSA:
        """PLSA with these Dirichlet priors and the parameters of this estimator."""
        same = ("n_components", "n_init", "max_iter", "n_jobs", "dtype", "random_state", "verbose", "callback")
        return PLSA(
            **{name: getattr(self, name) for name in same},
            init="random" if isinstance(self.init, str) and self.init == "auto" else self.init,
            tol=_MAP_TOLERANCE if self.tol is None else self.tol,
            doc_topic_prior=Dirichlet(tuple(alpha)),
            topic_word_prior=Dirichlet(tuple(eta)),
        )

    def _fit_map(self, X: Any, sample_weight: Any, feature_names: Any) -> Self:
        K = check_n_topics(self.n_components)
        X, _ = training_data(self, X, sample_weight, feature_names=feature_names)
        default = 1.0 + 1.0 / K
        alpha = _concentration("doc_topic_prior", self.doc_topic_prior, K, default)
        eta = _concentration("topic_word_prior", self.topic_word_prior, X.shape[1], default)
        if alpha.learned or eta.learned:
            raise UnsupportedError("solver='map' cannot learn priors: give numbers, or use solver='variational'.")
        plsa = self._plsa(alpha.values, eta.values)
        try:
            plsa.fit(X, sample_weight=sample_weight, feature_names=self.vocabulary_)
        finally:
            if hasattr(plsa, "doc_topic_"):  # also after Ctrl-C
                clear_fit(self)
                for name, value in vars(plsa).items():
                    if name.endswith("_") and name not in ("n_features_in_", "feature_names_in_"):
                        setattr(self, name, value)
                self.doc_topic_prior_, self.topic_word_prior_ = alpha.values, eta.values
        return self

    def _as_plsa(self) -> PLSA:
        """The fitted PLSA that a fit with solver="map" is."""
        plsa = self._plsa(self.doc_topic_prior_, self.topic_word_prior_)
        for name, value in vars(self).items():
            if name.endswith("_") and name not in ("topic_word_prior_", "feature_names_in_"):
                setattr(plsa, name, value)
        flat = bool((self.doc_topic_prior_ == 1).all())
        plsa.doc_topic_prior_ = None if flat else Dirichlet(tuple(self.doc_topic_prior_))
        return plsa


def _variational_solver(solver: Any) -> VariationalSolver:
    """A solver object, or the one of that name with its default settings."""
    if isinstance(solver, str) and solver in VARIATIONAL_SOLVERS:
        return VARIATIONAL_SOLVERS[solver]()
    if isinstance(solver, tuple(VARIATIONAL_SOLVERS.values())):
        return cast(VariationalSolver, solver)
    names = ", ".join(map(repr, (*VARIATIONAL_SOLVERS, MAP)))
    raise InputError(f"solver must be one of {names}, a Variational or an OnlineVariational, got {solver!r}.")


def _concentration(name: str, value: Any, size: int, default: float) -> Concentration:
    """The parameters of a Dirichlet prior: None, a number, an array, or the name of a way to learn it."""
    if value is None:
        return Concentration(np.full(size, default))
    if isinstance(value, str):
        if value not in LEARNED:
            names = " or ".join(map(repr, LEARNED))
            raise InputError(f"{name} must be None, a number, an array, or {names}, got {value!r}.")
        return Concentration(np.full(size, default), LEARNED[value])
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if isinstance(value, bool) or values.ndim > 1 or (values.ndim == 0 and not isinstance(value, Real | np.ndarray)):
        raise InputError(f"{name} must be None, a number, an array or a name, got {value!r}.")
    if values.ndim == 1 and values.size != size:
        raise InputError(f"{name} has {values.size} numbers where {size} are needed: give one number, or one for each.")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(f"{name} must be finite and greater than 0, got {value!r}.")
    return Concentration(np.array(np.broadcast_to(values, size)))
