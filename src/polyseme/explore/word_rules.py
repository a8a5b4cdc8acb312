"""Rules of a vectorizer as plain data, with which the page counts the words of new texts as Python does."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from polyseme.kernels import Array
from polyseme.text import Vectorizer
from polyseme.text.languages import get_language, language_token_rules, scikit_learn_token_rules
from polyseme.text.tokens import Characters, pattern_characters

_DEFAULT_PATTERN = CountVectorizer().token_pattern
_KIND_SHIFT = 24


def word_rules(vectorizer: Any, vocabulary: list[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the rules as JSON values and arrays. `reason` says why the page cannot apply them; "" if it can.

    Without a vectorizer, texts are split as in scikit-learn's CountVectorizer, and the words looked up in the
    vocabulary, as in `SearchIndex`.
    """
    if vectorizer is None:
        return _default_rules("")
    if not isinstance(vectorizer, CountVectorizer):
        return _default_rules(f"The words were counted by a {type(vectorizer).__name__}, which runs in Python only.")
    language = getattr(vectorizer, "language_", None)
    reason = _unsupported(vectorizer, language)
    if reason:
        return _default_rules(reason)
    rules = None if language is None else get_language(language)
    splitting = scikit_learn_token_rules(vectorizer) if rules is None else language_token_rules(vectorizer, rules)
    if splitting.words is not None:
        return _default_rules("The words were found by a pattern that needs Python's regular expressions.")
    forms, named = _forms(vectorizer)
    values = {
        "reason": "",
        "lowercase": bool(vectorizer.lowercase),
        "accents": vectorizer.strip_accents or "",
        "marks": _combining_marks() if vectorizer.strip_accents == "unicode" else [],
        "language": language or "",
        "normal": rules is not None,
        "dotless": rules is not None and rules.code == "tr",
        "apostrophes": rules is not None and "'" in rules.joiners,
        "binary": bool(vectorizer.binary),
        "runs": [int(size) for size in vectorizer.ngram_range],
        "stops": sorted(splitting.stops),
        "phrases": [[list(pair) for pair in pairs] for pairs in getattr(vectorizer, "phrases_", [])],
        "forms": forms,
        "names": named,
        "shortest": splitting.characters.min_length,
    }
    return values, _kinds(splitting.characters)


def _unsupported(vectorizer: CountVectorizer, language: str | None) -> str:
    """Return why the page cannot count texts as this vectorizer does; "" if it can."""
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


def _default_rules(reason: str) -> tuple[dict[str, Any], dict[str, Array]]:
    characters = pattern_characters(_DEFAULT_PATTERN, True)
    assert characters is not None
    values = {
        "reason": reason, "lowercase": True, "accents": "", "marks": [], "language": "", "normal": False,
        "dotless": False, "apostrophes": False, "binary": False, "runs": [1, 1], "stops": [], "phrases": [],
        "forms": [], "names": [],
        "shortest": characters.min_length,
    }  # fmt: skip
    return values, _kinds(characters)


def _combining_marks() -> list[str]:
    """Return the combining characters, which scikit-learn removes as accents."""
    return [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))]


def _forms(vectorizer: Any) -> tuple[list[str], list[str]]:
    """Return the forms that are counted as another word, and these words; other forms are counted as themselves."""
    stem_of, shown = getattr(vectorizer, "forms_", {}), getattr(vectorizer, "shown_", {})
    pairs = sorted((form, shown[stem]) for form, stem in stem_of.items() if stem in shown and shown[stem] != form)
    return [form for form, _ in pairs], [name for _, name in pairs]


def _kinds(characters: Characters) -> dict[str, Array]:
    """Return the kind of every code point in run-length form: the start and the kind of each run."""
    kinds = (characters.table >> np.uint32(_KIND_SHIFT)).astype(np.uint8)
    starts = np.flatnonzero(np.diff(kinds, prepend=kinds[0] + 1))
    return {"kind_starts": starts.astype(np.uint32), "kinds": kinds[starts]}
