"""Run folders: what `polyseme fit` writes, and what every other command reads."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyseme.runs.documents import Counted
    from polyseme.runs.folder import whole_folder
    from polyseme.runs.run import Run, open_run
    from polyseme.runs.write import write_fitted, write_run

_MODULES = {
    "Counted": "documents",
    "Run": "run",
    "open_run": "run",
    "whole_folder": "folder",
    "write_fitted": "write",
    "write_run": "write",
}

__all__ = ["Counted", "Run", "open_run", "whole_folder", "write_fitted", "write_run"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: checking that a folder is a run takes no estimator."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
