"""From texts to word counts: `open_source` and `read` read documents, `Vectorizer` counts their words.

`make_pipeline` combines a vectorizer and a model, and passes the words of the columns to the model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.text.languages import LANGUAGES
    from polyseme.text.readers import Document, Limits, open_source, read
    from polyseme.text.vectorizer import Vectorizer, make_pipeline

_MODULES = {
    "Vectorizer": "vectorizer",
    "LANGUAGES": "languages",
    "make_pipeline": "vectorizer",
}

__all__ = [
    "LANGUAGES",
    "Document",
    "Limits",
    "Vectorizer",
    "make_pipeline",
    "open_source",
    "read",
]


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used, so that importing polyseme stays fast."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'readers')}"), name)
