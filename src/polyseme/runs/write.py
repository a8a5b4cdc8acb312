"""Writing a run folder, whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as to_safetensors

from polyseme.metrics import topic_fit
from polyseme.runs.folder import RUN_FILE, whole_folder
from polyseme.runs.run import FORMAT_VERSION, count_arrays, document_names
from polyseme.runs.tables import document_frame, topics_csv
from polyseme.text import Vectorizer


def write_run(
    path: Path,
    model: Any,
    vectorizer: Vectorizer,
    counts: Any,
    documents: dict[str, list[Any]],
    about: dict[str, Any],
    *,
    overwrite: bool = False,
) -> None:
    """Writes a fitted model with all that belongs to it to the folder `path`, which appears whole or not at all.

    documents : columns id, title, label, time, source, excerpt, a row for each row of `counts`.
    about : settings, versions, seed and timings for run.json.
    """
    vocabulary = [str(word) for word in vectorizer.get_feature_names_out()]
    tokens = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    topics = topics_csv(
        model.components_,
        model.topic_weights_,
        topic_fit(model.doc_topic_, model.topic_doc_),
        model.topic_doc_,
        vocabulary,
        document_names(documents["title"], documents["id"]),
    )
    with whole_folder(path, overwrite=overwrite) as folder:
        model.save(folder / "model.safetensors")
        (folder / "vectorizer.json").write_text(json.dumps(vectorizer.to_dict()), encoding="utf-8")
        (folder / "counts.safetensors").write_bytes(to_safetensors(count_arrays(counts)))
        (folder / "topics.csv").write_text(topics, encoding="utf-8")
        document_frame(documents, tokens, model.doc_topic_).write_parquet(folder / "documents.parquet")
        text = json.dumps({"format_version": FORMAT_VERSION, **about}, indent=2, ensure_ascii=False)
        (folder / RUN_FILE).write_text(text + "\n", encoding="utf-8")
