"""A fitted Vectorizer as plain data, and back. Nothing in the data is executed."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyseme.errors import InputError, ModelFileError

FORMAT_VERSION = 1
_OPTIONAL = ("language_", "forms_", "shown_")


def to_dict(vectorizer: Any) -> dict[str, Any]:
    parameters = {name: _plain(name, value) for name, value in vectorizer.get_params(deep=False).items()}
    names = [name for name, _ in sorted(vectorizer.vocabulary_.items(), key=lambda item: item[1])]
    if not all(isinstance(name, str) for name in names):
        raise InputError("Only a vocabulary of strings can be saved.")
    data = {"format_version": FORMAT_VERSION, "parameters": parameters, "vocabulary": names}
    data |= {name.rstrip("_"): getattr(vectorizer, name) for name in _OPTIONAL if hasattr(vectorizer, name)}
    if hasattr(vectorizer, "phrases_"):
        data["phrases"] = [[list(pair) for pair in pairs] for pairs in vectorizer.phrases_]
    return data


def from_dict(make: Any, data: dict[str, Any]) -> Any:
    try:
        version = int(data["format_version"])
        if version > FORMAT_VERSION:
            raise ModelFileError("This vectorizer was written by a newer polyseme: update polyseme to read it.")
        parameters = dict(data["parameters"])
        parameters["ngram_range"] = tuple(parameters["ngram_range"])
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        vectorizer = make(**parameters)
        vectorizer.fixed_vocabulary_ = parameters["vocabulary"] is not None
        vectorizer.vocabulary_ = {str(name): column for column, name in enumerate(data["vocabulary"])}
        for name in _OPTIONAL:
            if name.rstrip("_") in data:
                setattr(vectorizer, name, data[name.rstrip("_")])
        if "phrases" in data:
            vectorizer.phrases_ = [[(first, second) for first, second in pairs] for pairs in data["phrases"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"This is not a saved Vectorizer ({error}).") from None
    return vectorizer


def _plain(name: str, value: Any) -> Any:
    if name == "dtype":
        return np.dtype(value).name
    if name == "vocabulary" and value is not None:
        terms = value.items() if hasattr(value, "items") else zip(_terms(value), range(len(value)), strict=True)
        return [term for term, _ in sorted(terms, key=lambda item: item[1])]
    if name in ("stop_words", "extra_stop_words", "ngram_range") and value is not None and not isinstance(value, str):
        return list(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"{name} is a {type(value).__name__}, which cannot be saved: only plain settings can.")


def _terms(vocabulary: Any) -> list[str]:
    return sorted(vocabulary) if isinstance(vocabulary, set) else list(vocabulary)
