"""Writing the files of a run whose counts are shards, a piece at a time."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.files import write_atomically
from polyseme.kernels import Floats
from polyseme.runs.counted import COLUMNS
from polyseme.runs.pieces import Names, Pieces
from polyseme.runs.run import MODEL_FILE
from polyseme.runs.sharded import DOC_WEIGHTS, without_documents
from polyseme.runs.tables import with_topics
from polyseme.runs.write import write_about, write_topics
from polyseme.scale import Shards
from polyseme.sources.disk import FIT_FOLDER
from polyseme.sources.shards import bytes_of, npy_header


def keep_model(folder: Path, model: Any, shards: Shards) -> None:
    """Writes the model; what it has of each document lies beside the shards, where the fit put P(z|d)."""
    weights = model.doc_weights_
    write_atomically(shards.folder / DOC_WEIGHTS, [npy_header(weights), bytes_of(weights)])
    without_documents(model).save(folder / MODEL_FILE)


def write_fitted_shards(
    folder: Path, model: Any, shards: Shards, about: dict[str, Any], vocabulary: Sequence[str]
) -> None:
    """Writes the files that a fit adds to shards, documents and model; run.json, which makes it a run, is last."""
    pieces = Pieces(folder)
    tokens = _tokens(shards)
    start = 0
    for number, frame in enumerate(pieces):
        rows = slice(start, start + len(frame))
        pieces.replace(number, with_topics(frame.select(COLUMNS), tokens[rows], np.asarray(model.doc_topic_[rows])))
        start += len(frame)
    write_topics(folder, model, shards, vocabulary, Names(pieces, shards.shape[0]), about)
    shutil.rmtree(shards.folder / FIT_FOLDER, ignore_errors=True)  # of a fit that Ctrl-C cut short
    write_about(folder, about)


def _tokens(shards: Shards) -> Floats:
    """n_d of all documents."""
    numbers = range(len(shards.manifest.shards))
    return np.concatenate([shards.shard(number, shards.dtype, 1).totals for number in numbers])
