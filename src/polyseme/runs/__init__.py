"""Run folders, which `polyseme fit` writes and the other commands read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.runs.documents import Counted
    from polyseme.runs.folder import atomic_folder
    from polyseme.runs.run import Run, open_run
    from polyseme.runs.write import write_fitted, write_run

_MODULES = {
    "Counted": "documents",
    "Run": "run",
    "open_run": "run",
    "atomic_folder": "folder",
    "write_fitted": "write",
    "write_run": "write",
}

__all__ = ["Counted", "Run", "atomic_folder", "open_run", "write_fitted", "write_run"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because the estimators are slow to import."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
