"""Search in a corpus by shared words (tf, tfidf, bm25), LSI and PLSI, with explanations by words and topics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.retrieval.evaluation import (
        evaluate_rankings,
        evaluate_search,
        rank_documents,
        write_qrels,
        write_trec_run,
    )
    from polyseme.retrieval.index import SearchIndex

_MODULES = {
    "SearchIndex": "index",
    "evaluate_rankings": "evaluation",
    "evaluate_search": "evaluation",
    "rank_documents": "evaluation",
    "write_qrels": "evaluation",
    "write_trec_run": "evaluation",
}

__all__ = [
    "SearchIndex",
    "evaluate_rankings",
    "evaluate_search",
    "rank_documents",
    "write_qrels",
    "write_trec_run",
]


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, because senses of words need modules that a search does not need."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
