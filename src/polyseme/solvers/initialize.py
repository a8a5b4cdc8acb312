"""Starts of a fit: phi (words x K) from the seed and the counts, theta uniform.

A start does not depend on the order or the number of documents, so a document of weight two is equivalent to two
documents, and all shard layouts have the same start. A uniform phi is a fixed point of every solver and never used.

References
----------
M. C. U. Araújo, T. C. B. Saldanha, R. K. H. Galvão, T. Yoneyama, H. C. Chame and V. Visani. The successive projections
    algorithm for variable selection in spectroscopic multicomponent analysis. Chemometrics and Intelligent Laboratory
    Systems 57, 2001.
S. Arora, R. Ge, Y. Halpern, D. Mimno, A. Moitra, D. Sontag, Y. Wu and M. Zhu. A practical algorithm for topic modeling
    with provable guarantees. ICML 2013.
D. Arthur and S. Vassilvitskii. k-means++: the advantages of careful seeding. SODA, 2007.
C. Boutsidis and E. Gallopoulos. SVD based initialization: a head start for nonnegative matrix factorization. Pattern
    Recognition 41, 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from polyseme.core.model import Model
from polyseme.core.shard import Shard
from polyseme.data.corpus import Corpus, MemoryCorpus, uniform_rows
from polyseme.errors import InputError, UnsupportedError
from polyseme.kernels import NUMBERS_AT_ONCE, Array, Floats, normalize_columns, padded, single_threaded_blas
from polyseme.utils import got

_NOISE_SHARE = 0.5
"""Weight of a random topic around the unigram in starts from documents."""
_ENOUGH_NONZEROS, _DOCUMENTS_PER_TOPIC = 1 << 18, 10
"""Non-zeros of the documents from which starts are drawn, but at least so many documents for each topic."""
_SPREAD, _DECIMALS = 1000.0, 10
"""Factor of projections whose fractional part is a random number, and decimals by which distinct documents differ."""
_EQUAL = 1e-12
"""Squared Hellinger distances below this are rounding errors."""
_UNIGRAM_SHARE = 0.1
"""Weight of a random topic around the unigram in starts from singular vectors, because EM cannot increase a zero."""
_ANCHOR_SHARE, _WORDS_PER_ANCHOR = 0.8, 20
"""Share of the tokens that the most frequent words have, which can be anchors, but at least so many for each topic."""


def random_topics(corpus: Corpus, n_topics: int, rng: np.random.Generator, *, variance: float = 1.0) -> Floats:
    """Return phi_wk ∝ unigram_w * e_wk; e has a gamma distribution with mean one (exponential if variance = 1)."""
    phi = rng.standard_gamma(1 / variance, (corpus.n_words, n_topics))
    phi *= corpus.unigram[:, np.newaxis]
    sums = phi.sum(axis=0)
    phi /= np.where(sums > 0, sums, 1)
    return phi


def document_topics(corpus: Corpus, n_topics: int, rng: np.random.Generator, *, variance: float = 1.0) -> Floats:
    """Return means of groups of documents, each mixed with a random topic around the unigram.

    A group has the documents nearest to one of K documents that are far apart. These are drawn as by k-means++ (Arthur
    and Vassilvitskii 2007): one after the other, with a probability proportional to the squared Hellinger distance to
    the nearest document drawn before. If fewer than K documents differ, the other topics are random.

    The random numbers of a document are functions of the projection of sqrt(x_d / n_d) on a random vector, which has a
    standard normal distribution. They are the same for documents with the same shares of words, in any order, scale
    and type, and rounding changes them by rounding only.
    """
    phi = random_topics(corpus, n_topics, rng, variance=variance)
    found = corpus.map(partial(_candidates, int(rng.integers(1 << 63)), n_topics))
    projections = np.concatenate([shard.projections for shard in found])
    shares = sp.csr_array(sp.vstack([shard.shares for shard in found], format="csr"))
    kept = _sample(projections, np.diff(shares.indptr), n_topics)
    shares = sp.csr_array(shares[kept])
    groups = _groups(shares, projections[kept], n_topics, rng)
    grouped, n_groups = np.flatnonzero(groups >= 0), groups.max() + 1
    members = sp.csr_array((np.ones(grouped.size), (groups[grouped], grouped)), shape=(n_groups, groups.size))
    means = sp.coo_array(members @ shares)
    phi[:, :n_groups] *= _NOISE_SHARE
    phi[means.col, means.row] += (1 - _NOISE_SHARE) * means.data / means.sum(axis=1)[means.row]
    return phi


class _Candidates(NamedTuple):
    """Some distinct documents of a shard."""

    projections: Floats
    shares: sp.csr_array
    """Their counts, divided by their tokens."""


def _candidates(seed: int, n_topics: int, shard: Shard, _: Any) -> _Candidates:
    """Return the documents of a shard that a sample of all shards can contain."""
    counts = shard.by_doc
    direction = np.random.default_rng(seed).standard_normal(counts.n_words)
    projections = np.zeros(counts.n_docs)
    for rows, block in counts.blocks(NUMBERS_AT_ONCE):
        roots = np.sqrt(block.values, dtype=np.float64) * direction[block.indices]
        projections[rows] = block.sums_by_row(roots) / np.sqrt(np.maximum(block.totals, np.finfo(np.float64).tiny))
    lengths = np.diff(counts.indptr)
    possible = np.flatnonzero(lengths if shard.weights is None else lengths * (shard.weights > 0))
    kept = possible[_sample(projections[possible], lengths[possible], n_topics)]
    taken = counts.take(kept)
    values = taken.values / np.repeat(taken.totals, np.diff(taken.indptr))
    return _Candidates(
        projections[kept], sp.csr_array((values, taken.indices, taken.indptr), (kept.size, counts.n_words))
    )


def _sample(projections: Floats, lengths: Array, n_topics: int) -> Array:
    """Return distinct documents in random order, until they are enough for the topics and have enough non-zeros."""
    _, distinct = np.unique(np.round(projections, _DECIMALS), return_index=True)
    order = distinct[np.argsort(_uniform(projections[distinct], _SPREAD))]
    enough = int(np.searchsorted(np.cumsum(lengths[order]), _ENOUGH_NONZEROS, side="right"))
    return np.asarray(order[: max(_DOCUMENTS_PER_TOPIC * n_topics, enough)])


def _uniform(projections: Floats, spread: float) -> Floats:
    """Return a number in [0, 1) for each document, with a uniform distribution if the spread is large."""
    return np.asarray(np.mod(projections * spread, 1.0))


def _groups(shares: sp.csr_array, projections: Floats, n_groups: int, rng: np.random.Generator) -> Array:
    """Return for each row the number of the nearest one of rows that are far apart, or -1 if it is like none of them.

    There are fewer groups if there are fewer different rows.
    """
    roots = sp.csr_array((np.sqrt(shares.data), shares.indices, shares.indptr), shares.shape)
    groups, similarity = np.full(shares.shape[0], -1), np.zeros(shares.shape[0])
    for group in range(n_groups):
        distances = np.where(1 - similarity > _EQUAL, 1 - similarity, 0)
        if not distances.any():
            break
        # the least of exponential waits with these rates draws with these weights
        waits = -np.log1p(-_uniform(projections, rng.uniform(1, 2) * _SPREAD))
        drawn = np.argmin(np.divide(waits, distances, out=np.full_like(waits, np.inf), where=distances > 0))
        new = roots @ roots[[drawn]].toarray()[0]
        new[drawn] = 1
        nearer = new > similarity + _EQUAL
        groups[nearer], similarity[nearer] = group, new[nearer]
    return groups


def nndsvd_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Return topics by non-negative double SVD: the positive or negative part of each singular vector."""
    return with_unigram(_larger_parts(_singular_vectors(corpus, n_topics, rng)[0]), corpus, n_topics, rng)


def correspondence_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Return topics by non-negative double SVD of x / sqrt(n_d n_w), which shows rare topics of long documents too."""
    return with_unigram(correspondence_parts(corpus, n_topics, rng), corpus, n_topics, rng)


def correspondence_parts(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Return the topics of `correspondence_topics` without noise (words x at most K); the first are those of fewer."""
    sizes, words = np.sqrt(corpus.totals), np.sqrt(corpus.word_totals)
    vectors, _ = _singular_vectors(
        corpus, n_topics, rng, *(np.divide(1, root, out=np.zeros_like(root), where=root > 0) for root in (sizes, words))
    )
    return _larger_parts(vectors) * words[:, np.newaxis]


@single_threaded_blas()
def spectral_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Return topics from words that are far apart, which does not depend on the seed.

    Let y_w be the shares of documents in the tokens of word w, projected on the K leading singular vectors of
    x / sqrt(n_d n_w). Without noise y_w = sum_k P(k|w) y_k, where y_k is that of a word of topic k only, so such anchor
    words are the corners of a simplex. Successive projections (Araújo and others 2001) find corners among the frequent
    words, and P(k|w) are the coefficients of y_w, negative ones set to zero (after Arora and others 2013). If fewer
    than K words are linearly independent, the other topics are random.
    """
    sizes, words = (
        np.divide(1, np.sqrt(totals), out=np.zeros_like(totals), where=totals > 0)
        for totals in (corpus.totals, corpus.word_totals)
    )
    vectors, values = _singular_vectors(corpus, n_topics, np.random.default_rng(0), sizes, words)
    places = vectors * values * words[:, np.newaxis]
    order = np.argsort(-corpus.word_totals, kind="stable")
    enough = int(np.searchsorted(np.cumsum(corpus.unigram[order]), _ANCHOR_SHARE))
    frequent = order[: max(_WORDS_PER_ANCHOR * n_topics, enough)]
    anchors = places[frequent[_corners(places[frequent], n_topics)]]
    shares = np.maximum(places @ np.linalg.pinv(anchors), 0)
    shares *= corpus.word_totals[:, np.newaxis] / np.maximum(shares.sum(axis=1, keepdims=True), _EQUAL)
    phi = random_topics(corpus, n_topics, rng)
    phi[:, : len(anchors)] = (1 - _UNIGRAM_SHARE) * normalize_columns(shares)
    phi[:, : len(anchors)] += _UNIGRAM_SHARE * corpus.unigram[:, np.newaxis]
    return phi


def _corners(points: Floats, most: int) -> list[int]:
    """Return linearly independent rows by successive projections: each one is the longest beside the ones before."""
    left, found = points.copy(), list[int]()
    for _ in range(min(most, points.shape[1])):
        lengths = np.einsum("ik,ik->i", left, left)
        longest = int(lengths.argmax())
        if not found:
            least = _EQUAL * lengths[longest]
        if not lengths[longest] > least:
            break
        found.append(longest)
        direction = left[longest] / np.sqrt(lengths[longest])
        left -= np.outer(left @ direction, direction)
    return found


def lsa_topics(corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Return squared right singular vectors, which sum to one, as the topics."""
    return with_unigram(_singular_vectors(corpus, n_topics, rng)[0] ** 2, corpus, n_topics, rng)


Start = Callable[[MemoryCorpus, int, np.random.Generator], Floats]

STARTS: dict[str, Start] = {
    "documents": document_topics,
    "random": random_topics,
    "nndsvd": nndsvd_topics,
    "correspondence": correspondence_topics,
    "lsa": lsa_topics,
    "spectral": spectral_topics,
}
"""Starts by the name that `init=` takes."""
FACTORS = ("doc_topic", "topic_word")
"""Names of a pair in messages, unless an estimator has its own."""
_FROM_SHARDS: dict[str, Callable[..., Floats]] = {"documents": document_topics, "random": random_topics}
"""Starts that need not have all counts in memory."""


def pair_of_factors(
    pair: Any, names: tuple[str, str], shapes: tuple[tuple[int, int], tuple[int, int]] | None = None
) -> tuple[Floats, Floats]:
    """Return a pair of float64 matrices. Raise InputError unless both are non-negative and have the given shapes."""
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


def check_named_start(name: str) -> None:
    """Raise InputError unless `name` is "auto" or that of a start."""
    if name != "auto" and name not in STARTS:
        raise InputError(f"init must be one of 'auto', {', '.join(map(repr, STARTS))} or a pair, {got(name)}")


def named_start(
    name: str, corpus: Any, model: Model, rng: np.random.Generator, *, variance: float = 1.0
) -> tuple[Any, Array]:
    """Return theta (uniform) and phi of a start in STARTS, padded. `variance` is that of the noise of random topics."""
    if not corpus.in_memory and name not in _FROM_SHARDS:
        raise UnsupportedError(
            f"init={name!r} needs all counts in memory: for shards use init='documents', init='random' or "
            "a pair whose first part is None."
        )
    start = partial(_FROM_SHARDS[name], variance=variance) if name in _FROM_SHARDS else STARTS[name]
    phi = start(corpus, model.n_topics, rng)
    if model.word_prior is not None:
        phi = model.word_prior.adapt_start(phi.T).T
    return corpus.rows(partial(uniform_rows, model)), padded(phi, corpus.dtype, model.n_columns)


def is_pair(init: Any) -> bool:
    """Return whether a start is a pair, of which the first part may be None."""
    return isinstance(init, tuple | list) and len(init) == 2


def is_topics_only(init: Any) -> bool:
    """Return whether a start is (None, topic_word): the topics are given, and the documents are folded in."""
    return is_pair(init) and init[0] is None


def check_init(init: Any, names: Iterable[str], *, topics_only: bool = False) -> None:
    """Raise InputError unless `init` is one of the names or a pair; with `topics_only`, a pair (None, topic_word)."""
    is_given = is_topics_only if topics_only else is_pair
    if init in names if isinstance(init, str) else is_given(init):
        return
    pair = "(None, topic_word)" if topics_only else "a pair (doc_topic, topic_word)"
    got = repr(init) if isinstance(init, str | Real | None) else type(init).__name__  # not whole arrays
    raise InputError(f"init must be one of {', '.join(map(repr, names))} or {pair}, got {got}.")


def given_pair(
    pair: Any, corpus: Any, model: Model, rows: Array | None = None, names: tuple[str, str] = FACTORS
) -> tuple[Array, Array]:
    """Return theta and phi (words x width), normalized and padded, from a pair (P(z|d), P(w|z)) of the user.

    `rows` are the documents of the pair that the corpus has (None: all). If the model has a free scale, the first
    factor keeps it. Rows of zeros are accepted for documents without words only.
    """
    if rows is not None:
        pair = [np.asarray(factor)[rows] if index == 0 else factor for index, factor in enumerate(pair)]
    if not corpus.in_memory:
        raise UnsupportedError(
            f"init: a corpus on disk takes a name or (None, {names[1]}), got ({names[0]}, {names[1]})."
        )
    counts = corpus.counts
    shapes = ((counts.n_docs, model.n_topics), (model.n_topics, counts.n_words))
    theta, phi = pair_of_factors(pair, names, shapes)
    sums = theta.sum(axis=1, keepdims=True)
    _check_rows(names[1], phi.sum(axis=1))
    _check_rows(names[0], np.where(corpus.totals > 0, sums[:, 0], 1))
    docs = theta if model.free_scale else np.divide(theta, sums, out=np.full_like(theta, 1 / len(phi)), where=sums > 0)
    return padded(docs, counts.dtype, model.n_columns), _padded_start(phi, corpus, model, names[1])


def given_topics(topic_word: Any, corpus: Corpus, model: Model, name: str = FACTORS[1]) -> Array:
    """Return phi (words x width), normalized and padded, from P(w|z) (K x words) of the user."""
    phi = start_topics(topic_word, (model.n_topics, corpus.n_words), name)
    return _padded_start(phi, corpus, model, name)


def start_topics(topic_word: Any, shape: tuple[int, int], name: str = FACTORS[1]) -> Floats:
    """Return topics x words of the user in float64. Raise InputError unless they have the shape and no row of zeros."""
    try:
        phi = np.asarray(topic_word, dtype=np.float64)
    except (TypeError, ValueError):
        phi = np.empty(0)
    if phi.shape != shape:
        raise InputError(f"init: {name} must be an array of shape {shape}, got shape {phi.shape}.")
    if not np.isfinite(phi).all() or (phi < 0).any():
        raise InputError(f"init: {name} must be an array of finite, non-negative numbers.")
    _check_rows(name, phi.sum(axis=1))
    return phi


def _check_rows(name: str, sums: Floats) -> None:
    """Raise InputError if a row of a factor has the sum zero."""
    empty = np.flatnonzero(sums <= 0)
    if empty.size:
        raise InputError(f"init: {name} must have no row of zeros, such as row {empty[0]}.")


def _padded_start(phi: Floats, corpus: Corpus, model: Model, name: str) -> Array:
    """Return phi (words x width). Raise InputError unless words that occur have a topic."""
    missing = np.flatnonzero((phi.sum(axis=0) <= 0) & (corpus.word_totals > 0))
    if missing.size:
        raise InputError(
            f"init: {name} is zero in {missing.size} columns of words that occur (such as column {missing[0]}): give "
            "each of them a small positive number."
        )
    return padded((phi / phi.sum(axis=1, keepdims=True)).T, corpus.dtype, model.n_columns)


def _larger_parts(vectors: Floats) -> Floats:
    """Return the positive or the negative part of each column, whichever is longer."""
    positive, negative = np.maximum(vectors, 0), np.maximum(-vectors, 0)
    larger = np.linalg.norm(positive, axis=0) >= np.linalg.norm(negative, axis=0)
    return np.where(larger, positive, negative)


@single_threaded_blas()
def _singular_vectors(
    corpus: MemoryCorpus,
    n_topics: int,
    rng: np.random.Generator,
    doc_scales: Floats | None = None,
    word_scales: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the leading right singular vectors of the weighted counts (words x at most K), and the values, falling.

    They are eigenvectors of Y' diag(weight) Y, whose size and start vector do not depend on the documents. Y are the
    counts, with rows and columns multiplied by the scales.
    """
    n_words = corpus.counts.n_words
    matrix = corpus.counts.matrix()
    by_row = np.ones(corpus.n_docs) if corpus.weights is None else corpus.weights
    if doc_scales is not None:
        by_row = by_row * doc_scales**2
    by_word = np.ones(n_words) if word_scales is None else word_scales

    def gram(v: Floats) -> Floats:
        shape = (-1,) + (1,) * (v.ndim - 1)
        scores = (matrix @ (v * by_word.reshape(shape))) * by_row.reshape(shape)
        return np.asarray((matrix.T @ scores) * by_word.reshape(shape))

    if n_words <= max(2 * n_topics, 32):
        values, vectors = np.linalg.eigh(gram(np.eye(n_words)))
    else:
        operator = LinearOperator((n_words, n_words), matvec=gram, dtype=np.float64)
        values, vectors = eigsh(operator, k=n_topics, v0=rng.random(n_words))
    order = np.argsort(-values)[:n_topics]
    return np.asarray(vectors[:, order]), np.sqrt(np.maximum(values[order], 0))


def with_unigram(topics: Floats, corpus: MemoryCorpus, n_topics: int, rng: np.random.Generator) -> Floats:
    """Mix a little of a random topic around the unigram into every topic; missing topics are random."""
    phi = random_topics(corpus, n_topics, rng)
    found = normalize_columns(np.where(corpus.unigram[:, np.newaxis] > 0, topics, 0))
    used = np.flatnonzero(found.sum(axis=0) > 0)
    phi[:, used] = (1 - _UNIGRAM_SHARE) * found[:, used] + _UNIGRAM_SHARE * phi[:, used]
    return phi
