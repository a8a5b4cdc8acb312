"""Priors whose rows know nothing of each other.

Priors that look at all rows together: Vorontsov and Potapenko (2015), with the M-step of BigARTM.

Topics guided by words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr

from polyseme.errors import InputError
from polyseme.kernels import Floats, weighted_sum
from polyseme.priors.base import (
    DOCUMENTS,
    TOPICS,
    Prior,
    Vocabulary,
    check_length,
    combine,
    finite_number,
    strength_of,
    vector_of,
    weighted_logs,
)


@dataclass(frozen=True)
class Dirichlet(Prior):
    """Log density sum (alpha - 1) log f; alpha is one number, or one for each column. 1 is neutral.

    The M-step is max(counts + alpha - 1, 0), normalized. alpha < 1 makes rows sparse: the density has no bound at
    zeros, so it is summed over the entries above zero, and the objective falls when an entry reaches zero.
    """

    alpha: float | Sequence[float]

    def __post_init__(self) -> None:
        if np.ndim(self.alpha) == 0:
            alpha: float | tuple[float, ...] = finite_number("Dirichlet", "alpha", self.alpha)
        else:
            alpha = vector_of("Dirichlet", "alpha", self.alpha)
        if np.min(alpha) <= 0:
            raise InputError(f"Dirichlet: alpha must be greater than zero, got {np.min(alpha):g}.")
        object.__setattr__(self, "alpha", alpha)

    @property
    def _excess(self) -> Floats:
        return np.asarray(self.alpha, dtype=np.float64) - 1

    @property
    def neutral(self) -> bool:
        return not self._excess.any()

    @property
    def monotone(self) -> bool:
        return bool((self._excess >= 0).all())

    def check(self, shape: tuple[int, ...]) -> None:
        check_length("Dirichlet", "alpha", self.alpha, shape)

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        return np.broadcast_to(self._excess, counts.shape)

    def row_log_density(self, factor: Floats) -> Floats:
        self.check(factor.shape)
        return weighted_logs(self._excess, factor)


@dataclass(frozen=True)
class _Target(Prior):
    """strength pseudo-counts, spread over a row as `target` says: Vorontsov and Potapenko (2015)."""

    _sign: ClassVar[int]
    """1 where rows are drawn to the target, -1 where they are pushed away"""
    strength: float
    target: Sequence[float] | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "strength", strength_of(name, self.strength))
        if self.target is not None:
            target = vector_of(name, "target", self.target)
            if min(target) < 0 or sum(target) == 0:
                raise InputError(f"{name}: target must have no negative entry and a positive sum.")
            object.__setattr__(self, "target", target)

    @property
    def _shares(self) -> Floats | None:
        return None if self.target is None else np.asarray(self.target) / sum(self.target)

    def _spread(self, n_columns: int) -> Floats:
        shares = np.full(n_columns, 1 / n_columns) if self._shares is None else self._shares
        return self._sign * self.strength * shares

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return self._sign > 0 or self.neutral

    def check(self, shape: tuple[int, ...]) -> None:
        check_length(type(self).__name__, "target", self.target, shape)

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        return np.broadcast_to(self._spread(counts.shape[1]), counts.shape)

    def row_log_density(self, factor: Floats) -> Floats:
        self.check(factor.shape)
        return weighted_logs(self._spread(factor.shape[1]), factor)


@dataclass(frozen=True)
class Smoothing(_Target):
    """Log density strength sum target log f: rows are drawn to `target` (a distribution; None: uniform).

    Minus strength times the Kullback-Leibler divergence from the target to the row, that is `strength` tokens seen
    with the target's frequencies. 0 is neutral.
    """

    _sign: ClassVar[int] = 1


@dataclass(frozen=True)
class Sparsing(_Target):
    """Log density -strength sum target log f: rows are pushed away from `target` (None: uniform), down to zeros.

    The opposite of `Smoothing`. Zeros are treated as by `Dirichlet` with alpha < 1. 0 is neutral.
    """

    _sign: ClassVar[int] = -1


@dataclass(frozen=True)
class Entropic(Prior):
    """Log density beta sum f log f, minus beta times the entropy: Sparse-PLSA of Shashanka, Raj and Smaragdis (2007).

    beta > 0 makes rows sparse, beta < 0 makes them flat; 0 is neutral. It weighs against a row's number of tokens.
    """

    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", finite_number("Entropic", "beta", self.beta))

    @property
    def neutral(self) -> bool:
        return self.beta == 0

    @property
    def monotone(self) -> bool:
        return True

    @property
    def entropic_weight(self) -> float:
        return self.beta

    def row_log_density(self, factor: Floats) -> Floats:
        return np.asarray(-self.beta * entr(factor).sum(axis=1))


@dataclass(frozen=True)
class Decorrelation(Prior):
    """Log density -strength sum over pairs of rows f_k . f_l: topics that share no words. For topics x words.

    The M-step is max(counts - strength f_k sum over l != k of f_l, 0), normalized: one step of a fixed-point
    iteration, which can overshoot, so that the objective may fall. 0 is neutral.
    """

    acts_on: ClassVar[tuple[str, ...]] = (TOPICS,)
    strength: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", strength_of("Decorrelation", self.strength))

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return self.neutral

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        others = np.maximum(factor.sum(axis=0) - factor, 0)
        return -self.strength * factor * others

    def row_log_density(self, factor: Floats) -> Floats:
        """Half of every pair goes to each of its rows."""
        others = np.maximum(factor.sum(axis=0) - factor, 0)
        return np.asarray(-self.strength / 2 * (factor * others).sum(axis=1))


@dataclass(frozen=True)
class TopicSelection(Prior):
    """Log density -strength (N / K) sum_t log p(t): small topics are switched off. For documents x topics.

    p(t) = sum_d n_d f_dt / N is a topic's share of all N tokens. A topic loses strength / (K p(t)) of a document's
    tokens in it: with less than strength / K of all tokens no document can consist of it, and at strengths above 1 at
    most K / strength topics stay. 0 is neutral. A topic that is off is left out of the log density.

    The M-step, max(counts - strength n_d f_dt / (K p(t)), 0), normalized, is one step of a fixed-point iteration; the
    objective may fall. n_d are `row_totals` (see `with_row_totals`), or else the sums of the counts.
    """

    acts_on: ClassVar[tuple[str, ...]] = (DOCUMENTS,)
    strength: float
    row_totals: Floats | None = field(default=None, repr=False, compare=False)
    row_weights: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", strength_of("TopicSelection", self.strength))

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return self.neutral

    def row_by_row(self) -> None:
        """Nothing: which topics are on was decided by all documents together."""
        return None

    def with_row_totals(self, totals: Floats, weights: Floats | None = None) -> TopicSelection:
        return replace(self, row_totals=totals, row_weights=weights)

    def check(self, shape: tuple[int, ...]) -> None:
        if self.row_totals is not None and len(self.row_totals) != shape[0]:
            raise InputError(
                f"TopicSelection: there are {len(self.row_totals)} row totals, but {shape[0]} rows: give one for each."
            )

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        totals = counts.sum(axis=1) if self.row_totals is None else self.row_totals
        tokens = self._counted(totals)
        topic_tokens = weighted_sum(tokens, factor)
        parts = np.zeros(counts.shape)
        np.divide(totals[:, np.newaxis] * factor, topic_tokens, out=parts, where=topic_tokens > 0)
        return -self.strength * tokens.sum() / counts.shape[1] * parts

    def row_log_density(self, factor: Floats) -> Floats:
        """Each document has a part in proportion to its tokens."""
        self.check(factor.shape)
        if self.row_totals is None:
            raise InputError("TopicSelection needs the documents' lengths for its log density: use with_row_totals.")
        tokens = self._counted(self.row_totals)
        topic_tokens = weighted_sum(tokens, factor)
        logs = np.log(topic_tokens[topic_tokens > 0]) - np.log(max(tokens.sum(), np.finfo(np.float64).tiny))
        return np.asarray(-self.strength / factor.shape[1] * logs.sum() * self.row_totals)

    def _counted(self, totals: Floats) -> Floats:
        """A document's tokens, as often as it counts."""
        return totals if self.row_weights is None else totals * self.row_weights


@dataclass(frozen=True)
class SeedWords(Prior):
    """Log density strength sum log f_kw over the seed words w of each guided topic k. For topics x words.

    `seeds` maps a topic's number to its words: names, which `resolve` (or `vocabulary`, here) turns into columns, or
    columns. Every seed word counts as if it had been seen `strength` more times in its topic; 0 is neutral. Topics
    that are not named stay free, and so do all other words.
    """

    acts_on: ClassVar[tuple[str, ...]] = (TOPICS,)
    seeds: Mapping[int, Sequence[str | int]]
    vocabulary: InitVar[Vocabulary | None] = None
    strength: float = 100.0

    def __post_init__(self, vocabulary: Vocabulary | None) -> None:
        object.__setattr__(self, "strength", strength_of("SeedWords", self.strength))
        if not isinstance(self.seeds, Mapping) or not self.seeds:
            raise InputError(f"SeedWords: seeds must map topic numbers to lists of words, got {self.seeds!r}.")
        seeds = {_topic(topic): _words(topic, words) for topic, words in self.seeds.items()}
        object.__setattr__(self, "seeds", seeds if vocabulary is None else _columns(seeds, vocabulary))

    @property
    def neutral(self) -> bool:
        return self.strength == 0

    @property
    def monotone(self) -> bool:
        return True

    def resolve(self, vocabulary: Vocabulary) -> SeedWords:
        """The same with columns instead of names; InputError names the words that the vocabulary lacks."""
        return SeedWords(self.seeds, vocabulary, self.strength)

    def check(self, shape: tuple[int, ...]) -> None:
        names = [word for words in self.seeds.values() for word in words if isinstance(word, str)]
        if names:
            raise InputError(
                f"SeedWords needs the vocabulary, to know the columns of {_listed(names)}: give vocabulary, or columns."
            )
        for topic, columns in self.seeds.items():
            if topic >= shape[0]:
                raise InputError(f"SeedWords: there are seeds for topic {topic}, but topics end at {shape[0] - 1}.")
            beyond = [column for column in columns if int(column) >= shape[1]]
            if beyond:
                raise InputError(f"SeedWords: column {beyond[0]} is a seed word, but columns end at {shape[1] - 1}.")

    def shaped(self, factor: Floats) -> Floats:
        """A guided topic starts with half of its probability on its seed words."""
        factor = factor.copy()
        for topic, columns in self.seeds.items():
            if columns:
                factor[topic] /= 2
                factor[topic, [int(column) for column in columns]] += 0.5 / len(columns)
        return factor

    def pseudo_counts(self, counts: Floats, factor: Floats) -> Floats:
        self.check(counts.shape)
        added = np.zeros(counts.shape)
        for topic, columns in self.seeds.items():
            added[topic, [int(column) for column in columns]] = self.strength
        return added

    def row_log_density(self, factor: Floats) -> Floats:
        return weighted_logs(self.pseudo_counts(factor, factor), factor)


def _topic(topic: Any) -> int:
    if not isinstance(topic, Integral) or isinstance(topic, bool) or topic < 0:
        raise InputError(f"SeedWords: a topic must be a whole number from 0 on, got {topic!r}.")
    return int(topic)


def _words(topic: Any, words: Any) -> tuple[str | int, ...]:
    if isinstance(words, str) or not np.iterable(words):
        raise InputError(f"SeedWords: the words of topic {topic} must be a list, got {words!r}.")
    return tuple(dict.fromkeys(_word(word) for word in words))


def _word(word: Any) -> str | int:
    if isinstance(word, str):
        return str(word)
    if not isinstance(word, Integral) or isinstance(word, bool) or word < 0:
        raise InputError(f"SeedWords: a word must be a name or a column from 0 on, got {word!r}.")
    return int(word)


def _columns(seeds: dict[int, tuple[str | int, ...]], vocabulary: Vocabulary) -> dict[int, tuple[int, ...]]:
    if isinstance(vocabulary, Mapping):
        column_of = {str(word): int(column) for word, column in vocabulary.items()}
    else:
        column_of = {str(word): column for column, word in enumerate(vocabulary)}
    names = [word for words in seeds.values() for word in words if isinstance(word, str)]
    missing = [word for word in names if word not in column_of]
    if missing:
        raise InputError(f"SeedWords: the vocabulary does not have {_listed(missing)}.")
    return {
        topic: tuple(dict.fromkeys(column_of[word] if isinstance(word, str) else word for word in words))
        for topic, words in seeds.items()
    }


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in dict.fromkeys(names))


def as_prior(value: Any) -> Prior | None:
    """None, a number (Dirichlet alpha), a Prior, or a list of Priors, as one Prior or None."""
    if value is None or isinstance(value, Prior):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        return Dirichlet(float(value))
    if isinstance(value, list | tuple):
        return combine(value)
    raise InputError(f"A prior must be None, a number (Dirichlet alpha), a Prior or a list of Priors, got {value!r}.")
