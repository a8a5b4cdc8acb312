"""The table that `topics()` returns, and the words of topics as strings."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, overload

import numpy as np

from polyseme.errors import InputError, MissingExtraError
from polyseme.kernels import Array
from polyseme.metrics.words import RELEVANCE, WordAmounts, fitted_topics, shown_words, topic_rows, word_amounts
from polyseme.utils import word_names

WIDTH = 80
"""Width of a printed table of topics, in columns of a terminal."""
_HEADER = f"{'topic':>5} {'weight':>6} {'fit':>4}  words"


class Topic(NamedTuple):
    """One row of a table of topics."""

    id: int
    name: str
    """Name given to the topic, or ""."""
    weight: float
    """P(z)."""
    fit: float
    """Mean share of the topic in its own documents; NaN if the model has no documents."""
    words: list[str]


@dataclass(frozen=True, repr=False)
class TopicTable(Sequence[Topic]):
    """The topics of a model, one row per topic.

    `table[k]` is the row of topic k, `table["words"]` a column. Printed, the topics are sorted by weight and at most 80
    columns wide.

    Attributes
    ----------
    rows : tuple of Topic
        Topics by number, with the fields id, name, weight, fit and words.
    notes : tuple of str
        Remarks that are printed below the table.
    columns : tuple of str
        Names of the columns.
    """

    rows: tuple[Topic, ...]
    notes: tuple[str, ...] = ()
    """Remarks that are printed below the table."""

    columns = Topic._fields

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.rows), len(self.columns)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.rows)

    @overload
    def __getitem__(self, key: int) -> Topic: ...
    @overload
    def __getitem__(self, key: slice) -> TopicTable: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.to_dict()[key]
        return TopicTable(self.rows[key], self.notes) if isinstance(key, slice) else self.rows[key]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns by name. The words of a topic are one string, separated by commas."""
        return {
            "id": [row.id for row in self.rows],
            "name": [row.name for row in self.rows],
            "weight": [row.weight for row in self.rows],
            "fit": [row.fit for row in self.rows],
            "words": [", ".join(row.words) for row in self.rows],
        }

    def to_polars(self) -> Any:
        """Return a polars data frame with the columns id, name, weight, fit and words."""
        return _frame_of("polars", self.to_dict())

    def to_pandas(self) -> Any:
        """Return a pandas data frame with the columns id, name, weight, fit and words."""
        return _frame_of("pandas", self.to_dict())

    def __str__(self) -> str:
        indent = " " * _HEADER.index("words")
        lines = [_HEADER]
        for row in self._by_weight():
            fit = "" if np.isnan(row.fit) else f"{row.fit:.0%}"
            first, *more = _wrapped(row.words, WIDTH - len(indent), f"{row.name}:" if row.name else "")
            lines.append(f"{row.id:>5} {row.weight:>6.1%} {fit:>4}  {first}".rstrip())
            lines += [indent + line for line in more]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{row.id}</td><td>{row.weight:.1%}</td><td>{'' if np.isnan(row.fit) else f'{row.fit:.0%}'}</td>"
            f'<td style="text-align:left">{_named(row)}</td></tr>'
            for row in self._by_weight()
        ]
        head = '<tr><th>topic</th><th>weight</th><th>fit</th><th style="text-align:left">words</th></tr>'
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>{notes}"

    def _by_weight(self) -> list[Topic]:
        return sorted(self.rows, key=lambda row: -row.weight)


def words_of_model(
    model: Any, vocabulary: Any = None, n_words: int = 10, *, relevance: float = RELEVANCE
) -> list[list[str]]:
    """Return the words shown for each topic of a fitted model, at most `n_words` (see `polyseme.metrics.words`)."""
    return words_of_amounts(word_amounts(model), names_of_words(model, vocabulary), n_words, relevance=relevance)


def words_of_amounts(
    amounts: WordAmounts, names: Sequence[str], n_words: int, *, relevance: float = RELEVANCE
) -> list[list[str]]:
    """Return the words shown for each topic, without words of probability zero."""
    return [
        [str(names[word]) for word in row if topic[word] > 0]
        for row, topic in zip(shown_words(amounts, n_words, relevance=relevance), amounts.topic_word, strict=True)
    ]


def names_of_words(model: Any, vocabulary: Any = None) -> list[str]:
    """Return the word of each column: as given, as the model knows them, or x0, x1, ..."""
    size = int(topic_rows(model).shape[1])
    if vocabulary is None:
        vocabulary = _known_words(model)
    if vocabulary is None:
        return [f"x{word}" for word in range(size)]
    return list(word_names("vocabulary", vocabulary, size))


def column_words(model: Any, vocabulary: Sequence[str] | None, vectorizer: Any) -> list[str]:
    """Return the word of each column: from the vocabulary, the vectorizer or the model."""
    if vocabulary is None:
        vocabulary = _known_words(model) if vectorizer is None else vectorizer.get_feature_names_out()
    if vocabulary is None:
        raise InputError(
            "The word of each column is needed: give vocabulary or vectorizer, or call the model's set_vocabulary."
        )
    return [str(word) for word in vocabulary]


def _known_words(model: Any) -> Any:
    """Return the words that a model knows; None if it knows none."""
    fitted = fitted_topics(model)
    if fitted is not None:
        return fitted.vocabulary
    words = getattr(model, "vocabulary_", None)  # LSA
    return getattr(model, "feature_names_in_", None) if words is None else words  # models of scikit-learn


def largest_items(rows: Array, names: Sequence[str] | None, count: int) -> list[list[str]]:
    """Return the names of the `count` largest positive numbers of each row; x0, x1, ... without names."""
    size = rows.shape[1]
    if names is None:
        names = [f"x{item}" for item in range(size)]
    if len(names) != size:
        raise InputError(f"vocabulary must have one name for each of the {size} words, got {len(names)}.")
    return [[str(names[item]) for item in largest(row, count) if row[item] > 0] for row in rows]


def largest(values: Array, count: int) -> list[int]:
    """Return the positions of the `count` largest values, largest first. Of equal values the first comes first."""
    return [int(i) for i in np.argsort(-values, kind="stable")[:count]]


def frame(columns: dict[str, list[Any]]) -> Any:
    """Return a polars data frame, or a pandas data frame if polars is not installed."""
    try:
        return _frame_of("polars", columns)
    except MissingExtraError:
        return _frame_of("pandas", columns)


def _named(row: Topic) -> str:
    """Return the name and the words of a topic as HTML."""
    name = f"<b>{html.escape(row.name)}</b>: " if row.name else ""
    return name + html.escape(", ".join(row.words))


def _wrapped(words: Sequence[str], width: int, line: str = "") -> list[str]:
    """Return a line followed by words, separated by commas, in lines of at most `width` columns.

    A longer word has its own line.
    """
    lines = []
    for position, word in enumerate(words):
        piece = word + ("," if position < len(words) - 1 else "")
        longer = f"{line} {piece}" if line else piece
        if line and _cells(longer) > width:
            lines.append(line)
            longer = piece
        line = longer
    return [*lines, line]


def _cells(text: str) -> int:
    """Return the width of a text in a terminal: East Asian wide characters take two columns, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _frame_of(library: str, columns: dict[str, list[Any]]) -> Any:
    try:
        return import_module(library).DataFrame(columns)
    except ModuleNotFoundError:
        raise MissingExtraError("A table of topics", "cli") from None
