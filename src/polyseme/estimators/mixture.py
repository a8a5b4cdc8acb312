"""A mixture of multinomials as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np

from polyseme.core.edits import TopicEdit
from polyseme.core.fitted import FoldedTraining, fold_in_training
from polyseme.core.mixture import MixturePosterior
from polyseme.core.model import Model
from polyseme.data.corpus import Corpus, MemoryCorpus
from polyseme.errors import InputError
from polyseme.estimators.base import TopicEstimator
from polyseme.estimators.likelihood import edited_likelihood
from polyseme.estimators.validation import factor_dtype, training_data
from polyseme.io.models import NUMBER_OR_NAN, StoredAttributes
from polyseme.kernels import Floats
from polyseme.solvers.base import FitSummary, Start, best_fit, finish_fit, generators
from polyseme.solvers.initialize import check_init, given_topics, is_topics_only, random_topics
from polyseme.solvers.mixture import MixtureRun, begin_mixture
from polyseme.utils import (
    FitCallback,
    RandomStateLike,
    check_integer,
    check_n_jobs,
    check_n_topics,
    check_nonnegative,
    effective_threads,
)

INITS = ("annealed", "random")


class MultinomialMixture(TopicEstimator):
    """Mixture of multinomials: each document has one topic. For short texts, such as headlines and titles.

    All words of a document come from the same topic::

        P(d) = sum_z P(z) prod_w P(w|z)^x_dw

    A text of a few words says too little about a mixture of topics of its own, which PLSA and LDA would estimate, but
    often enough to tell which topic it has. P(z) and P(w|z) maximize the posterior density under Dirichlet priors
    (Dirichlet multinomial mixture).

    Parameters
    ----------
    n_components : int, default=10
        Number of topics K.
    pseudo_counts : float, default=0.1
        Pseudo-counts of every word in every topic, which is a Dirichlet prior with the parameter 1 + `pseudo_counts`.
        Each topic also gets one pseudo-document.
    init : {"annealed", "random"} or (None, array), default="annealed"
        Start of the fit: random topics; "annealed" lets EM first run with flat posteriors, which become sharper in 160
        iterations. (None, P(w|z)) starts from given topics (K x words).
    n_init : int, default=1
        Number of starts. The fit with the best objective is kept.
    max_iter : int, default=200
        Maximum number of iterations of a start, after annealing.
    tol : float, default=0.0001
        A fit stops when an estimate of what it can still gain is below `tol` nats per token, as in PLSA.
    n_jobs : int, default=None
        Number of threads of folding in; None uses all cores that the process may use. Results do not depend on it.
    dtype : {"float32", "float64"} or dtype, default=None
        Dtype of the result. None uses float64 for float64 data, else float32. The fit always uses float64.
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
        P(z|d) of the training documents, the probability that a document has the topic, equal to `transform(X)`.
    topic_shares_ : array of shape (K,)
        P(z), the share of the documents of each topic; `topic_weights_` is the share of the tokens.
    log_evidence_ : float
        Log-probability of the training documents, sum_d log P(d), in nats (not per token).
    topic_weights_ : array of shape (K,)
        Share of the tokens of each topic.
    doc_weights_ : array of shape (n_documents,)
        P(d), the share of the tokens of each document.
    topic_doc_ : array of shape (K, n_documents)
        P(d|z); rows sum to one.
    unigram_ : array of shape (n_words,)
        P(w) of the training documents.
    log_likelihood_ : float
        Mean log sum_z P(z|d) P(w|z) of a training token (natural logarithm).
    history_ : dict of arrays
        Values of each iteration: iteration, seconds, bound (the objective, log posterior density per token), remaining.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the fit stopped by `tol`.
    solver_ : str
        Name of the solver, always "em".
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
    - Nigam, K., McCallum, A., Thrun, S., and Mitchell, T. (2000). Text classification from labeled and unlabeled
      documents using EM. Machine Learning 39, 103-134.
    - Yin, J., and Wang, J. (2014). A Dirichlet multinomial mixture model-based approach for short text clustering. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import MultinomialMixture
    >>> X = np.array([[1, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1]])
    >>> model = MultinomialMixture(n_components=2, random_state=0).fit(X)
    >>> model.transform(X).argmax(axis=1).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """

    _stored: ClassVar[StoredAttributes] = {**TopicEstimator._stored, "log_evidence_": NUMBER_OR_NAN}
    _inferences = (MixturePosterior,)
    _edits_topics = True
    _refits = True
    log_evidence_: float

    def __init__(
        self,
        n_components: int = 10,
        *,
        pseudo_counts: float = 0.1,
        init: Any = "annealed",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: FitCallback = None,
    ) -> None:
        self.n_components = n_components
        self.pseudo_counts = pseudo_counts
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
        pseudo_counts = check_nonnegative("pseudo_counts", self.pseudo_counts)
        if not pseudo_counts > 0:
            raise InputError("pseudo_counts must be above 0: a word without it could exclude every topic.")
        check_init(self.init, INITS, topics_only=True)
        n_threads = effective_threads(check_n_jobs(self.n_jobs))
        data = training_data(self, X, sample_weight, feature_names=feature_names)
        corpus = MemoryCorpus.of(data.X, factor_dtype(self.dtype, data.X), data.weights, n_threads)
        starts = self._starts(corpus, K, n_init, pseudo_counts)
        best, interrupted = best_fit(self, starts, max_iter=max_iter, tol=tol)
        phi, shares = best.run.point
        topic_word = np.ascontiguousarray(phi.T, dtype=corpus.dtype)
        end = FitSummary.of(best, interrupted, "em")
        del best, phi  # frees the memory of the fit before inference on the documents
        corpus.release()
        folded = fold_in_training(
            corpus.all_documents, topic_word, MixturePosterior(shares), unigram=corpus.unigram,
            n_tokens=corpus.tokens, n_documents=corpus.documents, vocabulary=data.vocabulary,
        )  # fmt: skip
        self._set_fitted(folded, end, self._of_documents(folded, corpus))
        finish_fit(end, self.components_.dtype, max_iter, tol)
        return self

    @property
    def topic_shares_(self) -> Floats:
        """P(z), the share of the documents of each topic, shape (K,)."""
        return cast(MixturePosterior, self._topics.inference).topic_shares

    def _of_documents(self, folded: FoldedTraining, corpus: Corpus) -> dict[str, Any]:
        return {"log_evidence_": folded.bound}

    def _edit_topics(self, edit: TopicEdit) -> None:
        self._fitted = edited_likelihood(self._fitted, edit)
        self.n_components = self._fitted.n_topics

    def _starts(self, corpus: MemoryCorpus, K: int, n_init: int, pseudo_counts: float) -> Iterator[Start[MixtureRun]]:
        """Yield the starts."""
        if is_topics_only(self.init):
            phi = given_topics(self.init[1], corpus, Model(K))[:, :K].astype(np.float64)
            yield Start(partial(begin_mixture, corpus, phi, pseudo_counts, anneal=False))
            return
        for rng in generators(self.random_state, n_init):

            def begin(rng: np.random.Generator = rng) -> MixtureRun:
                phi = random_topics(corpus, K, rng)
                return begin_mixture(corpus, phi, pseudo_counts, anneal=self.init == "annealed")

            yield Start(begin)
