"""Writing of run folders: topics.csv, documents.parquet, the model and run.json.

`write_run` and `write_fitted` write a run that is in memory; `save_model` and `write_fitted_shards` write a run of
shards piece by piece.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.data.disk import FIT_FOLDER
from polyseme.errors import InputError, ModelFileError
from polyseme.estimators.tables import largest, words_of_model
from polyseme.io.checks import check_fields
from polyseme.io.files import write_atomically
from polyseme.io.parquet import write_frame
from polyseme.io.tensors import bytes_of, npy_header
from polyseme.kernels import Array, Floats
from polyseme.runs.documents import COLUMNS, DOCUMENTS_FILE, Counted, DocumentNames, Pieces, TextWriter, column_frame
from polyseme.runs.folder import RUN_FIELDS, RUN_FILE, atomic_folder, run_lock
from polyseme.runs.run import DOC_WEIGHTS, FORMAT_VERSION, MODEL_FILE, Run, open_run, without_documents
from polyseme.runs.topic_documents import TopicDocuments, topic_documents
from polyseme.scale import DiskCorpus

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Characters that start a formula; some spreadsheets accept the full-width forms, too."""
WORDS_SHOWN, DOCUMENTS_SHOWN = 10, 3


def escape_formula(cell: str) -> str:
    """Return the text of a cell, quoted if a spreadsheet would read it as a formula."""
    return "'" + cell if cell.startswith(_FORMULA_STARTS) else cell


def topics_csv(
    model: Any,
    found: TopicDocuments,
    vocabulary: Sequence[str],
    documents: Sequence[str],
    topic_names: Mapping[str, str],
) -> str:
    """Return a CSV table of the topics by weight: topic, name, weight P(z), fit, words and most typical documents."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["topic", "name", "weight", "fit", "words", "documents"])
    weights, shown = model.fitted_.topic_weights, words_of_model(model, vocabulary, WORDS_SHOWN)
    for topic in largest(weights, len(weights)):
        words = " ".join(shown[topic])
        best = "; ".join(documents[document] for document in found.documents[topic])
        numbers = (f"{weights[topic]:.6f}", f"{found.fit[topic]:.6f}")
        writer.writerow(
            [
                topic,
                escape_formula(topic_names.get(str(topic), "")),
                *numbers,
                escape_formula(words),
                escape_formula(best),
            ]
        )
    return text.getvalue()


def add_topic_columns(documents: Any, tokens: Floats, doc_topic: Array) -> Any:
    """Add columns to a polars frame of documents: tokens, main topic, its share, and P(z|d) of every topic."""
    import polars as pl

    main = doc_topic.argmax(axis=1)
    return documents.with_columns(
        pl.Series("tokens", tokens),
        pl.Series("topic", main.astype(np.int32)),
        pl.Series("share", doc_topic[np.arange(len(main)), main]),
        *[pl.Series(f"topic_{k}", np.ascontiguousarray(doc_topic[:, k])) for k in range(doc_topic.shape[1])],
    )


def write_run(
    path: Path,
    model: Any,
    counted: Counted,
    about: dict[str, Any],
    *,
    texts: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a fitted model and its documents to the run folder `path`, atomically.

    about : settings, versions, seed and timings for run.json.
    """
    with atomic_folder(path, overwrite=overwrite) as folder:
        write_files(folder, model, counted, about, texts)


def write_files(folder: Path, model: Any, counted: Counted, about: dict[str, Any], texts: list[str] | None) -> None:
    """Write all files of a run into a folder."""
    if texts is not None:
        writer = TextWriter(folder)
        for text in texts:
            writer.add(text)
        writer.close()
    counted.save(folder)
    write_fitted(folder, model, counted, about)


def write_fitted(folder: Path, model: Any, counted: Counted, about: dict[str, Any]) -> None:
    """Write the files of a fit next to those of the counted documents; run.json, which makes it a run, is last."""
    model.set_vocabulary(counted.vocabulary).save(folder / MODEL_FILE)
    write_topics(folder, model, [counted.counts], counted.vocabulary, counted.names, about)
    documents = add_topic_columns(column_frame(counted.columns), counted.tokens, model.documents_.doc_topic)
    write_frame(folder / DOCUMENTS_FILE, documents)
    write_about(folder, about)


def write_topics(
    folder: Path,
    model: Any,
    counts: Iterable[Any],
    vocabulary: Sequence[str],
    names: Sequence[str],
    about: dict[str, Any],
) -> None:
    """Write topics.csv. `counts` are those of the documents, in one or more parts."""
    found = topic_documents(model.fitted_, model.documents_, counts, DOCUMENTS_SHOWN)
    topics = topics_csv(model, found, vocabulary, names, about.get("topic_names", {}))
    (folder / "topics.csv").write_text(topics, encoding="utf-8")


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Write run.json, which makes the folder a run."""
    try:
        check_fields(about, RUN_FIELDS, others=True)
    except ValueError as error:
        raise InputError(f"about cannot be written to {RUN_FILE}: {error}.") from None
    text = json.dumps({**about, "format_version": FORMAT_VERSION}, indent=2, ensure_ascii=False) + "\n"
    write_atomically(folder / RUN_FILE, text.encode())


def update_about(run: Run, changes: dict[str, Any]) -> Run:
    """Change fields of run.json while no other process writes the run; return the run with the new fields."""
    with run_lock(run.path):
        about = {**open_run(run.path).about, **changes}
        write_about(run.path, about)
    return replace(run, about=about)


def save_model(folder: Path, model: Any, shards: DiskCorpus) -> None:
    """Write the model, and P(d) to a file beside the shards, where the fit has written P(z|d)."""
    weights = model.documents_.doc_weights
    write_atomically(shards.folder / DOC_WEIGHTS, [npy_header(weights), bytes_of(weights)])
    without_documents(model).save(folder / MODEL_FILE)


def write_fitted_shards(
    folder: Path, model: Any, shards: DiskCorpus, about: dict[str, Any], vocabulary: Sequence[str]
) -> None:
    """Write the files of a fit next to shards, metadata and model; run.json, which makes it a run, is last."""
    pieces = Pieces(folder)
    tokens = _tokens(shards)
    start = 0
    for number, frame in enumerate(pieces):
        rows = slice(start, start + len(frame))
        if rows.stop > len(tokens):
            break
        doc_topic = np.asarray(model.documents_.doc_topic[rows])
        pieces.replace(number, add_topic_columns(frame.select(COLUMNS), tokens[rows], doc_topic))
        start = rows.stop
    if start != len(tokens):
        raise ModelFileError(
            f"{pieces.folder} does not have a row for each of the {len(tokens)} documents: fit again without --resume."
        )
    write_topics(folder, model, shards, vocabulary, DocumentNames(pieces, shards.shape[0]), about)
    shutil.rmtree(shards.folder / FIT_FOLDER, ignore_errors=True)  # left by a fit that Ctrl-C stopped
    write_about(folder, about)


def _tokens(shards: DiskCorpus) -> Floats:
    """Return n_d of all documents."""
    numbers = range(len(shards.manifest.shards))
    return np.concatenate([shards.shard(number, shards.dtype, 1).totals for number in numbers])
