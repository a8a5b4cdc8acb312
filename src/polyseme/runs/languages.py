"""Languages of the documents of a run: shares for readers, and the choice of documents by language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from polyseme.options import named
from polyseme.text.languages import (
    DETECTION_SIZE,
    LANGUAGE_SEPARATOR,
    OTHER,
    detect_language,
    document_language,
    get_language,
)
from polyseme.text.readers.inputs import Document

ALL, MAJORITY, SPLIT = "all", "majority", "split"
"""Values of the option `languages` besides the languages."""


class LanguageFilter:
    """Choice of documents by language.

    which : ALL, MAJORITY, or a language. Documents of unknown language, such as short ones, belong to the majority.
    """

    def __init__(self, which: str) -> None:
        self._which = which
        self.left_out = 0

    def choose(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Iterate over the chosen documents. The first ones decide which languages there are."""
        if self._which == ALL:
            yield from documents
            return
        first, shares = detect(documents)
        names = [name for name in shares if name != OTHER.name]
        wanted = names[:1] if self._which == MAJORITY else [get_language(self._which).name]
        for document in chain(first, documents):
            found = document_language(document.text, {*names, *wanted}) or document_language(document.text)
            if found == wanted or (self._which == MAJORITY and not (found and wanted)):
                yield document
            else:
                self.left_out += 1


def detect(documents: Iterator[Document]) -> tuple[list[Document], dict[str, float]]:
    """Take the first documents, at least DETECTION_SIZE characters; return them and their shares by language."""
    first, size = list[Document](), 0
    for document in documents:
        first.append(document)
        size += len(document.text)
        if size >= DETECTION_SIZE:
            break
    return first, detect_language([document.text for document in first])[1] if first else {}


def split_languages(documents: Iterable[Document]) -> list[str]:
    """Return the languages of documents that get a run each."""
    return [name for name in detect(iter(documents))[1] if name != OTHER.name]


def language_shares(shares: Mapping[str, float]) -> str:
    """Return the shares of documents by language for readers."""
    return ", ".join(
        f"{share:.0%} {'unknown' if name == OTHER.name else name.capitalize()}" for name, share in shares.items()
    )


def language_note(language: str, shares: Mapping[str, float]) -> str:
    """Return a sentence about the languages that were detected."""
    if LANGUAGE_SEPARATOR not in language:
        return f"Language: {language} (detected; {named('language')} sets another)."
    return (
        f"Languages: {language_shares(shares)}. All are in one model, without the stop words of all of them; "
        f"{named('languages', MAJORITY)} takes one language, {named('languages', SPLIT)} makes a run for each."
    )
