"""RealTopicModel as an estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polyseme import PLSA, RealTopicModel


@parametrize_with_checks([RealTopicModel(), RealTopicModel(PLSA(2))])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
