"""What several test files share: real data where it is at hand."""

import os
from pathlib import Path

import pytest
import scipy.sparse as sp

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


@pytest.fixture(scope="session")
def real_counts():
    """real_counts(name): the CSR counts of a file in the data folder; the test is skipped where it is absent."""

    def read(name: str) -> sp.csr_array:
        path = DATA / name
        if not path.is_file():
            pytest.skip(f"no {path} (set POLYSEME_DATA to the data folder)")
        return sp.csr_array(sp.load_npz(path))

    return read
