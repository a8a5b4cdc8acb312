"""Topics guided by words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from polyseme.errors import InputError
from polyseme.kernels import Floats
from polyseme.priors.base import TOPICS, Prior, Vocabulary, strength_of, weighted_logs


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
