"""The estimators: topic models with the interface of scikit-learn.

Each line adds an estimator to the package: its name is public, here and in `polyseme`, and model files can contain it.
"""

from polyseme.estimators.classifier import TopicClassifier as TopicClassifier
from polyseme.estimators.correlated import CorrelatedTopicModel as CorrelatedTopicModel
from polyseme.estimators.hierarchical import HierarchicalPLSA as HierarchicalPLSA
from polyseme.estimators.lda import LDA as LDA
from polyseme.estimators.lsa import LSA as LSA
from polyseme.estimators.mixture import MultinomialMixture as MultinomialMixture
from polyseme.estimators.nmf import NMF as NMF
from polyseme.estimators.plsa import PLSA as PLSA
from polyseme.estimators.real import RealTopicModel as RealTopicModel
from polyseme.estimators.tensor import TensorPLSA as TensorPLSA

__all__ = sorted(name for name, value in list(globals().items()) if isinstance(value, type))
