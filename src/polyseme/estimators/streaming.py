"""`partial_fit`: PLSA and LDA of documents that come in parts, each seen once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from polyseme.background import as_background
from polyseme.dirichlet import dirichlet_means
from polyseme.errors import UnsupportedError
from polyseme.estimators.asked_model import asked_model
from polyseme.estimators.starts import generators
from polyseme.estimators.validation import (
    factor_dtype,
    forget_fit,
    number_of_topics,
    threads_of,
    training_data,
)
from polyseme.factors import columns_to_one
from polyseme.initialise import given_topics, random_topics
from polyseme.kernels import Array, Floats, padded
from polyseme.model import Model
from polyseme.priors import as_prior
from polyseme.priors.concentration import Concentration
from polyseme.solvers.minibatch import batches, rate
from polyseme.solvers.online import START_VARIANCE, Online, Stream
from polyseme.solvers.stochastic import OnlineVariational, PosteriorStream
from polyseme.solvers.variational import Priors, first_lambda, flat_topics, number_of_documents, padded_parameters
from polyseme.sources.memory import MemorySource, counts_of, effective_threads

if TYPE_CHECKING:
    from polyseme.estimators.lda import LDA
    from polyseme.estimators.plsa import PLSA

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
    K = number_of_topics(estimator.n_components)
    settings = estimator.solver if isinstance(estimator.solver, Online) else Online()
    source, before = _part(estimator, X, sample_weight)
    if before is not None:
        model = estimator._model()
        joint = (estimator._active_components() * estimator.topic_weights_[:, np.newaxis]).T
    else:
        model = asked_model(estimator, K, source)
        joint = _first_topics(estimator, source, K) / K
    seen = 0.0 if before is None else before.documents
    start = padded(_with_traces(joint), source.dtype, model.n_columns)
    stream = Stream(settings, model, start, seen, source.n_threads)
    stream.read(source.by_doc, source.weights, np.arange(source.n_docs), settings.documents_a_batch(source.n_docs))
    _keep(estimator, stream, model, _totals(source, before))


class _Totals(NamedTuple):
    """What a model has seen."""

    documents: float
    tokens: float
    words: Floats
    """tokens of each word"""


def _part(estimator: Any, X: Any, sample_weight: Any) -> tuple[MemorySource, _Totals | None]:
    """The documents of a call, and what the estimator has seen before them; None for the first call."""
    n_threads = effective_threads(threads_of(estimator.n_jobs))
    begun = hasattr(estimator, "components_")
    X, weights = training_data(estimator, X, sample_weight, reset=not begun)
    dtype = estimator.components_.dtype if begun else factor_dtype(estimator.dtype, X)
    source = MemorySource(counts_of(X, dtype), weights, n_threads)
    if not begun:
        return source, None
    if not hasattr(estimator, "n_documents_seen_"):
        raise UnsupportedError("This model is of a version without partial_fit: fit it again to go on from it.")
    tokens = estimator.n_tokens_
    return source, _Totals(estimator.n_documents_seen_, tokens, estimator.unigram_ * tokens)


def _totals(source: MemorySource, before: _Totals | None) -> _Totals:
    """What the estimator has seen after these documents."""
    documents = number_of_documents(source)
    if before is None:
        return _Totals(documents, source.tokens, source.word_totals)
    return _Totals(before.documents + documents, before.tokens + source.tokens, before.words + source.word_totals)


def _first_topics(estimator: PLSA, source: MemorySource, K: int) -> Floats:
    """phi (words x K): a random start that has all words, since those of later documents are not known."""
    if not isinstance(estimator.init, str):
        return np.asarray(estimator.init[1], dtype=np.float64).T
    (rng,) = generators(estimator.random_state, 1)
    unseen = columns_to_one(rng.standard_gamma(1 / START_VARIANCE, (source.n_words, K)))
    seen = random_topics(source, K, rng, variance=START_VARIANCE)
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
    forget_fit(estimator)
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
    source, before = _part(estimator, X, sample_weight)
    totals = _totals(source, before)
    n_docs = max(totals.documents, settings.total_documents or 0.0)
    if before is None:
        fixed = priors(source.n_words)
        tokens = source.tokens / totals.documents * n_docs
        lambda_ = _first_posterior(estimator, source, fixed, tokens)
        seen = 0.0
    else:
        if not hasattr(estimator, "topic_word_dirichlet_"):
            raise UnsupportedError("A fit with solver='map' has no posterior: partial_fit cannot go on from it.")
        fixed = Priors(Concentration(estimator.doc_topic_prior_), Concentration(estimator.topic_word_prior_))
        seen = before.documents
        growth = n_docs / max(seen, settings.total_documents or 0.0)
        lambda_ = _grown(padded_parameters(estimator.topic_word_dirichlet_), fixed.eta.values, growth)
    stream = PosteriorStream(settings, fixed, lambda_, n_docs, source.n_threads)
    size = settings.batch_size or max(_LEAST_BATCH, settings.documents_a_batch(source.n_docs))
    for batch in batches(source.by_doc, source.weights, np.arange(source.n_docs), size):
        if batch.size > 0:
            stream.take(batch, rate(settings.offset, settings.decay, seen / batch.size))
            seen += batch.size
    _keep_posterior(estimator, stream, totals)


def _first_posterior(estimator: LDA, source: MemorySource, priors: Priors, tokens: float) -> Array:
    """lambda (words x width) of so many tokens."""
    K = priors.alpha.values.size
    if isinstance(estimator.init, str):
        (rng,) = generators(estimator.random_state, 1)
        phi = padded(flat_topics(source.n_words, K, rng), source.dtype)
    else:
        phi = given_topics(estimator.init[1], source, Model(K))
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
    forget_fit(estimator)
    estimator.topic_word_dirichlet_ = lambda_
    estimator.components_ = dirichlet_means(lambda_)
    estimator.doc_topic_prior_, estimator.topic_word_prior_ = stream.priors.alpha.values, eta
    estimator.topic_weights_ = expected / expected.sum()
    _keep_totals(estimator, totals)
