"""Links, files and folders that somebody planted beside a run are not followed, and nothing behind them changes."""

import os

import pytest

from cli_runner import run, write_folder
from polyseme import InputError
from polyseme.io import files
from polyseme.runs.store import STAGES_FILE, check_is_run, check_target, replacing
from run_folders import content, names, write

posix = pytest.mark.skipif(os.name != "posix", reason="needs links and owners of files")


def refused(call, *arguments, **options) -> str:
    """Return the message of the InputError that a call raises."""
    with pytest.raises(InputError) as error:
        call(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@posix
@pytest.mark.parametrize("name", [".run.part", ".run.old"])
@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("offered", [True, False])
def test_a_planted_link_is_removed_and_not_followed(tmp_path, monkeypatch, name, resume, offered):
    if not offered:
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
    write(tmp_path / "run", "1")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / STAGES_FILE).write_text("{}", encoding="utf-8")
    (victim / "x.part").write_text("mine", encoding="utf-8")
    (tmp_path / name).symlink_to(victim)
    write(tmp_path / "run", "2", overwrite=True, resume=resume)
    assert content(tmp_path / "run") == "2"
    assert names(victim) == {STAGES_FILE, "x.part"}
    assert names(tmp_path) == {"run", "victim"}
    assert not (tmp_path / "run").is_symlink()


@pytest.mark.parametrize("name", [".run.part", ".run.old"])
def test_a_planted_file_is_removed(tmp_path, name):
    (tmp_path / name).write_text("planted", encoding="utf-8")
    write(tmp_path / "run", "1")
    assert names(tmp_path) == {"run"}


@posix
@pytest.mark.parametrize("name", [".run.part", ".run.old"])
@pytest.mark.parametrize("resume", [True, False])
def test_a_planted_folder_of_another_user_is_refused(tmp_path, monkeypatch, name, resume):
    write(tmp_path / "run", "1")
    (tmp_path / name).mkdir()
    (tmp_path / name / STAGES_FILE).write_text("{}", encoding="utf-8")
    monkeypatch.setattr(files.os, "geteuid", lambda: 4321)
    for call in (
        lambda: check_target(tmp_path / "run", overwrite=True),
        lambda: write(tmp_path / "run", "2", overwrite=True, resume=resume),
        lambda: replacing(tmp_path / "run", resume=resume).__enter__(),
    ):
        assert f"{name} belongs to another user: remove it, or choose another folder." in refused(call)
    assert content(tmp_path / "run") == "1"
    assert (tmp_path / name / STAGES_FILE).exists()


@posix
def test_a_planted_lock_is_not_followed(tmp_path):
    write(tmp_path / "run", "1")
    (tmp_path / ".run.lock").symlink_to(tmp_path / "victim")
    assert ".run.lock is not a lock file of polyseme: remove it." in refused(
        write, tmp_path / "run", "2", overwrite=True
    )
    assert names(tmp_path) == {"run", ".run.lock"}


@posix
def test_a_planted_old_run_is_not_opened(tmp_path):
    write(tmp_path / "elsewhere", "1")
    (tmp_path / ".run.old").symlink_to("elsewhere")
    assert "is not a run" in refused(check_is_run, tmp_path / "run")
    assert names(tmp_path) == {"elsewhere", ".run.old"}


@posix
def test_commands_write_through_a_link_and_not_through_planted_ones(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "far").mkdir()
    assert run("fit", "docs", "-k", "2", "-o", "far/run", "-q", "--no-page", cwd=tmp_path).exit_code == 0
    (tmp_path / "link").symlink_to("far/run")
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "mine").touch()
    for name in (".run.part", ".run.old"):
        (tmp_path / "far" / name).symlink_to(tmp_path / "victim")
    command = ("fit", "docs", "-k", "3", "-o", "link", "-q", "--no-page", "--overwrite")
    assert run(*command, cwd=tmp_path).exit_code == 0
    assert run("edit", "link", "--rename", "2=Third", cwd=tmp_path).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "far") == {"run"}
    assert names(tmp_path / "victim") == {"mine"}
    (tmp_path / "far" / ".run.lock").symlink_to(tmp_path / "victim" / "mine")
    for arguments in (command, ("edit", "link", "--rename", "1=Second")):
        done = run(*arguments, cwd=tmp_path)
        assert done.exit_code == 1
        assert done.stderr.count("\n") == 1
        assert ".run.lock is not a lock file of polyseme: remove it." in done.stderr
    (tmp_path / "far" / ".run.lock").unlink()
    (tmp_path / "nothing").symlink_to("missing")
    done = run("fit", "docs", "-k", "2", "-o", "nothing", "-q", cwd=tmp_path)
    assert done.exit_code == 1
    assert "is a link to a folder that does not exist" in done.stderr
