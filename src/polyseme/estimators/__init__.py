"""The estimators: topic models with the interface of scikit-learn.

Model files can contain every estimator in `__all__`.
"""

from polyseme.estimators.classifier import TopicClassifier
from polyseme.estimators.correlated import CorrelatedTopicModel
from polyseme.estimators.hierarchical import HierarchicalPLSA
from polyseme.estimators.lda import LDA
from polyseme.estimators.lsa import LSA
from polyseme.estimators.mixture import MultinomialMixture
from polyseme.estimators.nmf import NMF
from polyseme.estimators.plsa import PLSA
from polyseme.estimators.real import RealTopicModel
from polyseme.estimators.tensor import TensorPLSA

__all__ = [
    "LDA",
    "LSA",
    "NMF",
    "PLSA",
    "CorrelatedTopicModel",
    "HierarchicalPLSA",
    "MultinomialMixture",
    "RealTopicModel",
    "TensorPLSA",
    "TopicClassifier",
]
