"""Where a fit starts: phi (words x K) from the seed and the vocabulary, theta uniform.

A start never depends on the order or the number of documents, so that a document of weight two is two documents,
and shards of any layout start alike. An exactly uniform phi is a fixed point of every solver: no start is that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from polyseme.core.factors import columns_to_one
from polyseme.core.model import Model
from polyseme.data.corpus import Corpus, MemoryCorpus
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import Array, Floats, padded

_UNIGRAM_SHARE = 0.1


def random_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator, *, variance: float = 1.0) -> Floats:
    """phi_wk = unigram_w * e_wk, columns normalized; e has a gamma distribution with mean one (here: exponential)."""
    noise = rng.standard_gamma(1 / variance, (corpus.n_words, n_topics))
    return columns_to_one(noise * corpus.unigram[:, np.newaxis])


def nndsvd_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Non-negative double SVD (Boutsidis and Gallopoulos 2008): the larger of each singular vector's two signs."""
    vectors = _right_singular_vectors(corpus, n_topics, rng)
    positive, negative = np.maximum(vectors, 0), np.maximum(-vectors, 0)
    larger = np.linalg.norm(positive, axis=0) >= np.linalg.norm(negative, axis=0)
    return _with_unigram(np.where(larger, positive, negative), corpus, n_topics, rng)


def lsa_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Latent semantic analysis as a start: the squares of a right singular vector sum to one, as P(w|z) does."""
    return _with_unigram(_right_singular_vectors(corpus, n_topics, rng) ** 2, corpus, n_topics, rng)


Start = Callable[[MemoryCorpus, int, np.random.Generator], Floats]

STARTS: dict[str, Start] = {"random": random_topics, "nndsvd": nndsvd_topics, "lsa": lsa_topics}


def pair_of_factors(
    pair: Any, names: tuple[str, str], shapes: tuple[tuple[int, int], tuple[int, int]] | None = None
) -> tuple[Floats, Floats]:
    """A pair of non-negative float64 matrices of the given shapes, checked."""
    try:
        first, second = (np.asarray(factor, dtype=np.float64) for factor in pair)
    except (TypeError, ValueError):
        raise InputError(
            f"init must be one of {', '.join(map(repr, STARTS))} or a pair ({', '.join(names)}) of arrays."
        ) from None
    if first.ndim != 2 or second.ndim != 2 or (shapes is not None and (first.shape, second.shape) != shapes):
        wanted = "two dimensions each" if shapes is None else f"shapes {shapes[0]} and {shapes[1]}"
        raise InputError(
            f"init: {names[0]} and {names[1]} must have {wanted}, got shapes {first.shape} and {second.shape}."
        )
    for name, factor in zip(names, (first, second), strict=True):
        if not np.isfinite(factor).all() or (factor < 0).any():
            raise InputError(f"init: {name} must be finite and non-negative.")
    return first, second


def named_start(
    name: str, corpus: MemoryCorpus, model: Model, rng: np.random.Generator, *, variance: float = 1.0
) -> tuple[Array, Array]:
    """theta (uniform) and phi, padded, of one of STARTS; `variance` is that of the noise of a random one."""
    if not corpus.in_memory and name != "random":
        raise UnsupportedError(f"init={name!r} needs all counts in memory: for shards use init='random', or a pair.")
    start = partial(random_topics, variance=variance) if name == "random" else STARTS[name]
    phi = start(corpus, model.n_topics, rng)
    if model.word_prior is not None:
        phi = model.word_prior.shaped(phi.T).T
    return corpus.uniform(model), padded(phi, corpus.dtype, model.n_columns)


def given_pair(pair: Any, corpus: MemoryCorpus, model: Model, kept: Array | None = None) -> tuple[Array, Array]:
    """A pair (P(z|d) documents x K, P(w|z) K x words) to start from, checked, normalized and padded; phi word-major.

    `kept` are the documents of the pair that the corpus has (None: all).
    """
    if kept is not None:
        pair = [np.asarray(factor)[kept] if index == 0 else factor for index, factor in enumerate(pair)]
    if not corpus.in_memory:
        raise UnsupportedError("For shards init is a pair (None, topic_word): the documents are folded in.")
    counts = corpus.counts
    shapes = ((counts.n_docs, model.n_topics), (model.n_topics, counts.n_words))
    theta, phi = pair_of_factors(pair, ("doc_topic", "topic_word"), shapes)
    if (theta.sum(axis=1) <= 0).any():
        raise InputError("init: doc_topic and topic_word must have no row of zeros.")
    return padded(theta / theta.sum(axis=1, keepdims=True), counts.dtype, model.n_columns), _start(phi, corpus, model)


def given_topics(topic_word: Any, corpus: Corpus, model: Model) -> Array:
    """P(w|z) (K x words) to start from, checked, normalized and padded; word-major."""
    shape = (model.n_topics, corpus.n_words)
    try:
        phi = np.asarray(topic_word, dtype=np.float64)
    except (TypeError, ValueError):
        phi = np.empty(0)
    if phi.shape != shape or not np.isfinite(phi).all() or (phi < 0).any():
        raise InputError(f"init: topic_word must be an array of shape {shape} of finite numbers of at least 0.")
    return _start(phi, corpus, model)


def _start(phi: Floats, corpus: Corpus, model: Model) -> Array:
    """phi, padded and word-major, if every topic has words and every word that occurs has a topic."""
    if (phi.sum(axis=1) <= 0).any():
        raise InputError("init: doc_topic and topic_word must have no row of zeros.")
    missing = np.flatnonzero((phi.sum(axis=0) <= 0) & (corpus.word_totals > 0))
    if missing.size:
        raise InputError(
            f"init: topic_word has no topic for {missing.size} of the words that occur (such as column {missing[0]}): "
            "give each of them a little."
        )
    return padded((phi / phi.sum(axis=1, keepdims=True)).T, corpus.dtype, model.n_columns)


def _right_singular_vectors(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """The leading right singular vectors of the weighted counts (words x at most K), largest first.

    Found as eigenvectors of X' diag(weight) X, whose size and start do not depend on the documents.
    """
    n_words = corpus.counts.n_words
    matrix, weights = corpus.counts.matrix(), corpus.weights

    def gram(v: Floats) -> Floats:
        scores = matrix @ v
        if weights is not None:
            scores = scores * weights.reshape((-1,) + (1,) * (scores.ndim - 1))
        return np.asarray(matrix.T @ scores)

    if n_words <= max(2 * n_topics, 32):
        values, vectors = np.linalg.eigh(gram(np.eye(n_words)))
        return np.asarray(vectors[:, ::-1][:, : min(n_topics, n_words)])
    operator = LinearOperator((n_words, n_words), matvec=gram, dtype=np.float64)
    values, vectors = eigsh(operator, k=n_topics, v0=rng.random(n_words))
    return np.asarray(vectors[:, np.argsort(-values)])


def _with_unigram(topics: Floats, corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Mixes a little of the unigram into every topic (EM cannot revive a zero); missing topics become random."""
    phi = random_topics(corpus, n_topics, rng)
    found = columns_to_one(np.where(corpus.unigram[:, np.newaxis] > 0, topics, 0))
    used = np.flatnonzero(found.sum(axis=0) > 0)
    phi[:, used] = (1 - _UNIGRAM_SHARE) * found[:, used] + _UNIGRAM_SHARE * phi[:, used]
    return phi
