"""Fits of random settings to small or odd counts are finite, normalized and monotone, and equal `transform`."""

import pytest

from polyseme import InputError
from random_fits import drawn, problems

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BLOCK = 250


def found(seeds):
    """Return the problems of the cases of these seeds, and the number of cases that were refused."""
    wrong, refused = {}, 0
    for seed in seeds:
        try:
            problems_of_seed = list(problems(drawn(seed)))
        except InputError:
            refused += 1
        except Exception as error:
            wrong[seed] = repr(error)
        else:
            if problems_of_seed:
                wrong[seed] = problems_of_seed
    return wrong, refused


@pytest.mark.slow
@pytest.mark.parametrize("block", range(12))
def test_random_settings(block):
    """Some are refused: too few tokens to hold out, coupled documents in batches, losses that zeros make infinite."""
    wrong, refused = found(range(block * BLOCK, (block + 1) * BLOCK))
    assert wrong == {}
    assert refused < BLOCK / 5


def test_a_few_random_settings():
    wrong, refused = found(range(3000, 3020))
    assert wrong == {}
    assert refused < 10
