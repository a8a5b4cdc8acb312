"""The absolute loss: its smoothing, its stages, and wrong parameters."""

import numpy as np
import pytest

from polyseme import InputError
from polyseme.losses.absolute import Absolute
from sentences import sentence


def test_small_errors_have_the_weight_of_the_smoothing():
    x, q = np.array([2.0, 2.0, 2.0, 0.0]), np.array([2.0, 2.01, 3.0, 4.0])
    numerator, denominator = Absolute(0.1).ratios(x, q)
    np.testing.assert_allclose(numerator, [10, 10, 2, 0])
    np.testing.assert_allclose(denominator, [10, 10.05, 3, 1])


def test_stages_end_at_a_small_smoothing():
    stages, loss = [], Absolute()
    while loss is not None:
        stages.append(loss.smoothing)
        loss = loss.next_stage
    np.testing.assert_allclose(stages, [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])


@pytest.mark.parametrize("smoothing", [0, -1, 2, np.nan, "1", None, True], ids=repr)
def test_a_wrong_smoothing_raises(smoothing):
    with pytest.raises(InputError, match="Absolute: smoothing must be a number above 0") as error:
        Absolute(smoothing)
    sentence(error)
