"""The totals of stems over many documents, added up batch by batch: memory holds the words, and one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from polyseme.text.stems import named
from polyseme.text.tokens import Integers, Tally


class Totals(Protocol):
    """What the choice of words needs to know."""

    n_documents: int

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        """The tokens, and the documents, of each word."""


class TotalsByStem:
    """Tokens of forms and documents of stems; a document with two forms of a stem has the stem once.

    stems_of : the stem of each of some forms.
    """

    def __init__(self, stems_of: Callable[[list[str]], list[str]]) -> None:
        self._stems_of = stems_of
        self._stem: dict[str, str] = {}
        self._tokens: dict[str, int] = {}
        self._documents: dict[str, int] = {}
        self._by_name: tuple[Integers, Integers] | None = None
        self.n_documents = 0

    def add(self, tally: Tally) -> None:
        """Adds the counts of some documents, which are used up."""
        forms = tally.words()
        for form, tokens in zip(forms, tally.totals(len(forms))[0].tolist(), strict=True):
            self._tokens[form] = self._tokens.get(form, 0) + tokens
        new = [form for form in forms if form not in self._stem]
        self._stem.update(zip(new, self._stems_of(new), strict=True))
        stems = [self._stem[form] for form in forms]
        place = {stem: number for number, stem in enumerate(dict.fromkeys(stems))}
        tally.renumber(np.fromiter((place[stem] for stem in stems), dtype=np.int32, count=len(stems)))
        for stem, documents in zip(place, tally.totals(len(place))[1].tolist(), strict=True):
            self._documents[stem] = self._documents.get(stem, 0) + documents
        self.n_documents += tally.n_documents

    def named(self) -> tuple[list[str], dict[str, str], dict[str, str]]:
        """The names of all stems, sorted; the name of each stem; the stem of each form."""
        forms = sorted(self._tokens)
        stems = [self._stem[form] for form in forms]
        tokens = np.fromiter((self._tokens[form] for form in forms), dtype=np.int64, count=len(forms))
        names, numbers, stems_of_names = named(forms, tokens, stems)
        documents = np.fromiter((self._documents[stem] for stem in stems_of_names), dtype=np.int64, count=len(names))
        self._by_name = np.bincount(numbers, tokens, len(names)).astype(np.int64), documents
        return names, dict(zip(stems_of_names, names, strict=True)), dict(zip(forms, stems, strict=True))

    def totals(self, n_words: int) -> tuple[Integers, Integers]:
        assert self._by_name is not None
        assert len(self._by_name[0]) == n_words
        return self._by_name
