"""`polyseme.fit`, the same call as the command ``polyseme fit``: read, count, choose, fit, write.

A corpus of at most MAX_CHARACTERS characters is counted in memory while it is read. A longer one is counted from its
stored texts into shards, and fitted from the shards. Both write the same files.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyseme.data.disk import DiskCorpus
from polyseme.data.shard_files import MANIFEST, read_manifest
from polyseme.data.shard_writer import write_shards
from polyseme.errors import InputError, SeedWarning
from polyseme.io.files import write_atomically
from polyseme.metrics.words import fitted_topics
from polyseme.options import COUNTING, FIT, FITTING, READING, SAMPLING, checked, named
from polyseme.progress import Reporter, pluralize, reporter
from polyseme.runs.corpus import RunCorpus, take_counts
from polyseme.runs.info import LevelInfo, ModelInfo, RunInfo, Selection, SelectionRow
from polyseme.runs.languages import ALL, MAJORITY, SPLIT, LanguageFilter, language_note
from polyseme.runs.models import MODELS, checked_seeds, make_model, n_label_topics, seed_columns
from polyseme.runs.names import Namer, check_namer
from polyseme.runs.reading import reader_notes, reading_progress
from polyseme.runs.run import Run
from polyseme.runs.seeds import drifted_topics
from polyseme.runs.store import CHECKPOINT_FOLDER, SHARDS_FOLDER, VECTORIZER_FILE
from polyseme.runs.write import DocumentRecorder, RunDraft, TooManyCharacters, new_run, version_info
from polyseme.selection.levels import make_levels
from polyseme.selection.reading import (
    FEW_DOCUMENTS,
    MAX_DOCUMENTS,
    consensus_topics,
    reading_n_topics,
    reading_topics,
)
from polyseme.selection.short_texts import compare_mixture
from polyseme.solvers import Checkpoint, Solver
from polyseme.text.languages import get_language
from polyseme.text.readers.inputs import Document
from polyseme.text.readers.reader import Reader
from polyseme.text.readers.sources import open_source
from polyseme.text.vectorizer import Vectorizer
from polyseme.utils import check_n_topics, perplexity_of, sample_rows

T = TypeVar("T")

MAX_CHARACTERS = 2**30
"""Characters of the longest corpus that is counted in memory, unless `shards` is given."""
LEVELS_SAMPLE = 20_000
"""Number of documents, drawn at random, with which topics are split into finer ones and levels are compared."""
LABELS_MODEL = "labels"
"""Name of the model whose topics are tied to the labels of documents."""
SHORT_DOCUMENT = 8
"""With fewer counted words per document on average, a note says that they are too few."""
LEAST_COMPARED = 500
"""With fewer documents, models of short texts are not compared: their held-out words would decide by chance."""
_UPDATE_EVERY = 512
"""Documents between two updates of the progress bar of counting."""


def fit(
    source: Any,
    n_topics: int | None = None,
    *,
    output: str | PathLike[str] | None = None,
    model: str | None = None,
    seeds: Mapping[str, Sequence[str]] | None = None,
    labels_from: str | None = None,
    background: float = 0.0,
    depth: int | None = None,
    branching: int | None = None,
    levels: str | None = None,
    max_iter: int | None = None,
    random_state: int = 0,
    language: str | None = "auto",
    languages: str = "all",
    phrases: bool = False,
    keep_numbers: bool | None = None,
    stop_words: Sequence[str] | None = None,
    min_df: int = 2,
    max_df: float = 0.5,
    text: str | Sequence[str] | None = None,
    id: str | None = None,
    title: str | None = None,
    label: str | None = None,
    time: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    sample: int | None = None,
    categories: Sequence[str] | None = None,
    noise: int = 0,
    uncategorized: bool = False,
    duplicates: str = "keep",
    keep_texts: bool = True,
    namer: Namer | None = None,
    page: bool = True,
    page_text: str = "auto",
    shards: bool | None = None,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint: float = 10.0,
    verbose: int = 0,
) -> Run:
    """Fit topics to texts: read and count them, choose the number of topics, fit, and write a run.

    Parameters
    ----------
    source : list of str, data frame, path, or other source
        Texts (a list, a generator), a polars or pandas data frame, a file or folder (str or Path), several of them (a
        list of Path), or documents of `polyseme.text.read`.
    n_topics : int or None, default=None
        Number of topics. None: chosen between 5 and 25 for readable topics (`polyseme.selection.reading_n_topics`).
    output : str, PathLike or None, default=None
        Folder of the run. None: a temporary folder, which is removed with the returned object; `Run.save` copies it to
        another folder.
    model : {"plsa", "lda", "ctm", "hierarchical", "nmf", "mixture"} or None, default=None
        Model to fit. "mixture" has one topic per document. None: "plsa", or "mixture" for at least 500 texts of fewer
        than 8 words on average if it predicts held-out words better; not with `seeds`, `background` or
        ``levels="auto"``.
    seeds : mapping of str to sequence of str or None, default=None
        Words of predefined topics by name: ``{"Sport": ["match", "team"]}``. These topics come first, in this order,
        under these names; the other topics are free. A topic that is not about its words does not get the name, and
        there is a `SeedWarning`, as for words that the documents do not have.
    labels_from : str or None, default=None
        Column with labels to tie topics to (`polyseme.TopicClassifier`): each label gets a topic with its name, a
        document without a label may use all topics, and `Run.transform` predicts labels. `n_topics` larger than the
        number of labels adds free topics.
    background : float, default=0.0
        Share of each text that a background of common words explains (PLSA only).
    depth : int or None, default=None
        Depth of the tree of a hierarchical model.
    branching : int or None, default=None
        Number of children of each node of a hierarchical model.
    levels : {"auto", "none"} or None, default=None
        Whether to make finer levels below these topics: twice as many topics each, up to 160, as long as they predict
        held-out documents better (`Run.levels`, `Run.level`). None makes them for PLSA; other models have one level.
    max_iter : int or None, default=None
        Maximum number of iterations. None: the default of the estimator.
    random_state : int, default=0
        Seed of the random numbers.
    language : str or None, default="auto"
        Language of the texts: a name, an ISO code, several of them ("en+it": the rules of the first, the stop words of
        all), "auto" (detected) or None.
    languages : str, default="all"
        Documents to fit, if they are in several languages: "all", "majority" (without those of other languages than the
        most frequent one) or those of a language.
    phrases : bool, default=False
        Whether to join words that form a phrase.
    keep_numbers : bool or None, default=None
        Whether to count numbers as words. None counts them only without a language. Years are always counted.
    stop_words : sequence of str or None, default=None
        Words to leave out, besides those of the language.
    min_df : int, default=2
        Leave out words that occur in fewer documents. Not applied to fewer than 20 documents.
    max_df : float, default=0.5
        Leave out words that occur in a larger share of the documents. Not applied to fewer than 20 documents.
    text : str, sequence of str or None, default=None
        Column of a table with the texts, or several columns to join. None: detected by its name or length.
    id : str or None, default=None
        Column with the id of a document.
    title : str or None, default=None
        Column with the title.
    label : str or None, default=None
        Column with a label, such as a category.
    time : str or None, default=None
        Column with a date or time.
    format : str or None, default=None
        Format of all files. None: by their names.
    encoding : str or None, default=None
        Encoding of text files. None: detected for each file.
    sample : int or None, default=None
        Number of documents to draw at random. None: all.
    categories : sequence of str or None, default=None
        Read only documents with one of these labels. None: all documents.
    noise : int, default=0
        Number of other documents to add at random if `categories` is given.
    uncategorized : bool, default=False
        Whether to keep articles of a MediaWiki dump without a category.
    duplicates : {"keep", "drop"}, default="keep"
        What to do with near-duplicates: documents that share at least 85% of their sequences of three words with an
        earlier document. "keep" counts them in the fit; lists of documents show only one of them. "drop" leaves them
        out.
    keep_texts : bool, default=True
        Whether the run stores the texts.
    namer : callable, mapping of int to str, sequence of str or None, default=None
        Function that names the topics after the fit, or names, as in `Run.name_topics`. None: phrases and words of the
        documents.
    page : bool, default=True
        Whether to write the explorer page into `output`.
    page_text : {"auto", "full", "excerpt", "none"}, default="auto"
        How much of each document's text the page contains: "auto" is "full" if all texts have less than 5 MB, else
        "excerpt".
    shards : bool or None, default=None
        Whether to count and fit from files instead of memory. None: if the texts have more than 2^30 characters.
    overwrite : bool, default=False
        Whether to replace an existing run.
    resume : bool, default=False
        Whether to continue the same call after it was killed, with the same result. The source must be the same.
    checkpoint : float, default=10.0
        Seconds between two checkpoints of the fit if `output` is given.
    verbose : int, default=0
        Whether to show progress and notes.

    Returns
    -------
    Run
        Topics and documents. After Ctrl-C during the fit, the topics are those of the last completed iteration, and
        there is a warning.

    Examples
    --------
    >>> import polyseme
    >>> texts = ["red wine and cheese", "cheese and bread", "guitar and drums", "drums and bass guitar"]
    >>> run = polyseme.fit(texts, 2)
    >>> sorted(run.topics()[0].words + run.topics()[1].words)
    ['bass', 'bread', 'cheese', 'drums', 'guitar', 'red', 'wine']
    """
    settings = FitSettings.of(locals())
    if namer is not None:
        check_namer(namer, n_topics if labels_from is None else None)
    reader = open_source(source, **settings.reading)
    run = fit_run(
        lambda: reader, reader.names, settings, output=None if output is None else Path(output), overwrite=overwrite,
        resume=resume, checkpoint=checkpoint, page=page_text if page and output is not None else None,
        report=reporter(verbose),
    )  # fmt: skip
    problems = sum(run.info.problems.values())
    if problems:
        warnings.warn(
            f"{pluralize(problems, 'problem')} while reading: see info.problems, or use verbose=1.", stacklevel=2
        )
    if run.info.duplicates.n_distinct == 1:
        warnings.warn(run.info.duplicates.note, stacklevel=2)
    for problem in run.info.seed_problems:
        warnings.warn(problem, SeedWarning, stacklevel=2)
    if run.info.interrupted:
        warnings.warn("Stopped by Ctrl-C: the topics are those of the last completed iteration.", stacklevel=2)
    if namer is not None:
        try:
            run = run.name_topics(namer, verbose=verbose)
        except InputError as error:  # the number of topics was not known before the fit
            warnings.warn(f"The topics keep their automatic names: {error}", stacklevel=2)
    return run


@dataclass(frozen=True)
class FitSettings:
    """Settings that, with the documents, determine the result of a fit. A resumed call must have the same settings."""

    reading: dict[str, Any]
    """Arguments of `polyseme.text.open_source`."""
    counting: dict[str, Any]
    """Arguments of `Vectorizer`."""
    fitting: dict[str, Any]
    """Model, number of topics, and other arguments of `runs.models.make_model`."""
    keep_texts: bool
    shards: bool | None
    """Whether to count and fit from files; None decides by the length of the texts."""
    duplicates: str
    """Whether to keep or to drop documents that are near-duplicates of others."""
    languages: str
    """Documents to fit by language: ALL, MAJORITY, or a language."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> FitSettings:
        """Check the options of a fit, given by their Python names."""
        values = checked(given, FIT)
        model, label, labels_from = (values[name] for name in ("model", "label", "labels_from"))
        if labels_from is not None:
            if model not in (None, "plsa"):
                raise InputError(
                    f"{named('labels_from')} is for {named('model', 'plsa')}: leave {named('model', model)} out."
                )
            if label not in (None, labels_from):
                raise InputError(
                    f"{named('label')} and {named('labels_from')} name two columns, {label!r} and {labels_from!r}: "
                    f"leave {named('label')} out."
                )
            values |= {"model": LABELS_MODEL, "label": labels_from}
        values["seeds"] = checked_seeds(values["seeds"])
        reading = {option.name: values[option.name] for option in (*READING, *SAMPLING)}
        return cls(
            reading={**reading, "seed": values["random_state"]},
            counting=counting_of(values),
            fitting={option.name: values[option.name] for option in FITTING},
            keep_texts=values["keep_texts"],
            shards=values["shards"],
            duplicates=values["duplicates"],
            languages=values["languages"],
        )

    def estimator(self, n_topics: int | None, **known: Any) -> Any:
        """Return the unfitted estimator. `known` are arguments of `make_model` that depend on the documents."""
        others = "model", "n_topics", "seeds", "levels"
        options = {name: value for name, value in self.fitting.items() if name not in others}
        return make_model(self.model, n_topics, **options, **known)

    @property
    def model(self) -> str:
        """Name of the model; if it is not given, PLSA until `_choose` sets another one."""
        return self.fitting["model"] or "plsa"

    def with_model(self, name: str) -> FitSettings:
        """Return the settings with the model that was chosen."""
        return replace(self, fitting={**self.fitting, "model": name})

    @property
    def chooses_model(self) -> bool:
        """Whether neither a model nor an option of PLSA is given."""
        given = (self.fitting[name] for name in ("model", "seeds", "background"))
        return not any(given) and self.fitting["levels"] != "auto"

    @property
    def makes_levels(self) -> bool:
        """Whether the run gets finer levels, if they predict better."""
        return MODELS[self.model].has_levels and self.fitting["levels"] != "none"

    def check(self) -> None:
        """Raise InputError before any work if options contradict each other or do not belong to the model."""
        seeds, n_topics = self.fitting["seeds"], self.fitting["n_topics"]
        if self.languages == SPLIT:
            raise InputError(f"{named('languages', SPLIT)} makes several runs: call fit once for each language.")
        if self.languages not in (ALL, MAJORITY):
            get_language(self.languages)
        if n_topics is not None:
            check_n_topics(n_topics, named("n_topics"))
        if n_topics is None and self.fitting["branching"] is None:
            n_topics = max(2 ** (self.fitting["depth"] or 1), len(seeds or ()))  # the number will be chosen
        placeholder = None if not seeds else {name: [0] for name in seeds}
        labels = ["", " "] if self.model == LABELS_MODEL else None
        self.estimator(None if labels else n_topics, seeds=placeholder, word_totals=np.ones(1), labels=labels)
        levels, name = self.fitting["levels"], self.model
        if levels == "auto" and not MODELS[name].has_levels:
            raise InputError(
                f"{named('levels', 'auto')} is for {named('model', 'plsa')}; {named('model', name)} has one level: "
                f"leave {named('levels')} out."
            )
        if self.shards:
            self.check_shards()

    def check_shards(self) -> None:
        """Raise InputError if the model cannot be fitted from shards."""
        name = self.model
        if not MODELS[name].from_shards:
            raise InputError(
                f"{named('model', name)} cannot be fitted from shards: use another model, or {named('shards', False)}."
            )

    def model_info(self) -> ModelInfo:
        """Return the facts about the model that are known before the fit."""
        fitting = self.to_json()["fitting"]
        del fitting["model"]
        name, (n_topics, seed, seeds) = self.model, (fitting.pop(key) for key in ("n_topics", "random_state", "seeds"))
        words = None if seeds is None else {topic: tuple(given) for topic, given in seeds.items()}
        return ModelInfo(MODELS[name].estimator.__name__, name, n_topics or 0, seed, words, fitting)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as they are after writing and reading JSON, where tuples are lists."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return settings


def counting_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Vectorizer` for the options of the words."""
    values = checked(given, COUNTING)
    words = values.pop("stop_words")
    return {**values, "extra_stop_words": None if words is None else list(words)}


def fit_run(
    open_reader: Callable[[], Reader],
    inputs: list[str],
    settings: FitSettings,
    *,
    output: Path | None,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint: float = 10.0,
    page: str | None = None,
    title: str | None = None,
    command: Sequence[str] = (),
    report: Reporter,
) -> Run:
    """Fit topics to documents and write a run.

    open_reader : returns the documents; not called if an interrupted call has read them. inputs : their names. page :
    how much of each text the explorer page contains; None writes no page. title : title of the page; None uses the name
    of the folder. command : the words of the command line, for run.json.
    """
    settings.check()
    stored = {**settings.to_json(), "inputs": inputs}
    info = RunInfo(settings.model_info(), documents=0, words=0)
    with new_run(output, info, stored, report, overwrite=overwrite, resume=resume) as draft:
        draft.stage("read", lambda: _read(draft, open_reader(), settings))
        draft.stage("counted", lambda: _count(draft))
        if draft.info.in_memory and not draft.corpus.is_loaded:  # counted by an interrupted call
            draft.corpus.counts = take_counts(draft.run.store.shards)
        draft.stage("chosen", lambda: _choose_model(draft, _choose(draft, settings), settings))
        settings = settings.with_model(draft.info.model.name)
        place = None if output is None else Checkpoint(draft.folder / CHECKPOINT_FOLDER, checkpoint)
        draft.stage("fitted", lambda: _fit(draft, settings, place))
        if settings.makes_levels:
            draft.stage("levels", lambda: _make_levels(draft))
        if title is None and output is not None:
            title = output.resolve().name
        call: Any = {"title": title, "page_text": page or "auto", "command": tuple(command), **version_info()}
        draft.finish(replace(draft.info, **call), page=page)
    return draft.run


def _read(draft: RunDraft, reader: Reader, settings: FitSettings) -> RunInfo:
    """Write the texts and metadata of the documents, and learn their words; in memory, also count the words."""
    start = time.perf_counter()
    vectorizer = Vectorizer(**settings.counting)
    drop = settings.duplicates == "drop"
    chosen = LanguageFilter(settings.languages)
    with draft.recorder(texts=settings.keep_texts, drop=drop) as recorder:
        try:
            in_memory = learn_words(
                reader,
                vectorizer,
                draft.report,
                lambda documents: _learn(draft, vectorizer, recorder, chosen.choose(documents), settings.shards),
            )
        except InputError:  # equal documents leave no words, because words of all documents are dropped; say so instead
            recorder.duplicates.check_distinct()
            raise
    duplicates = recorder.duplicates
    if reader.documents < 2:
        raise InputError("There is only one document, but topics need at least two: give more documents.")
    if drop:
        duplicates.check_distinct()
    if duplicates.found:
        draft.report.note(duplicates.note)
    write_atomically(draft.folder / VECTORIZER_FILE, json.dumps(vectorizer.to_dict()).encode())
    draft.run.store.vectorizer = vectorizer
    if vectorizer.language_ is not None and settings.counting["language"] == "auto":
        draft.report.note(language_note(vectorizer.language_, vectorizer.languages_))
    stored = settings.to_json()
    return replace(
        draft.info,
        inputs=tuple(reader.names),
        reading=stored["reading"],
        counting=stored["counting"],
        language=vectorizer.language_,
        languages=vars(vectorizer).get("languages_", {}),
        documents=reader.documents - chosen.left_out - duplicates.found * drop,
        duplicates=duplicates,
        words=len(vectorizer.vocabulary_),
        left_out={
            **reader.dropped,
            **({"other languages": chosen.left_out} if chosen.left_out else {}),
            **({"near-duplicates": duplicates.found} if drop else {}),
        },
        problems=dict(reader.problems.counts),
        in_memory=in_memory,
        seconds={"reading": round(time.perf_counter() - start, 3)},
    )


def learn_words(
    reader: Reader, vectorizer: Vectorizer, report: Reporter, learn: Callable[[Iterator[Document]], T]
) -> T:
    """Read the documents and return the result of `learn`, which learns their words.

    With fewer than FEW_DOCUMENTS documents all words are counted, regardless of `min_df` and `max_df`.
    """
    with report.stage("Reading and counting", unit="MB", size=1e6) as update:
        documents = reading_progress(reader, update)
        first = list(islice(documents, FEW_DOCUMENTS))
        if len(first) < FEW_DOCUMENTS:
            vectorizer.set_params(min_df=1, max_df=1.0)
        try:
            learned = learn(chain(first, documents))
        except InputError:
            raise
        except ValueError as error:  # scikit-learn raises it when no word is left
            reason = str(error).rstrip(".")
            stopped = vectorizer.extra_stop_words and "stop words" in reason
            hint = (
                f"leave some words out of {named('stop_words')}"
                if stopped
                else f"try {named('min_df', 1)} and {named('max_df', 1)}"
            )
            raise InputError(f"The documents have no words to count: {reason}; {hint}.") from None
    for note in reader_notes(reader):
        report.note(note)
    return learned


def count_documents(reader: Reader, vectorizer: Vectorizer, report: Reporter) -> Any:
    """Read documents, learn their words and return their counts."""
    return learn_words(
        reader, vectorizer, report, lambda documents: vectorizer.fit_transform(document.text for document in documents)
    )


def _learn(
    draft: RunDraft, vectorizer: Vectorizer, recorder: DocumentRecorder, documents: Iterator[Any], shards: bool | None
) -> bool:
    """Learn the words of the documents; return whether the words were also counted, in memory."""
    if not shards:
        limit = MAX_CHARACTERS if shards is None else None
        try:
            draft.corpus.counts = vectorizer.fit_transform(recorder.record(documents, limit))
        except TooManyCharacters:
            draft.report.note(
                f"The texts have more than {MAX_CHARACTERS:,} characters: they are counted and fitted from shards on "
                f"disk ({named('shards', False)} forces memory)."
            )
        else:
            return True
    vectorizer.fit(chain(recorder.texts(), recorder.record(documents)))
    return False


def _count(draft: RunDraft) -> RunInfo:
    """Write the counts to shards. After an interruption this continues after the last complete shard."""
    folder, store, corpus = draft.folder / SHARDS_FOLDER, draft.run.store, draft.corpus
    if not ((folder / MANIFEST).exists() and read_manifest(folder).complete):
        if corpus.is_loaded:
            write_shards([corpus.counts], folder, vocabulary=store.vocabulary)
        else:
            with draft.report.stage("Writing shards", unit="documents") as update:
                texts = _with_progress(store.texts, draft.info.documents, update)
                write_shards(texts, folder, vectorizer=store.vectorizer)
    manifest, n_documents = DiskCorpus(folder).manifest, draft.info.documents
    if n_documents < FEW_DOCUMENTS:
        draft.report.note(
            f"{pluralize(n_documents, 'document')}: read them. Topics of so few change from fit to fit; long documents "
            "can be cut into parts, such as sections."
        )
    if manifest.tokens < SHORT_DOCUMENT * n_documents:
        draft.report.note(
            f"{manifest.tokens / n_documents:.1f} counted words per document are too few to tell its topics: join "
            "short texts, such as those of one author, day or group, or add longer ones."
        )
    return replace(draft.info, tokens=int(manifest.tokens), shards=len(manifest.shards))


def _with_progress(texts: Iterable[str], n_documents: int, update: Any) -> Iterator[str]:
    for number, text in enumerate(texts, start=1):
        if number % _UPDATE_EVERY == 0:
            update(number, n_documents, f"{number:,} of {n_documents:,} documents")
        yield text


def _choose(draft: RunDraft, settings: FitSettings) -> RunInfo:
    """Choose the number of topics, unless it is given."""
    n_topics, seed, n_documents = settings.fitting["n_topics"], settings.fitting["random_state"], draft.info.documents
    if settings.model == LABELS_MODEL:
        labels = draft.labels()
        n_topics = max(n_topics or 0, n_label_topics(labels))
        n_labeled = sum(label is not None for label in labels)
        draft.report.note(f"{n_labeled:,} of {pluralize(n_documents, 'document')} have a label.")
    if n_topics is None and settings.fitting["branching"] is not None:
        n_topics = math.prod(settings.estimator(None).branching)
    if n_topics is not None:
        check_n_documents(n_documents, n_topics)
        return replace(draft.info, model=replace(draft.info.model, n_topics=n_topics))
    counts = _sampled_counts(draft.corpus, seed)
    choice = choose_n_topics(counts, draft.report, seed)
    reason, n_topics = choice.reason, choice.n_topics
    if counts.shape[0] < n_documents:
        reason += f" Chosen with {counts.shape[0]:,} of {n_documents:,} documents, drawn at random."
    seeds, depth = settings.fitting["seeds"], settings.fitting["depth"]
    for least, why in (
        (len(seeds or ()), "that many have seed words"),
        (2 ** (depth or 0), f"a tree of depth {depth} needs that many"),
    ):
        if n_topics < least:
            n_topics, choice = least, replace(choice, typical_fit=None)
            reason = f"{least} topics, because {why}. {reason}"
    draft.report.note(f"{reason.partition('. ')[0].rstrip('.')} ({named('n_topics')} sets another).")
    choice = replace(choice, n_topics=n_topics, reason=reason)
    return replace(draft.info, selection=choice, model=replace(draft.info.model, n_topics=n_topics))


def _choose_model(draft: RunDraft, info: RunInfo, settings: FitSettings) -> RunInfo:
    """Choose a mixture with one topic per document for short texts if it predicts held-out words better than PLSA."""
    short = info.tokens < SHORT_DOCUMENT * info.documents
    if not (settings.chooses_model and short and info.in_memory and info.documents >= LEAST_COMPARED):
        return info
    seed = info.model.random_state
    with draft.report.stage("Comparing models"):
        mixture, plsa = compare_mixture(_sampled_counts(draft.corpus, seed), info.model.n_topics, random_state=seed)
    if not mixture.perplexity < plsa.perplexity:
        return info
    draft.report.note(
        f"Model: {named('model', 'mixture')}, with one topic per document, which predicts held-out words of these "
        f"short texts better (perplexity {mixture.perplexity:,.0f}; {named('model', 'plsa')}: {plsa.perplexity:,.0f})."
    )
    estimator = MODELS["mixture"].estimator.__name__
    return replace(info, model=replace(info.model, name="mixture", estimator=estimator))


def _sampled_counts(corpus: RunCorpus, seed: int) -> Any:
    """Return the counts of the documents with which the number of topics is chosen."""
    rows = sample_rows(corpus.n_documents, MAX_DOCUMENTS, seed)
    return corpus.counts[rows] if corpus.is_loaded else take_counts(corpus.store.shards, rows)


def choose_n_topics(counts: Any, report: Reporter, seed: int) -> Selection:
    """Choose the number of topics for reading."""
    with report.stage("Choosing the number of topics") as update:
        selection = reading_n_topics(counts, max_documents=None, random_state=seed, progress=update)
    n_topics, reason = selection.chosen, selection.reason
    if not selection.structured and selection.rows:
        n_topics = selection.rows[0].n_topics
        reason = f"{n_topics} topics, which may be due to chance. {reason}"
    return Selection(
        n_topics,
        reason,
        tuple(SelectionRow(**vars(row)) for row in selection.rows),
        selection.interval,
        selection.structured,
        selection.flat,
        selection.n_documents,
        selection.typical_fit,
    )


def check_n_documents(n_documents: int, n_topics: int) -> None:
    """Raise InputError if there are more topics than documents."""
    if n_topics > n_documents:
        raise InputError(
            f"There are {n_documents:,} documents, too few for {n_topics:,} topics: choose a smaller "
            f"{named('n_topics')}."
        )


def _fit(draft: RunDraft, settings: FitSettings, checkpoint: Checkpoint | None) -> RunInfo:
    """Fit the model and write it."""
    info, seeds = draft.info, settings.fitting["seeds"]
    n_topics = info.model.n_topics
    known: dict[str, Any] = {"checkpoint": checkpoint if MODELS[settings.model].takes_checkpoint else None}
    if seeds:
        found = seed_columns(seeds, draft.run.vectorizer)
        parts = draft.corpus.count_parts()
        known |= {"seeds": found.columns, "word_totals": sum(np.asarray(part.sum(axis=0)).ravel() for part in parts)}
    elif "start" in MODELS[info.model.name].options:
        known["start"] = _start(draft, settings.fitting["random_state"])
    if not info.in_memory:
        settings.check_shards()
    labels = draft.labels() if settings.model == LABELS_MODEL else None
    model = settings.estimator(n_topics if labels is None else settings.fitting["n_topics"], labels=labels, **known)
    corpus = draft.corpus.counts if info.in_memory else draft.run.store.shards
    y = None if labels is None else np.array([-1 if label is None else label for label in labels], dtype=object)
    interrupted, seconds = fit_with_progress(model, corpus, draft.report, y)
    model.set_vocabulary(draft.run.vocabulary)
    draft.save_model(model)
    names = {topic: name for topic, name in enumerate(seeds or model.own_topic_names) if name}
    problems: tuple[str, ...] = ()
    if seeds:
        drifted = drifted_topics(model, found, draft.corpus, draft.run.vocabulary)
        names = {topic: name for topic, name in names.items() if topic not in drifted}
        problems = (*found.notes, *drifted.values())
        for problem in problems:
            draft.report.note(problem)
    return replace(
        info,
        solver=vars(model).get("solver_", ""),
        iterations=model.n_iter_,
        converged=model.converged_,
        interrupted=interrupted,
        topic_names=names,
        seed_problems=problems,
        seconds={**info.seconds, "fitting": round(seconds, 3)},
    )


def _start(draft: RunDraft, seed: int) -> Any:
    """Return the topics that the fit starts from: those of a fit that chose their number, or those of several starts.

    None if there are too few documents for several starts, or too many topics.
    """
    counts, n_topics, chosen = _sampled_counts(draft.corpus, seed), draft.info.model.n_topics, draft.info.selection
    if chosen is not None and chosen.typical_fit is not None:
        return reading_topics(counts, n_topics, chosen.typical_fit, max_documents=None, random_state=seed)
    with draft.report.stage("Comparing starts") as update:
        return consensus_topics(counts, n_topics, max_documents=None, random_state=seed, progress=update)


def _make_levels(draft: RunDraft) -> RunInfo:
    """Write the finer levels. A fit that Ctrl-C stopped gets none."""
    start, levels, info = time.perf_counter(), dict[int, LevelInfo](), draft.info
    if not info.interrupted:
        corpus = draft.corpus.counts if info.in_memory else draft.run.store.shards
        levels = write_levels(draft, corpus, info.model.random_state)
    return replace(info, levels=levels, seconds={**info.seconds, "levels": round(time.perf_counter() - start, 3)})


def write_levels(draft: RunDraft, corpus: Any, seed: int) -> dict[int, LevelInfo]:
    """Write the finer levels below the model of a draft; return them by number of topics.

    corpus : the counts in memory, or the shards. Topics are split with at most LEVELS_SAMPLE of the documents. After
    Ctrl-C the levels that are complete remain.
    """
    run = draft.run
    rows = sample_rows(corpus.shape[0], LEVELS_SAMPLE, seed)
    sample = take_counts(corpus, rows) if corpus is run.store.shards else corpus[rows]
    levels = dict[int, LevelInfo]()
    with draft.report.stage("Making finer levels") as update:
        try:
            for level in make_levels(run.model, corpus, rows, sample, random_state=seed, progress=update):
                level.model.set_vocabulary(run.vocabulary)
                levels[level.model.fitted_.n_topics] = draft.save_level(level)
        except KeyboardInterrupt:
            draft.keep_levels(levels)
            draft.report.note("Stopped while finer levels were made: the run has the levels that were complete.")
    return levels


def fit_with_progress(model: Any, corpus: Any, report: Reporter, y: Any = None) -> tuple[bool, float]:
    """Fit with a progress bar; return whether Ctrl-C stopped the fit, and the seconds it took.

    y : labels of the documents, for a classifier.

    After Ctrl-C the estimator has the best model until then. If there is none, raise KeyboardInterrupt again.
    """
    start = time.perf_counter()
    interrupted = False
    most = Solver.max_iter if model.max_iter is None else model.max_iter
    with report.stage("Fitting topics", unit="iterations") as update, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a note below replaces it

        def show(entry: Mapping[str, float]) -> None:
            update(entry["iteration"], most, f"iteration {entry['iteration']:.0f}{perplexity_shown(entry)}")

        model.set_params(callback=show)
        try:
            model.fit(corpus, y)
        except KeyboardInterrupt:
            if fitted_topics(model) is None:
                raise
            interrupted = True
        finally:
            model.set_params(callback=None)
    if not (model.converged_ or interrupted):
        larger = f"a larger {named('max_iter')} makes topics sharper"
        advice = "rounding hides further gains" if model.n_iter_ < most else larger
        report.note(f"Stopped after {model.n_iter_} iterations, before convergence: {advice}.")
    return interrupted, time.perf_counter() - start


def perplexity_shown(entry: Mapping[str, float]) -> str:
    """Return the perplexity of an iteration for a progress bar; "" if the model has none."""
    return f", perplexity {perplexity_of(entry['log_likelihood']):.1f}" if "log_likelihood" in entry else ""
