"""Tables that estimators return."""

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
from polyseme.metrics.words import RELEVANCE, WordAmounts, shown_words, word_amounts
from polyseme.utils import word_names

WIDTH = 80
"""columns of a printed table of topics"""
_HEAD = f"{'topic':>5} {'weight':>6} {'fit':>4}  words"


def names_of_words(model: Any, vocabulary: Any = None) -> list[str]:
    """The word of each column: as given (names, or a fitted vectorizer), as the model knows them, or x0, x1, ..."""
    size = int(model.components_.shape[1])
    if vocabulary is None:
        vocabulary = getattr(model, "vocabulary_", None)
    if vocabulary is None:
        return [f"x{word}" for word in range(size)]
    return list(word_names("vocabulary", vocabulary, size))


def column_words(model: Any, vocabulary: Sequence[str] | None, vectorizer: Any) -> list[str]:
    """Return the word of each column: from the vocabulary, the vectorizer or the model."""
    if vocabulary is None and vectorizer is not None:
        vocabulary = vectorizer.get_feature_names_out()
    for name in ("vocabulary_", "feature_names_in_"):  # the latter of scikit-learn's own models
        if vocabulary is None:
            vocabulary = getattr(model, name, None)
    if vocabulary is None:
        raise InputError(
            "The word of each column is needed: give vocabulary or vectorizer, or call the model's set_vocabulary."
        )
    return [str(word) for word in vocabulary]


def words_of_model(
    model: Any, vocabulary: Any = None, n_words: int = 10, *, relevance: float = RELEVANCE
) -> list[list[str]]:
    """The words shown for each topic of a fitted model, at most n_words: see `polyseme.metrics.words`."""
    return words_of_amounts(word_amounts(model), names_of_words(model, vocabulary), n_words, relevance=relevance)


def words_of_amounts(
    amounts: WordAmounts, names: Sequence[str], n_words: int, *, relevance: float = RELEVANCE
) -> list[list[str]]:
    """The words shown for each topic; without words that have no probability in it."""
    return [
        [str(names[word]) for word in row if topic[word] > 0]
        for row, topic in zip(shown_words(amounts, n_words, relevance=relevance), amounts.topic_word, strict=True)
    ]


def largest_items(rows: Array, names: Sequence[str] | None, count: int) -> list[list[str]]:
    """The names of the `count` largest positive numbers of each row; without names x0, x1, ..."""
    size = rows.shape[1]
    if names is None:
        names = [f"x{item}" for item in range(size)]
    if len(names) != size:
        raise InputError(f"vocabulary must have one name for each of the {size} words, got {len(names)}.")
    return [[str(names[item]) for item in largest(row, count) if row[item] > 0] for row in rows]


def largest(values: Array, count: int) -> list[int]:
    """The positions of the `count` largest values, largest first; of equal ones the first."""
    return [int(i) for i in np.argsort(-values, kind="stable")[:count]]


class Topic(NamedTuple):
    """One row of a table of topics."""

    id: int
    weight: float
    """P(z)"""
    fit: float
    """how much of its own documents the topic carries; NaN where the model has no documents"""
    words: list[str]


@dataclass(frozen=True, repr=False)
class TopicTable(Sequence[Topic]):
    """The topics of a model, row k the topic k. Prints the heaviest first, at most 80 columns wide.

    `table[k]` is a row, `table["words"]` a column; `to_pandas()` and `to_polars()` give a frame with the columns id,
    weight, fit and words (separated by commas).
    """

    rows: tuple[Topic, ...]
    notes: tuple[str, ...] = ()
    """what a reader has to know about the words"""

    columns = Topic._fields

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
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
        """The columns by their names."""
        return {
            "id": [row.id for row in self.rows],
            "weight": [row.weight for row in self.rows],
            "fit": [row.fit for row in self.rows],
            "words": [", ".join(row.words) for row in self.rows],
        }

    def to_polars(self) -> Any:
        return _frame_of("polars", self.to_dict())

    def to_pandas(self) -> Any:
        return _frame_of("pandas", self.to_dict())

    def __str__(self) -> str:
        indent = " " * _HEAD.index("words")
        lines = [_HEAD]
        for row in self._heaviest_first():
            fit = "" if np.isnan(row.fit) else f"{row.fit:.0%}"
            first, *more = _wrapped(row.words, WIDTH - len(indent))
            lines.append(f"{row.id:>5} {row.weight:>6.1%} {fit:>4}  {first}".rstrip())
            lines += [indent + line for line in more]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{row.id}</td><td>{row.weight:.1%}</td><td>{'' if np.isnan(row.fit) else f'{row.fit:.0%}'}</td>"
            f'<td style="text-align:left">{html.escape(", ".join(row.words))}</td></tr>'
            for row in self._heaviest_first()
        ]
        head = '<tr><th>topic</th><th>weight</th><th>fit</th><th style="text-align:left">words</th></tr>'
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>{notes}"

    def _heaviest_first(self) -> list[Topic]:
        return sorted(self.rows, key=lambda row: -row.weight)


def _wrapped(words: Sequence[str], width: int) -> list[str]:
    """The words with commas between them, in lines of at most `width` columns; a longer word has a line of its own."""
    lines, line = [], ""
    for number, word in enumerate(words):
        piece = word + ("," if number < len(words) - 1 else "")
        longer = f"{line} {piece}" if line else piece
        if line and _cells(longer) > width:
            lines.append(line)
            longer = piece
        line = longer
    return [*lines, line]


def _cells(text: str) -> int:
    """Columns of a terminal: East Asian wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def frame(columns: dict[str, list[Any]]) -> Any:
    """A polars frame, or a pandas one where polars is missing."""
    try:
        return _frame_of("polars", columns)
    except MissingExtraError:
        return _frame_of("pandas", columns)


def _frame_of(library: str, columns: dict[str, list[Any]]) -> Any:
    try:
        return import_module(library).DataFrame(columns)
    except ModuleNotFoundError:
        raise MissingExtraError("A table of topics", "cli") from None
