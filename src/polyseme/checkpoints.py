"""The state of a fit in a file, so that a fit that was killed goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from polyseme.errors import InputError, ModelFileError
from polyseme.files import write_atomically
from polyseme.kernels import Floats, SparseCounts
from polyseme.solvers.loop import State
from polyseme.storage import digest_of, settings_of

_FIT, _DIGEST = "polyseme_fit", "digest"


@dataclass(frozen=True)
class Checkpoint:
    """A file, and the seconds between two writes of it, at least."""

    path: str | PathLike[str]
    seconds: float = 10.0


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


class FileKeeper:
    """Writes the state of a fit to a checkpoint now and then.

    fit : names the fit, so that another one is not mistaken for it.
    """

    def __init__(self, checkpoint: Checkpoint, fit: str) -> None:
        self._path = Path(checkpoint.path)
        self._seconds = checkpoint.seconds
        self._fit = fit
        self._written = time.monotonic()

    def load(self) -> State | None:
        if not self._path.exists():
            return None
        try:
            with safe_open(self._path, framework="np") as file:
                metadata = file.metadata() or {}
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, ValueError, OSError) as error:
            raise ModelFileError(f"{self._path} is damaged ({error}): remove it to begin anew.") from None
        if metadata.get(_FIT) != self._fit:
            raise InputError(f"{self._path} is the checkpoint of another fit: remove it, or name another file.")
        if metadata.get(_DIGEST) != digest_of(self._fit, state):
            raise ModelFileError(f"{self._path} is damaged: its digest does not match: remove it to begin anew.")
        return state

    def offer(self, state: Callable[[], State]) -> None:
        if time.monotonic() - self._written < self._seconds:
            return
        tensors = state()
        metadata = {_FIT: self._fit, _DIGEST: digest_of(self._fit, tensors)}
        write_atomically(self._path, to_safetensors(tensors, metadata=metadata))
        self._written = time.monotonic()
