"""Stems, computed once for each distinct word, and the name that each stem is shown by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyseme.errors import MissingExtraError
from polyseme.text.languages import Language
from polyseme.text.tokens import Columns, Integers


class Naming(NamedTuple):
    """`names` of all stems, sorted; `numbers`: the place among them of each form's stem; `shown`: name of each stem."""

    names: list[str]
    numbers: Columns
    shown: dict[str, str]


def stems_of(forms: Sequence[str], language: Language) -> list[str]:
    """The stem of each form (the form itself in a language without a stemmer)."""
    if language.stemmer is None or not forms:
        return list(forms)
    try:
        import Stemmer
    except ModuleNotFoundError:
        raise MissingExtraError("Stemming", "cli") from None
    stemmer = Stemmer.Stemmer(language.stemmer, 0)
    return [stem or form for stem, form in zip(stemmer.stemWords(list(forms)), forms, strict=True)]


def named(forms: Sequence[str], tokens: Integers, stems: Sequence[str]) -> Naming:
    """Each stem is shown by its most frequent form; of equally frequent ones by the shorter, then the first in order.

    `forms` must be sorted.
    """
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    shown: dict[str, str] = {}
    for form in np.lexsort((lengths, -tokens)).tolist():
        shown.setdefault(stems[form], forms[form])
    names = sorted(shown.values())
    place = {name: number for number, name in enumerate(names)}
    numbers = np.fromiter((place[shown[stem]] for stem in stems), dtype=np.int32, count=len(forms))
    return Naming(names, numbers, shown)
