"""Writing of runs: `RunDraft` is a run in a work folder, which becomes a run when all its files are written.

`new_run` starts an empty draft, `rewrite_run` starts a draft that replaces an existing run. Both hold the lock of the
run until the draft is in its place.
"""

from __future__ import annotations

import io
import os
import platform
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.data.shard_files import MANIFEST, read_checked, read_manifest
from polyseme.errors import InputError
from polyseme.estimators.base import load
from polyseme.io import models
from polyseme.io.files import FileManifest, is_regular, write_atomically
from polyseme.layout.places import document_layout, extend_layout
from polyseme.options import named
from polyseme.progress import Reporter
from polyseme.runs.corpus import RunCorpus
from polyseme.runs.documents import TEXTS
from polyseme.runs.info import LevelInfo, Progress, RunInfo
from polyseme.runs.junk import junk_topics
from polyseme.runs.names import automatic_names, level_names
from polyseme.runs.recorder import DocumentRecorder
from polyseme.runs.run import Run, open_run
from polyseme.runs.store import (
    CHECKPOINT_FOLDER,
    LEVELS_FOLDER,
    MODEL_FILE,
    PAGE_FILE,
    PLACES_FILE,
    RUN_FILE,
    SHARDS_FOLDER,
    STAGES_FILE,
    TOPICS_FILE,
    VECTORIZER_FILE,
    RunStore,
    atomic_folder,
    level_folder,
    level_table,
    output_only_files,
    read_sealed,
    replacing,
    run_lock,
    write_sealed,
)
from polyseme.runs.tables import topics_csv
from polyseme.runs.view import TopicView
from polyseme.selection.levels import Level
from polyseme.text.duplicates import NearDuplicates

_SHARDS_MANIFEST = f"{SHARDS_FOLDER}/{MANIFEST}"
"""The only file of the shards that run.json lists; it lists the other files."""
_SHINGLES_FILE = "shingles.part"
"""Temporary file that exists while documents are read."""


class RunDraft:
    """A run that is being written in a work folder, stage by stage.

    Every completed stage is stored in stages.json with the digests of its files, so that the same call with `resume`
    continues after the last completed stage.

    info : facts that are known before the first stage. settings : settings that determine the result, as JSON values.
    With `resume` they must be those of the interrupted call. before : run that the draft replaces.
    """

    def __init__(
        self,
        folder: Path,
        info: RunInfo,
        settings: Mapping[str, Any],
        report: Reporter,
        *,
        resume: bool = False,
        before: Run | None = None,
    ) -> None:
        self.folder, self.report, self._before = folder, report, before
        self._settings, self._stages = dict(settings), tuple[str, ...]()
        files = FileManifest(folder, {})
        if resume and (folder / STAGES_FILE).is_file():
            stored, files, _ = read_sealed(folder / STAGES_FILE, Progress)
            _check_settings(stored.settings, self._settings)
            info, self._stages = stored.info, stored.stages
            if not (folder / RUN_FILE).is_file():  # with run.json, some files are removed, and `finish` checks the rest
                for name in files.entries:
                    files.path(name)  # checked now, because the last stages do not read all of them
                for name in _draft_files(folder) - set(files.entries):
                    (folder / name).unlink()  # written by the interrupted stage, which starts again
        self.run = Run(RunStore(folder, info, files))
        """The part of the run that is written. Values that are in memory are not read from files."""

    @property
    def files(self) -> FileManifest:
        return self.run.store.files

    @property
    def corpus(self) -> RunCorpus:
        """Documents that are written."""
        return self.run.view.corpus

    @property
    def info(self) -> RunInfo:
        """Facts that the completed stages have found."""
        return self.run.info

    def stage(self, name: str, make: Callable[[], RunInfo]) -> None:
        """Set the facts to those that `make` returns, and store them with its files, unless the stage is completed."""
        if name not in self._stages:
            self.run.store.info = make()
            self._stages += (name,)
            self.record_files()
            write_sealed(self.folder / STAGES_FILE, Progress(self._settings, self._stages, self.info), self.files)

    # parts of the run

    @contextmanager
    def recorder(
        self, *, texts: bool, drop: bool = False, once: bool = False, after: Run | None = None
    ) -> Iterator[DocumentRecorder]:
        """Yield a recorder of documents, as `DocumentRecorder` describes it."""
        with (
            NearDuplicates(self.folder / _SHINGLES_FILE) as finder,
            DocumentRecorder(self.folder, finder, texts=texts, drop=drop, once=once, after=after) as recorder,
        ):
            yield recorder

    def link(self, run: Run, *folders: str, source: str = "", target: str = "") -> None:
        """Check files of another run and link them into the draft, and take over what was read from them.

        No file of a run is ever changed in place, so two runs can share it. Without the check, a damaged file would
        become part of the new run, and the old one would be gone. Files are copied where links are not possible.

        source, target : folder of the other run and of the draft that contain `folders`, with a slash at the end.
        """
        files = run.store.files
        optional = set(output_only_files(files))
        for name, entry in files.entries.items():
            inner = name.removeprefix(source)
            if not name.startswith(source) or inner.partition("/")[0] not in folders:
                continue
            if name in optional and not is_regular(run.path / name):
                continue
            place = self.folder / target / inner
            place.parent.mkdir(parents=True, exist_ok=True)
            link_file(run.path / name if name in optional else files.path(name), place)
            if target + inner != _SHARDS_MANIFEST:  # it changes if shards are added
                self.files.entries[target + inner] = entry
        if VECTORIZER_FILE in folders:
            self.run.store.vectorizer = run.vectorizer
        if MODEL_FILE in folders and not source + target:
            self.run.store.model = run.model
        if SHARDS_FOLDER in folders and not source:  # run.json lists only the manifest of these shards
            shards = run.store.shards
            for shard in shards.manifest.files:
                read_checked(shards.folder, shard)
                link_file(shards.folder / shard.name, self.folder / target / SHARDS_FOLDER / shard.name)

    def labels(self) -> list[str | None]:
        """Return the label of each document that was read; None if it has none."""
        return [label.strip() or None for label in self.corpus.labels]

    def save_model(self, model: Any) -> None:
        """Write the model, with the arrays of its documents in files beside it."""
        self.run.store.model = self._saved(model, self.folder / MODEL_FILE)

    def save_level(self, level: Level) -> LevelInfo:
        """Write the model of a finer level; return the facts about it."""
        place = self.folder / level_folder(level.model._fitted.n_topics) / MODEL_FILE
        place.parent.mkdir(parents=True, exist_ok=True)
        self._saved(level.model, place)
        return LevelInfo(tuple(level.parents.tolist()), tuple(round(float(share), 6) for share in level.nesting))

    def keep_levels(self, levels: Collection[int]) -> None:
        """Remove the files of all finer levels except these, given by their numbers of topics."""
        for path in (self.folder / LEVELS_FOLDER).glob("*"):
            if int(path.name) not in levels:
                shutil.rmtree(path)

    def _saved(self, model: Any, place: Path) -> Any:
        """Write a model, and remove the files of its fit beside the shards. Return the model, with its new files."""
        models.save(model, place, documents_beside=True)
        shards = self.folder / SHARDS_FOLDER
        listed = {MANIFEST, *(entry.name for entry in read_manifest(shards).files)}
        beside = [path for path in shards.iterdir() if path.name not in listed]
        if beside:  # arrays of documents that a fit from shards has written there, and that the model maps
            model = load(place, check_documents=False)
            for path in beside:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return model

    def finish(self, info: RunInfo, *, page: str | None = None) -> Run:
        """Name the topics, write the tables of topics and documents, the page and, last, run.json; return the run.

        info : facts about the run; names and junk topics are added if they are missing.
        page : how much of the texts the page contains; None writes no page.
        """
        run = self.run
        run.store.info = info
        if (self.folder / RUN_FILE).is_file():  # the interrupted call has written everything
            self._use_written(title=info.title)
        else:
            self.record_files()
            levels = [run.level(n_topics) for n_topics in run.levels]  # in use until the end: each model is read once
            with self.report.stage("Naming topics"):
                self._name_topics(levels)
            self._write_tables(levels)
            self._place_documents()
            if page is not None:
                with self.report.stage("Writing the explorer page"):
                    run.explore(self.folder / PAGE_FILE, text=page)
            self.record_files()
            for name in (f"{TEXTS}.index", f"{TEXTS}.blocks"):
                self.files.entries.pop(name, None)
            run.store.write()
        run.store.reload()
        for name in (f"{TEXTS}.index", f"{TEXTS}.blocks"):
            (self.folder / name).unlink(missing_ok=True)
        return run

    def _use_written(self, title: str | None) -> None:
        """Keep the run that the interrupted call has written, with the title of this call.

        The title is the name of the folder, which may have been renamed since.
        """
        run = self.run
        run.store.reload()
        for name in set(self.files.entries) - set(output_only_files(self.files)):
            self.files.path(name)  # nothing else would read all files before they become a run
        for shard in run.store.shards.manifest.files:
            read_checked(run.store.shards.folder, shard)
        if self.info.title != title:
            run.store.info = replace(self.info, title=title)
            if PAGE_FILE in self.files.entries:
                run.explore(self.folder / PAGE_FILE, text=self.info.page_text)
                self.files.add(PAGE_FILE)
            run.store.write()

    def _name_topics(self, views: Sequence[TopicView]) -> None:
        """Make names of the topics that need one, at all levels, the coarser ones first."""
        run = self.run
        run.store.info = replace(run.info, automatic_names=automatic_names(run.view))
        for n_topics, view in zip(run.levels[1:], views[1:], strict=True):
            levels = dict(run.info.levels or {})
            levels[n_topics] = replace(levels[n_topics], automatic_names=level_names(view))
            run.store.info = replace(run.info, levels=levels)

    def _write_tables(self, views: Sequence[TopicView]) -> None:
        """Write the tables of topics."""
        if self.info.junk is None:
            with self.report.stage("Looking for topics that do not describe a subject"):
                self.run.store.info = replace(self.info, junk=junk_topics(self.run.view))
        for view in views:
            name = TOPICS_FILE if view.finer is None else level_table(view.finer)
            write_atomically(self.folder / name, topics_csv(view).encode("utf-8", "surrogatepass"), flush=False)

    def _place_documents(self) -> None:
        """Write the places of the documents on the map, unless they are those of the run that the draft replaces."""
        if PLACES_FILE in self.files.entries:
            return
        weights = self.run.view.layout_weights()
        if not self.corpus.fits_in_memory(weights[-1].shape[1]):
            return
        with self.report.stage("Placing documents on the map") as update:
            before = self._places_before()
            if before is None:
                places = document_layout(weights, self.corpus.counts, progress=update)
            else:
                places = extend_layout(before, weights, self.corpus.counts, progress=update)
        content = io.BytesIO()
        np.save(content, places)
        write_atomically(self.folder / PLACES_FILE, content.getvalue(), flush=False)
        self.files.add(PLACES_FILE)

    def _places_before(self) -> Any:
        """Return the places of the documents before an update that keeps the topics, else None."""
        before = self._before
        if before is None or self.info.updates == before.info.updates or self.info.updates[-1].refit:
            return None
        return before.store.places

    def record_files(self) -> None:
        """Add the digests of new files to the manifest, and remove the entries of files that no longer exist."""
        listed = _draft_files(self.folder)
        if (self.folder / _SHARDS_MANIFEST).is_file():
            listed.add(_SHARDS_MANIFEST)
        for name in set(self.files.entries) - listed:
            del self.files.entries[name]
        for name in sorted(listed - set(self.files.entries)):
            self.files.add(name)


def _draft_files(folder: Path) -> set[str]:
    """Return the names of the files of a draft, without the shards, the checkpoint, stages.json and run.json."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    others = SHARDS_FOLDER, CHECKPOINT_FOLDER, STAGES_FILE, RUN_FILE
    return {name for name in names if name.partition("/")[0] not in others}


class TemporaryFolder:
    """A temporary folder that is removed with this object, or when the process exits."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="polyseme-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@contextmanager
def new_run(
    output: Path | None,
    info: RunInfo,
    settings: Mapping[str, Any],
    report: Reporter,
    *,
    overwrite: bool = False,
    resume: bool = False,
) -> Iterator[RunDraft]:
    """Yield the draft of a new run. When the block ends, `draft.run` is the run in the folder `output`.

    output : None: a temporary folder, which is removed with the run.
    """
    owner = None if output is not None else TemporaryFolder()
    if owner is not None:
        output = owner.path / "run"
    assert output is not None
    with atomic_folder(output, overwrite=overwrite, resume=resume) as work:
        draft = RunDraft(work, info, settings, report, resume=resume)
        try:
            yield draft
        except InputError:
            (work / STAGES_FILE).unlink(missing_ok=True)  # resuming is useless: the same call would fail again
            raise
        except KeyboardInterrupt:
            if owner is None and (work / STAGES_FILE).is_file():
                report.note(
                    f"Stopped: the work so far is stored; the same call with {named('resume', True)} continues it."
                )
            raise
    draft.run.store.move(output.resolve(), owner)


@contextmanager
def rewrite_run(path: Path, report: Reporter, *, caller: Run | None = None) -> Iterator[tuple[Run, RunDraft]]:
    """Yield a run and the draft that replaces it when the block ends. No other process can write the run meanwhile.

    caller : the run as the object that was called, whose temporary folder the new object takes over.
    """
    with run_lock(path) as target:
        run = open_run(target)
        with replacing(target) as work:
            draft = RunDraft(work, run.info, {}, report, before=run)
            yield run, draft
        draft.run.store.move(target, None if caller is None else caller.store.owner)


@contextmanager
def preview_run(path: Path, report: Reporter) -> Iterator[tuple[Run, RunDraft]]:
    """Yield a run and the draft of a changed run in a temporary folder; the run itself does not change."""
    run, owner = open_run(path), TemporaryFolder()
    work = owner.path / "run"
    work.mkdir()
    draft = RunDraft(work, run.info, {}, report)
    yield run, draft
    draft.run.store.owner = owner


def copy_run(run: Run, folder: Path, *, overwrite: bool) -> Run:
    """Copy a run to a folder, atomically."""
    with atomic_folder(folder, overwrite=overwrite) as work:
        shards = (f"{SHARDS_FOLDER}/{entry.name}" for entry in run.store.shards.manifest.files)
        for name in (*run.store.files.entries, *shards, RUN_FILE):
            if (run.path / name).is_file():
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(run.path / name, work / name)
    return open_run(folder)


def version_info() -> dict[str, Any]:
    """Return the fields of run.json that say when and with which versions the run was written."""
    packages = ("polyseme", "numpy", "scipy", "scikit-learn")
    return {
        "written": timestamp(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def timestamp() -> str:
    """Return the current time in UTC as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def link_file(source: Path, place: Path) -> None:
    """Link a file, or copy it where links are not possible."""
    try:
        os.link(source, place, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, place)


def _check_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise InputError if the settings of the interrupted call were different."""
    if old == new:
        return
    before, now = (_flat(settings) for settings in (old, new))
    differing = [name for name in now if before.get(name) != now[name]]
    what = "they are of another version of polyseme"
    if differing:
        name = differing[0]
        what = f"{named(name)} was {before.get(name)}, now {now[name]}"
    raise InputError(
        f"resume: the interrupted fit had other settings ({what}). Repeat its call with resume, or leave resume out."
    )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with nested groups flattened."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat.update(_flat(value) if isinstance(value, Mapping) else {name: value})
    return flat
