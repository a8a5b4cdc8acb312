"""Effects of metadata on the topics of a run."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.errors import InputError
from polyseme.options import named
from polyseme.runs.groups import cluster_numbers
from polyseme.uncertainty.effects import Effects, effects
from polyseme.uncertainty.formula import column_of, parse

if TYPE_CHECKING:
    from polyseme.runs.view import TopicView

_COLUMNS = ("label", "time", "source", "id", "title", "tokens")
"""Columns that every run has."""


def run_effects(
    view: TopicView,
    formula: str,
    data: Any = None,
    *,
    clusters: Any = None,
    n_resamples: int = 100,
    level: float = 0.95,
    random_state: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> Effects:
    """Return the effects of columns of the run, and of a table that is joined by id or has a row for each document."""
    columns = parse(formula).columns
    if isinstance(clusters, str) and data is not None and clusters not in _COLUMNS:
        columns.append(clusters)
    table = None if data is None else {name: column_of(data, name) for name in _names(data)}
    rows = None if table is None else _rows_of(view, table)
    given: dict[str, Any] = {}
    for name in columns:
        if table is not None and name in table:
            assert rows is not None
            values = table[name].tolist()
            given[name] = [values[row] if row >= 0 else None for row in rows]
        elif name in _COLUMNS:
            given[name] = _run_column(view, name)
        else:
            known = ", ".join([*(table or {}), *_COLUMNS][:20])
            raise InputError(f"There is no column {name!r}: give a table with {named('data')}. There are {known}.")
    units = cluster_numbers(view, given.get(clusters, clusters) if isinstance(clusters, str) else clusters)
    return effects(
        view.model, view.corpus.counts, formula, given, clusters=units, n_resamples=n_resamples, level=level,
        topic_names=view.topic_titles, random_state=random_state, progress=progress,
    )  # fmt: skip


def _names(data: Any) -> list[str]:
    return [str(name) for name in (data.columns if hasattr(data, "columns") else data)]


def _run_column(view: TopicView, name: str) -> list[Any]:
    """Return a column of the run; times are years, such as 2008.5."""
    if name == "tokens":
        return np.asarray(view.corpus.counts.sum(axis=1)).ravel().tolist()
    if name != "time":
        return view.corpus.column(name)
    days = np.asarray(view.corpus.days).tolist()
    return [None if day <= 0 else _years(date.fromordinal(day)) for day in days]


def _years(day: date) -> float:
    passed = (day - date(day.year, 1, 1)).days
    return day.year + passed / ((date(day.year, 12, 31) - date(day.year, 1, 1)).days + 1)


def _rows_of(view: TopicView, table: Mapping[str, Any]) -> list[int]:
    """Return the row of the table of each document, -1 for none."""
    n_documents = view.corpus.n_documents
    if "id" not in table:
        sizes = {len(values) for values in table.values()}
        if sizes != {n_documents}:
            raise InputError(
                f"{named('data')}: the table needs a column id, or a row for each of the {n_documents} documents."
            )
        return list(range(n_documents))
    ids = [str(value if value == value else None) for value in table["id"].tolist()]
    if table["id"].dtype.kind == "f":
        ids = [f"{value:.0f}" for value in table["id"].tolist()]
    place = {name: row for row, name in enumerate(ids)}
    if len(place) < len(ids):
        raise InputError(f"{named('data')}: the ids of the table must be different.")
    rows = [place.get(name, -1) for name in view.corpus.ids]
    if max(rows) < 0:
        raise InputError(
            f"{named('data')}: no id of the table is that of a document; ids are such as {view.corpus.ids[0]!r}."
        )
    return rows


def read_metadata(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a CSV or TSV file; a column of numbers has numbers, and missing values are None."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            separator = max(",;\t", key=first.count)
            header, *rows = csv.reader(file, delimiter=separator, strict=True)
    except OSError as error:
        raise InputError(f"--data: {path} cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError:
        raise InputError(f"--data: {path} is not UTF-8: save the file as UTF-8.") from None
    except (csv.Error, ValueError):
        raise InputError(f"--data: {path} is not a CSV or TSV table with a header.") from None
    rows = [row for row in rows if row]
    if any(len(row) != len(header) for row in rows) or len(set(header)) < len(header):
        raise InputError(f"--data: {path}: every row needs {len(header)} values, and every column its own name.")
    return {name: _numbers([row[place] for row in rows]) for place, name in enumerate(header)}


def _numbers(values: list[str]) -> list[Any]:
    """Return the values as numbers if all that are not empty are numbers."""
    try:
        return [float(value) if value.strip() else None for value in values]
    except ValueError:
        return [value or None for value in values]
