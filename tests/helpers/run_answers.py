"""Answers of commands on runs, without times, to compare two runs that must be equal."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from polyseme.io.arrays import digest_of, read_safetensors

VOLATILE = ("written", "versions", "command", "seconds", "digest")
"""Fields of run.json that differ between two equal runs."""


def answer(result: Any, *files: Path, run: Path | None = None, before: Path | None = None) -> dict[str, Any]:
    """Return the output of a command and digests of the files that it wrote.

    files : files that it may have written. run : run that it may have written. before : run.json before the command.
    """
    found = {"code": result.exit_code, "printed": re.sub(r"[\d.]+ seconds", "", result.stdout)}
    for file in files:
        if file.is_file():
            found[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    if result.exit_code == 0 and run is not None:
        found["run"] = _described(run, before)
    return found


def difference(found: Any, expected: Any, path: str = "") -> str | None:
    """Return the first place where two answers differ; None if they are equal."""
    if isinstance(found, dict) and isinstance(expected, dict):
        parts = (
            difference(found.get(name), expected.get(name), f"{path} {name}")
            for name in sorted(found.keys() | expected.keys())
        )
        return next((part for part in parts if part is not None), None)
    if found == expected:
        return None
    return f"another answer:{path}: {str(found)[:500]!r} instead of {str(expected)[:500]!r}"


def _described(run: Path, before: Path | None) -> dict[str, Any]:
    """Return the content of run.json with the digests of all files.

    The model and its page have the time of each iteration, so a new model is described by the digests of its other
    arrays, and a page of it is not compared.
    """
    about = json.loads((run / "run.json").read_bytes())
    files = about["files"]
    old = json.loads(before.read_bytes())["files"] if before is not None and before.is_file() else {}
    if files["model.safetensors"] != old.get("model.safetensors"):
        _, arrays = read_safetensors(run / "model.safetensors")
        arrays = {name: array for name, array in arrays.items() if name != "history_.seconds"}
        files.pop("explorer.html", None)
        files["model.safetensors"] = {name: digest_of("", {name: array}) for name, array in arrays.items()}
    for entry in [*about.get("edits", []), *about.get("updates", [])]:
        entry.pop("when", None)
    return {name: value for name, value in about.items() if name not in VOLATILE}
