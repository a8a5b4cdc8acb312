"""Fixtures for real data, if the files exist."""

import pytest
import scipy.sparse as sp

from real_data import data_file


@pytest.fixture(scope="session")
def real_file():
    """Return the function `data_file`."""
    return data_file


@pytest.fixture(scope="session")
def real_counts():
    """Return a function that loads the CSR counts of a file in the data folder, or skips the test."""
    return lambda name: sp.csr_array(sp.load_npz(data_file(name)))
