"""Latent Dirichlet allocation (LDA) as a scikit-learn estimator.

With the solvers "variational" and "online" the fit is a Dirichlet posterior over topics and weights; with "map" it is
PLSA with Dirichlet priors. `LDA.partial_fit` is stochastic variational Bayes over the documents of each call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils.metaestimators import available_if

from polyseme.core.dirichlet import (
    ASYMMETRIC,
    SYMMETRIC,
    Concentration,
    DirichletPosterior,
    dirichlet_means,
    padded_parameters,
    prior_columns,
)
from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import FittedTopics, FoldedTraining, StoredArray, fold_in_training
from polyseme.core.fold_in import MaximumLikelihood
from polyseme.core.model import Model
from polyseme.data.corpus import Corpus, MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import TopicEstimator, fit_starts
from polyseme.estimators.likelihood import LikelihoodSettings, edited_likelihood, fit_likelihood
from polyseme.estimators.plsa import PLSA, SeenTotals, add_totals, next_documents
from polyseme.estimators.validation import Training, clear_fit, init_parts, training_corpus
from polyseme.io.models import NUMBER_OR_NAN, StoredAttributes
from polyseme.kernels import Array, Floats, padded
from polyseme.priors import Dirichlet, SeedWords
from polyseme.solvers.base import FitSummary, Snapshot, best_fit, finish_fit, generators, seeds
from polyseme.solvers.dirichlet import (
    Priors,
    Variational,
    VariationalRun,
    VariationalSolver,
    expected_counts,
    first_lambda,
    flat_topics,
    folded_expected,
    guided_start,
    uniform_expected,
)
from polyseme.solvers.initialize import (
    STARTS,
    check_init,
    document_topics,
    given_pair,
    given_topics,
    is_topics_only,
    named_start,
)
from polyseme.solvers.online import (
    OnlineVariational,
    PosteriorState,
    PosteriorStream,
)
from polyseme.utils import (
    FitCallback,
    RandomStateLike,
    check_integer,
    check_n_jobs,
    check_n_topics,
    check_nonnegative,
    effective_threads,
    got,
)

MAP = "map"
VARIATIONAL_SOLVERS: dict[str, type[VariationalSolver]] = {
    solver.name: solver for solver in (Variational, OnlineVariational)
}
INITS = ("auto", "plsa", *STARTS)
LEARNED = {"symmetric-learned": SYMMETRIC, "asymmetric-learned": ASYMMETRIC}
_MIN_PRIOR, _MAX_PRIOR = 1e-30, 1e10
"""Smallest and largest prior that float32 can add to expected counts."""
_UNIGRAM_SHARE = 0.01
"""Weight of the unigram in topics that are fitted to a sample."""


def _has_partial_fit(estimator: LDA) -> bool:
    """Return True, or raise UnsupportedError if the parameters need all documents at once."""
    if isinstance(estimator.solver, str) and estimator.solver == "map":
        raise UnsupportedError("partial_fit is stochastic variational Bayes: use solver='online' instead of 'map'.")
    if isinstance(estimator.doc_topic_prior, str) or isinstance(estimator.topic_word_prior, str):
        raise UnsupportedError(
            "partial_fit does not learn priors: set doc_topic_prior and topic_word_prior to numbers."
        )
    if isinstance(estimator.init, str) and estimator.init not in ("auto", "documents", "random"):
        raise UnsupportedError("partial_fit has no other starts: init must be 'auto', 'documents', 'random' or a pair.")
    return True


class LDA(TopicEstimator):
    """Latent Dirichlet allocation (LDA), fitted by variational Bayes.

    The model is PLSA with Dirichlet priors on both factors::

        P(z|d) ~ Dirichlet(alpha),   P(w|z) ~ Dirichlet(eta),   P(w|d) = sum_z P(z|d) P(w|z)

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    solver : {"variational", "online", "map"} or solver object, default="variational"
        "variational" is variational Bayes with all documents in an iteration, "online" is stochastic variational Bayes
        with mini-batches, and "map" finds the mode of the posterior, as PLSA with Dirichlet priors. A solver object
        (`polyseme.solvers.Variational` or `polyseme.solvers.OnlineVariational`) has its own settings.
    doc_topic_prior : float, array of shape (K,) or str, default=None
        Alpha, the parameters of the Dirichlet prior on P(z|d). Variational Bayes estimates the mean of the posterior,
        as if each topic had alpha more tokens in each document; solver="map" and PLSA find the mode, as if it had
        alpha - 1. So 1 is neutral with solver="map" (with both priors the model is PLSA), and a pseudo-count of one
        token otherwise. None uses 1/K, with solver="map" 1 + 1/K, which are the same pseudo-counts.
        "symmetric-learned" or "asymmetric-learned" learns it in the fit.
    topic_word_prior : float, array of shape (n_words,) or (K, n_words), str or SeedWords, default=None
        Eta, like `doc_topic_prior`. With an array of shape (K, n_words) every topic has its own prior, and the topics
        start from what is larger in their priors than in others; solver="map" has no such prior.
        `polyseme.priors.SeedWords` adds its pseudo-counts to the default.
    init : {"auto", "plsa", "documents", "random", "nndsvd", "correspondence", "lsa", "spectral"}, pair, default="auto"
        Start of the fit: "plsa" is a few iterations of maximum likelihood, on a sample if there are many documents; a
        pair is P(z|d) (documents x K) and P(w|z) (K x words); with None in place of P(z|d) the documents are folded in
        first. "auto" is "documents" with solver="map" and "plsa" with the other solvers.
    n_init : int, default=1
        Number of starts. The fit with the best bound is kept.
    max_iter : int, default=200
        Maximum number of iterations of a start; with solver="online", of passes over the documents.
    tol : float, default=0.001
        A fit stops when an estimate of what the bound can still gain is below `tol` nats per token: the gain of the
        last quarter of the iterations, but at least of ten. With solver="map" as in `PLSA`; with solver="online" it
        stops when the bounds of two passes differ by less than `tol`.
    n_jobs : int, default=None
        Number of threads; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the factors. None uses float64 for float64 data, else float32.
    random_state : int, RandomState or Generator, default=None
        Seed of the start.
    verbose : int, default=0
        1 shows a progress bar, 2 also leaves it on the screen.
    callback : callable, default=None
        Called after each iteration with a dict: iteration, seconds, bound, remaining (with solver="map": as in PLSA).

    Attributes
    ----------
    components_ : array of shape (K, n_words)
        P(w|z), the mean of the posterior; rows sum to one.
    doc_topic_ : array of shape (n_documents, K)
        P(z|d) of the training documents, equal to `transform(X)`.
    topic_word_dirichlet_ : array of shape (K, n_words)
        Lambda, the parameters of the variational posterior of the topics. Not available with solver="map".
    doc_topic_dirichlet_ : array of shape (n_documents, K)
        Gamma, the parameters of the variational posterior of the documents. Not available with solver="map".
    doc_topic_prior_ : array of shape (K,)
        Alpha, as given or learned.
    topic_word_prior_ : array of shape (n_words,) or (K, n_words)
        Eta, as given or learned, with the pseudo-counts of seed words.
    bound_ : float
        Lower bound on the log evidence of the training documents, in nats (not per token). Not available with
        solver="map".
    topic_weights_ : array of shape (K,)
        P(z), from the means.
    doc_weights_ : array of shape (n_documents,)
        P(d).
    topic_doc_ : array of shape (K, n_documents)
        P(d|z), from the means; rows sum to one.
    unigram_ : array of shape (n_words,)
        P(w) of the training documents.
    log_likelihood_ : float
        Mean log P(w|d) of a training token at the means (natural logarithm).
    history_ : dict of arrays
        Values of each iteration: iteration, seconds, bound and remaining in nats per token (with solver="map":
        as in PLSA).
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the criterion of `tol` holds at the end.
    solver_ : str
        Name of the solver that fitted the model.
    n_tokens_ : float
        Number of training tokens, multiplied by the weights of their documents.
    n_documents_seen_ : float
        Number of training documents, including those of `partial_fit`.
    vocabulary_ : array of str or None
        The word of each column.
    word_documents_ : array of shape (K, n_words)
        Expected number of documents that contain a word and use it in a topic. Not available after `partial_fit`.
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
    - Blei, D. M., Ng, A. Y., and Jordan, M. I. (2003). Latent Dirichlet allocation. Journal of Machine Learning
      Research 3, 993-1022.
    - Hoffman, M. D., Blei, D. M., Wang, C., and Paisley, J. (2013). Stochastic variational inference. Journal of
      Machine Learning Research 14, 1303-1347.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import LDA
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = LDA(n_components=2, random_state=0).fit(X)
    >>> model.transform([[2, 1, 0, 0], [0, 0, 1, 1]]).shape
    (2, 2)
    """

    _stored: ClassVar[StoredAttributes] = {
        **TopicEstimator._stored,
        "doc_topic_prior_": StoredArray("K"),
        "topic_word_prior_": StoredArray("W|KW"),
        "bound_": NUMBER_OR_NAN,
    }
    bound_: float
    _inferences = (DirichletPosterior, MaximumLikelihood)
    _edits_topics = True
    _refits = True

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
        tol: float = 1e-3,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
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
        """Fit the topics to counts.

        Ctrl-C stores the best model so far in the estimator and then raises KeyboardInterrupt.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or DiskCorpus
            Counts, or shards on disk (`polyseme.scale.open_shards`).
        y : Ignored, default=None
            Present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_documents,), default=None
            Weights of the documents. A document of weight v counts as v equal documents (with solver="online" only
            approximately).
        feature_names : sequence of str or fitted vectorizer, default=None
            The word of each column, or the vectorizer that made X. None uses the column names of a data frame.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from polyseme import LDA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = LDA(2, doc_topic_prior="symmetric-learned", random_state=0).fit(X)
        >>> model.bound_ < 0, model.topic_word_dirichlet_.shape
        (True, (2, 4))
        """
        K = check_n_topics(self.n_components)
        max_iter = check_integer("max_iter", self.max_iter, least=1)
        is_map = isinstance(self.solver, str) and self.solver == MAP
        tol = check_nonnegative("tol", self.tol)
        n_init = check_integer("n_init", self.n_init, least=1)
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        solver = None if is_map else _variational_solver(self.solver)
        with training_corpus(self, X, sample_weight, feature_names, n_threads) as training:
            if solver is None:
                end = self._fit_map(training, K, tol)
            else:
                end = self._fit_variational(training, solver, K, n_init, max_iter, tol)
        finish_fit(end, self.components_.dtype, max_iter, tol)
        return self

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the posterior with some documents, by one pass of `polyseme.solvers.OnlineVariational` over them.

        The first call initializes the model, unless it was fitted before, from groups of its documents
        (at random with `init="random"`, and where topics have priors of their own); later calls keep its vocabulary,
        priors and dtype. The posterior is that of the documents seen so far, or of `total_documents` of the solver. The
        method sets `components_`, `topic_word_dirichlet_`, `topic_weights_` (from expected counts), `unigram_`,
        `n_tokens_` and `n_documents_seen_`; use `transform` for the weights of documents. Results depend on the order
        of the documents, but not on the number of threads. Not available with solver="map" or with learned priors.

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
        >>> from polyseme import LDA
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
        >>> model = LDA(2, random_state=0)
        >>> for batch in (X[:2], X[2:]):
        ...     model = model.partial_fit(batch)
        >>> model.transform(X).shape
        (4, 2)
        """
        K = check_n_topics(self.n_components)
        solver = _variational_solver(self.solver)
        settings = solver if isinstance(solver, OnlineVariational) else OnlineVariational()
        _partial_fit(self, settings, lambda n_words, vocabulary: self._priors(K, n_words, vocabulary), X, sample_weight)
        return self

    @property
    def n_documents_seen_(self) -> float:
        """Number of training documents, including those of `partial_fit`."""
        return self._topics.n_documents

    @property
    def topic_word_dirichlet_(self) -> Array:
        """Lambda, the parameters of the variational posterior of the topics (K x words)."""
        return self._posterior.topic_word

    @property
    def doc_topic_dirichlet_(self) -> Array:
        """Gamma, the parameters of the variational posterior of the training documents (documents x K)."""
        self._posterior  # noqa: B018, raises AttributeError after a fit with solver="map"
        return self._documents.parameters["gamma"]

    @property
    def _posterior(self) -> DirichletPosterior:
        """The variational posterior. Raises AttributeError after a fit with solver="map", which has none."""
        inference = self._topics.inference
        if inference.kind != DirichletPosterior.kind:
            raise AttributeError("A fit with solver='map' has no variational posterior: use solver='variational'.")
        return cast(DirichletPosterior, inference)

    def _priors(self, n_topics: int, n_words: int, vocabulary: Array | None) -> Priors:
        return Priors(
            _concentration("doc_topic_prior", self.doc_topic_prior, n_topics, 1.0 / n_topics),
            _topic_concentration(self.topic_word_prior, n_topics, n_words, vocabulary),
        )

    def _start(
        self, solver: VariationalSolver, corpus: Corpus, priors: Priors, rng: np.random.Generator
    ) -> tuple[Callable[[], Any], Array]:
        """Return a function that returns the expected counts of the documents, and phi, both padded.

        A start of given topics is used as it is; others are moved towards the priors of single topics.
        """
        K = priors.alpha.values.size
        if is_topics_only(self.init):
            phi = given_topics(self.init[1], corpus, Model(K))
            return lambda: corpus.rows(partial(folded_expected, K), (phi,)), phi
        if not isinstance(self.init, str):
            theta, phi = given_pair(self.init, corpus, Model(K), corpus.kept)
            return lambda: corpus.split(expected_counts(theta, corpus.totals)), phi
        if self.init in ("auto", "plsa"):
            memory, is_complete = corpus.load(rng, solver.start_nonzeros)
            theta, phi = solver.short_fit(memory, priors, rng)
            if is_complete:
                return lambda: corpus.split(expected_counts(theta, memory.totals)), phi
            # A word that the sample does not contain must not have probability zero.
            unigram = corpus.unigram[:, np.newaxis].astype(phi.dtype)
            phi[:, :K] = (1 - _UNIGRAM_SHARE) * phi[:, :K] + _UNIGRAM_SHARE * unigram
            return lambda: corpus.rows(partial(folded_expected, K), (phi,)), phi
        if self.init == "random":
            phi = padded(flat_topics(corpus.n_words, K, rng), corpus.dtype)
        else:
            phi = named_start(self.init, corpus, Model(K), rng)[1]
        return lambda: corpus.rows(partial(uniform_expected, K)), guided_start(phi, priors)

    def _fit_variational(
        self, training: Training, solver: VariationalSolver, K: int, n_init: int, max_iter: int, tol: float
    ) -> FitSummary:
        """Fit by variational Bayes, and set the attributes."""
        corpus, vocabulary = training
        priors = self._priors(K, corpus.n_words, vocabulary)
        check_init(self.init, INITS)

        def begin(corpus: Corpus, rng: np.random.Generator) -> VariationalRun:
            return solver.begin(corpus, priors, *self._start(solver, corpus, priors, rng), rng)

        def resume(corpus: Corpus, state: Snapshot) -> VariationalRun:
            return solver.resume(corpus, priors, state)

        folder, kinds = fit_starts(corpus, self.random_state), (priors.alpha.kind, priors.eta.kind)
        starts = folder.starts(
            corpus,
            (
                solver,
                kinds,
                priors.alpha.values,
                priors.eta.values,
                *init_parts(self.init),
                max_iter,
                tol,
                corpus.dtype,
            ),
            seeds(self.random_state, n_init if isinstance(self.init, str) else 1),
            begin,
            resume,
        )
        best, interrupted = best_fit(self, starts, max_iter=max_iter, tol=tol)
        alpha, eta = best.run.priors.alpha.values, _narrow(best.run.priors.eta.values, K)
        posterior = DirichletPosterior(np.ascontiguousarray(best.run.lambda_[:, :K].T), alpha, eta)
        end = FitSummary.of(best, interrupted, solver.name)
        del best, starts  # frees the memory of the fit before inference on the documents
        corpus.release()
        folded = fold_in_training(
            corpus.all_documents, dirichlet_means(posterior.topic_word), posterior,
            unigram=corpus.unigram, n_tokens=corpus.tokens, n_documents=corpus.documents, vocabulary=vocabulary,
        )  # fmt: skip
        attributes = self._of_documents(folded, corpus)
        if not interrupted:
            folder.finish()
        self._set_fitted(folded, end, {**attributes, "doc_topic_prior_": alpha, "topic_word_prior_": eta})
        return end

    def _fit_map(self, training: Training, K: int, tol: float) -> FitSummary:
        """Fit the mode of the posterior, and set the attributes."""
        default = 1.0 + 1.0 / K
        alpha = _concentration("doc_topic_prior", self.doc_topic_prior, K, default)
        seeds = [self.topic_word_prior] if isinstance(self.topic_word_prior, SeedWords) else []
        given = None if seeds else self.topic_word_prior
        if _is_table(given):
            raise UnsupportedError(
                "solver='map' has one prior for all topics: give topic_word_prior as an array of shape (n_words,) or "
                "as SeedWords, or use solver='variational'."
            )
        eta = _concentration("topic_word_prior", given, training.corpus.n_words, default)
        if alpha.learned or eta.learned:
            raise UnsupportedError("solver='map' cannot learn priors: give numbers, or use solver='variational'.")
        same = ("n_components", "n_init", "max_iter", "n_jobs", "dtype", "random_state", "verbose", "callback")
        plsa = PLSA(
            **{name: getattr(self, name) for name in same},
            init=self.init,
            tol=tol,
            doc_topic_prior=Dirichlet(tuple(alpha.values)),
            topic_word_prior=[Dirichlet(tuple(eta.values)), *seeds],
        )
        fit = fit_likelihood(LikelihoodSettings.of(plsa), training)
        attributes = {"doc_topic_prior_": alpha.values, "topic_word_prior_": eta.values}
        self._set_fitted(fit.folded, fit.end._replace(solver=MAP), attributes)
        return fit.end

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        inference = folded.fitted.inference
        if inference.kind != DirichletPosterior.kind:
            return {}
        topics_term = cast(DirichletPosterior, inference).topics_term(n_threads=corpus.n_threads)
        return {"bound_": folded.bound + topics_term}

    def _edit_topics(self, edit: TopicEdit) -> None:
        fitted = self._fitted
        if fitted.inference.kind == DirichletPosterior.kind:
            posterior = self._posterior.edited(edit)
            self._fitted = replace(
                fitted,
                topic_word=posterior.means(edit.banned),
                topic_weights=edit.sums(fitted.topic_weights),
                active=edit.active(fitted.active),
                inference=posterior,
            )
            self.doc_topic_prior_, self.topic_word_prior_ = posterior.alpha, posterior.eta
        else:
            self._fitted = edited_likelihood(fitted, edit)
            merged = Dirichlet(tuple(self.doc_topic_prior_)).with_merged_columns(edit.groups)
            self.doc_topic_prior_ = np.array(merged.alpha)
        self.n_components = self._fitted.n_topics
        if np.ndim(self.doc_topic_prior) == 1:
            self.doc_topic_prior = self.doc_topic_prior_
        seeds = self.topic_word_prior
        if isinstance(seeds, SeedWords):
            seeds = seeds if self.vocabulary_ is None else seeds.resolve(list(self.vocabulary_))
            self.topic_word_prior = seeds.with_merged_rows(edit.groups, edit.banned.tolist())
        elif _is_table(seeds):
            self.topic_word_prior = self.topic_word_prior_


def _partial_fit(
    estimator: LDA,
    settings: OnlineVariational,
    priors: Callable[[int, Array | None], Priors],
    X: Any,
    sample_weight: Any,
) -> None:
    """Update the posterior with these documents, in their order and in mini-batches, and set the fitted attributes.

    `priors(n_words, vocabulary)` returns the priors of a first call. The posterior lambda of the topics is that of D
    documents: all documents seen so far, including these. The expected counts lambda - eta therefore grow with D from
    call to call.
    """
    corpus, vocabulary, before = next_documents(estimator, X, sample_weight)
    totals = add_totals(corpus, before)
    n_docs = max(totals.documents, settings.total_documents or 0.0)
    if before is None:
        fixed = priors(corpus.n_words, vocabulary)
        tokens = corpus.tokens / totals.documents * n_docs
        lambda_ = _first_lambda(estimator, corpus, fixed, tokens)
        seen = 0.0
    else:
        if before.inference.kind != DirichletPosterior.kind:
            raise UnsupportedError(
                "A fit with solver='map' cannot be continued by partial_fit: use solver='variational'."
            )
        posterior = estimator._posterior
        fixed = Priors(Concentration(posterior.alpha), Concentration(posterior.wide_eta))
        seen = before.n_documents
        growth = n_docs / max(seen, settings.total_documents or 0.0)
        lambda_ = _scaled_counts(padded_parameters(posterior.topic_word), fixed.eta.values, growth)
    stream = PosteriorStream(settings, PosteriorState.of(fixed, lambda_), n_docs, corpus.n_threads)
    schedule = settings.schedule(corpus, fixed.alpha.values.size, totals.documents)
    for batch, rho in schedule.batches(corpus.by_doc, corpus.weights, np.arange(corpus.n_docs), seen):
        if batch.size > 0:
            stream.take(batch, rho)
    _set_posterior(estimator, stream.state, totals, vocabulary)


def _first_lambda(estimator: LDA, corpus: MemoryCorpus, priors: Priors, tokens: float) -> Array:
    """Return lambda (words x width) with the expected counts of `tokens` tokens."""
    K = priors.alpha.values.size
    check_init(estimator.init, INITS)
    if isinstance(estimator.init, str):
        (rng,) = generators(estimator.random_state, 1)
        phi = flat_topics(corpus.n_words, K, rng)
        named = priors.eta.values.ndim == 2  # a start from documents could give other topics their subjects
        if estimator.init == "documents" or (estimator.init == "auto" and not named):
            phi = (phi + document_topics(corpus, K, rng)) / 2
        phi = guided_start(padded(phi, corpus.dtype), priors)
    else:
        phi = given_topics(estimator.init[1], corpus, Model(K))
    return first_lambda(phi, priors, tokens)


def _scaled_counts(lambda_: Array, eta: Floats, growth: float) -> Array:
    """Return eta + growth (lambda - eta)."""
    if growth == 1:
        return lambda_
    prior = prior_columns(eta)
    return np.asarray(prior + growth * np.maximum(lambda_ - prior, 0), dtype=lambda_.dtype)


def _set_posterior(estimator: LDA, state: PosteriorState, totals: SeenTotals, vocabulary: Array | None) -> None:
    """Set the fitted model after `partial_fit`, which does not know the weights of its documents."""
    alpha, K = state.priors.alpha.values, state.priors.alpha.values.size
    eta = _narrow(state.priors.eta.values, K)
    lambda_ = np.ascontiguousarray(state.lambda_[:, :K].T)
    expected = state.counts[:, :K].sum(axis=0, dtype=np.float64)
    total = expected.sum()
    clear_fit(estimator)
    estimator._training = None
    estimator._fitted = FittedTopics(
        dirichlet_means(lambda_),
        # Counts that are tiny compared with the prior vanish in lambda. After such a call all topics are equal.
        expected / total if total > 0 else np.full(K, 1.0 / K),
        totals.unigram,
        np.ones(K, dtype=bool),
        totals.tokens,
        totals.documents,
        DirichletPosterior(lambda_, alpha, eta),
        vocabulary,
    )
    estimator.doc_topic_prior_, estimator.topic_word_prior_ = alpha, eta


def _variational_solver(solver: Any) -> VariationalSolver:
    """Return the solver object, or the solver of that name with its default settings."""
    if isinstance(solver, str) and solver in VARIATIONAL_SOLVERS:
        return VARIATIONAL_SOLVERS[solver]()
    if isinstance(solver, tuple(VARIATIONAL_SOLVERS.values())):
        return cast(VariationalSolver, solver)
    names = ", ".join(map(repr, (*VARIATIONAL_SOLVERS, MAP)))
    raise InputError(f"solver must be one of {names}, a Variational or an OnlineVariational, {got(solver)}")


def _topic_concentration(value: Any, n_topics: int, n_words: int, vocabulary: Array | None) -> Concentration:
    """Return eta: one number per word, or words x width if every topic has its own."""
    default, shape = 1.0 / n_topics, (n_topics, n_words)
    if isinstance(value, SeedWords):
        seeds = value if vocabulary is None else value.resolve(list(vocabulary))
        values = default + seeds.pseudo_counts(np.zeros(shape), np.zeros(shape))
    elif _is_table(value):
        values = np.asarray(value)
        if values.shape != shape:
            raise InputError(
                f"topic_word_prior must be a number or have the shape ({n_words},) or {shape}, got the shape "
                f"{values.shape}."
            )
    else:
        return _concentration("topic_word_prior", value, n_words, default)
    flat = _concentration("topic_word_prior", values.ravel(), values.size, default)
    return Concentration(padded_parameters(flat.values.reshape(shape)))


def _is_table(prior: Any) -> bool:
    """Return whether a prior of the topics has two dimensions; a list with rows of different lengths has none."""
    try:
        return np.ndim(prior) == 2
    except ValueError:
        return False


def _narrow(eta: Floats, n_topics: int) -> Floats:
    """Return eta as attributes show it, K x words instead of words x width."""
    return eta if eta.ndim == 1 else np.ascontiguousarray(eta[:, :n_topics].T)


def _concentration(name: str, value: Any, size: int, default: float) -> Concentration:
    """Return the parameters of a Dirichlet prior from None, a number, an array, or the name of a learning method."""
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
    if values.ndim > 1 and values.size:
        raise InputError(f"{name} must be a number or have the shape ({size},), got the shape {values.shape}.")
    if isinstance(value, bool) or values.ndim > 1 or (values.ndim == 0 and not isinstance(value, Real | np.ndarray)):
        raise InputError(f"{name} must be None, a number, an array or a name, got {value!r}.")
    if values.ndim == 1 and values.size != size:
        raise InputError(f"{name} has {values.size} numbers where {size} are needed: give 1 or {size} numbers.")
    for good, wanted in (
        (np.isfinite(values) & (values > 0), "finite and greater than 0"),
        ((values >= _MIN_PRIOR) & (values <= _MAX_PRIOR), f"between {_MIN_PRIOR:g} and {_MAX_PRIOR:g}"),
    ):
        if not good.all():
            raise InputError(f"{name} must be {wanted}, got {values[~good].flat[0]:g}.")
    return Concentration(np.array(np.broadcast_to(values, size)))
