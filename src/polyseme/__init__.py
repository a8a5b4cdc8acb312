"""polyseme: probabilistic latent semantic analysis and its family."""

from __future__ import annotations

from os import PathLike
from typing import Any

from polyseme import storage as _storage
from polyseme.background import Background, JointBackground
from polyseme.errors import InputError, MissingExtraError, ModelFileError, ShardError, UnsupportedError
from polyseme.estimators import LDA, LSA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, RealTopicModel, TensorPLSA
from polyseme.estimators.lda import VARIATIONAL_SOLVERS as _VARIATIONAL_SOLVERS
from polyseme.priors import MEMBERS as _PRIORS
from polyseme.solvers import SOLVERS as _SOLVERS
from polyseme.solvers import EarlyStopping as _EarlyStopping
from polyseme.solvers import Growth as _Growth

__version__ = "0.1.0"

_ESTIMATORS = (LDA, LSA, NMF, PLSA, CorrelatedTopicModel, HierarchicalPLSA, RealTopicModel, TensorPLSA)

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


def load(path: str | PathLike[str]) -> Any:
    """The model that `save` wrote to `path`."""
    named = (*_SOLVERS.values(), *_VARIATIONAL_SOLVERS.values(), *_PRIORS)
    parts = (*named, _EarlyStopping, _Growth, Background, JointBackground)
    settings = {part.__name__: part for part in parts}
    estimators = {estimator.__name__: estimator for estimator in _ESTIMATORS}
    return _storage.restore(path, estimators, settings)
