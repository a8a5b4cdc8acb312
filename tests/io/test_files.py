"""Locks: one writer at a time, also while the previous holder removes the lock file."""

import os

import pytest

from polyseme import InputError
from polyseme.io import files
from polyseme.io.files import locked, only_writer


def test_a_second_writer_gets_an_error(tmp_path):
    with (
        only_writer(tmp_path, "fit"),
        pytest.raises(InputError, match="in use by another fit: wait for it to end, or use a copy"),
        only_writer(tmp_path, "fit"),
    ):
        pytest.fail("two writers at once")
    with only_writer(tmp_path, "fit"):
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("recreated", [False, True])
def test_a_lock_on_a_file_that_was_just_removed_is_acquired_again(tmp_path, monkeypatch, recreated):
    """The previous holder removes the file after it was opened here; another process may have created a new one."""
    path, lock, tries = tmp_path / "lock", files._lock, []

    def late(handle):
        if not tries:
            path.unlink()
            if recreated:
                path.touch()
        tries.append(handle)
        lock(handle)

    monkeypatch.setattr(files, "_lock", late)
    with locked(path, "busy."):
        assert len(tries) == 2
        assert os.path.samestat(path.stat(), os.fstat(tries[-1]))
