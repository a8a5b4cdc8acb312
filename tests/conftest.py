"""Fixtures of all tests: faster files, and real data, if they exist."""

import pytest
import scipy.sparse as sp

from quick_files import do_not_wait_for_the_disk, reuse_the_reading_process
from real_data import data_file


@pytest.fixture(scope="session", autouse=True)
def quick_files():
    """Make writing and reading of files faster in this process; the processes that tests start are not changed."""
    with pytest.MonkeyPatch.context() as patch:
        end_process = reuse_the_reading_process(patch.setattr)
        do_not_wait_for_the_disk(patch.setattr)
        yield
        end_process()


@pytest.fixture(scope="session")
def real_file():
    """Return the function `data_file`."""
    return data_file


@pytest.fixture(scope="session")
def real_counts():
    """Return a function that loads the CSR counts of a file in the data folder, or skips the test."""
    return lambda name: sp.csr_array(sp.load_npz(data_file(name)))
