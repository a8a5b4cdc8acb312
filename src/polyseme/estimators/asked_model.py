"""The model that a PLSA's parameters ask for: its background and its priors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyseme.background import as_background
from polyseme.errors import UnsupportedError
from polyseme.estimators.validation import refuse_other_factors
from polyseme.model import FixedBackground, Model
from polyseme.priors import DOCUMENTS, TOPICS, as_prior
from polyseme.sources import Source

if TYPE_CHECKING:
    from polyseme.estimators.plsa import PLSA


def asked_model(estimator: PLSA, K: int, source: Source) -> Model:
    """The model that the parameters describe, checked against the data."""
    background = as_background(estimator.background)
    doc_prior, word_prior = as_prior(estimator.doc_topic_prior), as_prior(estimator.topic_word_prior)
    names = estimator.vocabulary_
    if word_prior is not None and names is not None:
        word_prior = word_prior.resolve(list(names))
    sides = (
        ("doc_topic_prior", doc_prior, DOCUMENTS, (source.n_docs, K)),
        ("topic_word_prior", word_prior, TOPICS, (K, source.n_words)),
    )
    for name, prior, factor, shape in sides:
        if prior is not None:
            refuse_other_factors(name, prior, factor)
            prior.check(shape)
    if background is not None and background.joint and doc_prior is not None:
        raise UnsupportedError(
            "JointBackground leaves P(d|z) free, so there is no P(z|d) for doc_topic_prior: use Background."
        )
    fixed = None
    if background is not None:
        fixed = FixedBackground(background.share, background.probabilities(source.unigram), background.joint)
    return Model(
        K,
        background=fixed,
        doc_prior=None if doc_prior is None or doc_prior.neutral else doc_prior,
        word_prior=None if word_prior is None or word_prior.neutral else word_prior,
    )
