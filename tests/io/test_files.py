"""One writer at a time, also while the last one is just leaving."""

import os

import pytest

from polyseme import InputError
from polyseme.io import files as locks
from polyseme.io.files import locked, only_writer


def test_a_second_writer_is_told_to_wait(tmp_path):
    with (
        only_writer(tmp_path, "fit"),
        pytest.raises(InputError, match="in use by another fit: wait for it to end, or use a copy"),
        only_writer(tmp_path, "fit"),
    ):
        pytest.fail("two writers at once")
    with only_writer(tmp_path, "fit"):
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("by_another", [False, True])
def test_a_lock_on_a_file_that_was_just_removed_does_not_count(tmp_path, monkeypatch, by_another):
    """The last holder removes the file between the opening and the locking here; another may have made it anew."""
    path, lock, tries = tmp_path / "lock", locks._lock, []

    def late(handle):
        if not tries:
            path.unlink()
            if by_another:
                path.touch()
        tries.append(handle)
        lock(handle)

    monkeypatch.setattr(locks, "_lock", late)
    with locked(path, "busy."):
        assert len(tries) == 2
        assert os.path.samestat(path.stat(), os.fstat(tries[-1]))
