"""The words shown for a topic, and the table of topics.

All tables, plots and pages rank the words of a topic by relevance on documents:

    lambda log(n_zw / D_z) + (1 - lambda) log[(n_zw / D_z) / (df_w / D)]

n_zw is the expected number of documents that contain word w and use it in topic z, the sum of P(z|d,w) over the
documents that contain w; D_z = sum_d P(z|d); df_w is the number of documents that contain w, and D the number of all
documents. The words of a model without counts of documents (after `partial_fit`) are ranked by the same formula on
tokens, with n_zw = N P(z) P(w|z), D_z = N P(z) and df_w = N P(w) for N tokens.

Sievert, C., and Shirley, K. (2014). LDAvis: a method for visualizing and interpreting topics. ACL workshop on
interactive language learning, visualization, and interfaces.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from polyseme.core.fitted import FittedTopics
from polyseme.errors import InputError, MissingExtraError
from polyseme.kernels import Array, Floats
from polyseme.utils import check_integer, word_names

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

RELEVANCE = 0.5
"""Default of lambda: 1 ranks by frequency in the topic, 0 by the ratio to the frequency in all documents."""
LEAST_AMOUNT = 3.0
"""Words with at least this many expected documents (or tokens) in a topic are shown before rarer words."""
DECIMALS = 4
"""Decimal digits of relevances and amounts that are compared: smaller differences are rounding errors. Of equal words,
the one in the first column is ranked first."""
_TINY = np.finfo(np.float64).tiny


class WordAmounts(NamedTuple):
    """Amounts of words in topics, by which words are ranked."""

    unit: str
    """"documents" or "tokens"; "weights" if a model has neither, and words are ranked by their weight only."""
    amounts: Array
    """n_zw, K x words."""
    topics: Floats
    """D_z, K numbers; their sum is D."""
    words: Floats
    """df_w."""
    topic_word: Array
    """P(w|z); ranks words without an amount, for example in a topic without documents."""


def fitted_topics(model: Any) -> FittedTopics | None:
    """Return the FittedTopics that an estimator holds, or `model` if it is one; None for any other object."""
    fitted = model if isinstance(model, FittedTopics) else getattr(model, "_fitted", None)
    return fitted if isinstance(fitted, FittedTopics) else None


def topic_rows(model: Any) -> Array:
    """Return the topics of a fitted model (K x words): P(w|z), or `components_` of a model of another library."""
    fitted = fitted_topics(model)
    components = getattr(model, "components_", None) if fitted is None else fitted.topic_word
    if components is None:
        raise InputError("The model has no topics yet: call fit first.")
    return np.asarray(components)


def word_amounts(model: Any) -> WordAmounts:
    """Return the amounts by which the words of a fitted model, or of a FittedTopics, are ranked."""
    fitted = fitted_topics(model)
    if fitted is None:
        return token_amounts(topic_rows(model), None, None, None)
    if fitted.word_documents is not None:
        return WordAmounts("documents", *fitted.word_documents, fitted.topic_word)
    return token_amounts(fitted.topic_word, fitted.topic_weights, fitted.unigram, fitted.n_tokens)


def token_amounts(topic_word: Array, weights: Any, unigram: Any, n_tokens: float | None) -> WordAmounts:
    """Return the amounts in tokens of topics with weights P(z), or weights of words only if an argument is None."""
    if weights is None or unigram is None or n_tokens is None:
        return WordAmounts("weights", topic_word, np.ones(len(topic_word)), np.ones(topic_word.shape[1]), topic_word)
    tokens = n_tokens * np.asarray(weights, dtype=np.float64)
    return WordAmounts(
        "tokens", topic_word * tokens[:, np.newaxis], tokens, n_tokens * np.asarray(unigram), topic_word
    )  # fmt: skip


def relevance(
    amounts: Array, topics: Floats, words: Floats, *, weight: float = RELEVANCE, total: float | None = None
) -> Floats:
    """Return the relevance of each word to each topic (Sievert and Shirley 2014).

    The relevance is lambda log(n_zw / D_z) + (1 - lambda) log[(n_zw / D_z) / (df_w / D)].

    Parameters
    ----------
    amounts : array-like of shape (K, n_words)
        Amounts n_zw of the words in the topics.
    topics : array-like of shape (K,)
        Sizes D_z of the topics.
    words : array-like of shape (n_words,)
        Frequencies df_w of the words.
    weight : float, default=0.5
        Lambda, between 0 and 1.
    total : float, default=None
        Total D. None uses the sum of `topics`.

    Returns
    -------
    array of shape (K, n_words)
        Relevances; -inf for words that the topic does not use, and for words that do not occur.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme.metrics import relevance
    >>> amounts = np.array([[20.0, 8, 2], [10, 4, 16]])  # expected counts of three words in two topics
    >>> relevance(amounts, amounts.sum(axis=1), amounts.sum(axis=0)).argmax(axis=1)
    array([0, 2])
    """
    if isinstance(weight, bool) or not 0 <= weight <= 1:
        raise InputError(f"relevance must be a number between 0 and 1, got {weight!r}.")
    n, D_z = np.asarray(amounts, dtype=np.float64), np.asarray(topics, dtype=np.float64)[:, np.newaxis]
    df = np.asarray(words, dtype=np.float64)
    share = np.divide(n, D_z, out=np.zeros_like(n), where=(D_z > 0) & (df > 0))
    common = df / max(float(D_z.sum()) if total is None else total, _TINY)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share) - (1 - weight) * np.log(np.where(common > 0, common, 1.0)))


def top_words(model: Any, n_words: int = 10, *, relevance: float | None = None) -> Array:
    """Return the columns of the best words of each topic, best first: those that tables, plots and pages show.

    Words of at least three documents are ranked by relevance. If a topic has too few of them, rarer words follow, also
    ranked by relevance. Other scores, such as `components_` or the result of `frex`, are ranked as they are; of equal
    scores, the one in the first column is first.

    Parameters
    ----------
    model : estimator, WordAmounts or array-like of shape (K, n_words)
        A fitted model, the amounts of words in topics, or scores of words.
    n_words : int, default=10
        Number of words per topic.
    relevance : float, default=None
        Weight lambda of the relevance, not for scores. None uses 0.5.

    Returns
    -------
    array of int of shape (K, n_words)
        Columns; fewer than `n_words` if the vocabulary is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from polyseme import PLSA
    >>> from polyseme.metrics import top_words
    >>> model = PLSA(1, random_state=0).fit(np.array([[4, 9, 1], [5, 8, 2]]))
    >>> top_words(model, 2)
    array([[0, 1]])
    """
    n_words = check_integer("n_words", n_words, least=1)
    if isinstance(model, np.ndarray | list):
        if relevance is not None:
            raise InputError("relevance ranks the words of a model: leave it out for scores.")
        return np.argsort(-np.asarray(model), axis=1, kind="stable")[:, :n_words]
    table = model if isinstance(model, WordAmounts) else word_amounts(model)
    if table.unit == "weights":
        return top_words(np.asarray(table.topic_word), n_words)
    weight = RELEVANCE if relevance is None else relevance
    return np.array([_ranked(table, topic, n_words, weight) for topic in range(len(table.amounts))])


def _ranked(table: WordAmounts, topic: int, n_words: int, weight: float) -> Array:
    """Return the columns of the `n_words` words that rank first in one topic."""
    amounts = np.where(table.words > 0, np.asarray(table.amounts[topic], dtype=np.float64), 0.0)
    enough = np.round(amounts, DECIMALS) >= LEAST_AMOUNT
    columns = np.flatnonzero(enough)
    if columns.size < n_words:
        columns = np.flatnonzero(amounts > 0)
    if columns.size < n_words:
        columns = np.arange(amounts.size)
    n = amounts[columns]
    total = float(table.topics.sum())
    scores = relevance(
        n[np.newaxis], table.topics[[topic]], table.words[columns], weight=weight, total=total
    )[0]  # fmt: skip
    weights = np.where(n > 0, 0.0, table.topic_word[topic, columns])  # ranks words without an amount
    return np.asarray(columns[np.lexsort((-weights, -np.round(scores, DECIMALS), ~enough[columns]))[:n_words]])


WIDTH = 80
"""Width of a printed table of topics, in columns of a terminal."""
_HEADER = f"{'topic':>5} {'weight':>6} {'fit':>4}  words"


class Topic(NamedTuple):
    """One row of a table of topics.

    Attributes
    ----------
    id : int
        Number of the topic.
    name : str
        Name of the topic, or "".
    weight : float
        P(z).
    fit : float
        Mean share of the topic in its own documents; NaN if the model has no documents.
    words : list of str
        Its best words.
    """

    id: int
    name: str
    weight: float
    fit: float
    words: list[str]


@dataclass(frozen=True, repr=False)
class TopicTable(Sequence[Topic]):
    """The topics of a model, one row per topic.

    `table[k]` is the row of topic k, `table["words"]` a column. The printed table is sorted by weight, and at most 80
    characters wide.

    Attributes
    ----------
    rows : tuple of Topic
        Topics in the order of their ids, with the fields id, name, weight, fit and words.
    notes : tuple of str
        Remarks that are printed below the table.
    last : frozenset of int
        Topics that are printed after all other topics.
    hidden : frozenset of int
        Topics that are not printed.
    columns : tuple of str
        Names of the columns.
    """

    rows: tuple[Topic, ...]
    notes: tuple[str, ...] = ()
    """Remarks that are printed below the table."""
    last: frozenset[int] = frozenset()
    """Topics that are printed after all other topics."""
    hidden: frozenset[int] = frozenset()
    """Topics that are not printed."""

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
        return replace(self, rows=self.rows[key]) if isinstance(key, slice) else self.rows[key]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns by name. The words of a topic are one string, separated by commas.

        Returns
        -------
        dict of str to list
            The columns id, name, weight, fit and words.
        """
        return {
            "id": [row.id for row in self.rows],
            "name": [row.name for row in self.rows],
            "weight": [row.weight for row in self.rows],
            "fit": [row.fit for row in self.rows],
            "words": [", ".join(row.words) for row in self.rows],
        }

    def to_polars(self) -> pl.DataFrame:
        """Return a polars data frame with the columns id, name, weight, fit and words.

        Returns
        -------
        polars.DataFrame
            A row for each topic.
        """
        return _frame_of("polars", self.to_dict())

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame with the columns id, name, weight, fit and words.

        Returns
        -------
        pandas.DataFrame
            A row for each topic.
        """
        return _frame_of("pandas", self.to_dict())

    def __str__(self) -> str:
        indent = " " * _HEADER.index("words")
        lines = [_HEADER]
        for row in self._by_weight():
            fit = "" if np.isnan(row.fit) else f"{row.fit:.0%}"
            words = other_words(row.name, row.words)
            first, *more = _wrapped(words, WIDTH - len(indent), f"{row.name}:" if row.name and words else row.name)
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
        printed = (row for row in self.rows if row.id not in self.hidden)
        return sorted(printed, key=lambda row: (row.id in self.last, -row.weight))


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
        for row, topic in zip(top_words(amounts, n_words, relevance=relevance), amounts.topic_word, strict=True)
    ]


def without_columns(amounts: WordAmounts, columns: Sequence[int]) -> WordAmounts:
    """Return the amounts with zeros in some columns, so that their words are not shown."""
    if not len(columns):
        return amounts
    topic_word, words = np.array(amounts.topic_word), np.array(amounts.words, dtype=np.float64)
    topic_word[:, columns] = words[columns] = 0
    return amounts._replace(topic_word=topic_word, words=words)


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
    """Return the names of the `count` largest positive values of each row; x0, x1, ... without names."""
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
    words = other_words(row.name, row.words)
    name = f"<b>{html.escape(row.name)}</b>{': ' if words else ''}" if row.name else ""
    return name + html.escape(", ".join(words))


def other_words(name: str, words: Sequence[str]) -> list[str]:
    """Return the words that are not in the name of their topic, for lines that show both."""
    named = set(re.findall(r"[^\s,]+", name.casefold()))
    return [word for word in words if word.casefold() not in named]


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
        raise MissingExtraError("A table of topics", "text") from None
