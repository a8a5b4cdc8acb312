"""Topic models for Python: probabilistic latent semantic analysis (PLSA), NMF, LDA, LSA and related models."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from polyseme.errors import InputError, MissingExtraError, ModelFileError, ShardError, UnsupportedError

if TYPE_CHECKING:
    from polyseme.core.model import Background, JointBackground
    from polyseme.estimators import (
        LDA,
        LSA,
        NMF,
        PLSA,
        CorrelatedTopicModel,
        HierarchicalPLSA,
        RealTopicModel,
        TensorPLSA,
    )

    __version__: str

_ESTIMATORS = ("LDA", "LSA", "NMF", "PLSA", "CorrelatedTopicModel", "HierarchicalPLSA", "RealTopicModel", "TensorPLSA")
_MODULES = {
    **dict.fromkeys(_ESTIMATORS, "polyseme.estimators"),
    "Background": "polyseme.core.model",
    "JointBackground": "polyseme.core.model",
}

__all__ = [
    "LDA",
    "LSA",
    "NMF",
    "PLSA",
    "Background",
    "CorrelatedTopicModel",
    "HierarchicalPLSA",
    "InputError",
    "JointBackground",
    "MissingExtraError",
    "ModelFileError",
    "RealTopicModel",
    "ShardError",
    "TensorPLSA",
    "UnsupportedError",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import the estimators when they are first used, so that the command line can report errors at once."""
    if name == "__version__":
        return import_module("importlib.metadata").version("polyseme")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


def load(path: str | PathLike[str]) -> Any:
    """Load a model that was written by `save`.

    Nothing in the file is executed: it holds arrays and parameters only.

    Parameters
    ----------
    path : str or path-like
        The model file.

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
    from polyseme.core.model import Background, JointBackground
    from polyseme.estimators.lda import VARIATIONAL_SOLVERS
    from polyseme.io import models
    from polyseme.priors import MEMBERS
    from polyseme.solvers import SOLVERS, EarlyStopping, TreeGrowth

    named = (*SOLVERS.values(), *VARIATIONAL_SOLVERS.values(), *MEMBERS)
    parts = (*named, EarlyStopping, TreeGrowth, Background, JointBackground)
    settings = {part.__name__: part for part in parts}
    return models.restore(path, {name: getattr(estimators, name) for name in _ESTIMATORS}, settings)
