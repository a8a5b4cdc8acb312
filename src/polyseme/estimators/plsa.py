"""`partial_fit`: PLSA and LDA of documents that come in parts, each seen once.

PLSA as a scikit-learn estimator.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyseme.core.factors import columns_to_one, rows_to_one
from polyseme.core.fold_in import FoldedIn, fold_in, folded_rows
from polyseme.core.model import FixedBackground, Model, as_background
from polyseme.core.shard import counts_of, row_batches
from polyseme.data.corpus import Corpus, MemoryCorpus, training_corpora
from polyseme.data.disk import DiskCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.base import (
    CountDecomposition,
    TopicScores,
    as_solver,
    clear_fit,
    count_data,
    factor_dtype,
    model_from_parameters,
    training_data,
    with_early_stopping,
)
from polyseme.estimators.sharded import check_shards, fit_shards, keep_folded, transform_shards
from polyseme.kernels import Array, Floats, SparseCounts, padded, weighted_sum
from polyseme.kernels.threads import effective_threads
from polyseme.metrics.words import WordDocuments, tempered
from polyseme.priors import as_prior
from polyseme.progress import fit_progress
from polyseme.solvers.base import FitResult, best_of, finish_fit, generators, run_to_end
from polyseme.solvers.checkpoints import Checkpoint, FileCheckpointStore, name_of_fit
from polyseme.solvers.initialize import STARTS, given_pair, given_topics, named_start, random_topics
from polyseme.solvers.online import (
    START_VARIANCE,
    StepwiseEM,
    Stream,
)
from polyseme.solvers.variational import number_of_documents
from polyseme.utils import check_n_jobs, check_n_topics, check_nonnegative, check_whole_number

if TYPE_CHECKING:
    pass


_SHARE_OF_UNSEEN = 0.5
_TRACE = 1e-6
_LEAST_BATCH = 16


def takes_parts(estimator: PLSA) -> bool:
    """Whether the model can be fitted without looking at all documents at once."""
    doc_prior, word_prior = as_prior(estimator.doc_topic_prior), as_prior(estimator.topic_word_prior)
    background = as_background(estimator.background)
    parts = () if doc_prior is None else doc_prior.parts
    if (
        (background is not None and background.joint)
        or (word_prior is not None and not word_prior.neutral)
        or any(part.row_by_row() is None for part in parts)
    ):
        raise UnsupportedError(
            "partial_fit sees some documents at a time: it takes no topic_word_prior, no JointBackground, and no "
            "doc_topic_prior that looks at all documents at once."
        )
    return True


def read_more(estimator: PLSA, X: Any, sample_weight: Any) -> None:
    """Takes these documents into the model, in their order, a batch at a time; sets the fitted attributes."""
    K = check_n_topics(estimator.n_components)
    settings = estimator.solver if isinstance(estimator.solver, StepwiseEM) else StepwiseEM()
    corpus, before = _part(estimator, X, sample_weight)
    if before is not None:
        model = estimator._model()
        joint = (estimator._active_components() * estimator.topic_weights_[:, np.newaxis]).T
    else:
        model = model_from_parameters(estimator, K, corpus)
        joint = _first_topics(estimator, corpus, K) / K
    seen = 0.0 if before is None else before.documents
    start = padded(_with_traces(joint), corpus.dtype, model.n_columns)
    stream = Stream(settings, model, start, seen, corpus.n_threads)
    stream.read(corpus.by_doc, corpus.weights, np.arange(corpus.n_docs), settings.documents_a_batch(corpus.n_docs))
    _keep(estimator, stream, model, _totals(corpus, before))


class _Totals(NamedTuple):
    """What a model has seen."""

    documents: float
    tokens: float
    words: Floats
    """tokens of each word"""


def _part(estimator: Any, X: Any, sample_weight: Any) -> tuple[MemoryCorpus, _Totals | None]:
    """The documents of a call, and what the estimator has seen before them; None for the first call."""
    n_threads = effective_threads(check_n_jobs(estimator.n_jobs))
    begun = hasattr(estimator, "components_")
    X, weights = training_data(estimator, X, sample_weight, reset=not begun)
    dtype = estimator.components_.dtype if begun else factor_dtype(estimator.dtype, X)
    corpus = MemoryCorpus(counts_of(X, dtype), weights, n_threads)
    if not begun:
        return corpus, None
    if not hasattr(estimator, "n_documents_seen_"):
        raise UnsupportedError("This model is of a version without partial_fit: fit it again to go on from it.")
    tokens = estimator.n_tokens_
    return corpus, _Totals(estimator.n_documents_seen_, tokens, estimator.unigram_ * tokens)


def _totals(corpus: MemoryCorpus, before: _Totals | None) -> _Totals:
    """What the estimator has seen after these documents."""
    documents = number_of_documents(corpus)
    if before is None:
        return _Totals(documents, corpus.tokens, corpus.word_totals)
    return _Totals(before.documents + documents, before.tokens + corpus.tokens, before.words + corpus.word_totals)


def _first_topics(estimator: PLSA, corpus: MemoryCorpus, K: int) -> Floats:
    """phi (words x K): a random start that has all words, since those of later documents are not known."""
    if not isinstance(estimator.init, str):
        return np.asarray(estimator.init[1], dtype=np.float64).T
    (rng,) = generators(estimator.random_state, 1)
    unseen = columns_to_one(rng.standard_gamma(1 / START_VARIANCE, (corpus.n_words, K)))
    seen = random_topics(corpus, K, rng, variance=START_VARIANCE)
    return (1 - _SHARE_OF_UNSEEN) * seen + _SHARE_OF_UNSEEN * unseen


def _with_traces(joint: Array) -> Array:
    """A word that no topic has gets a trace in all of them: EM cannot revive a zero."""
    lost = joint.sum(axis=1) <= 0
    if lost.any():
        joint = joint.copy()
        joint[lost] = joint.sum(axis=0) * (_TRACE / len(joint))
    return joint


def _keep_totals(estimator: Any, totals: _Totals) -> None:
    estimator.unigram_ = totals.words / totals.words.sum()
    estimator.n_tokens_ = totals.tokens
    estimator.n_documents_seen_ = totals.documents


def _keep(estimator: PLSA, stream: Stream, model: Model, totals: _Totals) -> None:
    """What is known after these documents; a document's own weights are `transform`'s to find."""
    joint = stream.joint[:, : model.n_topics]
    mass = joint.sum(axis=0, dtype=np.float64)
    clear_fit(estimator)
    components = np.ascontiguousarray((joint / np.where(mass > 0, mass, 1)).astype(joint.dtype).T)
    _keep_totals(estimator, totals)
    components[mass <= 0] = estimator.unigram_
    estimator.components_ = components
    estimator.topic_weights_ = mass / mass.sum()
    estimator.active_topics_ = mass > 0
    estimator.temperature_ = 1.0
    estimator.doc_topic_prior_ = model.doc_prior
    estimator.topic_share_ = None
    fixed = model.background
    estimator.background_weight_ = 0.0 if fixed is None else fixed.share
    estimator.background_ = None if fixed is None else fixed.distribution


class PLSA(TopicScores, CountDecomposition):
    """Probabilistic latent semantic analysis: P(d,w) = P(d) sum_z P(z|d) P(w|z), by maximum likelihood.

    Parameters
    ----------
    n_components : number of topics K.
    solver : name of a solver (see `polyseme.solvers.SOLVERS`) or a solver object with its own settings.
    init : "random", "nndsvd", "lsa", or a pair (P(z|d) documents x K, P(w|z) K x words) to start from; with None for
        P(z|d) the documents are folded in first.
    n_init : number of starts; the fit with the best objective is kept.
    max_iter : most iterations of a start.
    tol : a fit stops when re-optimizing its factors could gain at most this many nats per token (`residual`, an upper
        bound; the true gain is usually several times smaller; with a prior that can lower the objective, the share of
        all tokens that an iteration moves stands in for it). 0.01 nats are 1% of perplexity.
    early_stopping : None; True or a `polyseme.solvers.EarlyStopping`, to end the fit when words that it does not see
        stop becoming more probable, and to keep its best point: against overfitting.
    background : lambda, the share of every document that a fixed background P(w|B) writes, the unigram of the training
        documents; or a `polyseme.Background`, which can bring its own distribution; 0 for none.
    doc_topic_prior, topic_word_prior : prior on P(z|d), and on P(w|z): a number (Dirichlet alpha; 1 is neutral), a
        prior from `polyseme.priors`, or a list of them.
    n_jobs : threads; None for all cores this process may use. Results do not depend on it.
    dtype : None for float32 factors of integer and float32 data, float64 of float64 data. Counts and sample weights
        must be 0 or between 1e-10 and 1e10 for float32, and between 1e-30 and 1e30 for float64.
    random_state : seed of the start.
    verbose : 1 shows a progress bar, 2 leaves it on the screen. Without a terminal, and for a fit inside or beside one
        that shows a bar, the progress is printed as lines on standard error.
    callback : called after each iteration with a dict: iteration, seconds, log_likelihood, objective, residual.
    checkpoint : a file that the fit's state is written to every ten seconds, or a `polyseme.solvers.Checkpoint`,
        which says how often. A fit of the same data with the same parameters that finds it goes on from there, to the
        same result bit for bit; the file stays until you remove it. Fits from shards are kept beside them.

    Attributes
    ----------
    components_ : P(w|z), K x words; rows sum to one.
    doc_topic_ : P(z|d) of the training documents, documents x K, by the same folding in as `transform`.
    topic_weights_, doc_weights_, topic_doc_ : P(z), P(d), P(d|z) (K x documents): the symmetric view of the fit.
    unigram_ : P(w) of the training documents.
    log_likelihood_ : mean log P(w|d) of a training token, natural log.
    history_ : equally long arrays iteration, seconds, log_likelihood, objective, residual.
    n_tokens_ : tokens of the training documents, each with its document's weight; n_documents_seen_ : how many these
        are, and those of `partial_fit` after them.
    background_, background_weight_ : P(w|B) and lambda; None and 0 without a background.
    word_background_ : the share of each word's occurrences that the background explains.
    doc_background_ : the share of each training document that the background writes.
    active_topics_ : which topics are on; a topic that lost all its documents has the unigram as its words.
    annealing_ : with solver Annealed, a row (beta, number of distinct topics) for each stage.
    held_out_ : with early_stopping, mean log-probability of a held-out token at the start and after each iteration.
    vocabulary_ : the word of each column, or None: from a frame, from feature_names in `fit`, or `set_vocabulary`.
    word_documents_ : K x words, the expected number of documents that contain a word and use it in a topic, the sum of
        P(z|d,w) over the training documents that contain it; topic_documents_ : sum_d P(z|d) over the documents;
        document_frequency_ : in how many of them each word occurs. `topics` ranks words by these; a model after
        `partial_fit` has none of them.
    n_iter_, converged_, n_features_in_, feature_names_in_ : as usual in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 1], [0, 0, 3, 4], [0, 1, 2, 6]])
    >>> model = PLSA(n_components=2, random_state=0).fit(X)
    >>> model.transform([[2, 1, 0, 0], [0, 0, 1, 1]]).shape
    (2, 2)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        solver: Any = "auto",
        init: Any = "random",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-2,
        early_stopping: Any = None,
        background: Any = 0.0,
        doc_topic_prior: Any = None,
        topic_word_prior: Any = None,
        n_jobs: int | None = None,
        dtype: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_components = n_components
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Self:
        """Fits the topics to counts X (documents x words, dense or sparse), or to shards (`polyseme.scale`).

        A document of weight v counts as v equal documents. feature_names is the word of each column, or the fitted
        vectorizer that made X; a frame has its own. Ctrl-C keeps the best model so far in the estimator and then raises
        KeyboardInterrupt.
        """
        K = check_n_topics(self.n_components)
        n_init = check_whole_number("n_init", self.n_init, least=1)
        max_iter = check_whole_number("max_iter", self.max_iter, least=1)
        tol = check_nonnegative("tol", self.tol)
        solver = with_early_stopping(self.early_stopping, as_solver(self.solver))
        n_jobs = check_n_jobs(self.n_jobs)
        if isinstance(X, DiskCorpus):
            check_shards(self, X, sample_weight, feature_names)
            interrupted = fit_shards(
                self, X, solver, max_iter=max_iter, tol=tol, n_init=n_init, n_threads=effective_threads(n_jobs)
            )
            finish_fit(self, interrupted, max_iter, tol)
            return self
        X, weights = training_data(self, X, sample_weight, feature_names=feature_names)
        dtype = factor_dtype(self.dtype, X)
        whole, corpus, kept = training_corpora(X, dtype, weights, effective_threads(n_jobs))
        model = model_from_parameters(self, K, corpus)
        store = self._store(n_init, corpus)
        with fit_progress(self.verbose, max_iter, type(self).__name__, self.callback) as listeners:
            best, interrupted = best_of(
                run_to_end(
                    solver,
                    model,
                    corpus,
                    theta,
                    phi,
                    max_iter=max_iter,
                    tol=tol,
                    listeners=listeners,
                    store=store,
                )
                for theta, phi in self._starts(corpus, model, n_init, kept)
            )
        self._keep_topics(best, corpus)
        self.doc_weights_ = whole.weighted_totals / whole.tokens
        del best  # the documents are folded in with the memory of the fit given back
        corpus.release()
        self._keep_documents(X, whole)
        finish_fit(self, interrupted, max_iter, tol)
        return self

    @available_if(takes_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Takes some more documents into the model: one pass of `solvers.Online` over them, in their order.

        The first call starts the model, unless `fit` did; vocabulary and dtype then stay. Sets components_,
        topic_weights_, unigram_, n_tokens_ and n_documents_seen_; the weights of documents are `transform`'s to find.
        Words may come that no document had before; a background is that of the first call's documents. Results do not
        depend on the threads, but on the order.
        """
        read_more(self, X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, feature_names: Any = None) -> Array:
        """`fit`, and P(z|d) of the same documents: what `transform(X)` would give."""
        return self.fit(X, y, sample_weight, feature_names).doc_topic_

    def transform(self, X: Any) -> Array:
        """P(z|d) (documents x K, rows sum to one) by folding in: topics fixed, each document to convergence."""
        check_is_fitted(self)
        if isinstance(X, DiskCorpus):
            return transform_shards(self, X)
        X = count_data(self, X, reset=False)
        return np.concatenate([part.doc_topic for part in self._folded(X, self.topic_weights_)])

    def with_topics(self, components: Any, X: Any, sample_weight: Any = None) -> PLSA:
        """A fitted model with the topics `components` (K x words) and the documents X, which are folded in.

        Nothing is fitted: it is this model after its topics were edited, or with other documents. A word that occurs
        in X and in no topic gets its share of all tokens in every topic.
        """
        check_is_fitted(self)
        given = np.asarray(components, dtype=np.float64)
        if given.ndim != 2 or not len(given) or not np.isfinite(given).all() or (given < 0).any():
            raise InputError("components must be topics x words, finite and non-negative.")
        if (given.sum(axis=1) <= 0).any():
            raise InputError("components must have no topic of zeros.")
        model = copy(self)
        model.n_components = len(given)
        corpus: Any
        if isinstance(X, DiskCorpus):
            check_shards(model, X, sample_weight, self.vocabulary_)
            corpus = X.corpus(self.components_.dtype, effective_threads(self.n_jobs))
        else:
            X, weights = training_data(model, X, sample_weight, feature_names=self.vocabulary_)
            corpus, _, _ = training_corpora(X, self.components_.dtype, weights, effective_threads(self.n_jobs))
        if X.shape[1] != given.shape[1] or X.shape[1] != self.components_.shape[1]:
            raise InputError(f"components and X must have the model's {self.components_.shape[1]} words.")
        model.unigram_, model.n_tokens_ = corpus.unigram, corpus.tokens
        orphans = (given.sum(axis=0) == 0) & (model.unigram_ > 0)
        given = rows_to_one(rows_to_one(given) + np.where(orphans, model.unigram_, 0.0))
        model.components_ = given.astype(self.components_.dtype)
        model.active_topics_ = np.ones(len(given), dtype=bool)
        if isinstance(X, DiskCorpus):
            with X.only_writer():
                keep_folded(model, X, corpus)
            return model
        model.doc_weights_ = corpus.weighted_totals / corpus.tokens
        model._keep_documents(X, corpus)
        return model

    def to_nmf(self) -> Any:
        """The same fit as a KL-NMF: W = n_d P(z|d), H = P(w|z), so that W H = N P(d,w)."""
        from polyseme.estimators.nmf import NMF

        check_is_fitted(self)
        if self._model().background is not None:
            raise UnsupportedError("A model with a background is no product of two factors: it has no NMF.")
        return NMF.from_plsa(self)

    def _store(self, n_init: int, corpus: MemoryCorpus) -> FileCheckpointStore | None:
        """Keeps the fit in the checkpoint file, under a name made of all that decides where it goes."""
        if self.checkpoint is None:
            return None
        if n_init > 1 or not isinstance(self.init, str) or not isinstance(self.random_state, int | np.integer):
            raise InputError("A checkpoint is of one fit from a named start: n_init must be 1, random_state a number.")
        checkpoint = self.checkpoint if isinstance(self.checkpoint, Checkpoint) else Checkpoint(self.checkpoint)
        if checkpoint.path is None:
            raise InputError("A checkpoint needs a path, unless the counts are shards.")
        return FileCheckpointStore(
            checkpoint.path, checkpoint.seconds, name_of_fit(self, corpus.by_doc, corpus.weights)
        )

    def _starts(self, corpus: Any, model: Model, n_init: int, kept: Array | None) -> Any:
        """Pairs (theta, phi), padded, one for each start; `kept` are the documents that the corpus has (None: all)."""
        rngs = generators(self.random_state, n_init)
        if isinstance(self.init, str):
            if self.init not in STARTS:
                raise InputError(f"init must be one of {', '.join(map(repr, STARTS))} or a pair, got {self.init!r}.")
            variance = START_VARIANCE if isinstance(as_solver(self.solver), StepwiseEM) else 1.0
            for rng in rngs:
                yield named_start(self.init, corpus, model, rng, variance=variance)
            return
        if isinstance(self.init, tuple | list) and len(self.init) == 2 and self.init[0] is None:
            yield self._folded_start(corpus, model)
            return
        yield given_pair(self.init, corpus, model, kept)

    def _folded_start(self, corpus: Any, model: Model) -> tuple[Any, Array]:
        """The topics of `init`, and the documents folded in with them."""
        phi = given_topics(self.init[1], corpus, model)
        return corpus.rows(partial(folded_rows, model, phi)), phi

    def _keep_topics(self, fit: FitResult, corpus: Corpus) -> None:
        """Sets the attributes that come from the end of a fit."""
        clear_fit(self)
        model = fit.run.model
        self.unigram_ = corpus.unigram
        phi = corpus.topics(fit.run.phi)[:, : model.n_topics]
        components = np.ascontiguousarray(phi.T)
        components[components.sum(axis=1) == 0] = self.unigram_  # a topic that lost all its documents
        self.components_ = components
        self.n_tokens_ = corpus.tokens
        self.n_documents_seen_ = float(corpus.n_docs)
        self.active_topics_ = (corpus.column_max(fit.run.theta)[: model.n_topics] > 0) & (phi.max(axis=0) > 0)
        self.temperature_ = model.temperature
        self.doc_topic_prior_ = model.doc_prior
        self._keep_background(fit, corpus)
        self.history_ = fit.history
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        held_out = getattr(fit.run, "held_out", None)
        if held_out is not None:
            self.held_out_ = np.array(held_out)
        stages = getattr(fit.run, "stages", None)
        if stages is not None:
            self.annealing_ = np.array(stages, dtype=np.float64).reshape(-1, 2)

    def _keep_background(self, fit: FitResult, corpus: Corpus) -> None:
        """Sets the attributes of the background, by one more E-step."""
        model = replace(fit.run.model, temperature=1.0)
        self.background_weight_, self.background_, self.topic_share_ = 0.0, None, None
        self.word_background_ = np.zeros(corpus.n_words)
        if model.background is None:
            return
        tokens = corpus.background_sums(model, fit.run.theta, fit.run.phi)
        self.background_weight_, self.background_ = model.background.share, model.background.distribution
        np.divide(tokens, corpus.word_totals, out=self.word_background_, where=corpus.word_totals > 0)
        if model.background.joint:
            self.topic_share_ = 1.0 - float(tokens.sum()) / corpus.tokens

    def _keep_documents(self, X: Any, corpus: MemoryCorpus) -> None:
        """Sets the attributes that come from folding the training documents in."""
        parts, found = [], WordDocuments(corpus.weights, corpus.n_threads)
        for part in self._folded(X, None):  # a part's counts are released with it
            operands = self._model().token_operands(part.doc_topic, self.components_, part.background)
            logs = part.counts.logs(*operands, n_threads=corpus.n_threads)
            found.add(part.counts, tempered(operands, self.temperature_), part.doc_topic)
            parts.append((part.doc_topic, part.background, logs, np.diff(part.counts.indptr) == 0))
            del part, operands
        found.keep_in(self)
        self.doc_topic_, self.doc_background_, logs, unknown = map(np.concatenate, zip(*parts, strict=True))
        self.log_likelihood_ = corpus.total_log(logs) / corpus.tokens
        self.topic_weights_ = weighted_sum(self.doc_weights_, self.doc_topic_)
        self.doc_topic_[unknown] = self.topic_weights_

    def _model(self) -> Model:
        """The fitted model; what a file of an older version does not name was not there."""
        background = getattr(self, "background_", None)
        topic_share = getattr(self, "topic_share_", None)
        fixed = None
        if background is not None:
            fixed = FixedBackground(self.background_weight_, background, topic_share is not None)
        return Model(
            self.components_.shape[0],
            self.temperature_,
            fixed,
            doc_prior=getattr(self, "doc_topic_prior_", None),
            topic_share=topic_share,
        )

    def _active_components(self) -> Array:
        """P(w|z) with zeros for topics that are off."""
        active = getattr(self, "active_topics_", None)
        return self.components_ if active is None or active.all() else self.components_ * active[:, np.newaxis]

    def _fold(self, counts: SparseCounts, topic_weights: Floats | None) -> FoldedIn:
        n_threads = effective_threads(self.n_jobs)
        return fold_in(self._model(), counts, self._active_components(), topic_weights, n_threads=n_threads)

    def _folded(self, X: Any, topic_weights: Floats | None) -> Any:
        """X folded in, dense rows a few at a time: a row's result does not depend on its batch."""
        for counts in row_batches(X, self.components_.dtype):
            yield self._fold(counts, topic_weights)

    def _token_probabilities(self, observed: SparseCounts, scored: SparseCounts) -> Array:
        folded = self._fold(observed, self.topic_weights_)
        operands = self._model().token_operands(folded.doc_topic, self.components_, folded.background)
        return scored.products(*operands, n_threads=effective_threads(self.n_jobs))
