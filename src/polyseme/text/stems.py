"""Stems, computed once for each distinct word, and the name that each stem is shown by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyseme.errors import MissingExtraError
from polyseme.text.languages import Language
from polyseme.text.tokens import Columns, Integers


class Naming(NamedTuple):
    """`names` of all stems, sorted; `numbers`: the place among them of each form's stem; `stems`: that of each name."""

    names: list[str]
    numbers: Columns
    stems: list[str]


def stems_of(forms: Sequence[str], language: Language) -> list[str]:
    """The stem of each form (the form itself in a language without a stemmer)."""
    if language.stemmer is None or not forms:
        return list(forms)
    try:
        import Stemmer
    except ModuleNotFoundError:
        raise MissingExtraError("Stemming", "cli") from None
    stemmer = Stemmer.Stemmer(language.stemmer, 0)
    stems: list[str] = stemmer.stemWords(list(forms))
    if "" in stems:
        stems = [stem or form for stem, form in zip(stems, forms, strict=True)]
    return stems


def named(forms: Sequence[str], tokens: Integers, stems: Sequence[str]) -> Naming:
    """Each stem is shown by its most frequent form; of equally frequent ones by the shorter, then the first in order.

    `forms` must be sorted.
    """
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    order = np.lexsort((lengths, -tokens))
    distinct = dict.fromkeys(stems)
    stem_number = dict(zip(distinct, range(len(distinct)), strict=True))
    stem_of_form = np.fromiter(map(stem_number.__getitem__, stems), dtype=np.int64, count=len(forms))
    _, best = np.unique(stem_of_form[order], return_index=True)
    shown_form = order[best]  # of each stem, by its number
    is_shown = np.zeros(len(forms), dtype=bool)
    is_shown[shown_form] = True
    place = np.cumsum(is_shown) - 1
    shown = np.flatnonzero(is_shown).tolist()
    numbers = place[shown_form[stem_of_form]].astype(np.int32)
    return Naming([forms[form] for form in shown], numbers, [stems[form] for form in shown])
