"""The state of a fit in a file, so that a fit that was killed goes on where it was.

A checkpoint is a safetensors file: arrays of words, numbers, the history, and, of a fit in memory, thetas. Of a fit
from shards it names the folders of files that its thetas are.
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
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from polyseme.core.model import Model
from polyseme.data.corpus import Corpus
from polyseme.data.shard_files import bytes_of
from polyseme.errors import InputError, ModelFileError, ShardError
from polyseme.io.checks import TEXT, mapping_to, parse_json
from polyseme.io.files import write_atomically
from polyseme.io.models import digest_of, settings_of
from polyseme.kernels import Array, Floats, SparseCounts
from polyseme.solvers.base import SavedFit, Snapshot

CHECKPOINT_FILE = "checkpoint.safetensors"
"""of a fit from shards, in its folder"""
_FIT, _FOLDERS, _DIGEST = "polyseme_fit", "folders", "digest"


@dataclass(frozen=True)
class Checkpoint:
    """A file, and the seconds between two writes of it, at least. The path is None for shards: it lies beside them."""

    path: str | PathLike[str] | None
    seconds: float = 10.0


class Written(NamedTuple):
    """What a checkpoint file holds."""

    arrays: dict[str, dict[str, Array]]
    """by part (docs, words, numbers, history) and name"""
    folders: dict[str, str]
    """of thetas that are files"""

    @property
    def history(self) -> dict[str, Array]:
        return self.arrays.get("history", {})

    @property
    def numbers(self) -> dict[str, float]:
        return {name: float(value) for name, value in self.arrays.get("numbers", {}).items()}


def write_checkpoint(path: Path, fit: str, content: Written) -> None:
    """Writes the file whole. fit : names the fit, so that another one is not mistaken for it."""
    tensors = {
        f"{part}.{name}": np.asarray(array, order="C")
        for part, arrays in content.arrays.items()
        for name, array in arrays.items()
    }
    folders = json.dumps(content.folders)
    metadata = {_FIT: fit, _FOLDERS: folders, _DIGEST: digest_of(fit + folders, tensors)}
    write_atomically(path, to_safetensors(tensors, metadata=metadata))


def read_checkpoint(path: Path, fit: str) -> Written | None:
    """What `write_checkpoint` wrote; None where there is no file."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise ModelFileError(f"{path} is damaged ({error}): remove it to begin anew.") from None
    if metadata.get(_FIT) != fit:
        raise InputError(f"{path} is the checkpoint of another fit: remove it, or name another file.")
    folders = metadata.get(_FOLDERS, "")
    if metadata.get(_DIGEST) != digest_of(fit + folders, tensors):
        raise ModelFileError(f"{path} is damaged: its digest does not match: remove it to begin anew.")
    try:
        named = parse_json(folders)
        mapping_to(TEXT).require("folders", named)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged ({error}): remove it to begin anew.") from None
    if any(Path(folder).name != folder or folder == ".." for folder in named.values()):
        raise ModelFileError(f"{path} names folders that no fit writes: remove it to begin anew.")
    arrays: dict[str, dict[str, Array]] = {}
    for name, array in tensors.items():
        part, _, own = name.partition(".")
        arrays.setdefault(part, {})[own] = array
    return Written(arrays, named)


def _check_state(path: Path, found: Written) -> None:
    """Raises ModelFileError where the history or the numbers are not as a fit writes them."""
    history, numbers = found.history, found.arrays.get("numbers", {})
    lengths = {column.shape for column in history.values()}
    whole = len(lengths) == 1 and all(len(shape) == 1 and shape[0] > 0 for shape in lengths)
    if not (whole and {"iteration", "seconds"} <= set(history) and all(value.ndim == 0 for value in numbers.values())):
        raise ModelFileError(f"{path} is not a state of a fit: remove it to begin anew.")


def _numbers(state: Snapshot) -> dict[str, Array]:
    return {name: np.array(value, dtype=np.float64) for name, value in state.numbers.items()}


# a fit in memory


def name_of_fit(estimator: Any, counts: SparseCounts, weights: Floats | None) -> str:
    """A digest of all that decides where a fit goes: its parameters and its data."""
    free = ("n_jobs", "verbose")
    settings = {name: value for name, value in settings_of(estimator).items() if name not in free}
    # a count is the same whatever type its place is written in
    places = {"indptr": counts.indptr.astype(np.int64), "indices": counts.indices.astype(np.int64)}
    tensors = {**places, "values": counts.values}
    if weights is not None:
        tensors["weights"] = weights
    return digest_of(json.dumps([type(estimator).__name__, counts.n_words, settings]), tensors)


class FileCheckpointStore:
    """Writes the state of a fit in memory to a checkpoint now and then; `fit` names it."""

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

    def offer(self, iteration: int, kept: Callable[[], SavedFit]) -> None:
        if time.monotonic() - self._written < self._seconds:
            return
        state, history = kept()
        arrays = {"docs": state.docs, "words": state.words, "numbers": _numbers(state), "history": history}
        write_checkpoint(self._path, self._fit, Written(arrays, {}))
        self._written = time.monotonic()


# a fit from shards


class ThetaFiles(Protocol):
    """theta in files."""

    folder: Path

    def keep(self) -> None: ...
    def let_go(self) -> None: ...


class ShardedSource(Corpus, Protocol):
    """A corpus whose factors can be put on disk."""

    work: Path | None

    def working_in(self, name: str) -> ShardedSource: ...
    def saved(self, theta: Any) -> ThetaFiles: ...
    def restored(self, folder: Path) -> Any: ...
    def resident(self, phi: Array) -> Any: ...


class ShardSettings(NamedTuple):
    """What, beside the model, the solver and the start, makes two fits from shards the same."""

    data: str
    """digest of the counts"""
    max_iter: int
    tol: float


def name_of_shard_fit(solver: Any, model: Model, phi: Array, settings: ShardSettings) -> str:
    """What tells a fit from shards from all others: its solver, model and start, the data, and when it ends."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        described = f"{solver!r} {model!r} {settings!r} {phi.dtype} {phi.shape}"
    digest = hashlib.sha256(described.encode())
    digest.update(bytes_of(phi))
    return digest.hexdigest()[:16]


class ShardCheckpointStore:
    """Writes the state of a fit from shards beside them, and removes what no state needs any more.

    Made before the fit writes anything: what lies in its folder and belongs to no state is removed.
    every : iterations between two states; seconds : where they have passed, a state is written earlier (None: never).
    """

    def __init__(self, corpus: ShardedSource, fit: str, every: int, seconds: float | None) -> None:
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
        kept = set() if self._found is None else {CHECKPOINT_FILE, *self._found.folders.values()}
        for other in self._folder.iterdir():
            if other.name not in kept:
                _remove(other)

    def load(self) -> SavedFit | None:
        if self._found is None:
            return None
        _check_state(self._path, self._found)
        arrays, folders = self._found
        self._files = {name: self._corpus.restored(self._folder / folder) for name, folder in folders.items()}
        words = {name: self._corpus.resident(array) for name, array in arrays.get("words", {}).items()}
        return SavedFit(Snapshot(dict(self._files), words, self._found.numbers), self._found.history)

    def offer(self, iteration: int, kept: Callable[[], SavedFit]) -> None:
        overdue = self._seconds is not None and time.monotonic() - self._written >= self._seconds
        if iteration % self._every and not overdue:
            return
        state, history = kept()
        files = {name: self._corpus.saved(theta) for name, theta in state.docs.items()}
        words = {name: self._corpus.topics(phi) for name, phi in state.words.items()}
        arrays = {"words": words, "numbers": _numbers(state), "history": history}
        folders = {name: theta.folder.name for name, theta in files.items()}
        write_checkpoint(self._path, self._fit, Written(arrays, folders))
        for theta in files.values():
            theta.keep()
        new = {theta.folder for theta in files.values()}
        for theta in self._files.values():
            if theta.folder not in new:
                theta.let_go()
        self._files = files
        self._written = time.monotonic()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
