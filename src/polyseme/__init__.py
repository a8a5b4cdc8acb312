"""polyseme: probabilistic latent semantic analysis and its family."""

from __future__ import annotations

from os import PathLike
from typing import Any

from polyseme import storage as _storage
from polyseme.errors import InputError, MissingExtraError, ModelFileError, UnsupportedError
from polyseme.estimators import PLSA

__version__ = "0.1.0"

__all__ = ["PLSA", "InputError", "MissingExtraError", "ModelFileError", "UnsupportedError", "load"]


def load(path: str | PathLike[str]) -> Any:
    """The model that `save` wrote to `path`."""
    return _storage.restore(path, {"PLSA": PLSA})
