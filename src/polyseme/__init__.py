"""Topic models for Python: probabilistic latent semantic analysis (PLSA), NMF, LDA, LSA and related models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polyseme.errors import (
    InputError,
    MissingExtraError,
    ModelFileError,
    SeedWarning,
    ShardError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from polyseme import datasets as datasets
    from polyseme import explore as explore
    from polyseme import extending as extending
    from polyseme import losses as losses
    from polyseme import metrics as metrics
    from polyseme import plots as plots
    from polyseme import priors as priors
    from polyseme import retrieval as retrieval
    from polyseme import runs as runs
    from polyseme import scale as scale
    from polyseme import selection as selection
    from polyseme import signatures as signatures
    from polyseme import simplex as simplex
    from polyseme import solvers as solvers
    from polyseme import text as text
    from polyseme import typing as typing
    from polyseme import uncertainty as uncertainty
    from polyseme.core.model import Background, JointBackground
    from polyseme.estimators import (
        LDA,
        LSA,
        NMF,
        PLSA,
        CorrelatedTopicModel,
        HierarchicalPLSA,
        MultinomialMixture,
        RealTopicModel,
        TensorPLSA,
        TopicClassifier,
    )
    from polyseme.estimators.base import load
    from polyseme.runs.pipeline import fit
    from polyseme.runs.run import Run, open_run

    __version__: str

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
    "MultinomialMixture",
    "RealTopicModel",
    "Run",
    "SeedWarning",
    "ShardError",
    "TensorPLSA",
    "TopicClassifier",
    "UnsupportedError",
    "fit",
    "load",
    "open_run",
]

_SUBPACKAGES = (
    "datasets", "explore", "extending", "losses", "metrics", "plots", "priors", "retrieval", "runs", "scale",
    "selection", "signatures", "simplex", "solvers", "text", "typing", "uncertainty",
)  # fmt: skip
"""Modules with public names of their own."""
_MODULES = {
    "Background": "core.model",
    "JointBackground": "core.model",
    "Run": "runs.run",
    "fit": "runs.pipeline",
    "load": "estimators.base",
    "open_run": "runs.run",
}
"""Modules of the public names that are imported when they are first used; other classes are estimators."""


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used, so that the command line can report errors at once."""
        if name == "__version__":
            return import_module("importlib.metadata").version("polyseme")
        if name in _SUBPACKAGES:
            return import_module(f"{__name__}.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'estimators')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES, "__version__"})
