"""The tables of a run: topics for a spreadsheet, documents for data tools.

Writing a run folder, whole.

Writing the files of a run whose counts are shards, a piece at a time.
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
from polyseme.errors import InputError
from polyseme.estimators.tables import largest, words_of_model
from polyseme.io.checks import check_fields
from polyseme.io.files import write_atomically
from polyseme.io.parquet import write_frame
from polyseme.io.tensors import bytes_of, npy_header
from polyseme.kernels import Array, Floats
from polyseme.runs.documents import COLUMNS, DOCUMENTS_FILE, Counted, Names, Pieces, TextWriter, column_frame
from polyseme.runs.fields import RUN
from polyseme.runs.folder import RUN_FILE, only_writer_of, whole_folder
from polyseme.runs.run import DOC_WEIGHTS, FORMAT_VERSION, MODEL_FILE, Run, open_run, without_documents
from polyseme.runs.topic_documents import TopicDocuments, TopicModel, topic_documents
from polyseme.scale import DiskCorpus

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""ASCII and full-width, which spreadsheets in some languages take too"""
WORDS_SHOWN, DOCUMENTS_SHOWN = 10, 3


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return "'" + cell if cell.startswith(_FORMULA_STARTS) else cell


def topics_csv(
    model: Any,
    found: TopicDocuments,
    vocabulary: Sequence[str],
    documents: Sequence[str],
    topic_names: Mapping[str, str],
) -> str:
    """A row for each topic, the heaviest first: topic, name, weight P(z), fit, words and most typical documents."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["topic", "name", "weight", "fit", "words", "documents"])
    weights, shown = model.topic_weights_, words_of_model(model, vocabulary, WORDS_SHOWN)
    for topic in largest(weights, len(weights)):
        words = " ".join(shown[topic])
        typical = "; ".join(documents[document] for document in found.documents[topic])
        numbers = (f"{weights[topic]:.6f}", f"{found.fit[topic]:.6f}")
        writer.writerow(
            [topic, harmless(topic_names.get(str(topic), "")), *numbers, harmless(words), harmless(typical)]
        )
    return text.getvalue()


def with_topics(documents: Any, tokens: Floats, doc_topic: Array) -> Any:
    """A polars frame of documents with their tokens, their main topic and its share, and P(z|d) of every topic."""
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
    """Writes a fitted model with all that belongs to it to the folder `path`, which appears whole or not at all.

    about : settings, versions, seed and timings for run.json.
    """
    with whole_folder(path, overwrite=overwrite) as folder:
        write_into(folder, model, counted, about, texts)


def write_into(folder: Path, model: Any, counted: Counted, about: dict[str, Any], texts: list[str] | None) -> None:
    """Writes all files of a run into a folder."""
    if texts is not None:
        writer = TextWriter(folder)
        for text in texts:
            writer.add(text)
        writer.close()
    counted.save(folder)
    write_fitted(folder, model, counted, about)


def write_fitted(folder: Path, model: Any, counted: Counted, about: dict[str, Any]) -> None:
    """Writes the files that a fit adds to those of the counted documents; run.json, which makes it a run, is last."""
    model.set_vocabulary(counted.vocabulary).save(folder / MODEL_FILE)
    write_topics(folder, model, [counted.counts], counted.vocabulary, counted.names, about)
    documents = with_topics(column_frame(counted.columns), counted.tokens, model.doc_topic_)
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
    """Writes topics.csv. counts : of the documents, in one or more parts."""
    found = topic_documents(TopicModel.of(model), counts, DOCUMENTS_SHOWN)
    topics = topics_csv(model, found, vocabulary, names, about.get("topic_names", {}))
    (folder / "topics.csv").write_text(topics, encoding="utf-8")


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Writes run.json, which makes the folder a run."""
    try:
        check_fields(about, RUN, others=True)
    except ValueError as error:
        raise InputError(f"about cannot be written to {RUN_FILE}: {error}.") from None
    text = json.dumps({**about, "format_version": FORMAT_VERSION}, indent=2, ensure_ascii=False) + "\n"
    write_atomically(folder / RUN_FILE, text.encode())


def change_about(run: Run, changes: dict[str, Any]) -> Run:
    """The run with other facts in run.json, while no other process writes the run."""
    with only_writer_of(run.path):
        about = {**open_run(run.path).about, **changes}
        write_about(run.path, about)
    return replace(run, about=about)


def keep_model(folder: Path, model: Any, shards: DiskCorpus) -> None:
    """Writes the model; what it has of each document lies beside the shards, where the fit put P(z|d)."""
    weights = model.doc_weights_
    write_atomically(shards.folder / DOC_WEIGHTS, [npy_header(weights), bytes_of(weights)])
    without_documents(model).save(folder / MODEL_FILE)


def write_fitted_shards(
    folder: Path, model: Any, shards: DiskCorpus, about: dict[str, Any], vocabulary: Sequence[str]
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


def _tokens(shards: DiskCorpus) -> Floats:
    """n_d of all documents."""
    numbers = range(len(shards.manifest.shards))
    return np.concatenate([shards.shard(number, shards.dtype, 1).totals for number in numbers])
