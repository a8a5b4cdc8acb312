"""JSON files of runs, run.json and stages.json: their fields, version and digest.

Each file has a table of its fields with the check of each value. Fields that are not listed are read by no code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from polyseme.errors import ModelFileError
from polyseme.io.checks import (
    COUNT,
    FLAG,
    NULL,
    OBJECT,
    TEXT,
    Check,
    check_fields,
    either,
    list_of,
    mapping_to,
    number,
    object_with,
    one_of,
    read_json,
    whole_number,
)
from polyseme.io.files import write_atomically
from polyseme.io.manifest import FILES, FileManifest

RUN_FILE = "run.json"
"""File that makes a folder a run."""
VECTORIZER_FILE = "vectorizer.json"
"""File with the vocabulary and the word rules of a run."""
FORMAT_VERSION = 2
"""Version of runs and of unfinished runs. Version 1 was never released."""

_NUMBER = number(-1e300, 1e300)
_PLAIN = either(NULL, FLAG, TEXT, _NUMBER)
_TOPICS = whole_number(1, 2**31 - 1)
_ROW = mapping_to(_PLAIN)
RUN_FIELDS = {
    "written": TEXT,
    "versions": mapping_to(TEXT),
    "command": list_of(TEXT),
    "inputs": list_of(TEXT),
    "reading": OBJECT,
    "counting": object_with({"language": either(NULL, TEXT)}),
    "documents": COUNT,
    "words": COUNT,
    "tokens": COUNT,
    "shards": COUNT,
    "in_memory": FLAG,
    "left_out": mapping_to(COUNT),
    "problems": mapping_to(COUNT),
    "seconds": mapping_to(_NUMBER),
    "title": either(NULL, TEXT),
    "page_text": one_of("excerpt", "full", "none"),
    "model": object_with(
        {"class": TEXT, "model": TEXT, "n_topics": _TOPICS, "random_state": COUNT, "seeds": either(NULL, OBJECT)},
        required=("class",),
    ),
    "selection": object_with({"rows": list_of(_ROW), "reason": TEXT, "n_topics": _TOPICS}),
    "solver": TEXT,
    "iterations": COUNT,
    "converged": FLAG,
    "interrupted": FLAG,
    "topic_names": Check(
        lambda value: mapping_to(TEXT).holds(value) and all(map(_is_topic, value)), "an object from topics to names"
    ),
    "stability": list_of(_NUMBER),
    "banned_words": list_of(TEXT),
    "edits": list_of(OBJECT),
    "updates": list_of(OBJECT),
    "files": FILES,
}
"""Fields of run.json."""
_READ_FIELDS = ("inputs", "reading", "counting", "documents", "words", "left_out", "problems", "in_memory", "seconds")
STAGE_FIELDS = {
    "settings": OBJECT,
    "stages": object_with(
        {
            "read": object_with(RUN_FIELDS, required=_READ_FIELDS),
            "counted": object_with({"tokens": COUNT, "shards": COUNT}, required=("tokens", "shards")),
            "chosen": object_with({"n_topics": _TOPICS, "reason": TEXT, "rows": list_of(_ROW)}, required=("n_topics",)),
            "fitted": object_with(
                {"interrupted": FLAG, "seconds": number(0, 1e12), "topic_names": RUN_FIELDS["topic_names"]},
                required=("interrupted", "seconds", "topic_names"),
            ),
        }
    ),
    "files": FILES,
}
"""Fields of stages.json, of a run that is not finished."""


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with the version of the format and the digest of its content, atomically."""
    sealed = {**content, "format_version": FORMAT_VERSION}
    text = json.dumps({**sealed, "digest": _digest(sealed)}, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode("utf-8", "surrogatepass"))


def read_sealed(path: Path, table: Mapping[str, Check], *, required: Collection[str]) -> dict[str, Any]:
    """Return what `write_sealed` wrote. Raise ModelFileError if it is damaged or of another version."""
    try:
        content: dict[str, Any] = read_json(path)
        check_fields(content, {"format_version": COUNT}, required=("format_version",), others=True)
    except (OSError, ValueError) as error:
        raise damage_error(path, error) from None
    if content["format_version"] > FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
    if content["format_version"] < FORMAT_VERSION:
        raise ModelFileError(f"{path} was written by an early version of polyseme: fit again.")
    if content.get("digest") != _digest(content):
        raise damage_error(path, ValueError("its digest does not match its content"))
    del content["format_version"]
    try:
        check_fields(content, table, required=required, others=True)
    except ValueError as error:
        raise damage_error(path, error) from None
    return content


def read_about(folder: Path) -> tuple[dict[str, Any], FileManifest]:
    """Return the content of run.json, with its digest, and the manifest of the files."""
    about = read_sealed(folder / RUN_FILE, RUN_FIELDS, required=("files", "model", "documents", "words"))
    return about, FileManifest.from_json(folder, about.pop("files"))


def damage_error(path: Path, error: Exception) -> ModelFileError:
    """Return the error for a file that is missing or damaged, with the first line of the reason."""
    if isinstance(error, FileNotFoundError):
        return ModelFileError(f"{path} is missing: restore it, or fit again.")
    reason = str(error).partition("\n")[0].rstrip(".")
    return ModelFileError(f"{path} is damaged ({reason}): restore it, or fit again.")


def _digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON values without the digest itself, for any order of the fields."""
    values = {name: value for name, value in content.items() if name != "digest"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _is_topic(name: Any) -> bool:
    return isinstance(name, str) and name.isdecimal() and len(name) < 10
