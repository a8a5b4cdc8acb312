"""`partial_fit`: PLSA of documents that come in parts, each seen once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.background import as_background
from polyseme.errors import UnsupportedError
from polyseme.estimators.asked_model import asked_model
from polyseme.estimators.starts import generators
from polyseme.estimators.validation import factor_dtype, forget_fit, threads_of, training_data, whole_number
from polyseme.factors import columns_to_one
from polyseme.initialise import random_topics
from polyseme.kernels import Array, Floats, padded
from polyseme.model import Model
from polyseme.priors import as_prior
from polyseme.solvers.online import START_VARIANCE, Online, Stream
from polyseme.sources.memory import MemorySource, counts_of, effective_threads

if TYPE_CHECKING:
    from polyseme.estimators.plsa import PLSA

_SHARE_OF_UNSEEN = 0.5
_TRACE = 1e-6


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
    K = whole_number("n_components", estimator.n_components, least=1)
    settings = estimator.solver if isinstance(estimator.solver, Online) else Online()
    n_threads = effective_threads(threads_of(estimator.n_jobs))
    begun = hasattr(estimator, "components_")
    X, weights = training_data(estimator, X, sample_weight, reset=not begun)
    dtype = estimator.components_.dtype if begun else factor_dtype(estimator.dtype, X)
    source = MemorySource(counts_of(X, dtype), weights, n_threads)
    if begun:
        model = estimator._model()
        joint = (estimator._active_components() * estimator.topic_weights_[:, np.newaxis]).T
        seen, tokens, words = estimator.n_documents_seen_, estimator.n_tokens_, estimator.unigram_ * estimator.n_tokens_
    else:
        model = asked_model(estimator, K, source)
        joint = _first_topics(estimator, source, K) / K
        seen, tokens, words = 0.0, 0.0, np.zeros(source.n_words)
    stream = Stream(settings, model, padded(_with_traces(joint), dtype, model.n_columns), seen, n_threads)
    stream.read(source.by_doc, weights, np.arange(source.n_docs), settings.documents_a_batch(source.n_docs))
    _keep(estimator, stream, model, tokens + source.tokens, words + source.word_totals)


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


def _keep(estimator: PLSA, stream: Stream, model: Model, tokens: float, words: Floats) -> None:
    """What is known after these documents; a document's own weights are `transform`'s to find."""
    joint = stream.joint[:, : model.n_topics]
    mass = joint.sum(axis=0, dtype=np.float64)
    forget_fit(estimator)
    components = np.ascontiguousarray((joint / np.where(mass > 0, mass, 1)).astype(joint.dtype).T)
    estimator.unigram_ = words / words.sum()
    components[mass <= 0] = estimator.unigram_
    estimator.components_ = components
    estimator.topic_weights_ = mass / mass.sum()
    estimator.active_topics_ = mass > 0
    estimator.n_tokens_ = tokens
    estimator.n_documents_seen_ = stream.seen
    estimator.temperature_ = 1.0
    estimator.doc_topic_prior_ = model.doc_prior
    estimator.topic_share_ = None
    fixed = model.background
    estimator.background_weight_ = 0.0 if fixed is None else fixed.share
    estimator.background_ = None if fixed is None else fixed.distribution
