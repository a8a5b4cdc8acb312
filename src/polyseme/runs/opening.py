"""Opening a run folder, of either kind."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from polyseme.errors import ModelFileError
from polyseme.runs.counted import read_json
from polyseme.runs.folder import RUN_FILE, SHARDS_FOLDER, check_is_run
from polyseme.runs.run import FORMAT_VERSION, Run
from polyseme.runs.sharded import ShardedRun


def open_run(path: str | PathLike[str]) -> Run:
    """The run in a folder, checked to be one that this version can read."""
    path = Path(path)
    check_is_run(path)
    about = read_json(path / RUN_FILE)
    if not isinstance(about.get("format_version"), int):
        raise ModelFileError(f"{path / RUN_FILE} is damaged: it names no format.")
    if about["format_version"] > FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
    kind = ShardedRun if (path / SHARDS_FOLDER).is_dir() else Run
    return kind(path, about)
