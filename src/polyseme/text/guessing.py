"""The language of documents, from how their first ones begin."""

from __future__ import annotations

from polyseme.text.languages import OTHER, Language, guess
from polyseme.text.tokens import Splitting, Tally

_DOCUMENTS = 1000
_CHARACTERS = 2000


def language_in(texts: list[str]) -> Language:
    """The language of the first texts, by their script and their most common words."""
    sample = [OTHER.prepared(text[:_CHARACTERS]) for text in texts[:_DOCUMENTS]]
    tally = Tally(Splitting(OTHER.characters(True)), n_threads=1)
    tally.add(sample)
    words = tally.words()
    return guess(sample, words, tally.totals(len(words))[0].tolist())
