"""Opening a run folder, of either kind."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from polyseme.errors import ModelFileError
from polyseme.runs.counted import read_json
from polyseme.runs.fields import RUN
from polyseme.runs.folder import RUN_FILE, SHARDS_FOLDER, check_is_run
from polyseme.runs.run import FORMAT_VERSION, Run
from polyseme.runs.sharded import ShardedRun


def open_run(path: str | PathLike[str], *, trust_pattern: bool = False) -> Run:
    """The run in a folder, checked to be one that this version can read.

    trust_pattern : whether a `token_pattern` in the run may be any regular expression, which can take exponential time
        (see `Vectorizer.from_dict`); True is for runs of people that you trust.
    """
    path = Path(path)
    check_is_run(path)
    newer = read_json(path / RUN_FILE, {"format_version": RUN["format_version"]}, required=("format_version",))
    if newer["format_version"] > FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
    about = read_json(path / RUN_FILE, RUN)
    kind = ShardedRun if (path / SHARDS_FOLDER).is_dir() else Run
    return kind(path, about, trust_pattern=trust_pattern)
