"""Corpora drawn from LDA: document length Poisson, weights Dirichlet, topics Dirichlet or given.

Documents come in chunks; each chunk of a corpus has a stream of random numbers of its own, so a corpus does not depend
on how far it is read, and one of any length needs the memory of a chunk.

Documents drawn from a known PLSA or LDA model: any number of them, with words as frequent as Zipf's law says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.text.readers import Document

_DOCS_AT_ONCE = 1024


class SampledCounts(NamedTuple):
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
) -> SampledCounts:
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
    return SampledCounts(counts, np.concatenate([chunk.doc_topic for chunk in chunks]), chunks[0].topic_word)


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
) -> Iterator[SampledCounts]:
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


def _chunk(rng: np.random.Generator, n_docs: int, doc_length: float, alpha: Floats, phi: Floats) -> SampledCounts:
    theta = _dirichlet(rng, alpha, n_docs)
    row, word = draw_tokens(rng, rng.poisson(doc_length, n_docs), theta, phi)
    ones = np.ones(row.size, dtype=np.int64)
    counts = sp.csr_array(sp.coo_array((ones, (row, word)), (n_docs, phi.shape[1])))
    counts.sort_indices()
    return SampledCounts(counts, theta, phi)


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


_BLOCK = 512
"""Documents drawn together; each block has a generator of its own."""

_ZIPF_SHIFT = 2.7
_TOPIC_SHAPE = 0.2
_LENGTH_SPREAD = 0.5
_SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprtvz" for vowel in "aou"]


@dataclass(frozen=True)
class SyntheticCorpus:
    """A model and the documents drawn from it; nothing but the topics is kept in memory.

    topic_word : P(w|z), topics x words.
    words : their names, the most frequent first.

    Iterating gives the documents, ``Document`` by ``Document``; ``blocks`` gives their counts.
    """

    topic_word: NDArray[np.float64]
    words: list[str]
    n_documents: int
    length: float
    alpha: float
    model: str
    seed: int

    def __len__(self) -> int:
        return self.n_documents

    def __iter__(self) -> Iterator[Document]:
        words = np.array(self.words, dtype=object)
        for start, drawn in self._drawn():
            order = np.lexsort((drawn.order, drawn.documents))
            pieces = np.split(words[drawn.tokens[order]], np.cumsum(np.bincount(drawn.documents))[:-1])
            for number, (tokens, theta) in enumerate(zip(pieces, drawn.doc_topic, strict=True), start):
                yield Document(str(number), " ".join(tokens), None, (f"topic {theta.argmax()}",), None, "synthetic")

    def blocks(self) -> Iterator[tuple[NDArray[np.float64], Any]]:
        """P(z|d) and the int32 CSR counts of some hundred documents at a time."""
        for _, drawn in self._drawn():
            n, w = len(drawn.doc_topic), self.topic_word.shape[1]
            ones = np.ones(len(drawn.tokens), dtype=np.int32)
            yield drawn.doc_topic, sp.csr_array(sp.coo_array((ones, (drawn.documents, drawn.tokens)), shape=(n, w)))

    def counts(self) -> Any:
        """All counts, documents x words, int32 CSR."""
        return sp.vstack([counts for _, counts in self.blocks()], format="csr")

    def doc_topic(self) -> NDArray[np.float64]:
        """P(z|d) of all documents."""
        return np.vstack([theta for theta, _ in self.blocks()])

    def _drawn(self) -> Iterator[tuple[int, _Drawn]]:
        for start in range(0, self.n_documents, _BLOCK):
            yield start, self._draw(start // _BLOCK).first(self.n_documents - start)

    def _draw(self, block: int) -> _Drawn:
        """Whole blocks whatever the number of documents, so that a longer corpus begins like a shorter one."""
        random = np.random.default_rng([self.seed, 1, block])
        theta, lengths = _MODELS[self.model](random, self.topic_word.shape[0], self.alpha, self.length)
        documents, tokens = draw_tokens(random, lengths, theta, self.topic_word)
        return _Drawn(theta, documents, tokens, random.random(len(documents)))


@dataclass(frozen=True)
class _Drawn:
    """The tokens of a block: their documents, their words, and random numbers to put them in order."""

    doc_topic: NDArray[np.float64]
    documents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    order: NDArray[np.float64]

    def first(self, n: int) -> _Drawn:
        if n >= len(self.doc_topic):
            return self
        kept = self.documents < n
        return _Drawn(self.doc_topic[:n], self.documents[kept], self.tokens[kept], self.order[kept])


def _lda(random: np.random.Generator, k: int, alpha: float, length: float) -> tuple[Any, Any]:
    """theta ~ Dirichlet(alpha), length ~ Poisson."""
    return random.dirichlet(np.full(k, alpha), size=_BLOCK), random.poisson(length, size=_BLOCK)


def _plsa(random: np.random.Generator, k: int, alpha: float, length: float) -> tuple[Any, Any]:
    """PLSA knows no law of theta: here a document has one topic to three, the others exactly zero, and P(d) varies."""
    theta = np.zeros((_BLOCK, k))
    for row in theta:
        topics = random.choice(k, size=min(int(random.integers(1, 4)), k), replace=False)
        row[topics] = random.dirichlet(np.ones(len(topics)))
    weight = np.exp(_LENGTH_SPREAD * random.standard_normal(_BLOCK) - _LENGTH_SPREAD**2 / 2)
    return theta, random.poisson(length * weight)


_MODELS = {"lda": _lda, "plsa": _plsa}


def synthetic_corpus(
    n_documents: int = 1000,
    *,
    n_topics: int = 10,
    n_words: int = 5000,
    length: float = 100.0,
    model: str = "lda",
    alpha: float = 0.1,
    zipf: float = 1.0,
    topic_word: ArrayLike | None = None,
    random_state: int = 0,
) -> SyntheticCorpus:
    """A corpus of any size, drawn from a known model.

    Parameters
    ----------
    model : "lda" (theta ~ Dirichlet(alpha)) or "plsa" (a few topics a document, given weights, uneven P(d)).
    n_topics, n_words : of the topics, which are drawn too: P(w|z) is proportional to (rank + 2.7)^-zipf times a
        gamma variable, so that the words of the whole corpus follow Zipf's law.
    length : mean number of tokens of a document.
    alpha : of the Dirichlet law of LDA.
    topic_word : P(w|z), topics x words, to draw from instead, such as a fitted model's ``components_``.
    random_state : a seed; the same seed gives the same documents, and a longer corpus begins like a shorter one.
    """
    if model not in _MODELS:
        raise InputError(f"There is no model {model!r} to draw from: choose 'lda' or 'plsa'.")
    for name, value in (("n_documents", n_documents), ("n_topics", n_topics), ("n_words", n_words)):
        if value < 1:
            raise InputError(f"{name} must be at least 1, not {value}.")
    for name, number in (("length", length), ("alpha", alpha)):
        if not number > 0:
            raise InputError(f"{name} must be above 0, not {number}.")
    topics = _zipf_topics(n_topics, n_words, zipf, random_state) if topic_word is None else _checked(topic_word)
    words = [_word(rank) for rank in range(topics.shape[1])]
    return SyntheticCorpus(topics, words, n_documents, float(length), float(alpha), model, random_state)


def _zipf_topics(n_topics: int, n_words: int, exponent: float, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng([seed, 0])
    topics = random.gamma(_TOPIC_SHAPE, size=(n_topics, n_words)) + np.finfo(float).tiny
    topics *= (np.arange(n_words) + 1 + _ZIPF_SHIFT) ** -exponent
    return topics / topics.sum(axis=1, keepdims=True)


def _checked(topic_word: ArrayLike) -> NDArray[np.float64]:
    topics = np.asarray(topic_word, dtype=np.float64)
    if topics.ndim != 2 or not np.all(topics >= 0) or not np.allclose(topics.sum(axis=1), 1.0, atol=1e-5):
        raise InputError("topic_word must be a table of topics x words whose rows are distributions.")
    return topics


def _word(rank: int) -> str:
    """A word of two syllables or more that no stemmer changes, shorter for smaller ranks."""
    base = len(_SYLLABLES)
    syllables = 2
    while rank >= base**syllables:
        rank -= base**syllables
        syllables += 1
    digits = [rank // base**place % base for place in range(syllables)]
    return "".join(_SYLLABLES[digit] for digit in reversed(digits))
