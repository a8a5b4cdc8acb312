"""What several test files share: real data where it is at hand."""

import pytest
import scipy.sparse as sp

from real_data import data_file


@pytest.fixture(scope="session")
def real_file():
    """real_file(name): see data_file."""
    return data_file


@pytest.fixture(scope="session")
def real_counts():
    """real_counts(name): the CSR counts of a file in the data folder; the test is skipped where it is absent."""
    return lambda name: sp.csr_array(sp.load_npz(data_file(name)))
