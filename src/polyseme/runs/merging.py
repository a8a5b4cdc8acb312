"""Merging of runs: equal topics are joined by weight, the others are kept; words and documents are united.

The texts of all runs are counted again with the words of all runs, so a word that one run has left out as too rare is
counted in its documents if another run has it. Nothing is fitted but the finer levels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.core.fold_in import MaximumLikelihood
from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_writer import write_shards
from polyseme.errors import InputError, UnsupportedError
from polyseme.estimators.plsa import PLSA
from polyseme.io.files import write_atomically
from polyseme.kernels import Array, Floats
from polyseme.metrics import align
from polyseme.progress import Reporter, pluralize, reporter
from polyseme.runs.changes import MIN_OVERLAP, page_of
from polyseme.runs.corpus import take_counts
from polyseme.runs.fitting import write_levels
from polyseme.runs.run import Run, open_run
from polyseme.runs.search_index import INDEX_FILE
from polyseme.runs.searching import store_index
from polyseme.runs.store import SHARDS_FOLDER, VECTORIZER_FILE
from polyseme.runs.write import RunDraft, new_run, version_info
from polyseme.text.readers.inputs import LABEL_SEPARATOR, Document
from polyseme.text.vectorizer import Vectorizer

_OWN_PARAMETERS = ("language", "min_df", "max_df", "max_features", "n_jobs")
"""Parameters of the vectorizer in which runs may differ. The language that was used must be the same."""
_EXAMPLES = 3


@dataclass
class MergedTopic:
    """A topic of a merged run."""

    words: Floats
    """P(w|z) over the words of all runs."""
    tokens: float
    """Tokens of the topic in the documents of its parts."""
    parts: dict[int, int]
    """Its topic in each run that has it, by the numbers of the runs."""


@dataclass
class Merged:
    """What a merged run is made of, besides its files."""

    n_shared: int
    """Topics that are in several runs."""
    n_repeated: int
    """Documents that are in several runs, and are kept once."""
    run: Run


@dataclass
class _Documents:
    """Documents of several runs, each once."""

    runs: Sequence[Run]
    kept: list[list[bool]] = field(default_factory=list)
    """Which documents of each run were not in a run before it."""
    clashes: list[str] = field(default_factory=list)
    """Sentences about documents whose ids another run has for other texts."""

    def __iter__(self) -> Iterator[Document]:
        # Hashes, because the sources, ids and texts of millions of documents take much more memory.
        known: dict[int, int] = {}
        for run in self.runs:
            stored, kept, clashing = run.store.documents, [], []
            columns = (stored.column(name) for name in ("id", "title", "label", "time", "source"))
            for name, title, label, time, source, text in zip(*columns, stored.texts, strict=True):
                place = hash((source, name))
                kept.append(known.get(place) != hash(text))
                if not kept[-1]:
                    continue
                if place in known:
                    source = f"{run.path.name}/{source}"
                    clashing.append(name)
                    place = hash((source, name))
                known[place] = hash(text)
                yield Document(name, text, title, tuple((label or "").split(LABEL_SEPARATOR)), time, source)
            self.kept.append(kept)
            if clashing:
                shown = ", ".join(clashing[:_EXAMPLES]) + (" ..." if len(clashing) > _EXAMPLES else "")
                self.clashes.append(
                    f"{pluralize(len(clashing), 'document')} of {run.path} have the id of another text in a run before "
                    f"it ({shown}): their source is now {run.path.name}/..."
                )


def merge(
    runs: Sequence[Run | str | PathLike[str]],
    output: str | PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    verbose: int = 0,
) -> Run:
    """Merge runs: topics that are alike are joined by their weights, the others are kept.

    Topics are matched one to one, and joined if they overlap by at least one half (1 - total variation distance over
    the words of both). Topics of the first run keep their numbers; those of later runs that are not joined follow. The
    texts are counted with the words of all runs, and their topic weights are computed. A document that several runs
    have is kept once. Finer levels are made again.

    Parameters
    ----------
    runs : sequence of Run, str or PathLike
        At least two runs of PLSA, the default model, with texts, in the same language and with the same word rules.
    output : str, PathLike or None, default=None
        Folder of the new run. None: a temporary folder, which is removed with the returned object.
    overwrite : bool, default=False
        Whether to replace an existing run.
    verbose : int, default=0
        Whether to show progress and notes.

    Returns
    -------
    Run
        The merged run. The others do not change.

    Raises
    ------
    InputError
        If the runs have other languages, word rules or no texts.
    UnsupportedError
        If a run has another model than PLSA, or a background.

    Examples
    --------
    >>> import polyseme
    >>> from polyseme.runs import merge
    >>> first = polyseme.fit(["red wine and cheese", "cheese and bread", "bread and red wine"], 1, language="english")
    >>> second = polyseme.fit(["guitar and drums", "drums and bass guitar", "bass and bread"], 1, language="english")
    >>> merge([first, second]).doc_topic.shape
    (6, 2)
    """
    opened = [run if isinstance(run, Run) else open_run(run) for run in runs]
    place = None if output is None else Path(output)
    return merge_runs(opened, place, overwrite=overwrite, report=reporter(verbose)).run


def merge_runs(
    runs: Sequence[Run],
    output: Path | None,
    *,
    overwrite: bool = False,
    command: Sequence[str] = (),
    report: Reporter,
) -> Merged:
    """Merge runs as `merge` does."""
    if len(runs) < 2:
        raise InputError("Only one run was given: give at least two runs to merge.")
    for run in runs:
        _check(run)
    first = runs[0].info
    vectorizer, columns = _united_words(runs)
    topics = _united_topics(runs, columns, len(vectorizer.vocabulary_))
    n_shared = sum(len(topic.parts) > 1 for topic in topics)
    info = replace(
        first, model=replace(first.model, n_topics=len(topics)), documents=0, words=len(vectorizer.vocabulary_),
        inputs=tuple(dict.fromkeys(name for run in runs for name in run.info.inputs)), languages={}, seconds={},
        left_out=_added(run.info.left_out for run in runs), problems=_added(run.info.problems for run in runs),
        selection=None, iterations=0,
        converged=all(run.info.converged for run in runs), interrupted=False, seed_problems=(), levels=None, junk=None,
        stability=(), reproducibility=(), edits=(), before=None, updates=(), fitted_to=(), **_names(runs, topics),
        banned_words=(), hidden_words=_hidden_words(runs, columns, vectorizer),
        title=None if output is None else output.resolve().name, command=tuple(command), **version_info(),
    )  # fmt: skip
    with new_run(output, info, {}, report, overwrite=overwrite) as draft:
        documents, once = _Documents(runs), first.repeated_lines == "once"
        write_atomically(draft.folder / VECTORIZER_FILE, json.dumps(vectorizer.to_dict()).encode())
        with report.stage("Counting the words of all runs"), draft.recorder(texts=True, once=once) as recorder:
            shards = write_shards(recorder.record(documents), draft.folder / SHARDS_FOLDER, vectorizer=vectorizer)
        for note in documents.clashes:
            report.note(note)
        model = PLSA.from_topics(
            [topic.words for topic in topics], vocabulary=vectorizer, random_state=first.model.random_state
        )
        draft.save_model(model.with_documents(shards))
        sizes = shards.manifest
        info = replace(
            info, documents=sizes.documents, tokens=int(sizes.tokens), shards=len(sizes.shards),
            duplicates=recorder.duplicates, fitted_to=_fitted_to(runs, topics, documents.kept),
        )  # fmt: skip
        draft.run.store.info = info
        draft.record_files()
        if any(run.info.levels for run in runs):
            info = replace(info, levels=_levels(draft, shards, first.model.random_state))
        draft.finish(info, page=next((page for page in map(page_of, runs) if page), None))
    if any((run.path / INDEX_FILE).is_file() for run in runs):
        store_index(draft.run.store, report)
    n_repeated = sum(len(kept) - sum(kept) for kept in documents.kept)
    return Merged(n_shared, n_repeated, draft.run)


def _check(run: Run) -> None:
    """Raise InputError or UnsupportedError for a run that cannot be merged with any other."""
    if run.info.model.name != "plsa" or not isinstance(run.view.fitted.inference, MaximumLikelihood):
        raise UnsupportedError(f"{run.path} has the model {run.info.model.name}: only runs of plsa can be merged.")
    inference = run.view.fitted.inference
    if inference.background is not None or inference.temperature != 1:
        raise UnsupportedError(f"{run.path} has a background or a temperature: only plain runs of plsa can be merged.")
    if not run.store.documents.has_texts:
        raise InputError(f"{run.path} does not store its texts, which are counted again: fit it without --no-texts.")


def _united_words(runs: Sequence[Run]) -> tuple[Vectorizer, list[Array]]:
    """Return a vectorizer with the words of all runs, and the column in it of each word of each run; -1 for none.

    With stems, the first run decides by which form a stem is shown. Words that an edit has removed are left out.
    """
    first, *others = descriptions = [run.vectorizer.to_dict() for run in runs]
    if first["parameters"]["phrases"] is not False:
        raise UnsupportedError(f"{runs[0].path} has phrases, which differ from run to run: fit it without phrases.")
    for run, other in zip(runs[1:], others, strict=True):
        if first.get("language") != other.get("language"):
            languages = " and ".join(str(each.get("language") or "no language") for each in (first, other))
            raise InputError(f"{runs[0].path} and {run.path} have {languages}: merge runs of the same language.")
        rules, own = first["parameters"], other["parameters"]
        differing = [name for name in rules if rules[name] != own[name] and name not in _OWN_PARAMETERS]
        if differing:
            raise InputError(
                f"{runs[0].path} and {run.path} have other word rules ({differing[0]} is {rules[differing[0]]} and "
                f"{own[differing[0]]}): fit them with the same options."
            )
    forms: dict[str, str] = {}
    shown: dict[str, str] = {}
    for each in descriptions:
        forms |= each.get("forms", {})
        shown = {**each.get("shown", {}), **shown}
    names = []  # of the words of each run in the merged run
    for each in descriptions:
        stem_of = {word: stem for stem, word in each.get("shown", {}).items()}
        names.append([shown[stem_of[word]] if word in stem_of else word for word in each["vocabulary"]])
    banned = {
        name
        for run, words in zip(runs, names, strict=True)
        for own, name in zip(run.vocabulary, words, strict=True)
        if own in run.info.banned_words
    }
    vocabulary = sorted({name for words in names for name in words} - banned)
    column = {name: number for number, name in enumerate(vocabulary)}
    united = {**first, "vocabulary": vocabulary}
    if "shown" in first:
        united |= {"forms": forms, "shown": shown}
    columns = [np.array([column.get(name, -1) for name in words]) for words in names]
    return Vectorizer.from_dict(united), columns


def _united_topics(runs: Sequence[Run], columns: Sequence[Array], n_words: int) -> list[MergedTopic]:
    """Return the topics of the first run, joined with those that are alike in later runs, and the other topics."""
    merged: list[MergedTopic] = []
    for number, (run, places) in enumerate(zip(runs, columns, strict=True)):
        fitted, known = run.view.fitted, places >= 0
        topics = np.zeros((fitted.n_topics, n_words))
        topics[:, places[known]] = fitted.topic_word[:, known]
        topics /= topics.sum(axis=1, keepdims=True)
        tokens = fitted.topic_weights * fitted.n_tokens
        matches = np.full(len(topics), -1)
        if merged:
            before = np.array([topic.words for topic in merged])
            order, distance = align(before, topics)
            alike = (order >= 0) & (distance <= 1 - MIN_OVERLAP)
            matches[order[alike]] = np.flatnonzero(alike)
        for k, match in enumerate(matches.tolist()):
            if match < 0:
                merged.append(MergedTopic(topics[k], float(tokens[k]), {number: k}))
                continue
            topic = merged[match]
            total = topic.tokens + float(tokens[k])
            if total > 0:
                topic.words = (topic.tokens * topic.words + tokens[k] * topics[k]) / total
            topic.tokens, topic.parts[number] = total, k
    return merged


def _names(runs: Sequence[Run], topics: Sequence[MergedTopic]) -> dict[str, Any]:
    """Return the names of the topics and the hidden ones as fields of RunInfo.

    A topic has the name of the first run that gave it one. A topic is hidden if it is hidden in all runs that have it.
    """
    given: dict[int, str] = {}
    automatic = []
    taken = set[str]()
    for k, topic in enumerate(topics):
        names = [runs[run].info.topic_names.get(part, "") for run, part in topic.parts.items()]
        if any(names):
            given[k] = next(filter(None, names))
        run, part = next(iter(topic.parts.items()))
        name = runs[run].info.automatic_names[part]
        automatic.append("" if name in taken else name)
        taken.add(name)
    hidden = tuple(
        k
        for k, topic in enumerate(topics)
        if all(part in runs[run].info.hidden_topics for run, part in topic.parts.items())
    )
    return {"topic_names": given, "automatic_names": tuple(automatic), "hidden_topics": hidden}


def _hidden_words(runs: Sequence[Run], columns: Sequence[Array], vectorizer: Vectorizer) -> tuple[str, ...]:
    """Return the words that are hidden in a run, as the merged run shows them."""
    names = vectorizer.get_feature_names_out()
    found = {
        str(names[place])
        for run, places in zip(runs, columns, strict=True)
        for word, place in zip(run.vocabulary, places.tolist(), strict=True)
        if place >= 0 and word in run.info.hidden_words
    }
    return tuple(sorted(found))


def _fitted_to(
    runs: Sequence[Run], topics: Sequence[MergedTopic], kept: Sequence[Sequence[bool]]
) -> tuple[tuple[int, ...], ...]:
    """Return the rows from the first to the last document, exclusive, that the parts of each topic were fitted to."""
    starts = np.cumsum([0, *(sum(rows) for rows in kept)])
    ranges = []
    for topic in topics:
        rows = []
        for run, part in topic.parts.items():
            first, last = (runs[run].info.fitted_to or [(0, len(kept[run]))] * (part + 1))[part]
            rows += [int(starts[run]) + sum(kept[run][:row]) for row in (first, last)]
            if not all(kept[run][first:last]):
                rows.append(0)  # some of its documents are those of a run before it
        ranges.append((min(rows), max(rows)))
    return tuple(ranges)


def _levels(draft: RunDraft, shards: DiskCorpus, seed: int) -> Any:
    draft.run.store.shards = shards
    corpus = take_counts(shards) if draft.corpus.fits_in_memory(draft.info.model.n_topics) else shards
    return write_levels(draft, corpus, seed)


def _added(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of numbers by name."""
    total: dict[str, int] = {}
    for table in tables:
        for kind, number in table.items():
            total[kind] = total.get(kind, 0) + number
    return total
