"""Checkpoints: the state of a fit in a file, from which a killed fit resumes.

A checkpoint is a safetensors file with arrays of words, numbers, the history and, for a fit in memory, theta. For a fit
from shards it has the names of the folders with the files of theta instead.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from polyseme.core.model import Model
from polyseme.data.corpus import Corpus
from polyseme.errors import InputError, ModelFileError, ShardError
from polyseme.io.checks import TEXT, mapping_to, parse_json
from polyseme.io.models import settings_of
from polyseme.io.tensors import bytes_of, digest_of, read_safetensors, write_safetensors
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.solvers.base import SavedFit, Snapshot

CHECKPOINT_FILE = "checkpoint.safetensors"
"""Name of the checkpoint of a fit from shards, in its folder."""
_FIT, _FOLDERS, _DIGEST = "polyseme_fit", "folders", "digest"


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often the state of a fit is stored.

    Parameters
    ----------
    path : str, PathLike or None
        File. None for a corpus on disk, whose checkpoint is stored beside the shards.
    seconds : float, default=10.0
        Least time between two writes.
    """

    path: str | PathLike[str] | None
    seconds: float = 10.0


def as_checkpoint(value: Any) -> Checkpoint:
    """Return the Checkpoint for a path or a Checkpoint."""
    return value if isinstance(value, Checkpoint) else Checkpoint(value)


class CheckpointContent(NamedTuple):
    """Content of a checkpoint file."""

    arrays: dict[str, dict[str, Array]]
    """Arrays by part (docs, words, numbers, history) and name."""
    folders: dict[str, str]
    """Folder of each theta that is stored in files."""

    @property
    def history(self) -> dict[str, Array]:
        return self.arrays.get("history", {})

    @property
    def numbers(self) -> dict[str, float]:
        return {name: float(value) for name, value in self.arrays.get("numbers", {}).items()}


def write_checkpoint(path: Path, fit: str, content: CheckpointContent) -> None:
    """Write a checkpoint file, atomically. `fit` identifies the fit, so that no other fit resumes from the file."""
    tensors = {
        f"{part}.{name}": np.asarray(array) for part, arrays in content.arrays.items() for name, array in arrays.items()
    }
    folders = json.dumps(content.folders)
    metadata = {_FIT: fit, _FOLDERS: folders, _DIGEST: digest_of(fit + folders, tensors)}
    write_safetensors(path, tensors, metadata)


def read_checkpoint(path: Path, fit: str) -> CheckpointContent | None:
    """Return what `write_checkpoint` wrote; None if there is no file."""
    if not path.exists():
        return None
    try:
        metadata, tensors = read_safetensors(path)
    except (ValueError, OSError) as error:
        raise ModelFileError(f"{path} is damaged ({error}): remove it to start again.") from None
    if metadata.get(_FIT) != fit:
        raise InputError(f"{path} is the checkpoint of another fit: remove it, or choose another path.")
    folders = metadata.get(_FOLDERS, "")
    if metadata.get(_DIGEST) != digest_of(fit + folders, tensors):
        raise ModelFileError(f"{path} is damaged: its digest does not match; remove it to start again.")
    try:
        folder_names = parse_json(folders)
        mapping_to(TEXT).require("folders", folder_names)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged ({error}): remove it to start again.") from None
    if any(Path(folder).name != folder or folder == ".." for folder in folder_names.values()):
        raise ModelFileError(f"{path} contains invalid folder names: remove it to start again.")
    arrays: dict[str, dict[str, Array]] = {}
    for name, array in tensors.items():
        part, _, local_name = name.partition(".")
        arrays.setdefault(part, {})[local_name] = array
    return CheckpointContent(arrays, folder_names)


def _check_state(path: Path, found: CheckpointContent) -> None:
    """Raise ModelFileError unless the history and the numbers have the form that a fit writes."""
    history, numbers = found.history, found.arrays.get("numbers", {})
    lengths = {column.shape for column in history.values()}
    valid = len(lengths) == 1 and all(len(shape) == 1 and shape[0] > 0 for shape in lengths)
    if not (valid and {"iteration", "seconds"} <= set(history) and all(value.ndim == 0 for value in numbers.values())):
        raise ModelFileError(f"{path} has no valid history: remove it to start again.")


def _numbers(state: Snapshot) -> dict[str, Array]:
    return {name: np.array(value, dtype=np.float64) for name, value in state.numbers.items()}


# a fit in memory


def fit_digest(estimator: Any, counts: SparseCounts, weights: Floats | None) -> str:
    """Return a digest of everything that determines the result of a fit: parameters and data."""
    ignored = ("n_jobs", "verbose")
    settings = {name: value for name, value in settings_of(estimator).items() if name not in ignored}
    # The type of the indices does not change the data.
    indices = {"indptr": counts.indptr.astype(np.int64), "indices": counts.indices.astype(np.int64)}
    tensors = {**indices, "values": counts.values}
    if weights is not None:
        tensors["weights"] = weights
    return digest_of(json.dumps([type(estimator).__name__, counts.n_words, settings]), tensors)


class FileCheckpointStore:
    """Store of a fit in memory: one checkpoint file. `fit` identifies the fit."""

    def __init__(self, path: str | PathLike[str], seconds: float, fit: str) -> None:
        self._path = Path(path)
        self._seconds = seconds
        self._fit = fit
        self._written = time.monotonic()

    def load(self) -> SavedFit | None:
        found = read_checkpoint(self._path, self._fit)
        if found is None:
            return None
        _check_state(self._path, found)
        docs, words = (found.arrays.get(part, {}) for part in ("docs", "words"))
        return SavedFit(Snapshot(docs, words, found.numbers), found.history)

    def offer(self, iteration: int, saved: Callable[[], SavedFit]) -> None:
        if time.monotonic() - self._written < self._seconds:
            return
        state, history = saved()
        arrays = {"docs": state.docs, "words": state.words, "numbers": _numbers(state), "history": history}
        write_checkpoint(self._path, self._fit, CheckpointContent(arrays, {}))
        self._written = time.monotonic()


# a fit from shards


class ThetaFiles(Protocol):
    """theta, stored in files."""

    folder: Path

    def keep(self) -> None: ...
    def remove_when_unused(self) -> None: ...


class ShardedCorpus(Corpus, Protocol):
    """A corpus whose factors can be stored on disk."""

    work: Path | None

    def with_work_folder(self, name: str) -> ShardedCorpus: ...
    def saved(self, theta: Any) -> ThetaFiles: ...
    def restored(self, folder: Path) -> Any: ...
    def resident(self, phi: Array) -> Any: ...


class ShardSettings(NamedTuple):
    """What identifies a fit from shards, in addition to the model, the solver and the start."""

    data: str
    """Digest of the counts."""
    max_iter: int
    tol: float


def shard_fit_digest(solver: Any, model: Model, phi: Array, settings: ShardSettings) -> str:
    """Return a digest of everything that determines the result of a fit from shards."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        described = f"{solver!r} {model!r} {settings!r} {phi.dtype} {phi.shape}"
    digest = hashlib.sha256(described.encode())
    digest.update(bytes_of(phi))
    return digest.hexdigest()[:16]


class ShardCheckpointStore:
    """Store of a fit from shards: a checkpoint file and folders of theta beside the shards.

    Created before the fit writes anything, and removes files in the folder that do not belong to the stored state.
    every : iterations between two writes.
    seconds : time after which a state is written earlier. None: never.
    """

    def __init__(self, corpus: ShardedCorpus, fit: str, every: int, seconds: float | None) -> None:
        assert corpus.work is not None
        self._corpus, self._fit, self._every, self._seconds = corpus, fit, every, seconds
        self._folder = corpus.work
        self._path = corpus.work / CHECKPOINT_FILE
        self._files: dict[str, ThetaFiles] = {}
        self._written = time.monotonic()
        try:
            self._found = read_checkpoint(self._path, fit)
        except ModelFileError as error:
            raise ShardError(str(error)) from None
        needed = set() if self._found is None else {CHECKPOINT_FILE, *self._found.folders.values()}
        for other in self._folder.iterdir():
            if other.name not in needed:
                _remove(other)

    def load(self) -> SavedFit | None:
        if self._found is None:
            return None
        _check_state(self._path, self._found)
        arrays, folders = self._found
        self._files = {name: self._corpus.restored(self._folder / folder) for name, folder in folders.items()}
        words = {name: self._corpus.resident(array) for name, array in arrays.get("words", {}).items()}
        return SavedFit(Snapshot(dict(self._files), words, self._found.numbers), self._found.history)

    def offer(self, iteration: int, saved: Callable[[], SavedFit]) -> None:
        overdue = self._seconds is not None and time.monotonic() - self._written >= self._seconds
        if iteration % self._every and not overdue:
            return
        state, history = saved()
        files = {name: self._corpus.saved(theta) for name, theta in state.docs.items()}
        words = {name: self._corpus.topics(phi) for name, phi in state.words.items()}
        arrays = {"words": words, "numbers": _numbers(state), "history": history}
        folders = {name: theta.folder.name for name, theta in files.items()}
        write_checkpoint(self._path, self._fit, CheckpointContent(arrays, folders))
        for theta in files.values():
            theta.keep()
        new = {theta.folder for theta in files.values()}
        for theta in self._files.values():
            if theta.folder not in new:
                theta.remove_when_unused()
        self._files = files
        self._written = time.monotonic()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
