"""The word rules of a vectorizer as plain data, so that a page counts texts as Python did."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from polyseme.kernels import Array
from polyseme.text import Vectorizer
from polyseme.text.languages import language_of, splitting_of_language, splitting_of_scikit_learn
from polyseme.text.tokens import Characters, by_pattern

_DEFAULT_PATTERN = CountVectorizer().token_pattern
_KIND_SHIFT = 24


def word_rules(vectorizer: Any, vocabulary: list[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Values and arrays: `reason` is empty where the page can count as the vectorizer does.

    Without a vectorizer, texts are split as scikit-learn's CountVectorizer does, and the words looked up in the
    vocabulary; so does `SearchIndex`.
    """
    if vectorizer is None:
        return _plain("")
    if not isinstance(vectorizer, CountVectorizer):
        return _plain(f"The words were counted by a {type(vectorizer).__name__}, which runs in Python only.")
    language = getattr(vectorizer, "language_", None)
    reason = _why_not(vectorizer, language)
    if reason:
        return _plain(reason)
    spoken = None if language is None else language_of(language)
    splitting = splitting_of_scikit_learn(vectorizer) if spoken is None else splitting_of_language(vectorizer, spoken)
    if splitting.words is not None:
        return _plain("The words were found by a pattern that only Python's regular expressions know.")
    forms, named = _forms(vectorizer)
    values = {
        "reason": "",
        "lowercase": bool(vectorizer.lowercase),
        "accents": vectorizer.strip_accents or "",
        "marks": _combining() if vectorizer.strip_accents == "unicode" else [],
        "language": language or "",
        "normal": spoken is not None,
        "dotless": spoken is not None and spoken.code == "tr",
        "apostrophes": spoken is not None and "'" in spoken.joiners,
        "binary": bool(vectorizer.binary),
        "runs": [int(size) for size in vectorizer.ngram_range],
        "stops": sorted(splitting.stops),
        "phrases": [[list(pair) for pair in pairs] for pairs in getattr(vectorizer, "phrases_", [])],
        "forms": forms,
        "names": named,
        "shortest": splitting.characters.min_length,
    }
    return values, _kinds(splitting.characters)


def _why_not(vectorizer: CountVectorizer, language: str | None) -> str:
    """Why a page cannot count texts as this vectorizer does; empty if it can."""
    if callable(vectorizer.analyzer):
        return "The words were found by an analyzer written in Python."
    if vectorizer.tokenizer is not None:
        return "The words were found by a tokenizer written in Python."
    if vectorizer.preprocessor is not None:
        return "The texts were prepared by a preprocessor written in Python."
    if vectorizer.analyzer != "word":
        return "The counts are of pieces of words, not of words."
    if callable(vectorizer.strip_accents):
        return "The accents were removed by a function written in Python."
    fitted = isinstance(vectorizer, Vectorizer) and vectorizer.language is not None
    return "The vectorizer is not fitted, so its language is not known." if fitted and language is None else ""


def _plain(reason: str) -> tuple[dict[str, Any], dict[str, Array]]:
    characters = by_pattern(_DEFAULT_PATTERN, True)
    assert characters is not None
    values = {
        "reason": reason, "lowercase": True, "accents": "", "marks": [], "language": "", "normal": False,
        "dotless": False, "apostrophes": False, "binary": False, "runs": [1, 1], "stops": [], "phrases": [],
        "forms": [], "names": [],
        "shortest": characters.min_length,
    }  # fmt: skip
    return values, _kinds(characters)


def _combining() -> list[str]:
    """What scikit-learn removes as an accent."""
    return [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))]


def _forms(vectorizer: Any) -> tuple[list[str], list[str]]:
    """Forms that count for another word, and that word; a form that is not here counts for itself."""
    stem_of, shown = getattr(vectorizer, "forms_", {}), getattr(vectorizer, "shown_", {})
    pairs = sorted((form, shown[stem]) for form, stem in stem_of.items() if stem in shown and shown[stem] != form)
    return [form for form, _ in pairs], [name for _, name in pairs]


def _kinds(characters: Characters) -> dict[str, Array]:
    """The kind of every code point, as runs: where each begins, and of which kind it is."""
    kinds = (characters.table >> np.uint32(_KIND_SHIFT)).astype(np.uint8)
    starts = np.flatnonzero(np.diff(kinds, prepend=kinds[0] + 1))
    return {"kind_starts": starts.astype(np.uint32), "kinds": kinds[starts]}
