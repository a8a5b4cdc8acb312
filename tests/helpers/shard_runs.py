"""Runs of ``polyseme fit --shards`` and their comparison."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_runner import run
from polyseme.data import shard_writer as writing
from polyseme.estimators import likelihood
from polyseme.runs import documents, open_run
from polyseme.solvers import base

MODEL = ("-k", "3", "-o", "run", "-q", "--max-iter", "5")


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make shards and blocks of documents small."""
    monkeypatch.setattr(writing, "_MIN_NONZEROS", 4000)
    monkeypatch.setattr(writing, "_NONZEROS_PER_WORD", 1)
    monkeypatch.setattr(documents, "BLOCK", 2000)


def make_loading_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every corpus too large to be loaded, so that it is fitted from its shards by EM."""
    monkeypatch.setattr(base, "LOADED_NONZEROS", 1000)
    monkeypatch.setattr(likelihood, "_SAMPLED_WEIGHTS", 1)  # ten documents for each topic


def fitted(place: Path, *more: str) -> Any:
    result = run("fit", "lines.txt", *MODEL, "--shards", *more, cwd=place)
    assert result.exit_code == 0, result.output
    return open_run(place / "run")


def same_files(first: Path, second: Path) -> None:
    """Check that all files of two runs are equal, except run.json, the page and the model, which contain times."""
    names = [{path.relative_to(root) for path in root.rglob("*")} for root in (first, second)]
    assert names[0] == names[1]
    for name in names[0]:
        if (first / name).is_file() and name.name not in ("run.json", "explorer.html", "model.safetensors"):
            assert (first / name).read_bytes() == (second / name).read_bytes(), name
    models = [open_run(root).model for root in (first, second)]
    for attribute in ("components_", "doc_topic_", "topic_weights_", "doc_weights_", "unigram_", "log_likelihood_"):
        np.testing.assert_array_equal(getattr(models[0], attribute), getattr(models[1], attribute))
    for column in ("iteration", "objective", "log_likelihood", "residual"):
        np.testing.assert_array_equal(models[0].history_[column], models[1].history_[column])
