"""What several test files share: real data where it is at hand."""

import os
from pathlib import Path

import pytest
import scipy.sparse as sp

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


def data_file(name: str) -> Path:
    """A file in the data folder; the test is skipped where it is absent."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"no {path} (set POLYSEME_DATA to the data folder)")
    return path


@pytest.fixture(scope="session")
def real_file():
    """real_file(name): see data_file."""
    return data_file


@pytest.fixture(scope="session")
def real_counts():
    """real_counts(name): the CSR counts of a file in the data folder; the test is skipped where it is absent."""
    return lambda name: sp.csr_array(sp.load_npz(data_file(name)))
