"""Files of runs: `RunStore` is an open run folder; which folders are runs, and how a new run replaces an old one in one
step.

The JSON files, run.json and stages.json, have a version, a digest and the list of the files of the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from polyseme.errors import InputError, ModelFileError
from polyseme.io.files import (
    COUNT,
    FILES,
    FileManifest,
    check_fields,
    check_own,
    exchange_folders,
    flush_all,
    flush_to_disk,
    is_interrupted,
    is_own_folder,
    locked,
    old_name,
    read_json,
    recover_folder,
    remove_own,
    umask,
    write_atomically,
)
from polyseme.options import named
from polyseme.runs.info import RunInfo, as_json, read_as

if TYPE_CHECKING:
    from polyseme.data.disk import DiskCorpus
    from polyseme.runs.documents import DocumentStore
    from polyseme.text.vectorizer import Vectorizer

T = TypeVar("T")

RUN_FILE = "run.json"
"""File that makes a folder a run."""
PAGE_FILE = "explorer.html"
"""Name of the explorer page in a run folder."""
SHARDS_FOLDER, TOPICS_FILE, VECTORIZER_FILE = "shards", "topics.csv", "vectorizer.json"
"""Folder of the counts, table of the topics, and file with the vocabulary and the word rules of a run."""
MODEL_FILE = "model.safetensors"
PLACES_FILE = "places.npy"
"""Places of the documents on the map. A run that is too large for memory has none."""
LEVELS_FOLDER = "levels"
"""Folder with the models of finer levels, each in a subfolder named after its number of topics."""
BEFORE_FOLDER = "before"
"""Folder with the files of the run before the last edit that the edit has changed and that cannot be made again."""
FORMAT_VERSION = 3
"""Version of runs and of unfinished runs. Earlier versions were never released."""
STAGES_FILE = "stages.json"
"""File of a work folder with the completed stages of a fit; a work folder that has it can be resumed."""
CHECKPOINT_FOLDER = "fit"
"""Checkpoint of an unfinished fit."""


def check_is_run(path: Path) -> None:
    """Raise InputError if the folder is not a run."""
    _recover(path)
    if not (path / RUN_FILE).is_file():
        raise InputError(f"{path} is not a run: make one with polyseme fit.")


def check_target(path: Path, *, overwrite: bool) -> None:
    """Raise InputError if a run cannot be written to `path`; only a run may be overwritten.

    A link to a run or to an empty folder is followed. Nothing is created, so this can be called before any work.
    """
    _recover(path)
    target = _resolved(path)
    absolute = path.absolute()
    nearest = next(place for place in (absolute, *absolute.parents) if place.exists() or place.is_symlink())
    if not nearest.exists():
        raise InputError(f"{nearest} is a link to a folder that does not exist: remove the link, or create the folder.")
    if os.path.ismount(target):
        raise InputError(
            f"{path} is a mount point, which cannot be replaced: choose a folder inside it as {named('output')}."
        )
    if target.exists():
        is_run = (target / RUN_FILE).is_file()
        if is_run and not overwrite:
            raise InputError(
                f"{path} is already a run: choose another {named('output')}, or replace it with "
                f"{named('overwrite', True)}."
            )
        if not is_run and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"{path} exists and is not a run: choose another {named('output')}.")
    # A run is written beside its final place, so the parent must be writable. A read-only run is not replaced either.
    parent = next(folder for folder in target.parents if folder.exists())
    for folder in (parent, target) if target.exists() else (parent,):
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: choose another {named('output')}.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(
                f"{folder} cannot be written to: change its permissions, or choose another {named('output')}."
            )
    for left in (work_folder(target), old_name(target)):
        check_own(left)


def work_folder(path: Path) -> Path:
    """Return the folder in which the run `path` is written; it remains if the process is killed."""
    return path.with_name(f".{path.name}.part")


@contextmanager
def run_lock(path: Path) -> Iterator[Path]:
    """Hold the lock of the run `path`, and yield its folder with all links resolved.

    Raises InputError if another process holds the lock. Completes an interrupted exchange of the folder.
    """
    target = _resolved(path)
    if not target.parent.is_dir():
        raise InputError(f"{path} is not a run: its folder {target.parent} does not exist.")
    busy = f"{path} is being written by another polyseme process: wait until it ends, or choose another folder."
    with locked(target.with_name(f".{target.name}.lock"), busy):
        recover_folder(target)
        yield target


@contextmanager
def replacing(path: Path, *, resume: bool = False) -> Iterator[Path]:
    """Yield a work folder beside `path` that replaces `path` when the block succeeds; the caller holds `run_lock`.

    If the block fails, `path` does not change, and the work folder is removed unless it has STAGES_FILE. With `resume`,
    a work folder that has it is used again; otherwise the work folder starts empty. If the folders cannot be exchanged,
    the finished work folder stays, and OSError says where it is.
    """
    path = _resolved(path)
    work = work_folder(path)
    remove_own(old_name(path))
    if resume and is_own_folder(work) and (work / STAGES_FILE).is_file():
        for half_written in work.rglob("*.part"):  # left by a process that was killed
            remove_own(half_written)
    else:
        remove_own(work)
        work.mkdir(mode=0o700)  # does not follow a link
    try:
        yield work
        flush_all(work)
    except BaseException as error:
        if not (work / STAGES_FILE).exists():
            shutil.rmtree(work, ignore_errors=True)
        elif isinstance(error, OSError):
            raise OSError(
                f"{error}; the work so far is stored: repeat the call with {named('resume', True)}"
            ) from error
        raise
    _publish(work, path)


def _publish(work: Path, path: Path) -> None:
    """Exchange a complete work folder with `path` and remove what was at `path`."""
    try:
        shutil.rmtree(work / CHECKPOINT_FOLDER, ignore_errors=True)
        (work / STAGES_FILE).unlink(missing_ok=True)
        os.chmod(work, _permissions(work, path))
        old = exchange_folders(work, path)
    except OSError as error:
        raise OSError(
            f"{path} could not be replaced ({error.strerror or error}): the finished run is in {work}, move it to "
            "another name before you write to this folder again."
        ) from error
    with suppress(PermissionError):  # the user may write to the folder of the run, but not read it
        flush_to_disk(path.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _permissions(work: Path, path: Path) -> int:
    """Return the permissions of a run: those of the folder it replaces, so that a private run stays private."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode) | stat.S_IRWXU
    return work.stat().st_mode & stat.S_ISGID | 0o777 & ~umask()


@contextmanager
def atomic_folder(path: Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[Path]:
    """Hold the lock of `path`, and yield a work folder that replaces `path` as in `replacing`."""
    check_target(path, overwrite=overwrite)
    _resolved(path).parent.mkdir(parents=True, exist_ok=True)
    with run_lock(path) as target:
        check_target(path, overwrite=overwrite)  # again: another process may have written it before the lock was held
        with replacing(target, resume=resume) as work:
            yield work


def _resolved(path: Path) -> Path:
    """Return the absolute path with all links resolved."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # RuntimeError until Python 3.12
        raise InputError(f"{path} is a link to itself: remove it.") from None


def _recover(path: Path) -> None:
    """Complete an interrupted exchange of the folder `path`."""
    if is_interrupted(_resolved(path)):
        with run_lock(path):
            pass


def write_sealed(path: Path, content: Any, files: FileManifest) -> None:
    """Write a dataclass and a list of files as JSON, with the version of the format and a digest, atomically."""
    # An argument of the command line may have bytes that are not valid UTF-8: they become question marks.
    values = json.loads(json.dumps(as_json(content), ensure_ascii=False).encode("utf-8", "replace"))
    try:
        read_as(type(content), values)
    except ValueError as error:
        raise InputError(f"{path.name} cannot be written: {error}.") from None
    sealed = {**values, "files": files.to_json(), "format_version": FORMAT_VERSION}
    text = json.dumps({**sealed, "digest": _digest(sealed)}, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())


def read_sealed(path: Path, kind: type[T]) -> tuple[T, FileManifest, str]:
    """Return what `write_sealed` wrote, and the digest. Raise ModelFileError if it is damaged or of another version."""
    try:
        content: dict[str, Any] = read_json(path)
        check_fields(content, {"format_version": COUNT}, required=("format_version",), others=True)
        version = content["format_version"]
        if version > FORMAT_VERSION:
            raise ModelFileError(f"{path} was written by a newer polyseme: update polyseme to read it.")
        if version < FORMAT_VERSION:
            raise ModelFileError(f"{path} was written by an early version of polyseme: fit again.")
        digest = _digest(content)
        if content.pop("digest", None) != digest:
            raise ValueError("its digest does not match its content")
        check_fields(content, {"files": FILES}, required=("files",), others=True)
        files = FileManifest.from_json(path.parent, content.pop("files"))
        del content["format_version"]
        return read_as(kind, content), files, digest
    except (OSError, ValueError) as error:
        raise damage_error(path, error) from None


class RunStore:
    """An open run folder: its facts and files, and their content, which is read on first use.

    digest : digest of run.json, which identifies the state of the run. owner : object that owns a temporary folder,
    which is removed with it.
    """

    def __init__(
        self,
        path: Path,
        info: RunInfo,
        files: FileManifest,
        digest: str = "",
        *,
        owner: Any = None,
    ) -> None:
        self.path, self.info, self.files, self.digest = path, info, files, digest
        self.owner = owner

    @classmethod
    def open(cls, path: Path) -> RunStore:
        """Read run.json. Raise InputError if the folder is not a run, ModelFileError if run.json is damaged."""
        check_is_run(path)
        path = path.resolve()
        store = cls(path, *read_sealed(path / RUN_FILE, RunInfo))
        store._notice_changes()
        return store

    def current(self) -> RunStore:
        """Return this store, or the run that has replaced it in its folder."""
        opened = RunStore.open(self.path)
        return self if opened.digest == self.digest else opened

    def reload(self) -> None:
        """Read run.json again, and check the sizes of the files."""
        self.info, files, self.digest = read_sealed(self.path / RUN_FILE, RunInfo)
        files.check_sizes(skip=output_only_files(files))
        self.files.entries.clear()
        self.files.entries.update(files.entries)
        self._notice_changes()

    def _notice_changes(self) -> None:
        """Let errors of the files say whether the run has been written again since it was opened."""
        self.files.is_replaced = partial(_has_other_digest, self.path, self.digest)

    def write(self) -> None:
        """Write run.json, which makes the folder a run."""
        write_sealed(self.path / RUN_FILE, self.info, self.files)

    def move(self, path: Path, owner: Any = None) -> None:
        """Use the folder `path`, to which the folder of the run was renamed."""
        self.path, self.files, self.owner = path, self.files.with_folder(path), owner
        self._notice_changes()
        for name in ("shards", "documents"):  # which have the old path
            vars(self).pop(name, None)

    @cached_property
    def vectorizer(self) -> Vectorizer:
        """Vectorizer that counted the documents."""
        from polyseme.text.vectorizer import Vectorizer

        path = self.files.path(VECTORIZER_FILE)
        try:
            return Vectorizer.from_dict(read_json(path))
        except (OSError, ValueError) as error:
            raise damage_error(path, error) from None
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None

    @cached_property
    def vocabulary(self) -> Sequence[str]:
        """The word of each column."""
        return [str(word) for word in self.vectorizer.get_feature_names_out()]

    @cached_property
    def shards(self) -> DiskCorpus:
        """Counts of all documents on disk."""
        from polyseme.data.disk import DiskCorpus

        self.files.path(f"{SHARDS_FOLDER}/manifest.json")
        shards = DiskCorpus(self.path / SHARDS_FOLDER)
        self.require(shards.shape[1] == len(self.vocabulary), "its shards have a different number of words")
        self.require(shards.shape[0] == self.info.documents, "its shards have a different number of documents")
        return shards

    @cached_property
    def model(self) -> Any:
        """Model of the reading level. Arrays with a row per document may be memory-mapped."""
        return self.load_model(self.info.model.n_topics)

    def load_model(self, n_topics: int) -> Any:
        """Read the model of a level."""
        from polyseme.estimators.base import FittedDecomposition, load

        folder = "" if n_topics == self.info.model.n_topics else level_folder(n_topics)
        model: Any = load(self.files.path(f"{folder}{MODEL_FILE}"))
        kind = type(model).__name__
        self.require(isinstance(model, FittedDecomposition), f"its model is of the class {kind}, which has no topics")
        self.require("log_likelihood_" in vars(model), "its model has no log_likelihood_")
        topics, words = model._fitted.topic_word.shape
        self.require(topics == n_topics, "its model has a different number of topics")
        self.require(words == len(self.vocabulary), "its model has a different number of words")
        documents = model._training
        if documents is None:
            raise self.damaged("its model has no training documents")
        self.require(len(documents.doc_topic) == self.shards.shape[0], "its model has a different number of documents")
        return model

    @cached_property
    def documents(self) -> DocumentStore:
        """Documents on disk."""
        from polyseme.runs.documents import DocumentStore

        store = DocumentStore.open(self.files)
        self.require(len(store) == self.info.documents, f"it has {len(store):,} of {self.info.documents:,} documents")
        return store

    @property
    def texts(self) -> Any:
        """Full texts of all documents on disk, one in memory at a time; None if the run does not store texts."""
        from polyseme.runs.documents import TEXTS, DocumentStore

        if f"{TEXTS}.index" in self.files.entries:  # of an unfinished run that will not store texts
            return DocumentStore.open(self.files, TEXTS).texts
        return self.documents.texts if self.documents.has_texts else None

    @cached_property
    def places(self) -> Any:
        """Places of all documents on the map (documents x 2), memory-mapped; None if the run does not store them."""
        from polyseme.io.arrays import map_npy

        if PLACES_FILE not in self.files.entries:
            return None
        path = self.files.path(PLACES_FILE)
        try:
            places = map_npy(path)
        except (OSError, ValueError) as error:
            raise damage_error(path, error) from None
        fit = str(places.dtype) == "uint16" and places.shape == (self.info.documents, 2)
        self.require(fit, f"{PLACES_FILE} does not fit its documents")
        return places

    def damaged(self, problem: str) -> ModelFileError:
        """Return the error to raise for a run whose files contradict each other."""
        return self.files.damage(f"{self.path} is damaged: {problem}; restore it, or fit again.")

    def require(self, condition: bool, problem: str) -> None:
        """Raise the error of `damaged` unless a condition holds."""
        if not condition:
            raise self.damaged(problem)


def _has_other_digest(path: Path, digest: str) -> bool:
    try:
        return read_sealed(path / RUN_FILE, RunInfo)[2] != digest
    except ModelFileError:
        return False


def level_folder(n_topics: int) -> str:
    """Return the folder of a finer level in a run, with a slash at the end."""
    return f"{LEVELS_FOLDER}/{n_topics}/"


def level_table(n_topics: int) -> str:
    """Return the name of the table of the topics of a finer level."""
    return f"topics_{n_topics}.csv"


def output_only_files(files: FileManifest) -> list[str]:
    """Return the files that polyseme writes but never reads, so a run is complete without them."""
    tables = (name for name in files.entries if name.startswith("topics_") and name.endswith(".csv"))
    return [name for name in (PAGE_FILE, TOPICS_FILE, *tables) if name in files.entries]


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
