"""Corpora drawn from LDA: document length Poisson, weights Dirichlet, topics Dirichlet or given.

Documents come in chunks; each chunk of a corpus has a stream of random numbers of its own, so a corpus does not depend
on how far it is read, and one of any length needs the memory of a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.kernels import Floats

_DOCS_AT_ONCE = 1024


class Corpus(NamedTuple):
    """Counts, and the parameters that they were drawn with."""

    counts: sp.csr_array
    """documents x words, whole numbers"""
    doc_topic: Floats
    """theta, documents x K"""
    topic_word: Floats
    """phi, K x words"""


def sample_corpus(
    n_docs: int,
    n_words: int = 1000,
    n_topics: int = 10,
    *,
    doc_length: float = 100.0,
    doc_topic_prior: Any = 0.1,
    topic_word_prior: Any = 0.05,
    topic_word: Any = None,
    seed: int = 0,
) -> Corpus:
    """Draws a corpus; the same arguments give the same corpus.

    doc_length : mean of the Poisson distribution of a document's tokens; some documents may be empty.
    doc_topic_prior, topic_word_prior : of the Dirichlet distributions, a number or one for each topic (word).
    topic_word : the topics (K x words, rows sum to one) instead of drawn ones; it then says how many words and topics.
    """
    chunks = list(
        sample_chunks(
            n_docs, n_words, n_topics, doc_length=doc_length, doc_topic_prior=doc_topic_prior,
            topic_word_prior=topic_word_prior, topic_word=topic_word, seed=seed,
        )
    )  # fmt: skip
    counts = sp.csr_array(sp.vstack([chunk.counts for chunk in chunks], format="csr"))
    return Corpus(counts, np.concatenate([chunk.doc_topic for chunk in chunks]), chunks[0].topic_word)


def sample_chunks(
    n_docs: int,
    n_words: int = 1000,
    n_topics: int = 10,
    *,
    doc_length: float = 100.0,
    doc_topic_prior: Any = 0.1,
    topic_word_prior: Any = 0.05,
    topic_word: Any = None,
    seed: int = 0,
) -> Iterator[Corpus]:
    """The corpus of `sample_corpus`, at most 1024 documents at a time."""
    if n_docs < 1:
        raise InputError(f"n_docs must be at least 1, got {n_docs!r}.")
    if not 0 < doc_length < float("inf"):
        raise InputError(f"doc_length must be a finite number above 0, got {doc_length!r}.")
    topics_seed, docs_seed = np.random.SeedSequence(seed).spawn(2)
    if topic_word is None:
        eta = _parameters("topic_word_prior", topic_word_prior, n_words)
        phi = _dirichlet(np.random.default_rng(topics_seed), eta, n_topics)
    else:
        phi = _distributions(topic_word)
    alpha = _parameters("doc_topic_prior", doc_topic_prior, len(phi))
    for first in range(0, n_docs, _DOCS_AT_ONCE):
        rng = np.random.default_rng(docs_seed.spawn(1)[0])
        yield _chunk(rng, min(_DOCS_AT_ONCE, n_docs - first), doc_length, alpha, phi)


def _chunk(rng: np.random.Generator, n_docs: int, doc_length: float, alpha: Floats, phi: Floats) -> Corpus:
    theta = _dirichlet(rng, alpha, n_docs)
    row, word = draw_tokens(rng, rng.poisson(doc_length, n_docs), theta, phi)
    ones = np.ones(row.size, dtype=np.int64)
    counts = sp.csr_array(sp.coo_array((ones, (row, word)), (n_docs, phi.shape[1])))
    counts.sort_indices()
    return Corpus(counts, theta, phi)


def draw_tokens(rng: np.random.Generator, lengths: Any, theta: Floats, phi: Floats) -> tuple[Any, Any]:
    """The document and the word of every token, topic after topic.

    Each token of a document of so many draws its topic from theta (documents x K) and its word from phi (K x words).
    """
    by_topic = rng.multinomial(lengths, theta)
    documents, words = [], []
    for many, topic in zip(by_topic.T, phi, strict=True):
        cumulative = np.cumsum(topic)
        words.append(np.searchsorted(cumulative, rng.random(many.sum()) * cumulative[-1], side="right"))
        documents.append(np.repeat(np.arange(len(theta)), many))
    return np.concatenate(documents), np.concatenate(words)


def _dirichlet(rng: np.random.Generator, parameters: Floats, n: int) -> Floats:
    """n draws; with parameters so small that all of a draw underflows, its mass is where one topic's would be."""
    drawn = rng.standard_gamma(parameters, (n, parameters.size))
    lost = np.flatnonzero(drawn.sum(axis=1) <= 0)
    drawn[lost, rng.choice(parameters.size, lost.size, p=parameters / parameters.sum())] = 1
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def _parameters(name: str, value: Any, size: int) -> Floats:
    values = np.asarray(value, dtype=np.float64)
    if values.ndim > 1 or (values.ndim == 1 and values.size != size):
        raise InputError(f"{name} must be one number, or {size} of them.")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(f"{name} must be finite and greater than 0.")
    return np.array(np.broadcast_to(values, size))


def _distributions(topic_word: Any) -> Floats:
    phi = np.asarray(topic_word, dtype=np.float64)
    if phi.ndim != 2 or (phi < 0).any() or not np.allclose(phi.sum(axis=1), 1, atol=1e-6):
        raise InputError("topic_word must be K x words, not negative, with rows that sum to one.")
    return phi
