"""Topic models for Python: probabilistic latent semantic analysis (PLSA), NMF, LDA, LSA and related models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polyseme.errors import InputError as InputError
from polyseme.errors import MissingExtraError as MissingExtraError
from polyseme.errors import ModelFileError as ModelFileError
from polyseme.errors import SeedWarning as SeedWarning
from polyseme.errors import ShardError as ShardError
from polyseme.errors import UnsupportedError as UnsupportedError

if TYPE_CHECKING:
    from polyseme.core.model import Background as Background
    from polyseme.core.model import JointBackground as JointBackground
    from polyseme.estimators import *  # noqa: F403
    from polyseme.estimators.base import load as load
    from polyseme.runs.fit import fit as fit
    from polyseme.runs.run import Run as Run
    from polyseme.runs.run import open_run as open_run

    __version__: str

_MODULES = {
    "Background": "core.model",
    "JointBackground": "core.model",
    "Run": "runs.run",
    "fit": "runs.fit",
    "load": "estimators.base",
    "open_run": "runs.run",
}
"""Public names that are imported when they are first used, besides the estimators, and their modules."""
_OTHER_NAMES = (
    *_MODULES, "InputError", "MissingExtraError", "ModelFileError", "SeedWarning", "ShardError", "UnsupportedError",
)  # fmt: skip
"""Public names besides the estimators."""


def __getattr__(name: str) -> Any:
    """Import the estimators when they are first used, so that the command line can report errors at once."""
    if name == "__version__":
        return import_module("importlib.metadata").version("polyseme")
    if name in _MODULES:
        globals()[name] = getattr(import_module(f"polyseme.{_MODULES[name]}"), name)
        return globals()[name]
    if name != "__all__" and not name[:1].isupper():  # the estimators are classes
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    estimators = import_module("polyseme.estimators")
    if name == "__all__":
        return sorted([*estimators.__all__, *_OTHER_NAMES])
    if name not in estimators.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(estimators, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
