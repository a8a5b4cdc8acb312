"""Names of the topics of a run by a function, such as a language model, or by the user."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.progress import Reporter, pluralize
from polyseme.runs.changes import page_of, refresh_run
from polyseme.runs.info import Edit
from polyseme.runs.names import (
    Namer,
    check_namer,
    checked_name,
    excerpts_of_topics,
    names_of_namer,
    parent_titles,
    read_names,
    siblings_of,
)
from polyseme.runs.run import Run, open_run
from polyseme.runs.store import run_lock
from polyseme.runs.tables import DOCUMENTS_SHOWN
from polyseme.runs.view import TopicView
from polyseme.runs.write import timestamp

_PROBLEMS_SHOWN = 3


def name_run(
    path: Path,
    namer: Namer | str,
    *,
    level: int | None = None,
    overwrite: bool = False,
    report: Reporter,
    caller: Run | None = None,
) -> Run:
    """Name the topics of a level of a run with a namer; None is the reading level.

    A text is the answer of a language model. A function is called for topics without a given name, or with `overwrite`
    for all topics. Each name is stored in run.json at once; the tables and the page follow at the end, also after
    Ctrl-C. Exceptions of the function and invalid names are reported in a warning.
    """
    problems: list[str] = []
    if isinstance(namer, str):
        namer = read_names(namer).names
    with run_lock(path) as target:
        run = open_run(target)
        named = run.view if level is None else run.level(level)
        check_namer(namer, named.fitted.n_topics)
        names = _StoredNames(named)
        if callable(namer):
            problems = _call_namer(namer, named, names, overwrite=overwrite, report=report)
        else:
            names.store(names_of_namer(namer))
    changed = refresh_run(path, report, page=page_of(run), caller=caller)
    if problems:
        first = "; ".join(problems[:_PROBLEMS_SHOWN]).replace("\n", " ")
        more = f"; and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        warnings.warn(
            f"The namer did not name all topics; the others keep their old names: {first}{more}.", stacklevel=3
        )
    return changed


def _call_namer(
    namer: Callable[..., str], named: TopicView, names: _StoredNames, *, overwrite: bool, report: Reporter
) -> list[str]:
    """Name topics with a function, those with the largest weights first. Return descriptions of what went wrong."""
    problems: list[str] = []
    order = np.argsort(-named.fitted.topic_weights, kind="stable").tolist()
    missing = [topic for topic in order if overwrite or topic not in named.topic_names]
    n_missing = len(missing)
    words, documents = named.topic_words(), excerpts_of_topics(named, DOCUMENTS_SHOWN)
    above = parent_titles(named)
    try:
        with report.stage("Naming topics", unit="topics") as update:
            while missing:
                topic = missing[0]
                update(n_missing - len(missing), n_missing, f"topic {topic}")
                parent = above[topic] if above else None
                siblings = siblings_of(named, topic, named.topic_titles)
                try:
                    name = checked_name(namer(words[topic], documents[topic], parent=parent, siblings=siblings))
                except Exception as error:
                    problems.append(f"topic {topic} ({type(error).__name__}: {error})")
                else:
                    names.store({topic: name})
                del missing[0]
    except KeyboardInterrupt:
        problems.append(f"Ctrl-C stopped it before {pluralize(len(missing), 'topic')}")
    return problems


class _StoredNames:
    """Given names of a level of a run, which are stored in its run.json one by one; the caller holds `run_lock`."""

    def __init__(self, named: TopicView) -> None:
        self._named, self._before = named, replace(named.store.info, before=None)
        self._entry = Edit(level=named.finer, when=timestamp())

    def store(self, names: Mapping[int, str]) -> None:
        """Add names; an empty name removes the name of the topic."""
        named, store, info = self._named, self._named.store, self._named.store.info
        given = {topic: name for topic, name in {**named.topic_names, **names}.items() if name}
        self._entry = replace(self._entry, rename={**self._entry.rename, **names})
        changes: dict[str, Any] = {"topic_names": given}
        if named.finer is not None:
            levels = info.levels or {}
            changes = {"levels": {**levels, named.finer: replace(levels[named.finer], topic_names=given)}}
        edits = (*self._before.edits, self._entry)
        store.info = replace(info, edits=edits, before=self._before, **changes)
        store.write()
