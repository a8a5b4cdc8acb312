"""Writing a run folder, whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from polyseme.errors import InputError
from polyseme.files import write_atomically
from polyseme.parquet import write_frame
from polyseme.runs.counted import DOCUMENTS_FILE, Counted, column_frame
from polyseme.runs.fields import RUN
from polyseme.runs.folder import RUN_FILE, only_writer_of, whole_folder
from polyseme.runs.opening import open_run
from polyseme.runs.run import FORMAT_VERSION, MODEL_FILE, Run
from polyseme.runs.tables import DOCUMENTS_SHOWN, topics_csv, with_topics
from polyseme.runs.texts import TextWriter
from polyseme.runs.typical import TopicModel, typical
from polyseme.untrusted import check_fields


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
    found = typical(TopicModel.of(model), counts, DOCUMENTS_SHOWN)
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
