"""Changes to files of runs with correct digests, as an attacker makes them, so that only the content can be refused."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_safetensors
from safetensors.numpy import save as to_safetensors

from polyseme.data.shard_files import MANIFEST
from polyseme.io.arrays import digest_of
from polyseme.io.files import is_regular
from polyseme.runs.store import MODEL_FILE, RUN_FILE, SHARDS_FOLDER, STAGES_FILE
from polyseme.solvers.checkpoints import CHECKPOINT_FILE

MODEL_KEY, DIGEST_KEY = "polyseme", "digest"
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError, RecursionError)


def seal(folder: Path) -> None:
    """Correct all sizes and digests in a run, or in the work folder of one, from the innermost files outwards.

    Files that cannot be parsed stay as they are.
    """
    for checkpoint in folder.glob(f"*/*/{CHECKPOINT_FILE}"):
        with suppress(*_UNREADABLE):
            _seal_checkpoint(checkpoint)
    with suppress(*_UNREADABLE):
        rewrite_model(folder / MODEL_FILE, lambda header, _: _seal_beside(header, folder))
    with suppress(*_UNREADABLE):
        seal_shards(folder / SHARDS_FOLDER)
    for name in (RUN_FILE, STAGES_FILE):
        with suppress(*_UNREADABLE):
            content = json.loads(_content(folder / name))
            for file, entry in content["files"].items():
                _seal_entry(entry, folder / file)
            write_with_own_digest(folder / name, content)


def change_json(path: Path, **changes: object) -> None:
    """Change fields of a JSON object in a file, without a new digest."""
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **changes}), encoding="utf-8")


def write_with_own_digest(path: Path, content: dict[str, Any]) -> None:
    """Write an object with the digest of its other fields, as `polyseme.runs.store.write_sealed`, without checks."""
    values = {name: value for name, value in content.items() if name != DIGEST_KEY}
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**values, DIGEST_KEY: digest}), encoding="utf-8")


def seal_shards(folder: Path) -> None:
    """Correct the sizes and digests in the manifest of a folder of shards."""
    manifest = json.loads(_content(folder / MANIFEST))
    for entry in [*manifest["shards"], manifest["word_totals"], manifest["vocabulary"]]:
        with suppress(*_UNREADABLE):
            _seal_entry(entry, folder / Path(entry["name"]).name)
    write_with_own_digest(folder / MANIFEST, manifest)


def rewrite_model(path: Path, change: Callable[[Any, dict[str, np.ndarray]], Any]) -> None:
    """Change the header and the arrays of a model file, and store the correct digest.

    change : function of the header and the arrays, which it changes, or returns another header.
    """
    metadata, tensors = _parts(path)
    header = json.loads(metadata[MODEL_KEY])
    header = change(header, tensors) or header
    text = header if isinstance(header, str) else json.dumps(header)
    path.write_bytes(to_safetensors(tensors, metadata={MODEL_KEY: text, DIGEST_KEY: digest_of(text, tensors)}))


def change_array(path: Path, name: str, place: Any, value: Any) -> None:
    """Set a number of an array in a safetensors file without metadata, such as a shard."""
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    entry = json.loads(content[8:start])[name]
    first, end = (start + offset for offset in entry["data_offsets"])
    array = np.frombuffer(content[first:end], dtype={"I32": "i4", "F32": "f4", "F64": "f8"}[entry["dtype"]]).copy()
    array[place] = value
    content[first:end] = array.tobytes()
    path.write_bytes(content)


def _content(path: Path) -> bytes:
    """Return the bytes of a file. Raise OSError for a link, a folder or a device."""
    if not is_regular(path):
        raise OSError("not a regular file")
    return path.read_bytes()


def _parts(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return the metadata and the arrays of a safetensors file."""
    content = _content(path)
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size])["__metadata__"], from_safetensors(content)


def _seal_entry(entry: dict[str, Any], path: Path) -> None:
    with suppress(OSError):
        content = _content(path)
        entry.update(size=len(content), sha256=hashlib.sha256(content).hexdigest())


def _seal_beside(header: dict[str, Any], folder: Path) -> None:
    """Correct the digests of the arrays beside a model file in its header."""
    for entry in header.get("beside", {}).values():
        with suppress(*_UNREADABLE):
            path = folder / Path(entry["file"]).name
            entry["sha256"] = hashlib.sha256(_content(path)).hexdigest()


def _seal_checkpoint(path: Path) -> None:
    metadata, tensors = _parts(path)
    files = json.loads(metadata["files"])
    files = {name: hashlib.sha256(_content(path.parent / name)).hexdigest() for name in files}
    metadata["files"] = json.dumps(files)
    metadata["digest"] = digest_of(metadata["polyseme_fit"] + metadata["folders"] + metadata["files"], tensors)
    path.write_bytes(to_safetensors(tensors, metadata=metadata))
