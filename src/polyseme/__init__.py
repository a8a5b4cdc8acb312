"""polyseme: probabilistic latent semantic analysis and its family."""

from __future__ import annotations

from os import PathLike
from typing import Any

from polyseme import storage as _storage
from polyseme.background import Background, JointBackground
from polyseme.errors import InputError, MissingExtraError, ModelFileError, UnsupportedError
from polyseme.estimators import NMF, PLSA
from polyseme.priors import MEMBERS as _PRIORS
from polyseme.solvers import SOLVERS as _SOLVERS

__version__ = "0.1.0"

__all__ = [
    "NMF",
    "PLSA",
    "Background",
    "InputError",
    "JointBackground",
    "MissingExtraError",
    "ModelFileError",
    "UnsupportedError",
    "load",
]


def load(path: str | PathLike[str]) -> Any:
    """The model that `save` wrote to `path`."""
    settings = {solver.__name__: solver for solver in _SOLVERS.values()}
    settings |= {part.__name__: part for part in (*_PRIORS, Background, JointBackground)}
    return _storage.restore(path, {"NMF": NMF, "PLSA": PLSA}, settings)
