"""A run is written completely or not at all, also through links. tests/attacks/test_links.py tests planted links."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from polyseme import InputError
from polyseme.io import files
from polyseme.runs import store as module
from polyseme.runs.store import (
    CHECKPOINT_FOLDER,
    RUN_FILE,
    STAGES_FILE,
    atomic_folder,
    check_is_run,
    check_target,
    run_lock,
    work_folder,
)
from run_folders import content, names, write

posix = pytest.mark.skipif(os.name != "posix", reason="needs links and owners of files")


class Failure(Exception):
    pass


def fail(path: Path, error: BaseException, *, stages: bool, **options: bool) -> None:
    with atomic_folder(path, **options) as work:
        (work / "half").touch()
        if stages:
            (work / STAGES_FILE).write_text("{}", encoding="utf-8")
        raise error


def refused(call, *arguments, **options) -> str:
    """Return the message of the InputError that a call raises."""
    with pytest.raises(InputError) as error:
        call(*arguments, **options)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


# locks


def test_the_lock_is_that_of_the_folder_behind_links(tmp_path):
    write(tmp_path / "run", "1")
    (tmp_path / "link").symlink_to("run")
    (tmp_path / "folder").symlink_to(tmp_path)
    with run_lock(tmp_path / "link") as path:
        assert path == (tmp_path / "run").resolve()
        for other in ("run", "link", "folder/link", "folder/run"):
            message = refused(run_lock(tmp_path / other).__enter__)
            assert "is being written by another polyseme process: wait until it ends" in message
    with run_lock(tmp_path / "folder" / "run"):
        pass
    assert names(tmp_path) == {"run", "link", "folder"}


WRITER = """
import pathlib, sys
from polyseme.runs.store import atomic_folder
with atomic_folder(pathlib.Path(sys.argv[1]), overwrite=True) as work:
    print("writing", flush=True)
    sys.stdin.read()
    (work / "run.json").write_text(sys.argv[2], encoding="utf-8")
"""


def writer(path: Path, text: str) -> subprocess.Popen:
    arguments = [sys.executable, "-c", WRITER, str(path), text]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_another_process_that_writes_is_noticed(tmp_path):
    write(tmp_path / "run", "1")
    (tmp_path / "link").symlink_to("run")
    with writer(tmp_path / "link", "2") as process:
        assert process.stdout.readline() == "writing\n"
        assert "being written by another" in refused(write, tmp_path / "run", "3", overwrite=True)
        assert content(tmp_path / "run") == "1"
        process.communicate("")
    assert content(tmp_path / "run") == "2"


def test_a_lock_needs_the_folder_of_the_run_and_does_not_create_it(tmp_path):
    assert "does not exist" in refused(run_lock(tmp_path / "missing" / "run").__enter__)
    assert names(tmp_path) == set()


# targets that may be written to


@posix
@pytest.mark.parametrize("through", ["link", "link to a link", "folder/link"])
@pytest.mark.parametrize("offered", [True, False])
def test_a_run_is_written_through_a_link_which_stays_a_link(tmp_path, monkeypatch, through, offered):
    if not offered:
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "run").mkdir()
    (tmp_path / "link").symlink_to("far/run")
    (tmp_path / "link to a link").symlink_to("link")
    (tmp_path / "folder").symlink_to(tmp_path)
    write(tmp_path / through, "1")
    write(tmp_path / through, "2", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == {"far", "link", "link to a link", "folder"}
    assert names(tmp_path / "far") == {"run"}
    assert content(tmp_path / "far" / "run") == content(tmp_path / through) == "2"
    with pytest.raises(Failure):
        fail(tmp_path / through, Failure(), stages=False, overwrite=True)
    assert names(tmp_path / "far") == {"run"}
    assert content(tmp_path / "link") == "2"


@posix
@pytest.mark.parametrize("path", ["link", "link/run", "link/a/b"])
def test_a_link_to_nothing_is_refused(tmp_path, path):
    (tmp_path / "link").symlink_to("missing")
    for call in (check_target, atomic_folder(tmp_path / path).__enter__):
        arguments = (tmp_path / path,) if call is check_target else ()
        message = refused(call, *arguments, **({"overwrite": True} if call is check_target else {}))
        assert f"{tmp_path / 'link'} is a link to a folder that does not exist: remove the link" in message
    assert names(tmp_path) == {"link"}


@posix
def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "link").symlink_to("link")
    refused(check_target, tmp_path / "link", overwrite=True)


def test_a_mount_point_is_refused(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == (tmp_path / "run").resolve())
    for name in ("run", "link"):
        message = refused(check_target, tmp_path / name, overwrite=True)
        assert "is a mount point, which cannot be replaced: choose a folder inside it as output=." in message
    check_target(tmp_path / "run" / "inner", overwrite=False)


def test_the_root_is_refused():
    assert "is a mount point" in refused(check_target, Path("/"), overwrite=True)


def test_a_parent_that_cannot_be_written_to_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path.resolve())
    for name in ("run", "a/b/run"):
        message = refused(check_target, tmp_path / name, overwrite=False)
        assert message.startswith(f"{tmp_path.resolve()} cannot be written to")
        assert "change its permissions, or choose another output=" in message
    assert names(tmp_path) == set()


def test_a_read_only_run_is_not_replaced(tmp_path, monkeypatch):
    write(tmp_path / "run", "1")
    (tmp_path / "link").symlink_to("run")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != (tmp_path / "run").resolve())
    for name in ("run", "link"):
        assert "run cannot be written to: change its permissions" in refused(
            write, tmp_path / name, "2", overwrite=True
        )
    assert content(tmp_path / "run") == "1"


def test_a_file_in_place_of_a_parent_is_refused(tmp_path):
    (tmp_path / "file").touch()
    assert "file is not a folder" in refused(check_target, tmp_path / "file" / "run", overwrite=False)


def test_what_is_not_a_run_is_not_replaced(tmp_path):
    (tmp_path / "other").mkdir()
    check_target(tmp_path / "other", overwrite=False)
    (tmp_path / "other" / "mine").touch()
    assert "exists and is not a run" in refused(check_target, tmp_path / "other", overwrite=True)
    assert "exists and is not a run" in refused(check_target, tmp_path / "other" / "mine", overwrite=True)
    write(tmp_path / "run", "1")
    assert "is already a run" in refused(check_target, tmp_path / "run", overwrite=False)
    check_target(tmp_path / "run", overwrite=True)


# permissions


@posix
def test_nobody_else_can_write_or_read_the_work_folder(tmp_path):
    with atomic_folder(tmp_path / "run") as work:
        assert stat.S_IMODE(work.stat().st_mode) & 0o077 == 0


@posix
def test_a_new_run_has_the_permissions_of_new_folders_and_a_private_one_stays_private(tmp_path):
    write(tmp_path / "run", "1")
    (tmp_path / "folder").mkdir()
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == stat.S_IMODE((tmp_path / "folder").stat().st_mode)
    (tmp_path / "run").chmod(0o700)
    write(tmp_path / "run", "2", overwrite=True)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


# work that failed


@pytest.mark.parametrize("error", [Failure(), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_work_that_failed_stays_only_with_its_stages(tmp_path, error):
    write(tmp_path / "run", "1")
    with pytest.raises(type(error)) as raised:
        fail(tmp_path / "run", error, stages=False, overwrite=True)
    assert names(tmp_path) == {"run"}
    assert "--resume" not in str(raised.value)
    with pytest.raises(type(error)) as raised:
        fail(tmp_path / "run", error, stages=True, overwrite=True)
    assert names(tmp_path) == {"run", ".run.part"}
    hint = "No space left on device; the work so far is stored: repeat the call with resume=True"
    assert not isinstance(error, OSError) or str(raised.value).endswith(hint)
    assert content(tmp_path / "run") == "1"


def test_stored_work_is_resumed_only_if_asked_and_possible(tmp_path):
    def again(*, resume: bool) -> None:
        with atomic_folder(tmp_path / "run", resume=resume) as work:
            assert names(work) == ({"half", STAGES_FILE} if resume else set())
            raise Failure

    for resume in (True, False):
        with pytest.raises(Failure):
            fail(tmp_path / "run", Failure(), stages=True)
        (work_folder(tmp_path / "run") / "x.part").touch()  # of a process that was killed
        with pytest.raises(Failure):
            again(resume=resume)
        assert work_folder(tmp_path / "run").exists() == resume
    (tmp_path / ".run.part").mkdir()
    (tmp_path / ".run.part" / "half").touch()
    with atomic_folder(tmp_path / "run", resume=True) as work:
        assert names(work) == set()


def test_stages_and_checkpoints_are_not_part_of_a_run(tmp_path):
    with atomic_folder(tmp_path / "run") as work:
        for name in (STAGES_FILE, RUN_FILE):
            (work / name).write_text("{}", encoding="utf-8")
        (work / CHECKPOINT_FOLDER / "0123").mkdir(parents=True)
        (work / CHECKPOINT_FOLDER / "0123" / "checkpoint.safetensors").touch()
    assert names(tmp_path / "run") == {RUN_FILE}
    assert names(tmp_path) == {"run"}


def test_everything_is_flushed_before_the_exchange(tmp_path, monkeypatch):
    steps = []
    flush_all, exchange = module.flush_all, module.exchange_folders
    monkeypatch.setattr(module, "flush_all", lambda path: steps.append("flush") or flush_all(path))
    monkeypatch.setattr(module, "exchange_folders", lambda *paths: steps.append("exchange") or exchange(*paths))
    monkeypatch.setattr(module, "flush_to_disk", lambda path: steps.append(path.name))
    write(tmp_path / "run", "1")
    assert steps == ["flush", "exchange", tmp_path.name]


@pytest.mark.parametrize("stages", [True, False])
def test_a_failed_exchange_keeps_the_finished_run(tmp_path, monkeypatch, stages):
    write(tmp_path / "run", "1")

    def busy(*_):
        raise OSError(16, "Device or resource busy", str(tmp_path / "run"))

    def replace():
        with atomic_folder(tmp_path / "run", overwrite=True) as work:
            (work / RUN_FILE).write_text("2", encoding="utf-8")
            if stages:
                (work / STAGES_FILE).write_text("{}", encoding="utf-8")

    with monkeypatch.context() as patch:
        patch.setattr(files, "_exchange", busy)
        with pytest.raises(OSError, match="could not be replaced") as raised:
            replace()
    work = work_folder((tmp_path / "run").resolve())
    assert str(raised.value) == (
        f"{(tmp_path / 'run').resolve()} could not be replaced (Device or resource busy): the finished run is in "
        f"{work}, move it to another name before you write to this folder again."
    )
    assert (content(work), content(tmp_path / "run")) == ("2", "1")
    assert names(work) == {RUN_FILE}
    check_is_run(work.rename(tmp_path / "moved"))


def test_ctrl_c_in_the_exchange_keeps_the_finished_run(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "exchange_folders", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "run", "1")
    assert content(work_folder(tmp_path / "run")) == "1"


def test_a_parent_that_cannot_be_read_is_not_an_error(tmp_path, monkeypatch):
    def forbidden(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(module, "flush_to_disk", forbidden)
    write(tmp_path / "run", "1")
    assert content(tmp_path / "run") == "1"


# interrupted exchanges, where a system needs two renames


@posix
@pytest.mark.parametrize("path", ["run", "link"])
def test_an_interrupted_exchange_is_completed_by_readers_and_writers(tmp_path, path):
    (tmp_path / "link").symlink_to("run")
    for call in (
        lambda: check_is_run(tmp_path / path),
        lambda: check_target(tmp_path / path, overwrite=True),
        lambda: run_lock(tmp_path / path).__enter__(),
    ):
        write(tmp_path / "other", "1")
        (tmp_path / "other").rename(tmp_path / ".run.old")
        call()
        assert content(tmp_path / path) == "1"
        (tmp_path / "run").rename(tmp_path / "done")
        for file in (tmp_path / "done").iterdir():
            file.unlink()
        (tmp_path / "done").rmdir()


def test_a_reader_does_not_disturb_an_exchange_between_its_renames(tmp_path, monkeypatch):
    write(tmp_path / "run", "1")
    rename, seen = os.rename, []

    def watched(source, target):
        rename(source, target)
        if Path(target).name == ".run.old":
            seen.append(refused(check_is_run, tmp_path / "run"))

    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    monkeypatch.setattr(files.os, "rename", watched)
    write(tmp_path / "run", "2", overwrite=True)
    assert len(seen) == 1
    assert "being written by another" in seen[0]
    assert content(tmp_path / "run") == "2"
    assert names(tmp_path) == {"run"}


# writers killed at random moments

REWRITER = """
import pathlib, sys
from polyseme.runs.store import replacing, run_lock
print("ready", flush=True)
path = pathlib.Path(sys.argv[1])
while True:
    with run_lock(path) as target:
        value = str(int((target / "run.json").read_text()) + 1)
        with replacing(target) as work:
            for name in ("run.json", "a", "b", "c"):
                (work / name).write_text(value)
"""


@pytest.mark.slow
@posix
@pytest.mark.parametrize("through", ["run", "link"])
def test_a_writer_killed_at_random_moments_leaves_the_old_or_the_new_run(tmp_path, through):
    with atomic_folder(tmp_path / "run") as work:
        for name in (RUN_FILE, "a", "b", "c"):
            (work / name).write_text("0", encoding="utf-8")
    (tmp_path / "link").symlink_to("run")
    moments, last, grown = random.Random(0), 0, 0
    for _ in range(60):
        process = subprocess.Popen([sys.executable, "-c", REWRITER, str(tmp_path / through)], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(moments.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        values = {path.name: int(path.read_text(encoding="utf-8")) for path in (tmp_path / "run").iterdir()}
        assert set(values) == {RUN_FILE, "a", "b", "c"}
        assert len(set(values.values())) == 1, "files of two states"
        assert values["a"] >= last
        grown += values["a"] > last
        last = values["a"]
        assert (tmp_path / "link").is_symlink()
        assert names(tmp_path) <= {"run", "link", ".run.lock", ".run.part"}
    assert grown > 10, "the writers wrote nothing"
    with atomic_folder(tmp_path / through, overwrite=True) as work:
        (work / RUN_FILE).write_text(json.dumps({}), encoding="utf-8")
    assert names(tmp_path) == {"run", "link"}
