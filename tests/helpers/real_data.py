"""Folder of the real data."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("POLYSEME_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))


def data_file(name: str) -> Path:
    """Return a file of the data folder, or skip the test if it does not exist."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"no {path} (set POLYSEME_DATA to the data folder)")
    return path
