"""How the documents of a Vectorizer become words, from its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyseme.text.characters import by_pattern, one_by_one
from polyseme.text.languages import Language
from polyseme.text.tokens import CHARACTERS, PADDED_CHARACTERS, WORDS, Splitting

_UNITS = {"word": WORDS, "char": CHARACTERS, "char_wb": PADDED_CHARACTERS}


def splitting_of_scikit_learn(vectorizer: Any) -> Splitting:
    """The words that scikit-learn's analyzer gives, before runs of words are made of them.

    Compiled where the words are runs of one set of characters; a tokenizer or another pattern runs in Python.
    """
    unit = _UNITS[vectorizer.analyzer]
    prepare = _preprocessor(vectorizer)
    lowercase = vectorizer.lowercase and prepare is None
    if unit != WORDS:
        return Splitting(one_by_one(lowercase), unit, prepare=prepare)
    stops = frozenset(vectorizer.get_stop_words() or ())
    characters = by_pattern(vectorizer.token_pattern, lowercase) if vectorizer.tokenizer is None else None
    if characters is not None:
        return Splitting(characters, unit, stops, prepare)
    return Splitting(
        one_by_one(False), unit, stops, vectorizer.build_preprocessor(), vectorizer.build_tokenizer(),
        text_expected=vectorizer.tokenizer is None,
    )  # fmt: skip


def splitting_of_language(vectorizer: Any, language: Language) -> Splitting:
    """Words by the language's characters, or by a tokenizer; stop words of the language, or those given."""
    own_words = vectorizer.tokenizer is not None
    preprocess = vectorizer.build_preprocessor() if own_words else _preprocessor(vectorizer)

    def prepare(text: str) -> str:
        text = language.prepared(text, vectorizer.lowercase)
        return text if preprocess is None else preprocess(text)

    stops = language.stop_words if vectorizer.stop_words is None else frozenset(vectorizer.get_stop_words())
    if preprocess is not None:
        stops = frozenset(map(prepare, stops))
    lowercase = vectorizer.lowercase and preprocess is None
    return Splitting(
        language.characters(lowercase), WORDS, stops, prepare, vectorizer.tokenizer, text_expected=not own_words
    )


def takes_any_type(vectorizer: Any) -> bool:
    """Whether a function of the user sees each document first, so that documents need not be strings.

    A language looks at the text itself before any function of the user.
    """
    if vectorizer.language is not None:
        return False
    if vectorizer.preprocessor is not None:
        return True
    if vectorizer.lowercase:
        return False
    accents = vectorizer.strip_accents
    return callable(accents) or (accents is None and vectorizer.analyzer == "word" and vectorizer.tokenizer is not None)


def _preprocessor(vectorizer: Any) -> Callable[[str], str] | None:
    """scikit-learn's preprocessing, where it does more than to lower the text."""
    if vectorizer.preprocessor is None and not vectorizer.strip_accents:
        return None
    return vectorizer.build_preprocessor()
