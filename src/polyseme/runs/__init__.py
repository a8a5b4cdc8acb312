"""Run folders: topics and documents, written by `polyseme.fit` and by ``polyseme fit``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.runs.language_model import language_model_namer
    from polyseme.runs.merging import merge
    from polyseme.runs.pipeline import fit
    from polyseme.runs.run import Run, open_run

_MODULES = {
    "Run": "run",
    "fit": "pipeline",
    "language_model_namer": "language_model",
    "merge": "merging",
    "open_run": "run",
}

__all__ = ["Run", "fit", "language_model_namer", "merge", "open_run"]


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, because the estimators are slow to import."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
