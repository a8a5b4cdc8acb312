"""Edits of a run: names, merged topics, deleted topics and removed words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyseme.core.shard import without_words
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import write_shards
from polyseme.errors import InputError
from polyseme.progress import Reporter
from polyseme.runs.documents import DOCUMENTS_FILE, TEXTS_FOLDER, Texts
from polyseme.runs.fields import VECTORIZER_FILE
from polyseme.runs.run import SHARDS_FOLDER, Run, columns_of
from polyseme.runs.update import changed_about, page_of, refolded
from polyseme.runs.write import RunDraft, rewrite_run, timestamp
from polyseme.scale import open_shards


@dataclass(frozen=True)
class Edits:
    """Edits to apply. Topics are given by their numbers before the edits."""

    rename: Mapping[int, str] = field(default_factory=dict)
    """Names by topic; an empty name removes the name."""
    merge: Sequence[Sequence[int]] = ()
    """Groups of topics to merge into the one with the smallest number."""
    delete: Sequence[int] = ()
    """Topics to delete."""
    ban: Sequence[str] = ()
    """Words to remove."""

    def to_dict(self) -> dict[str, Any]:
        """Return the edits that are not empty, as JSON values."""
        parts = {
            "rename": {str(topic): name for topic, name in self.rename.items()},
            "merge": [list(group) for group in self.merge],
            "delete": list(self.delete),
            "ban": list(self.ban),
        }
        return {name: part for name, part in parts.items() if part}

    @property
    def changes_topics(self) -> bool:
        """Whether the edits change more than names."""
        return bool(self.merge or self.delete or self.ban)

    def origin(self, n_topics: int) -> list[list[int]]:
        """Return the old topics that each new topic is made of. Raise InputError for topics that do not exist."""
        self._check(n_topics)
        groups = {min(group): sorted(set(group)) for group in self.merge}
        removed = {topic for group in groups.values() for topic in group[1:]} | set(self.delete)
        origin = [groups.get(topic, [topic]) for topic in range(n_topics) if topic not in removed]
        if not origin:
            raise InputError("delete= would remove all topics: delete fewer.")
        return origin

    def names(self, origin: list[list[int]], names: Mapping[int, str]) -> dict[int, str]:
        """Return the names of the new topics; a merged topic has the first name of its topics."""
        renamed = {**names, **self.rename}
        given = ([renamed[topic] for topic in group if renamed.get(topic)] for group in origin)
        return {topic: group_names[0] for topic, group_names in enumerate(given) if group_names}

    def _check(self, n_topics: int) -> None:
        merged = [topic for group in self.merge for topic in set(group)]
        for topic in [*self.rename, *merged, *self.delete]:
            if not 0 <= topic < n_topics:
                raise InputError(f"There is no topic {topic}: the run has topics 0 to {n_topics - 1}.")
        if any(len(set(group)) < 2 for group in self.merge):
            raise InputError("merge= needs at least two topics in a group.")
        repeated = [topic for topic in {*merged, *self.delete} if merged.count(topic) + (topic in self.delete) > 1]
        if repeated:
            raise InputError(f"Topic {repeated[0]} appears more than once in merge= and delete=: give it once.")


class Edited(NamedTuple):
    """Result of `edit_run`."""

    run: Run
    interrupted: bool
    """Whether Ctrl-C stopped the fit."""


def edit_run(
    path: Path,
    edits: Edits,
    *,
    refit: bool = False,
    report: Reporter,
    like: Run | None = None,
    trust_pattern: bool = False,
) -> Edited:
    """Apply edits to a run; the edited run replaces it."""
    if not (edits.to_dict() or refit):
        raise InputError("Nothing to edit: use rename=, merge=, delete=, ban= or refit=True.")
    with rewrite_run(path, report, like=like, trust_pattern=trust_pattern) as (run, draft):
        origin = edits.origin(run.fitted.n_topics)
        banned = columns_of(edits.ban, run.vocabulary)
        if edits.changes_topics:
            run.model.check_edits_topics()
        if refit:
            run.model.check_refits()
        draft.link(run, VECTORIZER_FILE, TEXTS_FOLDER)
        draft.know(vectorizer=run.vectorizer)
        interrupted = False
        if edits.changes_topics or refit:
            shards = _shards_without(run, draft, banned)
            model = run.model.with_edited_topics(origin, banned, shards) if edits.changes_topics else run.model
            if refit:
                model, interrupted = refolded(model, shards, refit=True, report=report)
            draft.save_model(model)
            draft.reuse_metadata(run)
            about = changed_about(run, shards)
        else:
            draft.link(run, SHARDS_FOLDER, DOCUMENTS_FILE, *run.model_files)
            draft.know(model=run.model)
            about = dict(run.about)
        entry = {"when": timestamp(), **edits.to_dict(), **({"refit": True} if refit else {})}
        about |= {
            "model": {**about["model"], "n_topics": len(origin)},
            "topic_names": {str(topic): name for topic, name in edits.names(origin, run.topic_names).items()},
            "banned_words": sorted({*run.banned_words, *edits.ban}),
            "edits": [*run.about.get("edits", []), entry],
        }
        draft.finish(about, texts=bool(Texts(run.files)), page=page_of(run))
    return Edited(draft.run, interrupted)


def _shards_without(run: Run, draft: RunDraft, columns: list[int]) -> DiskCorpus:
    """Write the counts of a run without some columns; link them if no column is removed."""
    if not columns:
        draft.link(run, SHARDS_FOLDER)
        return open_shards(draft.folder / SHARDS_FOLDER)
    parts = (without_words(part, np.asarray(columns)) for part in run.shards)
    return write_shards(parts, draft.folder / SHARDS_FOLDER, vocabulary=run.vocabulary)
