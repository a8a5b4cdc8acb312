"""Files of edits, which the explorer page exports and `edit_run` applies.

Topics are given by their numbers, so a file names the topics that it was made for by their digest. It can do no more
than the arguments of `Run.edit`; its names are checked like those of a namer.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from polyseme.errors import InputError
from polyseme.io.files import read_json
from polyseme.options import named
from polyseme.runs.info import Edit, read_as
from polyseme.runs.names import checked_name

MAX_BYTES = 1_000_000
"""Size of the largest file of edits."""


@dataclass(frozen=True)
class EditFile:
    """Content of a file of edits; the fields of the edit are those of `Edit`."""

    format: Literal["polyseme edits 1"]
    topics: str
    """Digest of the topics, the result of `topics_digest`."""
    level: int | None = None
    rename: dict[int, str] = field(default_factory=dict)
    merge: tuple[tuple[int, ...], ...] = ()
    delete: tuple[int, ...] = ()
    hide: tuple[int, ...] = ()
    ban: tuple[str, ...] = ()


def topics_digest(topic_word: Any) -> str:
    """Return a digest of P(w|z), which changes when topics are merged, deleted or fitted again."""
    return hashlib.sha256(np.ascontiguousarray(topic_word).tobytes()).hexdigest()[:16]


def read_edits(path: str | PathLike[str], *, refit: bool = False) -> tuple[Edit, str]:
    """Return the edit in a file, and the digest of the topics that it was made for."""
    file = Path(path)
    try:
        if file.is_file() and file.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES / 1e6:.0f} MB")
        found = read_as(EditFile, read_json(file))
        rename = {topic: checked_name(name) if name else "" for topic, name in found.rename.items()}
    except OSError as error:
        raise InputError(f"{named('file')}: {path} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise InputError(f"{named('file')}: {path} is not a file of edits of the explorer page: {error}.") from None
    edit = Edit.of(rename, found.merge, found.delete, found.ban, hide=found.hide, refit=refit, level=found.level)
    return edit, found.topics
