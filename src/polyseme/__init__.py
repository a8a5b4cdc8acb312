"""Topic models for Python: probabilistic latent semantic analysis (PLSA), NMF, LDA, LSA and related models."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from polyseme.errors import InputError as InputError
from polyseme.errors import MissingExtraError as MissingExtraError
from polyseme.errors import ModelFileError as ModelFileError
from polyseme.errors import ShardError as ShardError
from polyseme.errors import UnsupportedError as UnsupportedError

if TYPE_CHECKING:
    from polyseme.core.model import Background as Background
    from polyseme.core.model import JointBackground as JointBackground
    from polyseme.estimators import *  # noqa: F403

    __version__: str

_OWN = (
    "Background",
    "InputError",
    "JointBackground",
    "MissingExtraError",
    "ModelFileError",
    "ShardError",
    "UnsupportedError",
    "load",
)
"""Public names beside the estimators."""


def __getattr__(name: str) -> Any:
    """Import the estimators when they are first used, so that the command line can report errors at once."""
    if name == "__version__":
        return import_module("importlib.metadata").version("polyseme")
    if name != "__all__" and not name[:1].isupper():  # all lazy names are classes
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    estimators = import_module("polyseme.estimators")
    if name == "__all__":
        return sorted([*estimators.__all__, *_OWN])
    if name not in estimators.__all__ and name not in _OWN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module("polyseme.core.model") if name in _OWN else estimators, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})


def load(path: str | PathLike[str], *, check_documents: bool = True) -> Any:
    """Load a model that was written by `save`, or the model of a run.

    Nothing in the file is executed: it holds arrays and parameters only. The arrays of the training documents of a run
    are files beside its model, which are mapped to memory.

    Parameters
    ----------
    path : str or path-like
        The model file.
    check_documents : bool, default=True
        Whether the digests of arrays in files beside the model file are checked. False is for files that were checked
        already.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or was written by a newer version.
    """
    from polyseme import estimators
    from polyseme.core.model import Background as Background
    from polyseme.core.model import JointBackground as JointBackground
    from polyseme.estimators.lda import VARIATIONAL_SOLVERS
    from polyseme.io import models
    from polyseme.priors import MEMBERS
    from polyseme.solvers import SOLVERS, EarlyStopping, TreeGrowth

    named: tuple[type[Any], ...] = (*SOLVERS.values(), *VARIATIONAL_SOLVERS.values(), *MEMBERS)
    others: tuple[type[Any], ...] = (EarlyStopping, TreeGrowth, Background, JointBackground)
    settings = {part.__name__: part for part in (*named, *others)}
    classes = {name: getattr(estimators, name) for name in estimators.__all__}
    return models.restore(path, classes, settings, check_documents=check_documents)
