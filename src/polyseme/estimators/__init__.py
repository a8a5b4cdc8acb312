"""The estimators: topic models with the interface of scikit-learn."""

from polyseme.estimators.correlated import CorrelatedTopicModel
from polyseme.estimators.hierarchical import HierarchicalPLSA
from polyseme.estimators.lda import LDA
from polyseme.estimators.lsa import LSA
from polyseme.estimators.nmf import NMF
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.real import RealTopicModel
from polyseme.estimators.tensor import TensorPLSA

__all__ = ["LDA", "LSA", "NMF", "PLSA", "CorrelatedTopicModel", "HierarchicalPLSA", "RealTopicModel", "TensorPLSA"]
