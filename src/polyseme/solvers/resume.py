"""A fit that another process can go on with: its state is on disk, and the same bits come out.

Every few iterations the state of a run is written beside the data. A fit of the same data, model, solver and start
finds it there; the iterations that are already done are then told again from the record, not computed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from polyseme.errors import ShardError, UnsupportedError
from polyseme.files import write_atomically
from polyseme.kernels import Array
from polyseme.model import Model
from polyseme.solvers.loop import Report, Run, Snapshot, Solver
from polyseme.sources import Source
from polyseme.sources.shards import bytes_of, npy_header

_STATE = "state.json"


class Kept(Protocol):
    """theta in files."""

    folder: Path

    def keep(self) -> None: ...
    def let_go(self) -> None: ...


class ShardedSource(Source, Protocol):
    """A source whose factors can be put on disk."""

    work: Path | None

    def working_in(self, name: str) -> ShardedSource: ...
    def saved(self, theta: Any) -> Kept: ...
    def restored(self, folder: Path) -> Any: ...
    def at_hand(self, phi: Array) -> Any: ...


class _Resumed(Run, Protocol):
    def snapshot(self) -> Snapshot: ...


class Settings(NamedTuple):
    """What, beside the model, the data and the start, makes two fits the same."""

    data: str
    """digest of the counts"""
    max_iter: int
    tol: float
    every: int
    """iterations between two states on disk"""


def begin_or_resume(
    solver: Solver, model: Model, source: ShardedSource, theta: Any, phi: Array, settings: Settings
) -> Run:
    """The solver's run at (theta, phi), or where an interrupted run from there was."""
    chosen: Any = solver.chosen(model, source) if hasattr(solver, "chosen") else solver
    if not hasattr(chosen, "resume"):
        raise UnsupportedError(
            f"solver={chosen.name!r} needs all counts in memory: for shards use 'auto', 'em', "
            "'accelerated-em', 'tempered' or 'online'."
        )
    source = source.working_in(_key(chosen, model, phi, settings))
    assert source.work is not None
    record = _Record(source.work)
    found = record.read(source)
    if found is None:
        record.clear()
        run: _Resumed = chosen.begin(model, source, theta, source.at_hand(phi))
        return _KeptRun(run, source, record, [run.report], settings.every)
    reports, state = found
    return _KeptRun(chosen.resume(model, source, state), source, record, reports, settings.every)


def _key(solver: Any, model: Model, phi: Array, settings: Settings) -> str:
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        described = f"{solver!r} {model!r} {settings!r} {phi.dtype} {phi.shape}"
    digest = hashlib.sha256(described.encode())
    digest.update(bytes_of(phi))
    return digest.hexdigest()[:16]


class _KeptRun:
    """Tells what is on record, and then advances the run, whose state it keeps on disk."""

    def __init__(
        self, run: _Resumed, source: ShardedSource, record: _Record, reports: list[Report], every: int
    ) -> None:
        self._run, self._source, self._record, self._reports, self._every = run, source, record, reports, every
        self._told = 0

    @property
    def model(self) -> Model:
        return self._run.model

    @property
    def theta(self) -> Any:
        return self._run.theta

    @property
    def phi(self) -> Any:
        return self._run.phi

    @property
    def report(self) -> Report:
        return self._reports[self._told]

    @report.setter
    def report(self, report: Report) -> None:
        self._reports[self._told] = report

    @property
    def exhausted(self) -> bool:
        return self._run.exhausted and self._told == len(self._reports) - 1

    @exhausted.setter
    def exhausted(self, value: bool) -> None:
        self._run.exhausted = value

    def advance(self) -> None:
        if self._told < len(self._reports) - 1:
            self._told += 1
            return
        self._run.advance()
        self._reports.append(self._run.report)
        self._told += 1
        if self._told % self._every == 0:
            self._record.write(self._source, self._reports, self._run.snapshot())


class _Record:
    """The folder of a run: state.json, which names the files that belong to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, Kept] = {}
        self._files: list[Path] = []

    def write(self, source: ShardedSource, reports: list[Report], state: Snapshot) -> None:
        """Puts the state on disk, and then removes the one before."""
        number = len(reports) - 1
        kept = {name: source.saved(theta) for name, theta in state.docs.items()}
        files = {name: self._folder / f"words-{number}-{name}.npy" for name in state.words}
        for name, path in files.items():
            array = source.topics(state.words[name])
            write_atomically(path, [npy_header(array), bytes_of(array)])
        content = {
            "reports": [list(report) for report in reports],
            "docs": {name: theta.folder.name for name, theta in kept.items()},
            "words": {name: path.name for name, path in files.items()},
            "numbers": state.numbers,
        }
        write_atomically(self._folder / _STATE, json.dumps(content).encode())
        for theta in kept.values():
            theta.keep()
        self._remove_others({theta.folder for theta in kept.values()}, files)
        self._kept, self._files = kept, list(files.values())

    def read(self, source: ShardedSource) -> tuple[list[Report], Snapshot] | None:
        """What the last `write` put there; None if there is none. Files that do not belong to it are removed."""
        path = self._folder / _STATE
        if not path.is_file():
            return None
        try:
            return self._restored(source, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ShardError(f"{path} is damaged ({error}): remove the folder {self._folder}.") from None

    def _restored(self, source: ShardedSource, content: dict[str, Any]) -> tuple[list[Report], Snapshot]:
        docs = {name: source.restored(self._folder / folder) for name, folder in content["docs"].items()}
        files = {name: self._folder / file for name, file in content["words"].items()}
        self._kept, self._files = docs, list(files.values())
        for other in self._folder.iterdir():
            if other.name not in (_STATE, *content["docs"].values(), *content["words"].values()):
                _remove(other)
        words = {name: source.at_hand(np.load(file, allow_pickle=False)) for name, file in files.items()}
        return [Report(*report) for report in content["reports"]], Snapshot(docs, words, content["numbers"])

    def clear(self) -> None:
        for path in self._folder.iterdir():
            _remove(path)

    def _remove_others(self, folders: set[Path], files: dict[str, Path]) -> None:
        for theta in self._kept.values():
            if theta.folder not in folders:
                theta.let_go()
        for file in set(self._files) - set(files.values()):
            file.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
