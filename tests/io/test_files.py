"""Locks, exchanged folders and removals: one writer at a time, and no planted link is followed."""

import os
import subprocess
import sys

import pytest

from polyseme import InputError
from polyseme.io import files
from polyseme.io.files import exchange_folders, is_interrupted, locked, only_writer, recover_folder, remove_own

posix = pytest.mark.skipif(os.name != "posix", reason="needs links, pipes and owners of files")


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


HOLDER = """
import pathlib, sys
from polyseme.io.files import locked
with locked(pathlib.Path(sys.argv[1]), "busy."):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_held_by_another_process_is_refused_until_it_ends(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=r"^busy\.$"), locked(tmp_path / "lock", "busy."):
            pytest.fail("two holders at once")
        process.communicate("")
    with locked(tmp_path / "lock", "busy."):
        pass


def test_a_child_process_does_not_keep_the_lock(tmp_path):
    with locked(tmp_path / "lock", "busy."):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with locked(tmp_path / "lock", "busy."):
            pass
    finally:
        child.communicate(b"\n")


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path, exists):
    victim = tmp_path / "victim"
    if exists:
        victim.write_bytes(b"content")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(InputError, match=r"lock is not a lock file of polyseme: remove it\.$"):
        locked(tmp_path / "lock", "busy.").__enter__()
    assert (tmp_path / "lock").is_symlink()
    assert victim.exists() == exists
    assert not exists or victim.read_bytes() == b"content"


@posix
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_folder_in_place_of_a_lock_is_refused(tmp_path, make):
    make(tmp_path / "lock")
    with pytest.raises(InputError, match="is not a lock file of polyseme"):
        locked(tmp_path / "lock", "busy.").__enter__()
    assert (tmp_path / "lock").exists()


# exchanged folders


def two_folders(place):
    for name, content in (("new", "2"), ("run", "1")):
        (place / name).mkdir()
        (place / name / "file").write_text(content, encoding="utf-8")
    return place / "new", place / "run"


def content(folder):
    return (folder / "file").read_text(encoding="utf-8")


@pytest.mark.parametrize("offered", [True, False])
def test_folders_are_exchanged(offered, tmp_path, monkeypatch):
    if not offered:
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
    new, run = two_folders(tmp_path)
    old = exchange_folders(new, run)
    assert content(run) == "2"
    assert content(old) == "1"
    assert len(list(tmp_path.iterdir())) == 2
    assert exchange_folders(run, tmp_path / "other") is None
    assert content(tmp_path / "other") == "2"


@pytest.mark.parametrize("fails", [1, 2])
def test_an_exchange_by_two_renames_that_fails_changes_nothing(fails, tmp_path, monkeypatch):
    new, run = two_folders(tmp_path)
    rename, calls = os.rename, []

    def failing(source, target):
        calls.append(source)
        if len(calls) == fails:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    monkeypatch.setattr(files.os, "rename", failing)
    with pytest.raises(OSError, match="No space"):
        exchange_folders(new, run)
    assert (content(new), content(run)) == ("2", "1")
    assert {path.name for path in tmp_path.iterdir()} == {"new", "run"}


def test_an_interrupted_exchange_is_completed(tmp_path):
    _, run = two_folders(tmp_path)
    assert not is_interrupted(run)
    run.rename(tmp_path / ".run.old")
    assert is_interrupted(run)
    recover_folder(run)
    assert content(run) == "1"
    assert not (tmp_path / ".run.old").exists()


@posix
def test_a_planted_old_folder_is_not_restored(tmp_path, monkeypatch):
    _, run = two_folders(tmp_path)
    run.rename(tmp_path / "elsewhere")
    (tmp_path / ".run.old").symlink_to(tmp_path / "elsewhere")
    recover_folder(run)
    assert not run.is_symlink()
    assert not run.exists()
    (tmp_path / ".run.old").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / ".run.old")
    monkeypatch.setattr(files.os, "geteuid", lambda: 4321)
    recover_folder(run)
    assert not run.exists()


@posix
def test_a_removed_link_leaves_its_target(tmp_path, monkeypatch):
    new, run = two_folders(tmp_path)
    (tmp_path / "link").symlink_to(run)
    remove_own(tmp_path / "link")
    assert content(run) == "1"
    (tmp_path / "file").touch()
    for path in (new, tmp_path / "file", tmp_path / "link"):
        remove_own(path)
        assert not path.exists()
    monkeypatch.setattr(files.os, "geteuid", lambda: 4321)
    with pytest.raises(InputError, match=r"run belongs to another user: remove it, or choose another folder\.$"):
        remove_own(run)
    assert content(run) == "1"


@posix
def test_all_files_and_folders_are_flushed_and_links_are_not(tmp_path, monkeypatch):
    new, run = two_folders(tmp_path)
    (run / "inner").mkdir()
    (run / "inner" / "file").touch()
    (run / "link").symlink_to(new / "file")
    (run / "folder").symlink_to(new)
    flushed = []
    monkeypatch.setattr(files, "flush_to_disk", flushed.append)
    files.flush_all(run)
    assert sorted(flushed) == [run, run / "file", run / "inner", run / "inner" / "file"]
