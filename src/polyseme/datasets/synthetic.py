"""Documents drawn from a known PLSA or LDA model: any number of them, with words as frequent as Zipf's law says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from polyseme.errors import InputError
from polyseme.sampling import draw_tokens
from polyseme.text.readers import Document

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
