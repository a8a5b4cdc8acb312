"""Seed words of named topics: as users give them, in files, in the vocabulary, and as a prior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.io.files import TEXT, check_regular, list_of, mapping_to, parse_json
from polyseme.options import named
from polyseme.priors import SeedWords

SEED_SHARE = 0.01
"""Pseudo-counts of a seed word, as a share of the tokens of an average topic.

One word in a hundred is the frequency of the most frequent words of a topic, so a seed word counts as much as these
words in a corpus of any size. On a third of 20 Newsgroups (20 topics, three seed words for each of nine groups, mean of
four seeds), the share of the named group in its topic and the share of the group that the topic covers were 0.71 and
0.69 without the prior, 0.75 and 0.65 with this value, and 0.82 and 0.54 with three times this value.
"""
MAX_SEED_FILE = 1 << 24
"""Largest file of seed words, in bytes."""


class SeedColumns(NamedTuple):
    """Seed words as columns of a vocabulary."""

    columns: dict[str, list[int]]
    """Columns of the seed words of each named topic."""
    unknown: dict[str, list[str]]
    """Seed words of named topics that the vocabulary does not have."""

    @property
    def notes(self) -> list[str]:
        """A sentence about each topic with unknown words."""
        rules = f"{named('min_df')}, {named('max_df')}, stop words"
        return [
            f"{named('seeds')}: the documents do not have these words of {name!r}, or they are not counted ({rules}): "
            f"{', '.join(words)}."
            for name, words in self.unknown.items()
        ]


def checked_seeds(seeds: Any) -> dict[str, list[str]] | None:
    """Return the argument `seeds` of `polyseme.fit` as JSON values. Raise InputError if it has another type."""
    if seeds is None:
        return None
    if not isinstance(seeds, Mapping):
        raise InputError(
            f'{named("seeds")} must be names with their words, {{"Sport": ["match", "team"]}}, got {seeds!r}.'
        )
    for name, words in seeds.items():
        wrong = isinstance(words, str) or not isinstance(words, Iterable)
        if wrong or not isinstance(name, str) or not all(isinstance(word, str) for word in words):
            raise InputError(f"{named('seeds')}: the words of {name!r} must be a list of strings, got {words!r}.")
    return {name: list(words) for name, words in seeds.items()}


def seed_columns(seeds: Mapping[str, Sequence[str]], vectorizer: Any) -> SeedColumns:
    """Find the seed words of named topics in the vocabulary of a fitted vectorizer.

    The vectorizer counts a seed word like a document, with the same case, language, stems and phrases. If a seed of
    several words is not a phrase of the vocabulary, each of its words is a seed word. Raises InputError if a topic has
    no known word, or two topics have the same word.
    """
    if not seeds:
        raise InputError(f"{named('seeds')} has no topics: give at least one name with its words.")
    words = [(name, word) for name, given in seeds.items() for word in given]
    counts = vectorizer.transform([word for _, word in words])
    columns: dict[str, list[int]] = {name: [] for name in seeds}
    owners: dict[int, tuple[str, str]] = {}
    unknown: dict[str, list[str]] = {}
    for row, (name, word) in enumerate(words):
        word_columns = counts[[row]].indices.tolist()
        if not word_columns:
            unknown.setdefault(name, []).append(word)
        for column in word_columns:
            other, earlier = owners.setdefault(column, (name, word))
            if other != name:
                same = repr(word) if word == earlier else f"{word!r} (counted as the same word as {earlier!r})"
                raise InputError(
                    f"{named('seeds')}: {same} is given for {other!r} and for {name!r}: give it for one topic."
                )
            if column not in columns[name]:
                columns[name].append(column)
    empty = [name for name, known in columns.items() if not known]
    if empty:
        given = ", ".join(seeds[empty[0]]) or "no words"
        raise InputError(
            f"{named('seeds')}: none of the words of {empty[0]!r} ({given}) occurs in the documents: give other words."
        )
    return SeedColumns(columns, unknown)


def seed_prior(seeds: Mapping[str, Sequence[int]], n_topics: int, word_totals: Any) -> SeedWords:
    """Return the prior that gives each seed word of a topic `SEED_SHARE` of the tokens of an average topic."""
    if len(seeds) > n_topics:
        raise InputError(
            f"{named('seeds')} names {len(seeds)} topics, but {named('n_topics', n_topics)}: raise {named('n_topics')}."
        )
    if word_totals is None:
        raise InputError(f"{named('seeds')} needs word_totals, the number of tokens of each word.")
    strength = SEED_SHARE * float(np.sum(word_totals)) / n_topics
    return SeedWords({topic: list(columns) for topic, columns in enumerate(seeds.values())}, None, strength)


def read_seeds(path: str | PathLike[str]) -> dict[str, list[str]]:
    """Read the seed words of named topics from a file, in its order. Raise InputError with the line that is wrong.

    The file is a JSON object, {"Sport": ["match", "team"]}, or UTF-8 text with a line for each topic, "Sport: match,
    team". Empty lines and lines that start with # are ignored.
    """
    path = Path(path)
    try:
        check_regular(path)
        if path.stat().st_size > MAX_SEED_FILE:
            raise ValueError(f"it is larger than {MAX_SEED_FILE >> 20} MiB")
        text = path.read_bytes().decode("utf-8-sig")
        seeds = _seeds_of_json(text) if text.lstrip().startswith("{") else _seeds_of_lines(text)
    except OSError as error:
        raise InputError(f"{named('seeds')}: {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError(f"{named('seeds')}: line {line} of {path} is not UTF-8: save the file as UTF-8.") from None
    except ValueError as error:
        raise InputError(f"{named('seeds')}: {path} is not a file of seed words: {error}.") from None
    if not seeds:
        raise InputError(f"{named('seeds')}: {path} has no topics: write lines such as Sport: match, team.")
    return seeds


def _seeds_of_json(text: str) -> dict[str, list[str]]:
    content = parse_json(text)
    mapping_to(list_of(TEXT)).require("the file", content)
    seeds = {name.strip(): [word.strip() for word in words if word.strip()] for name, words in content.items()}
    if len(seeds) < len(content):
        raise ValueError("a name occurs twice")
    for name, words in seeds.items():
        if not name or not words:
            raise ValueError(f"the topic {name!r} needs a name and at least one word")
    return seeds


def _seeds_of_lines(text: str) -> dict[str, list[str]]:
    seeds: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        name, words = name.strip(), [word.strip() for word in rest.split(",") if word.strip()]
        if not (colon and name and words):
            raise ValueError(f"line {number} must be a name, a colon and words, such as Sport: match, team")
        if name in seeds:
            raise ValueError(f"line {number} repeats the topic {name!r}")
        seeds[name] = words
    return seeds
