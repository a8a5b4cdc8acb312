"""Documents in, counts out: the Python face of the compiled counter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from polyseme.errors import InputError
from polyseme.metrics.cooccurrence import TokenSequences
from polyseme.text._counting import Counter
from polyseme.text._counting import Sequences as CompiledSequences
from polyseme.text.characters import Characters, one_by_one

Integers = npt.NDArray[np.int64]
Columns = npt.NDArray[np.int32]

WORDS, CHARACTERS, PADDED_CHARACTERS = range(3)

_CHARACTERS_AT_ONCE = 1 << 23
_COST_OF_A_DOCUMENT = 64
_COST_OF_AN_OBJECT = 1 << 13
"""A guess, for documents whose size in characters is not known."""
_DIRECT = (np.int32, np.int64, np.float32, np.float64)


@dataclass(frozen=True)
class Splitting:
    """How a document becomes words: prepared, then split by its characters, or by a function `words`.

    text_expected : whether `prepare` must return a string; a tokenizer may take anything.
    """

    characters: Characters
    unit: int = WORDS
    stops: frozenset[str] = frozenset()
    prepare: Callable[[Any], Any] | None = None
    words: Callable[[Any], Iterable[str]] | None = None
    text_expected: bool = True


GIVEN_WORDS = Splitting(one_by_one(False))
"""For words that come from elsewhere."""


def refuse_one_string(documents: Any) -> None:
    """A string is iterable, but hardly meant as documents of one character each; scikit-learn's own words."""
    if isinstance(documents, str):
        raise ValueError("Iterable over raw text documents expected, string object received.")


def batches(
    documents: Iterable[Any], decode: Callable[[Any], Any], *, strings_are_texts: bool = True, any_type: bool = False
) -> Iterator[list[Any]]:
    """The documents, a few megabytes at a time; what is not a text itself (bytes, the name of a file) is decoded.

    any_type : whether documents may be other objects than strings, for a preprocessor or tokenizer of the user.
    """
    batch: list[Any] = []
    size = 0
    for number, document in enumerate(documents):
        text = document if strings_are_texts and type(document) is str else decode(document)
        if isinstance(text, str):
            size += len(text) + _COST_OF_A_DOCUMENT
        elif any_type:
            size += _COST_OF_AN_OBJECT
        else:
            raise InputError(f"Document {number} is of type {type(text).__name__}, where a string belongs.")
        batch.append(text)
        if size >= _CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _add(counter: Any, batch: list[Any], splitting: Splitting, n_threads: int) -> None:
    if splitting.prepare is not None:
        batch = [splitting.prepare(document) for document in batch]
        other = next((text for text in batch if not isinstance(text, str)), None) if splitting.text_expected else None
        if other is not None:
            raise InputError(f"The preprocessor must return strings, not {type(other).__name__}.")
    if splitting.words is None:
        counter.add(batch, n_threads)
        return
    words = [list(splitting.words(text)) for text in batch]
    try:
        counter.add_words(words, n_threads)
    except TypeError as error:
        raise InputError(f"The tokenizer must give strings: {error}.") from None


class Tally:
    """How often each word, or run of words, stands in each document. Documents go in, in batches.

    Without `keep` only the words' totals are kept.
    """

    def __init__(
        self, splitting: Splitting, ngram_range: tuple[int, int] = (1, 1), *, keep: bool = True, n_threads: int
    ) -> None:
        characters = splitting.characters
        self.splitting = splitting
        self.n_threads = n_threads
        self.n_documents = 0
        self.counter = Counter(
            characters.table, list(characters.peculiar), splitting.unit, characters.min_length, *ngram_range,
            sorted(splitting.stops), keep,
        )  # fmt: skip

    def add(self, batch: list[Any]) -> None:
        _add(self.counter, batch, self.splitting, self.n_threads)
        self.n_documents += len(batch)

    def words(self) -> list[str]:
        """The distinct words, sorted; their numbers are their places. No documents can be added after this."""
        return self.counter.words(self.n_threads)

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        """The tokens, and the documents, of each word."""
        tokens, documents = np.zeros(n_words, dtype=np.int64), np.zeros(n_words, dtype=np.int64)
        self.counter.totals(tokens, documents)
        return tokens, documents

    def renumber(self, columns: Columns) -> None:
        """Word i becomes columns[i]; those with the same column are added up, -1 drops a word."""
        self.counter.renumber(np.ascontiguousarray(columns, dtype=np.int32), self.n_threads)

    def matrix(self, n_columns: int, dtype: Any) -> sp.csr_array:
        """The counts (documents x columns) with sorted rows; this ends the tally."""
        n_rows, n_counts = self.counter.rows, self.counter.nonzeros
        indptr = np.empty(n_rows + 1, dtype=np.int64)
        indices = np.empty(n_counts, dtype=np.int32)
        values = np.empty(n_counts, dtype=dtype if np.dtype(dtype).type in _DIRECT else np.int64)
        self.counter.write(indptr, indices, values, self.n_threads)
        if n_counts <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        matrix = sp.csr_array((values.astype(dtype, copy=False), indices, indptr), (n_rows, n_columns))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix


class Sequences:
    """The words of each document in their order, four bytes a word."""

    def __init__(self, splitting: Splitting, *, n_threads: int) -> None:
        characters = splitting.characters
        self.splitting = splitting
        self.n_threads = n_threads
        self.n_documents = 0
        self.sequences = CompiledSequences(
            characters.table, list(characters.peculiar), characters.min_length, sorted(splitting.stops)
        )

    def add(self, batch: list[Any]) -> None:
        _add(self.sequences, batch, self.splitting, self.n_threads)
        self.n_documents += len(batch)

    def words(self) -> list[str]:
        """The distinct words, sorted; from now on their numbers are their places."""
        return self.sequences.words(self.n_threads)

    def totals(self, n_words: int) -> Integers:
        tokens = np.zeros(n_words, dtype=np.int64)
        self.sequences.totals(tokens)
        return tokens

    def renumber(self, numbers: Columns) -> None:
        self.sequences.renumber(np.ascontiguousarray(numbers, dtype=np.int32), self.n_threads)

    def columns(self, columns: Columns) -> TokenSequences:
        """The column of each word, in the documents' order; -1, for a word without one, keeps its place."""
        numbers = np.empty(self.sequences.size, dtype=np.int32)
        indptr = np.empty(self.n_documents + 1, dtype=np.int64)
        self.sequences.write(numbers, indptr)
        return TokenSequences(np.ascontiguousarray(columns, dtype=np.int32)[numbers], indptr)

    def pairs(self, min_count: int) -> npt.NDArray[np.int64]:
        """Neighbours that occur at least min_count times, sorted: rows (first, second, count)."""
        return np.array(self.sequences.pairs(min_count, self.n_threads), dtype=np.int64).reshape(-1, 3)

    def join(self, first: Columns, second: Columns, joined: Columns) -> None:
        """Neighbours first[i], second[i] become the one word joined[i], from left to right."""
        self.sequences.join(first, second, joined, self.n_threads)

    def tally(self, names: Sequence[str], ngram_range: tuple[int, int], *, keep: bool) -> Tally:
        """The counts of the documents, with a name for each number."""
        tally = Tally(GIVEN_WORDS, ngram_range, keep=keep, n_threads=self.n_threads)
        self.sequences.count_into(tally.counter, list(names), self.n_threads)
        tally.n_documents = self.n_documents
        return tally
