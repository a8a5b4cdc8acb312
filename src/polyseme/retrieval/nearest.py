"""Words that a query probably means: the nearest words of the vocabulary.

The distance of two words is the number of letters that are inserted, deleted, replaced or exchanged with their neighbor
(optimal string alignment). A joined phrase is as near as the nearest of its words.
"""

from __future__ import annotations

from collections.abc import Iterable

from polyseme.kernels import Array
from polyseme.text.languages import PHRASE_SEPARATOR

N_NEAREST = 3
_MOST_EDITS = 2
_LETTERS_PER_EDIT = 3
"""A word may differ by one edit for this many of its letters."""


def nearest_words(word: str, vocabulary: Iterable[str], frequencies: Array) -> tuple[str, ...]:
    """Return the nearest words of a vocabulary: the smallest distance first, then those in the most documents."""
    most = min(_MOST_EDITS, len(word) // _LETTERS_PER_EDIT)
    letters, found = set(word), []
    for column, name in enumerate(vocabulary):
        distances = [
            edits
            for part in {name, *name.split(PHRASE_SEPARATOR)}
            if abs(len(part) - len(word)) <= most
            and len(letters.symmetric_difference(part)) <= 2 * most  # an edit changes at most two of them
            and (edits := edit_distance(word, part)) <= most
        ]
        if distances:
            found.append((min(distances), -int(frequencies[column]), column, name))
    return tuple(name for *_, name in sorted(found)[:N_NEAREST])


def edit_distance(first: str, second: str) -> int:
    """Return the number of edits between two words."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(second, 1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                edits = min(edits, last[j - 2] + 1)
            row.append(edits)
    return row[-1]
