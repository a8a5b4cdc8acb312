"""Checkpoints: the state of a fit in a folder, from which a killed fit resumes.

The name of the folder is a digest of everything that determines the result, so every fit has its own folder. It holds a
safetensors file with arrays of words, numbers, the history and, for a fit in memory, the rows of the documents. For a
fit from shards the file names the folders that hold the rows instead, with the digests of their files, which are
checked before the fit resumes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.data.corpus import Corpus
from polyseme.data.rows import Generation
from polyseme.errors import InputError, ModelFileError
from polyseme.io.arrays import bytes_of, digest_of, read_safetensors, write_safetensors
from polyseme.io.files import FILE_NAME, FILES, Check, FileManifest, mapping_to, object_with, parse_json
from polyseme.kernels import Array
from polyseme.solvers.base import AnyRun, FitStarts, SavedFit, Snapshot, Start

CHECKPOINT_FILE = "checkpoint.safetensors"
"""Name of the checkpoint of a fit, in its folder."""
_LEAST_PAUSE = 10.0
"""Time between two writes, as a multiple of the time that the last one took."""
_FIT, _FILES, _DIGEST = "polyseme_fit", "files", "digest"
_FOLDER = Check(lambda value: FILE_NAME.holds(value) and "/" not in value, "the name of a folder")
_ROWS = {"folder": _FOLDER, "files": FILES}


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often the state of a fit is stored.

    Parameters
    ----------
    folder : str or PathLike
        Folder. Each fit has its own folder in it, so fits with other parameters or data can use the same one.
    seconds : float, default=10.0
        Least time between two writes. It is extended if writing takes more than a tenth of the time; 0 writes after
        every iteration.

    Examples
    --------
    >>> from polyseme import PLSA
    >>> from polyseme.datasets import synthetic_corpus
    >>> from polyseme.solvers import Checkpoint
    >>> X = synthetic_corpus(100, n_topics=3, n_words=50, random_state=0).counts()
    >>> model = PLSA(3, random_state=0, checkpoint=Checkpoint("checkpoints", seconds=60))
    >>> model.fit(X).doc_topic_.shape  # after a crash, the same line goes on where the fit was
    (100, 3)
    """

    folder: str | PathLike[str]
    seconds: float = 10.0


def as_checkpoint(value: Any) -> Checkpoint:
    """Return the Checkpoint for a folder or a Checkpoint."""
    if isinstance(value, Checkpoint):
        return value
    if not isinstance(value, str | PathLike):
        raise InputError(f"checkpoint must be None, a folder or a polyseme.solvers.Checkpoint, got {value!r}.")
    return Checkpoint(value)


class CheckpointContent(NamedTuple):
    """Content of a checkpoint file."""

    arrays: dict[str, dict[str, Array]]
    """Arrays by part (docs, words, numbers, history) and name."""
    files: dict[str, FileManifest]
    """Folder, with the digests of its files, of each theta that is stored in files."""

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
    files = json.dumps(
        {name: {"folder": item.folder.name, "files": item.to_json()} for name, item in content.files.items()}
    )
    metadata = {_FIT: fit, _FILES: files, _DIGEST: digest_of(fit + files, tensors)}
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
        raise ModelFileError(f"{path} is the checkpoint of another fit: remove it to start again.")
    text = metadata.get(_FILES, "")
    if metadata.get(_DIGEST) != digest_of(fit + text, tensors):
        raise ModelFileError(f"{path} is damaged: its digest does not match; remove it to start again.")
    try:
        rows = parse_json(text)
        mapping_to(object_with(_ROWS, required=_ROWS)).require(_FILES, rows)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged ({error}): remove it to start again.") from None
    texts = {"listed_in": path.name, "remedy": f"remove the folder {path.parent} to start again"}
    files = {
        name: FileManifest.from_json(path.parent / item["folder"], item["files"], **texts)
        for name, item in rows.items()
    }
    arrays: dict[str, dict[str, Array]] = {}
    for name, array in tensors.items():
        part, _, local_name = name.partition(".")
        arrays.setdefault(part, {})[local_name] = array
    return CheckpointContent(arrays, files)


def _check_state(path: Path, found: CheckpointContent) -> None:
    """Raise ModelFileError unless the history and the numbers have the form that a fit writes."""
    history, numbers = found.history, found.arrays.get("numbers", {})
    lengths = {column.shape for column in history.values()}
    valid = len(lengths) == 1 and all(len(shape) == 1 and shape[0] > 0 for shape in lengths)
    if not (valid and {"iteration", "seconds"} <= set(history) and all(value.ndim == 0 for value in numbers.values())):
        raise ModelFileError(f"{path} has no valid history: remove it to start again.")


def fit_name(*parts: Any) -> str:
    """Return a digest of everything that determines the result of a fit: arrays, and objects with a complete repr."""
    digest = hashlib.sha256()
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        for part in parts:
            if isinstance(part, np.ndarray) and part.dtype != object:
                digest.update(f"{part.dtype} {part.shape}".encode())
                digest.update(bytes_of(np.ascontiguousarray(part)))
            else:
                digest.update(repr(part).encode())
    return digest.hexdigest()[:16]


class CheckpointStore:
    """Store of one start of a fit: a folder with a checkpoint file and, for a corpus on disk, folders of rows.

    It is created before the fit writes anything, and removes files that do not belong to the stored state.
    seconds : least time between two writes.
    """

    def __init__(self, folder: Path, corpus: Corpus, seconds: float) -> None:
        self._folder, self._corpus, self._seconds = folder, corpus, seconds
        self._path = folder / CHECKPOINT_FILE
        self._files: dict[str, Generation] = {}
        self._next_write = time.monotonic() + seconds
        folder.mkdir(parents=True, exist_ok=True)
        self._found = read_checkpoint(self._path, folder.name)
        needed = set[str]()
        if self._found is not None:
            needed = {CHECKPOINT_FILE, *(item.folder.name for item in self._found.files.values())}
        for other in folder.iterdir():
            if other.name not in needed:
                _remove(other)

    def load(self) -> SavedFit | None:
        """Return the stored state of this fit, or None, after a check of all files."""
        found = self._found
        if found is None:
            return None
        _check_state(self._path, found)
        words = found.arrays.get("words", {})
        try:
            docs = {
                name: self._corpus.restore_rows(saved)
                for name, saved in [*found.arrays.get("docs", {}).items(), *found.files.items()]
            }
            if not all(np.isfinite(array).all() for array in words.values()):
                raise ValueError("a number is not finite")
            if len({array.shape for array in found.arrays.get("docs", {}).values()}) > 1:
                raise ValueError("its rows have different widths")
            # The same objects as in the state, so that the next write does not remove files that the fit still reads.
            self._files = {name: self._corpus.save_rows(docs[name]) for name in found.files}
            if len({item.width for item in self._files.values()}) > 1:
                raise ValueError("its rows have different widths")
        except (OSError, ValueError) as error:
            raise self._foreign(error) from None
        return SavedFit(Snapshot(docs, words, found.numbers), found.history)

    def resumed(self, resume: Callable[[Snapshot], AnyRun], state: Snapshot) -> AnyRun:
        """Return the run that made the stored state. Raise ModelFileError if the file has the state of another fit."""
        try:
            return resume(state)
        except KeyError as error:
            raise self._foreign(f"it has no {error}") from None
        except (TypeError, ValueError) as error:  # the kernels raise TypeError for factors of other widths
            raise self._foreign(error) from None

    def _foreign(self, reason: Any) -> ModelFileError:
        return ModelFileError(f"{self._path} does not belong to this fit ({reason}): remove it to start again.")

    def offer(self, saved: Callable[[], SavedFit]) -> None:
        """Store the state of the fit if enough time has passed; called after each iteration."""
        began = time.monotonic()
        if began < self._next_write:
            return
        state, history = saved()
        rows = {name: self._corpus.save_rows(rows) for name, rows in state.docs.items()}
        files = {name: item for name, item in rows.items() if isinstance(item, Generation)}
        docs = {name: item for name, item in rows.items() if name not in files}
        numbers = {name: np.array(value, dtype=np.float64) for name, value in state.numbers.items()}
        arrays = {"docs": docs, "words": state.words, "numbers": numbers, "history": history}
        manifests = {name: item.files for name, item in files.items()}
        write_checkpoint(self._path, self._folder.name, CheckpointContent(arrays, manifests))
        for item in files.values():
            item.keep()
        new = {item.folder for item in files.values()}
        for item in self._files.values():
            if item.folder not in new:
                item.remove_when_unused()
        self._files = files
        ended = time.monotonic()
        self._next_write = ended + max(self._seconds, _LEAST_PAUSE * (ended - began) if self._seconds else 0.0)

    def remove(self) -> None:
        """Remove the folder, after a fit that no longer needs a checkpoint."""
        for item in self._files.values():
            item.remove_when_unused()
        self._files = {}
        shutil.rmtree(self._folder, ignore_errors=True)


class FitFolder(FitStarts):
    """The starts of a fit whose states are stored in a folder.

    keep : whether the states are kept after the fit. Those in the default place, next to the shards, are removed.
    """

    def __init__(self, folder: Path, seconds: float, *, keep: bool) -> None:
        self._folder, self._seconds, self._keep = folder, seconds, keep
        self._stores: list[CheckpointStore] = []

    @classmethod
    def of(cls, checkpoint: Any, default: Path) -> FitFolder:
        """Return the folder that the parameter `checkpoint` names; None: the default place."""
        if checkpoint is None:
            return cls(default, Checkpoint("").seconds, keep=False)
        given = as_checkpoint(checkpoint)
        return cls(Path(given.folder).absolute(), given.seconds, keep=True)

    def starts(
        self,
        corpus: Corpus,
        identity: tuple[Any, ...],
        seeds: Iterable[int],
        begin: Callable[[Any, np.random.Generator], AnyRun],
        resume: Callable[[Any, Snapshot], AnyRun] | None,
    ) -> Iterator[Start[AnyRun]]:
        if resume is None:
            yield from super().starts(corpus, identity, seeds, begin, resume)
            return
        data = corpus.digest
        for seed in seeds:
            folder = self._folder / fit_name(data, seed, *identity)
            place = corpus.with_work_folder(folder)
            store = CheckpointStore(folder, place, self._seconds)
            self._stores.append(store)
            begin_here = partial(begin, place, np.random.default_rng(seed))
            yield Start(begin_here, partial(store.resumed, partial(resume, place)), store)

    def finish(self) -> None:
        if not self._keep:
            for store in self._stores:
                store.remove()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
