"""Readers of documents: text files, tables, MediaWiki dumps, PDF, Word and HTML files, e-mail, and data in memory."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.text.readers.inputs import Document, Limits, Problem, Problems
    from polyseme.text.readers.reader import FORMATS, Reader, read
    from polyseme.text.readers.sources import open_source

_MODULES = {
    "FORMATS": "reader",
    "Document": "inputs",
    "Limits": "inputs",
    "Problem": "inputs",
    "Problems": "inputs",
    "Reader": "reader",
    "open_source": "sources",
    "read": "reader",
}

__all__ = ["FORMATS", "Document", "Limits", "Problem", "Problems", "Reader", "open_source", "read"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: a command that reads no documents does not wait for the readers."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
